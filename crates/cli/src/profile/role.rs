//! A proposal as a role.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use punctual_diagnostic::Diagnostic;
use punctual_profile::ProfileResult;
use punctual_report::units::time;
use punctual_taskset::{Role, RoleFolders};
use tempfile::NamedTempFile;

use super::{no_proposal, text};
use crate::args_profile::Profile;

/// The file of a role to be written: the folder has the whole role at once or not at all.
pub struct RoleFile {
    name: String,
    path: PathBuf,
    replace: bool,
    cpu: Option<u32>,
    /// Has a hidden name, which is none of a role.
    temporary: NamedTempFile,
}

impl RoleFile {
    /// The file that `--write-role` names. What cannot be written later is refused here.
    ///
    /// # Errors
    /// The name is none of a role; there is one, and it is not to be replaced; the folder cannot be
    /// made or written.
    pub fn of(args: &Profile) -> Result<Option<RoleFile>, Diagnostic> {
        let Some(name) = args.write_role.clone() else { return Ok(None) };
        Role::check_name(&name)?;
        let folders = RoleFolders::default();
        let folder = args.role_folder.as_deref().or(folders.paths().first().map(PathBuf::as_path));
        let folder = folder.ok_or_else(|| {
            Diagnostic::usage("PUNCTUAL_ROLES names no folder", "name one by --role-folder")
        })?;
        let path = folder.join(format!("{name}.toml"));
        if !args.replace_role && path.symlink_metadata().is_ok() {
            return Err(taken(&path));
        }
        let temporary = fs::create_dir_all(folder)
            .and_then(|()| tempfile::Builder::new().prefix(".role-").tempfile_in(folder))
            .map_err(|e| cannot_write(&path, e))?;
        Ok(Some(RoleFile { name, path, replace: args.replace_role, cpu: args.cpu, temporary }))
    }

    /// Writes the proposal. What to tell people.
    ///
    /// # Errors
    /// There is no proposal; the file cannot be written, or has been made meanwhile.
    pub fn write(self, result: &ProfileResult) -> Result<String, Diagnostic> {
        let RoleFile { name, path, replace, cpu, mut temporary } = self;
        let proposal = result.proposal.as_ref().ok_or_else(|| no_proposal(&path))?;
        let role = Role {
            name,
            description: format!("{}, by punctual profile", result.name),
            period: proposal.period_ns,
            budget: proposal.budget_ns,
            deadline: None,
            overrun: None,
            cpu,
            policy: Some(proposal.policy.clone()).filter(|policy| policy != "edf"),
            group: None,
        };
        let content = format!("# {}\n{}", text::verdict(result), role.to_toml());
        temporary
            .write_all(content.as_bytes())
            // All users may use a role.
            .and_then(|()| temporary.as_file().set_permissions(Permissions::from_mode(0o644)))
            .and_then(|()| temporary.as_file().sync_all())
            .map_err(|e| cannot_write(&path, e))?;
        let persisted = match replace {
            true => temporary.persist(&path),
            false => temporary.persist_noclobber(&path),
        };
        match persisted {
            Ok(_) => Ok(format!(
                "\nWritten as the role {}, {} in every {}: {}\n",
                role.name,
                time(role.budget),
                time(role.period),
                path.display()
            )),
            Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => Err(taken(&path)),
            Err(e) => Err(cannot_write(&path, e.error)),
        }
    }
}

fn taken(path: &Path) -> Diagnostic {
    Diagnostic::usage(
        format!("there is a role {}", path.display()),
        "choose another name, or replace it by --replace-role",
    )
}

fn cannot_write(path: &Path, error: std::io::Error) -> Diagnostic {
    Diagnostic::refused(
        format!("the role {} cannot be written", path.display()),
        error,
        "name a folder that may be written by --role-folder",
    )
}
