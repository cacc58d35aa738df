//! The names of objects.

use std::fmt;
use std::str::FromStr;

use punctual_diagnostic::Diagnostic;

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// The name of an object: 1 to 64 ASCII letters, digits, `.`, `-` and `_`, the first a letter or a
/// digit. A number is a name as well: RT-Linux's FIFOs have no others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<u32> for Name {
    fn from(number: u32) -> Self {
        Self(number.to_string())
    }
}

impl FromStr for Name {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if first && text.len() <= LONGEST && text.bytes().all(good) {
            return Ok(Self(text.to_owned()));
        }
        Err(Diagnostic::usage(
            format!("{text:?} is no name of an object"),
            format!(
                "use a number, or at most {LONGEST} letters, digits, `.`, `-` and `_`, the first \
                 a letter or a digit"
            ),
        ))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_folder_or_look_like_an_option() {
        for good in ["a", "0", "rtf3", "Servo.commands_2-x", &"n".repeat(64)] {
            assert_eq!(good.parse::<Name>().expect("a name").as_str(), good);
        }
        for bad in ["", ".", "..", ".hidden", "-x", "_x", "a/b", "a b", "ä", "a\n", &"n".repeat(65)]
        {
            let error = bad.parse::<Name>().expect_err("no name").to_string();
            assert!(error.contains("is no name of an object; use a number"), "{error}");
        }
        assert_eq!(Name::from(7).as_str(), "7");
    }
}
