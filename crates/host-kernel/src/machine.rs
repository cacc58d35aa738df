//! What the machine needs before the scheduler is loaded.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::diagnostics::OTHERS;
use crate::privilege::Missing;
use punctual_diagnostic::Diagnostic;

const OLDEST: (u32, u32) = (6, 18);
const STARVES_NOT: (u32, u32) = (7, 0);
/// As in `bpf/cpus.h`.
const MOST_CPUS: u32 = 1_024;
/// A scheduler that is going is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether this machine can run the kernel host on these CPUs.
///
/// # Errors
/// The first thing that is missing, by name, and what the other hosts do instead.
pub fn check(cpus: &[u32]) -> Result<(), Diagnostic> {
    let limit = Instant::now() + PATIENCE;
    while read(Path::new("/"), STATE) == "disabling" && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(10));
    }
    missing_at(Path::new("/"), Missing::here(), cpus).into_iter().next().map_or(Ok(()), Err)
}

/// All that is missing on this machine, the most fundamental first; empty: the kernel host can
/// work.
pub fn missing() -> Vec<Diagnostic> {
    missing_at(Path::new("/"), Missing::here(), &[])
}

/// Whether sched_ext's class may be starved by the normal one, which is above it. The kernel keeps
/// a share for it since Linux 7.
pub(crate) fn starves() -> bool {
    version(&read(Path::new("/"), "proc/sys/kernel/osrelease")).is_some_and(|v| v < STARVES_NOT)
}

const STATE: &str = "sys/kernel/sched_ext/state";
/// What sched_ext is doing, in a word.
pub(crate) const STATE_FILE: &str = "/sys/kernel/sched_ext/state";

fn read(root: &Path, path: &str) -> String {
    std::fs::read_to_string(root.join(path)).unwrap_or_default().trim().to_owned()
}

fn missing_at(root: &Path, missing: Option<Missing>, cpus: &[u32]) -> Vec<Diagnostic> {
    let release = read(root, "proc/sys/kernel/osrelease");
    if release.is_empty() {
        let cause = "/proc cannot be read, by which we know the machine and our privileges";
        return vec![Diagnostic::machine(cause, "mount it: mount -t proc proc /proc")];
    }
    let mut found = Vec::new();
    let mut lacks = |what: String| found.push(Diagnostic::machine(what, OTHERS));
    if version(&release).is_some_and(|v| v < OLDEST) {
        lacks(format!(
            "this kernel ({release}) is too old for the kernel host, which needs Linux 6.18 or \
             later"
        ));
    }
    if !root.join("sys/kernel/sched_ext").exists() {
        lacks(format!(
            "this kernel has no sched_ext ({release}; CONFIG_SCHED_CLASS_EXT is not set), which \
             the kernel host is made of"
        ));
    }
    if !root.join("sys/kernel/btf/vmlinux").exists() {
        lacks(format!(
            "this kernel has no BTF ({release}; CONFIG_DEBUG_INFO_BTF is not set), by which the \
             kernel host finds its way"
        ));
    }
    if read(root, "sys/kernel/security/lockdown").contains("[confidentiality]") {
        lacks(
            "this kernel is locked down (confidentiality), which forbids BPF to read its memory"
                .to_owned(),
        );
    }
    if let Some(missing) = missing {
        lacks(missing.to_string());
    }
    let possible = read(root, "sys/devices/system/cpu/possible");
    if possible
        .rsplit(['-', ','])
        .next()
        .and_then(|last| last.parse().ok())
        .is_some_and(|last: u32| last >= MOST_CPUS)
    {
        lacks(format!(
            "this machine may have more than {MOST_CPUS} CPUs ({possible}), for which the kernel \
             host has no room"
        ));
    }
    let online = read(root, "sys/devices/system/cpu/online");
    if let Some(cpu) = cpus.iter().find(|&&cpu| !in_list(&online, cpu)) {
        let help = format!("choose one of these, or bring it up: chcpu -e {cpu}");
        found.push(Diagnostic::machine(
            format!("CPU {cpu} is not online (online are {online})"),
            help,
        ));
    }
    found.extend(another(root));
    found
}

/// Another scheduler is there.
fn another(root: &Path) -> Option<Diagnostic> {
    if matches!(read(root, STATE).as_str(), "" | "disabled") {
        return None;
    }
    let name = read(root, "sys/kernel/sched_ext/root/ops");
    let cause =
        format!("another sched_ext scheduler is there already ({name}); there is one at a time");
    Some(Diagnostic::machine(cause, format!("end it; or {OTHERS}")).with_errno(libc::EBUSY))
}

/// Why the kernel may have refused to attach ours: another scheduler was attached first. (One that
/// is being detached may be ours.)
pub(crate) fn taken() -> Option<Diagnostic> {
    another(Path::new("/")).filter(|_| read(Path::new("/"), STATE) == "enabled")
}

