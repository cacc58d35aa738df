//! Where the roles of a machine are.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::explain::nearest;
use crate::role::EXTENSION;
use crate::Role;
use punctual_diagnostic::Diagnostic;

/// The folders with roles, the first that has a role holds: the machine's own, then those of
/// packages.
pub const ROLE_FOLDERS: [&str; 3] =
    ["/etc/punctual/roles.d", "/usr/local/lib/punctual/roles.d", "/usr/lib/punctual/roles.d"];

/// The environment variable with other folders in place of [`ROLE_FOLDERS`], separated by colons.
pub const ROLES_VARIABLE: &str = "PUNCTUAL_ROLES";

/// Folders with role files, in the order in which a role is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleFolders(Vec<PathBuf>);

/// A role's file.
#[derive(Debug)]
pub struct FoundRole {
    /// The stem of its name.
    pub name: String,
    /// Where it is.
    pub file: PathBuf,
    /// Files of the same name in later folders, which it replaces.
    pub replaced: Vec<PathBuf>,
    /// The role, or what is wrong with the file.
    pub role: Result<Role, Diagnostic>,
}

impl Default for RoleFolders {
    /// Those of [`ROLES_VARIABLE`], if it is set and not empty; else [`ROLE_FOLDERS`].
    fn default() -> RoleFolders {
        match std::env::var_os(ROLES_VARIABLE).filter(|list| !list.is_empty()) {
            Some(list) => RoleFolders::new(std::env::split_paths(&list)),
            None => RoleFolders::new(ROLE_FOLDERS),
        }
    }
}

impl RoleFolders {
    /// These folders, in their order. A folder that does not exist has no roles.
    pub fn new(folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> RoleFolders {
        let folders = folders.into_iter().map(Into::into);
        RoleFolders(folders.filter(|folder| !folder.as_os_str().is_empty()).collect())
    }

    /// In the order in which a role is looked for.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.0
    }

    /// Reads the role of this name from the first folder that has it. A file that is wrong is an
    /// error, although a later folder may have a right one.
    ///
    /// # Errors
    /// `name` is none of a role; no folder has it, with the nearest name and the folders; its file
    /// is wrong ([`Role::load`]).
    pub fn find(&self, name: &str) -> Result<Role, Diagnostic> {
        self.look_up(name)?.role
    }

    /// As [`RoleFolders::find`], with the files.
    ///
    /// # Errors
    /// `name` is none of a role; no folder has it; a folder cannot be read.
    pub fn look_up(&self, name: &str) -> Result<FoundRole, Diagnostic> {
        Role::check_name(name)?;
        let paths = self.0.iter().map(|folder| folder.join(format!("{name}.{EXTENSION}")));
        // A file that cannot be examined is an error when it is read.
        let is_there = |path: &PathBuf| match path.symlink_metadata() {
            Ok(_) => true,
            Err(e) => !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        let files: Vec<PathBuf> = paths.filter(is_there).collect();
        match files.is_empty() {
            true => Err(self.unknown(name)?),
            false => Ok(found(name.to_owned(), files)),
        }
    }

    /// All roles, by name. A file that is wrong is listed with its error.
    ///
    /// # Errors
    /// A folder exists and cannot be read.
    pub fn list(&self) -> Result<Vec<FoundRole>, Diagnostic> {
        Ok(self.files()?.into_iter().map(|(name, files)| found(name, files)).collect())
    }

    /// The files of each name, in the order of the folders.
    fn files(&self) -> Result<BTreeMap<String, Vec<PathBuf>>, Diagnostic> {
        let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for folder in &self.0 {
            let unreadable = |error| {
                Diagnostic::refused(
                    format!("the roles in {} cannot be listed", folder.display()),
                    error,
                    "make it a folder that can be read, or remove it",
                )
            };
            let entries = match std::fs::read_dir(folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(unreadable(error)),
            };
            for entry in entries {
                let path = entry.map_err(unreadable)?.path();
                if let Some(name) = role_name(&path) {
                    files.entry(name).or_default().push(path);
                }
            }
        }
        Ok(files)
    }

    fn unknown(&self, name: &str) -> Result<Diagnostic, Diagnostic> {
        let files = self.files()?;
        let known: Vec<&str> = files.keys().map(String::as_str).collect();
        let looked = self.0.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>();
        let looked = match &looked[..] {
            [] => "no folder: PUNCTUAL_ROLES names none".to_owned(),
            all => all.join(", "),
        };
        let cause = format!("there is no role {name:?}; looked in {looked}");
        let help = match (nearest(name, &known), &known[..]) {
            (Some(near), _) => format!("did you mean {near:?}? punctual role list has all"),
            (None, []) => "write NAME.toml into one of these folders (docs/roles.md)".to_owned(),
            (None, _) => format!("use one of {}", known.join(", ")),
        };
        Ok(Diagnostic::usage(cause, help))
    }
}

/// The name of the role of a file; `None` for others and for hidden ones, as editors leave them.
fn role_name(path: &Path) -> Option<String> {
    let stem = path.file_stem().and_then(OsStr::to_str)?;
    (path.extension() == Some(OsStr::new(EXTENSION)) && !stem.starts_with('.'))
        .then(|| stem.to_owned())
}

fn found(name: String, mut files: Vec<PathBuf>) -> FoundRole {
    let file = files.remove(0);
    FoundRole { name, role: Role::load(&file), file, replaced: files }
}
