//! What the machine needs before the scheduler is loaded.

use std::path::Path;

use crate::privilege::Missing;
use crate::run_error::{RunError, OTHERS};

const OLDEST: (u32, u32) = (6, 18);

/// Whether this machine can run the kernel host.
///
/// # Errors
/// The first thing that is missing, by name, and what the other hosts do instead.
pub fn check() -> Result<(), RunError> {
    check_at(Path::new("/"), Missing::here())
}

fn check_at(root: &Path, missing: Option<Missing>) -> Result<(), RunError> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let lacks = |what: String| Err(RunError::machine(what, OTHERS));
    let release = read("proc/sys/kernel/osrelease");
    let release = release.trim();
    if version(release).is_some_and(|v| v < OLDEST) {
        return lacks(format!(
            "this kernel ({release}) is too old for the kernel host, which needs Linux 6.18 or later"
        ));
    }
    if !root.join("sys/kernel/sched_ext").exists() {
        return lacks(format!(
            "this kernel has no sched_ext ({release}; CONFIG_SCHED_CLASS_EXT is not set), which the kernel host is made of"
        ));
    }
    if !root.join("sys/kernel/btf/vmlinux").exists() {
        return lacks(format!(
            "this kernel has no BTF ({release}; CONFIG_DEBUG_INFO_BTF), which the kernel host needs"
        ));
    }
    if read("sys/kernel/realtime").trim() == "1" {
        return lacks("this kernel is PREEMPT_RT, where the kernel host has no timer yet".to_owned());
    }
    if read("sys/kernel/security/lockdown").contains("[confidentiality]") {
        return lacks("this kernel is locked down (confidentiality), which forbids BPF to read its memory".to_owned());
    }
    if let Some(missing) = missing {
        return lacks(missing.to_string());
    }
    let online = read("sys/devices/system/cpu/online");
    if online.trim() != "0" {
        return lacks(format!(
            "the CPUs {} are online, and the kernel host works on machines with one CPU yet",
            online.trim()
        ));
    }
    if read("sys/kernel/sched_ext/state").trim() == "enabled" {
        let name = read("sys/kernel/sched_ext/root/ops");
        return Err(RunError::machine(
            format!("another sched_ext scheduler is there already ({})", name.trim()),
            format!("end it; or {OTHERS}"),
        ));
    }
    Ok(())
}

/// Major and minor of a kernel release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::{check_at, version};
    use std::fs;
    use std::path::PathBuf;

    /// A machine that has everything, but for what `change` does to it.
    fn machine(name: &str, change: impl Fn(&PathBuf)) -> String {
        let root = std::env::temp_dir().join(format!("punctual-machine-{name}-{}", std::process::id()));
        let files = [
            ("proc/sys/kernel/osrelease", "6.18.15-amd64\n"),
            ("sys/kernel/sched_ext/state", "disabled\n"),
            ("sys/kernel/btf/vmlinux", ""),
            ("sys/devices/system/cpu/online", "0\n"),
        ];
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("room");
            fs::write(path, text).expect("room");
        }
        change(&root);
        let said = check_at(&root, None).map_or_else(|e| format!("{}: {e}", e.exit_code), |()| "fine".to_owned());
        fs::remove_dir_all(&root).expect("ours");
        said
    }

    #[test]
    fn a_machine_with_everything_is_fine() {
        assert_eq!(machine("whole", |_| {}), "fine");
    }

    #[test]
    fn what_is_missing_is_named_with_what_the_other_hosts_do() {
        let old = machine("old", |r| fs::write(r.join("proc/sys/kernel/osrelease"), "6.12.1").expect("room"));
        assert!(old.starts_with("4: this kernel (6.12.1) is too old"), "{old}");
        let none = machine("none", |r| fs::remove_dir_all(r.join("sys/kernel/sched_ext")).expect("ours"));
        assert!(none.starts_with("4: this kernel has no sched_ext") && none.contains("--host user"), "{none}");
        let btf = machine("btf", |r| fs::remove_file(r.join("sys/kernel/btf/vmlinux")).expect("ours"));
        assert!(btf.starts_with("4: this kernel has no BTF"), "{btf}");
        let rt = machine("rt", |r| fs::write(r.join("sys/kernel/realtime"), "1\n").expect("room"));
        assert!(rt.starts_with("4: this kernel is PREEMPT_RT"), "{rt}");
        let cpus = machine("cpus", |r| fs::write(r.join("sys/devices/system/cpu/online"), "0-3\n").expect("room"));
        assert!(cpus.starts_with("4: the CPUs 0-3 are online"), "{cpus}");
        let taken = machine("taken", |r| fs::write(r.join("sys/kernel/sched_ext/state"), "enabled\n").expect("room"));
        assert!(taken.starts_with("4: another sched_ext scheduler"), "{taken}");
    }

    #[test]
    fn a_release_has_a_version() {
        assert_eq!(version("7.3.4+deb13-cloud-amd64"), Some((7, 3)));
        assert_eq!(version("odd"), None);
    }
}