/// Whether a list such as `0-3,8` has a number.
fn in_list(list: &str, number: u32) -> bool {
    list.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>(), last.trim().parse::<u32>());
        matches!((first, last), (Ok(first), Ok(last)) if (first..=last).contains(&number))
    })
}

/// Major and minor of a kernel release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::{in_list, missing_at, version};
    use std::fs;
    use std::path::PathBuf;

    /// What is missing of a machine that has everything, but for what `change` does to it; asked
    /// for CPUs 0 and 1.
    fn machine(name: &str, change: impl Fn(&PathBuf)) -> Vec<String> {
        let root =
            std::env::temp_dir().join(format!("punctual-machine-{name}-{}", std::process::id()));
        let files = [
            ("proc/sys/kernel/osrelease", "6.18.15-amd64\n"),
            ("sys/kernel/sched_ext/state", "disabled\n"),
            ("sys/kernel/btf/vmlinux", ""),
            ("sys/devices/system/cpu/online", "0-1\n"),
        ];
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("room");
            fs::write(path, text).expect("room");
        }
        change(&root);
        let found = missing_at(&root, None, &[0, 1]);
        fs::remove_dir_all(&root).expect("ours");
        found.iter().map(|e| format!("{}: {e}", e.exit_code())).collect()
    }

    fn only(found: &[String]) -> &str {
        assert_eq!(found.len(), 1, "{found:?}");
        &found[0]
    }

    #[test]
    fn a_machine_with_everything_lacks_nothing() {
        assert_eq!(machine("whole", |_| {}), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_is_named_with_what_the_other_hosts_do() {
        let old = machine("old", |r| {
            fs::write(r.join("proc/sys/kernel/osrelease"), "6.12.1").expect("room")
        });
        assert!(only(&old).starts_with("4: this kernel (6.12.1) is too old"), "{old:?}");
        let none =
            machine("none", |r| fs::remove_dir_all(r.join("sys/kernel/sched_ext")).expect("ours"));
        assert!(only(&none).starts_with("4: this kernel has no sched_ext"), "{none:?}");
        assert!(none[0].contains("--host user") && none[0].contains("--host sim"), "{none:?}");
        let btf =
            machine("btf", |r| fs::remove_file(r.join("sys/kernel/btf/vmlinux")).expect("ours"));
        assert!(only(&btf).starts_with("4: this kernel has no BTF"), "{btf:?}");
        let cpus = machine("cpus", |r| {
            fs::write(r.join("sys/devices/system/cpu/online"), "0,2-3\n").expect("room")
        });
        assert!(only(&cpus).starts_with("4: CPU 1 is not online (online are 0,2-3)"), "{cpus:?}");
        let taken = machine("taken", |r| {
            fs::write(r.join("sys/kernel/sched_ext/state"), "enabled\n").expect("room")
        });
        assert!(
            only(&taken).starts_with("4: another sched_ext scheduler is there already"),
            "{taken:?}"
        );
        let possible = "sys/devices/system/cpu/possible";
        assert!(
            machine("some", |r| fs::write(r.join(possible), "0-1023\n").expect("room")).is_empty()
        );
        let many = machine("many", |r| fs::write(r.join(possible), "0-1151\n").expect("room"));
        assert!(
            only(&many).starts_with("4: this machine may have more than 1024 CPUs (0-1151)"),
            "{many:?}"
        );
        let locked = machine("locked", |r| {
            fs::create_dir_all(r.join("sys/kernel/security")).expect("room");
            fs::write(r.join("sys/kernel/security/lockdown"), "none integrity [confidentiality]\n")
                .expect("room");
        });
        assert!(only(&locked).contains("locked down (confidentiality)"), "{locked:?}");
    }

    #[test]
    fn without_proc_nothing_else_is_said_to_be_missing() {
        let bare = machine("bare-proc", |r| fs::remove_dir_all(r.join("proc")).expect("ours"));
        assert!(only(&bare).starts_with("4: /proc cannot be read"), "{bare:?}");
    }

    #[test]
    fn all_that_is_missing_is_found() {
        let bare = machine("bare", |r| {
            fs::write(r.join("proc/sys/kernel/osrelease"), "6.1.0").expect("room");
            fs::remove_dir_all(r.join("sys/kernel/sched_ext")).expect("ours");
        });
        assert_eq!(bare.len(), 2, "{bare:?}");
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert!(in_list("0-3,8", 2) && in_list("0-3,8", 8) && in_list("0", 0));
        assert!(!in_list("0-3,8", 5) && !in_list("", 0));
    }

    #[test]
    fn a_release_has_a_version() {
        assert_eq!(version("7.3.4+deb13-cloud-amd64"), Some((7, 3)));
        assert_eq!(version("odd"), None);
    }
}
