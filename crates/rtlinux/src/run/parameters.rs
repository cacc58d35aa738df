//! Parameters of a module: `MODULE_PARM(name, "1-4i")` and `module_param(name, int, 0)`.

use std::ffi::{c_char, c_int, c_long, c_short, c_uint, c_ulong, c_ushort, CString};
use std::mem::size_of;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Byte,
    Short,
    UnsignedShort,
    Int,
    UnsignedInt,
    Long,
    UnsignedLong,
    Bool,
    Text,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub name: Vec<u8>,
    kind: ValueKind,
    /// How many values, at most.
    most: usize,
}

impl ValueKind {
    fn size(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Short | Self::UnsignedShort => size_of::<c_short>(),
            Self::Int | Self::UnsignedInt | Self::Bool => size_of::<c_int>(),
            Self::Long | Self::UnsignedLong => size_of::<c_long>(),
            Self::Text => size_of::<*const c_char>(),
        }
    }

    /// The bytes of a value; `None`: it is none, or out of its range.
    fn bytes(self, text: &str) -> Option<Vec<u8>> {
        let number = || number(text);
        Some(match self {
            Self::Byte => {
                let number = number()?;
                let byte = i8::try_from(number).map(|n| n as u8).or_else(|_| u8::try_from(number));
                vec![byte.ok()?]
            }
            Self::Short => c_short::try_from(number()?).ok()?.to_ne_bytes().into(),
            Self::UnsignedShort => c_ushort::try_from(number()?).ok()?.to_ne_bytes().into(),
            Self::Int => c_int::try_from(number()?).ok()?.to_ne_bytes().into(),
            Self::UnsignedInt => c_uint::try_from(number()?).ok()?.to_ne_bytes().into(),
            Self::Long => c_long::try_from(number()?).ok()?.to_ne_bytes().into(),
            Self::UnsignedLong => c_ulong::try_from(number()?).ok()?.to_ne_bytes().into(),
            Self::Bool => {
                let is_true = match text {
                    "1" | "y" | "Y" => true,
                    "0" | "n" | "N" => false,
                    _ => return None,
                };
                c_int::from(is_true).to_ne_bytes().into()
            }
            // The program has it until it ends.
            Self::Text => {
                let text = CString::new(text).ok()?.into_raw();
                (text as usize).to_ne_bytes().into()
            }
        })
    }
}

/// As C writes numbers: decimal, hexadecimal (0x) or octal (0).
fn number(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    let is_number = digits.starts_with(|c: char| c.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(digits, radix).ok())?.map(|n| sign * i128::from(n))
}

impl Parameter {
    /// What `MODULE_PARM` wrote into the file: `name=type`.
    pub fn declared(text: &[u8]) -> Option<Parameter> {
        let text = std::str::from_utf8(text).ok()?;
        let (name, kind) = text.split_once('=')?;
        let letters = kind.find(|c: char| c.is_ascii_alphabetic())?;
        let (range, kind) = kind.split_at(letters);
        let kind = match kind {
            "b" | "byte" => ValueKind::Byte,
            "h" | "short" => ValueKind::Short,
            "ushort" => ValueKind::UnsignedShort,
            "i" | "int" => ValueKind::Int,
            "uint" => ValueKind::UnsignedInt,
            "l" | "long" => ValueKind::Long,
            "ulong" => ValueKind::UnsignedLong,
            "bool" => ValueKind::Bool,
            "s" | "charp" => ValueKind::Text,
            _ => return None,
        };
        let most = match range {
            "" => 1,
            range => range.rsplit('-').next()?.parse().ok()?,
        };
        Some(Parameter { name: name.into(), kind, most })
    }

    /// The bytes of the variable for this text: values with commas between.
    ///
    /// # Errors
    /// What is wrong with it. `room`: bytes of the variable.
    pub fn bytes(&self, text: &str, room: u64) -> Result<Vec<u8>, String> {
        let values: Vec<&str> = match self.most {
            // A text may have commas in it.
            1 => vec![text],
            _ => text.split(',').collect(),
        };
        let name = String::from_utf8_lossy(&self.name);
        if values.len() > self.most {
            return Err(format!("{name} has {} values; it takes {}", values.len(), self.most));
        }
        let mut bytes = Vec::new();
        for value in values {
            let kind = format!("{:?}", self.kind).to_lowercase();
            let of_value = self.kind.bytes(value);
            bytes.extend(of_value.ok_or_else(|| format!("{name}={value} is no {kind}"))?);
        }
        // A bool of C has one byte.
        if self.kind == ValueKind::Bool && room == 1 {
            bytes = vec![bytes.iter().copied().max().unwrap_or(0)];
        }
        match bytes.len() as u64 <= room && room >= self.kind.size().min(bytes.len()) as u64 {
            true => Ok(bytes),
            false => Err(format!("{name} has {room} bytes, fewer than its values")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(declared: &str, text: &str, room: u64) -> Result<Vec<u8>, String> {
        Parameter::declared(declared.as_bytes()).expect("a parameter").bytes(text, room)
    }

    #[test]
    fn values_are_read_as_c_writes_them_and_kept_within_their_variable() {
        assert_eq!(bytes("period=i", "1000000", 4), Ok(1_000_000i32.to_ne_bytes().into()));
        assert_eq!(bytes("port=h", "0x378", 2), Ok(0x378i16.to_ne_bytes().into()));
        assert_eq!(bytes("mode=b", "-1", 1), Ok(vec![255]));
        assert_eq!(bytes("mode=b", "0377", 1), Ok(vec![255]));
        assert_eq!(
            bytes("length=l", "-9000000000", 8),
            Ok((-9_000_000_000i64).to_ne_bytes().into())
        );
        let array = [1i32, 2, 3].map(i32::to_ne_bytes).concat();
        assert_eq!(bytes("all=1-4i", "1,2,3", 16), Ok(array));
        assert_eq!(bytes("on=bool", "y", 1), Ok(vec![1]));
        for (declared, text, room) in [
            ("period=i", "", 4),
            ("period=i", "5x", 4),
            ("period=i", "-", 4),
            ("period=i", "4294967296", 4),
            ("period=i", "1,2", 4),
            ("period=i", "1", 2),
            ("all=1-4i", "1,2,3,4,5", 64),
            ("all=1-4i", "1,2,3", 8),
            ("mode=b", "256", 1),
            ("on=bool", "2", 4),
        ] {
            assert!(bytes(declared, text, room).is_err(), "{declared} {text}");
        }
    }

    #[test]
    fn what_is_no_declaration_is_none() {
        for bad in ["", "x", "x=", "x=q", "x=4", "x=1-zi", "=", "\u{ff}"] {
            assert_eq!(Parameter::declared(bad.as_bytes()), None, "{bad}");
        }
        assert!(Parameter::declared(b"\xff=i").is_none());
    }
}
