//! Whose a process is.

use crate::user::User;
use punctual_process::Identity;
use punctual_service::ServiceError;

/// A wrong request.
pub fn invalid(cause: String, help: impl Into<String>) -> ServiceError {
    ServiceError::InvalidRequest { cause, help: help.into() }
}

/// The process, if the caller may control it: its real, effective and saved user are the caller's.
/// So a program with set-user-id rights is refused, as the kernel refuses to trace it.
///
/// # Errors
/// No such process; it is another user's.
pub fn check_owner(pid: i32, caller: &User) -> Result<Identity, ServiceError> {
    let gone = || invalid(format!("there is no process {pid}"), "give the number of a process");
    let process = Identity::of(pid).filter(|_| pid > 0).ok_or_else(gone)?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(|_| gone())?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).ok_or_else(gone)?;
    let own = |uid: &str| uid.parse() == Ok(caller.uid);
    if !caller.is_root() && !uids.split_whitespace().take(3).all(own) {
        return Err(ServiceError::NotPermitted {
            cause: format!("process {pid} is not user {}'s alone", caller.uid),
            help: "reserve for a process of your own".to_owned(),
        });
    }
    // Still the process whose status was read.
    (Identity::of(pid) == Some(process)).then_some(process).ok_or_else(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(uid: u32) -> User {
        User::new(uid, vec![uid])
    }

    #[test]
    fn a_process_is_its_users_and_roots() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("sleep");
        let pid = child.id() as i32;
        // SAFETY: no arguments.
        let uid = unsafe { libc::getuid() };
        for (caller, may) in [(uid, true), (0, true), (uid + 12_345, false)] {
            assert_eq!(check_owner(pid, &user(caller)).is_ok(), may, "{caller}");
        }
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        for gone in [pid, 0, -1, i32::MAX] {
            let refusal = check_owner(gone, &user(0)).expect_err("it is gone");
            assert!(matches!(refusal, ServiceError::InvalidRequest { .. }), "{refusal:?}");
        }
    }
}
