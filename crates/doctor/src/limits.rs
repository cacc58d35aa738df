//! Resource limits.

use crate::finding::{Finding, NO_HELP};
use crate::privilege::{grant, limits_d, setcap};
use crate::scene::{Cap, Scene};

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![realtime_priority_limit(scene), locked_memory(scene), open_files(scene)]
}

fn realtime_priority_limit(scene: &Scene) -> Finding {
    let about = Finding::about("realtime-priority-limit", "Limit of real-time priority");
    let stake = "a dispatcher needs SCHED_FIFO 99";
    match scene.limit("Max realtime priority") {
        Err(e) => about.unknown(e.to_string(), stake, NO_HELP),
        Ok((n, reading)) if n >= 99 => about.saw(&reading).good("SCHED_FIFO 99 may be used"),
        Ok((_, reading)) if scene.can(Cap::SysNice) => about
            .saw(&reading)
            .good("CAP_SYS_NICE lifts it for us (though not for programs that we start as others)"),
        Ok((n, reading)) => about.saw(&reading).note(
            format!("RLIMIT_RTPRIO is {n}, and CAP_SYS_NICE is missing"),
            format!("{stake}; see realtime-permitted"),
            grant(scene),
        ),
    }
}

/// The stacks and tables that are still to come; what the program has mapped already is locked too.
const ROOM: u64 = 64 << 20;
/// What the help asks for, in KiB.
const ASKED: u64 = 256 << 10;

fn locked_memory(scene: &Scene) -> Finding {
    let about = Finding::about("locked-memory", "Limit of locked memory");
    let stake = "a dispatcher locks its memory, or else it could wait for the disk in the middle \
                 of a decision; without that permission it does not start";
    let need = ROOM.saturating_add(scene.mapped());
    match scene.limit("Max locked memory") {
        Err(e) => about.unknown(e.to_string(), stake, NO_HELP),
        Ok((n, reading)) if n >= need => about.saw(&reading).good("enough for a dispatcher"),
        Ok((_, reading)) if scene.can(Cap::IpcLock) => {
            about.saw(&reading).good("CAP_IPC_LOCK lifts it for us")
        }
        Ok((n, reading)) => {
            let mut help = setcap(scene);
            help.push("# or, for every program of this user, and after a new login:".into());
            help.extend(limits_d(scene, &format!("memlock {ASKED}")));
            about.saw(&reading).obstacle(
                format!(
                    "RLIMIT_MEMLOCK is {n} bytes, some {need} are needed, and CAP_IPC_LOCK is \
                     missing"
                ),
                stake,
                help,
            )
        }
    }
}

/// A task takes up to three descriptors: its process, its cgroup's freezer, its events.
const FILES: u64 = 512;

fn open_files(scene: &Scene) -> Finding {
    let about = Finding::about("open-files", "Limit of open files");
    match scene.limit("Max open files") {
        Err(e) => about.unknown(e.to_string(), "each task needs a few descriptors", NO_HELP),
        Ok((n, reading)) if n >= FILES => {
            about.saw(&reading).good("enough for a hundred tasks and more")
        }
        Ok((n, reading)) => about.saw(&reading).warning(
            format!("RLIMIT_NOFILE is {n}"),
            "a set of many tasks is refused",
            [format!("ulimit -n {FILES}")],
        ),
    }
}
