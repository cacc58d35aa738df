//! Whether this user can run the user host, by trying.

use crate::calls::FifoAttempt;
use crate::cgroup;
use crate::finding::{Evidence, Finding, NO_HELP};
use crate::scene::{Cap, Scene};

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![realtime_permitted(scene), capabilities(scene)]
}

const HOST_CAPS: &str = "cap_sys_nice,cap_ipc_lock,cap_kill";

/// Ways to the privilege, for a root shell.
pub fn grant(scene: &Scene) -> Vec<String> {
    let mut help = setcap(scene);
    help.push("# or, for every program of this user, and after a new login:".into());
    help.extend(limits_d(scene, "rtprio 99"));
    help.push("# or run it as root: sudo punctual ...".into());
    help
}

/// File capabilities, unless this process could not gain by them.
pub fn setcap(scene: &Scene) -> Vec<String> {
    if scene.no_new_privs() {
        return Vec::new();
    }
    let mut help = Vec::new();
    let tool = ["/usr/sbin/setcap", "/sbin/setcap"];
    if !tool.iter().any(|path| scene.probe.exists(path)) {
        help.push("apt-get update && apt-get install libcap2-bin".into());
    }
    help.push(format!("setcap {HOST_CAPS}+ep \"$(command -v punctual)\""));
    help
}

/// A line for pam_limits, for the calling user.
pub fn limits_d(scene: &Scene, what: &str) -> Vec<String> {
    let user = scene.user();
    vec![format!("echo '{user} - {what}' >> /etc/security/limits.d/punctual.conf")]
}

fn realtime_permitted(scene: &Scene) -> Finding {
    let about = Finding::about("realtime-permitted", "SCHED_FIFO for this user");
    let stake =
        "without SCHED_FIFO nothing runs before other programs, and no budget can be promised";
    let Some(calls) = &scene.calls else {
        return about.unknown("no system call was made", stake, NO_HELP);
    };
    let (priority, errno) = match (calls.fifo_lowest, calls.fifo_highest) {
        (FifoAttempt::Granted, FifoAttempt::Granted) => {
            return about
                .saw(&Evidence::new("syscall sched_setscheduler", "SCHED_FIFO 1 and 99: granted"))
                .good("a dispatcher may run at SCHED_FIFO 99 and its jobs below it");
        }
        (FifoAttempt::Refused(errno), _) => (1, errno),
        (_, FifoAttempt::Refused(errno)) => (99, errno),
        _ => {
            return about.unknown(
                "it could not be tried: no thread could be created",
                stake,
                NO_HELP,
            )
        }
    };
    let about = about.saw(&Evidence::new(
        "syscall sched_setscheduler",
        format!("SCHED_FIFO {priority}: {}", std::io::Error::from_raw_os_error(errno)),
    ));
    let limit = scene.limit("Max realtime priority");
    let allowed = limit.as_ref().map_or(0, |(n, _)| *n);
    let about = limit.iter().fold(about, |about, (_, reading)| about.saw(reading));
    if errno != libc::EPERM {
        return about.obstacle(
            "the kernel refuses it, though not for want of privilege",
            stake,
            NO_HELP,
        );
    }
    if !scene.can(Cap::SysNice) && allowed < priority {
        let cause = format!("CAP_SYS_NICE is missing, and the limit RTPRIO is {allowed}");
        return about.obstacle(cause, stake, grant(scene));
    }
    if let Some(forbidding) = cgroup::forbidding(scene) {
        let cause = format!(
            "the cgroup {} has no real-time runtime (RT_GROUP_SCHED)",
            forbidding.hierarchy.dir
        );
        return about.saw(&forbidding.reading).obstacle(cause, stake, forbidding.help(scene));
    }
    if scene.user_namespace() {
        return about.obstacle(
            "capabilities of a user namespace do not reach the scheduler",
            stake,
            ["# run it outside of the container, or start the container with: --userns=host \
              --cap-add=SYS_NICE"],
        );
    }
    if scene.seccomp() {
        return about.obstacle(
            "a system call filter (seccomp), as containers have, refuses it",
            stake,
            ["# start the container with: --cap-add=SYS_NICE, or --security-opt \
              seccomp=unconfined"],
        );
    }
    about.obstacle(
        "the privilege is there, and the kernel refuses all the same (RT_GROUP_SCHED or a security \
         module)",
        stake,
        ["dmesg | tail"],
    )
}

fn capabilities(scene: &Scene) -> Finding {
    let about = Finding::about("capabilities", "Capabilities");
    let (_, reading) = match scene.capabilities() {
        Ok(c) => c,
        Err(e) => {
            return about.unknown(e.to_string(), "what this user may do is not known", NO_HELP)
        }
    };
    let about = about.saw(&reading);
    let wanted = [
        (Cap::SysNice, "CAP_SYS_NICE", "SCHED_FIFO without a limit, and for programs of others"),
        (Cap::IpcLock, "CAP_IPC_LOCK", "memory locked without a limit"),
        (Cap::Kill, "CAP_KILL", "stopping programs of other users"),
        (Cap::SysResource, "CAP_SYS_RESOURCE", "raising a hard limit"),
        (Cap::SysAdmin, "CAP_SYS_ADMIN", "mounting, and the kernel host"),
        (Cap::Bpf, "CAP_BPF", "the kernel host"),
        (Cap::Perfmon, "CAP_PERFMON", "the kernel host"),
    ];
    let missing: Vec<_> = wanted.iter().filter(|(cap, ..)| !scene.can(*cap)).collect();
    if missing.is_empty() {
        return about.good("all that Punctual ever needs");
    }
    let names: Vec<&str> = missing.iter().map(|(_, name, _)| *name).collect();
    let uses: Vec<&str> = missing.iter().map(|(_, _, what)| *what).collect();
    let help = match scene.uid() {
        Some(0) => {
            vec!["# root without them: the machine, or the container, was started that way"
                .to_string()]
        }
        _ => {
            let mut help = setcap(scene);
            help.push("# or run it as root: sudo punctual ...".into());
            help
        }
    };
    about.note(
        format!("missing: {}", names.join(", ")),
        format!("not possible: {}", uses.join("; ")),
        help,
    )
}
