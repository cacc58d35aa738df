//! Where the project finds the sources of Punctual. No path is compiled into this program, because
//! it may be executed on another machine than it was built on.

use std::fmt;
use std::path::{Path, PathBuf};

use punctual_diagnostic::Diagnostic;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A source of the package `punctual-cli`.
#[derive(Debug, PartialEq, Eq)]
pub enum Source {
    /// A checkout.
    Checkout(String),
    /// A git repository.
    Git(String),
    /// crates.io.
    Registry,
}

impl Source {
    /// The one that is asked for; else the checkout in which this program was built, as long as it
    /// is there; else crates.io.
    ///
    /// # Errors
    /// There is no checkout.
    pub fn find(asked: Option<&Path>) -> Result<Source, Diagnostic> {
        let Some(asked) = asked else {
            let program = std::env::current_exe().unwrap_or_default();
            let checkout = program.ancestors().skip(1).find(|folder| is_checkout(folder));
            return checkout.map_or(Ok(Source::Registry), Source::checkout);
        };
        if let Some(url) = asked.to_str().filter(|url| is_url(url)) {
            return Ok(Source::Git(url.to_owned()));
        }
        let folder = asked.canonicalize().unwrap_or_else(|_| asked.to_owned());
        if !is_checkout(&folder) {
            return Err(Diagnostic::usage(
                format!("--source {}: there are no sources of Punctual", asked.display()),
                "name the folder of a checkout, or the URL of a git repository",
            ));
        }
        Source::checkout(&folder)
    }

    fn checkout(folder: &Path) -> Result<Source, Diagnostic> {
        let path: PathBuf = folder.join("crates/cli");
        let path = path.to_str().ok_or_else(|| {
            let help = "use a folder whose name is UTF-8";
            Diagnostic::usage(format!("{}: Cargo cannot name it", folder.display()), help)
        })?;
        Ok(Source::Checkout(path.to_owned()))
    }

    /// The value of the dependency in `Cargo.toml`.
    pub fn dependency(&self) -> String {
        // What JSON escapes, and how, is valid in a string of TOML.
        let quote = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Source::Checkout(path) => format!("{{ path = {} }}", quote(path)),
            Source::Git(url) => format!("{{ git = {} }}", quote(url)),
            Source::Registry => quote(VERSION),
        }
    }
}

/// What the project depends on, in a sentence.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Checkout(path) => write!(f, "It uses the sources in {path}."),
            Source::Git(url) => write!(f, "It uses the sources at {url}."),
            Source::Registry => write!(
                f,
                "It uses punctual-cli {VERSION} of crates.io. If Cargo does not find it there: \
                 punctual policy new --source PATH|URL"
            ),
        }
    }
}

fn is_checkout(folder: &Path) -> bool {
    folder.join("Cargo.toml").is_file() && folder.join("crates/cli/Cargo.toml").is_file()
}

fn is_url(text: &str) -> bool {
    text.contains("://") || text.starts_with("git@")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_git_repository_and_a_folder_must_be_a_checkout() {
        let find = |text: &str| Source::find(Some(Path::new(text)));
        let url = "https://example.org/punctual.git";
        let git = find(url).expect("it is a URL");
        assert_eq!(git.dependency(), format!("{{ git = \"{url}\" }}"));
        assert_eq!(find("git@h:p").expect("it is one"), Source::Git("git@h:p".to_owned()));
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let checkout = find(root).expect("it is a checkout").dependency();
        assert!(checkout.ends_with("/crates/cli\" }"), "{checkout}");
        assert!(!checkout.contains(".."), "{checkout}");
        let error = find(env!("CARGO_MANIFEST_DIR")).unwrap_err();
        assert!(error.cause.contains("no sources of Punctual"), "{error}");
    }

    #[test]
    fn a_path_is_quoted_as_toml_requires() {
        let source = Source::Checkout("/a \"b\"\\c".to_owned());
        assert_eq!(source.dependency(), r#"{ path = "/a \"b\"\\c" }"#);
        assert_eq!(Source::Registry.dependency(), format!("\"{VERSION}\""));
    }
}
