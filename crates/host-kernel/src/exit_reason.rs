//! How the kernel, or a process through it, ended the scheduler, in words.

use crate::abi::Exit;
use crate::kernel_btf;
use punctual_diagnostic::Diagnostic;

/// `PUNCTUAL_EXIT_...`, with the CPU in the lower half.
pub(crate) const CPU_GONE: i64 = 0x5000_0000;
pub(crate) const TIMER_GONE: i64 = 0x5100_0000;
pub(crate) const TIMER_STORM: i64 = 0x5200_0000;
pub(crate) const UNARMED: i64 = 0x5300_0000;
pub(crate) const CORE_SCHEDULING: i64 = 0x5400_0000;

/// The error of a run whose scheduler ended before it.
pub(crate) fn explain(exit: &Exit) -> Diagnostic {
    let said = [exit.reason(), exit.message()];
    let said: Vec<&str> = said.iter().map(String::as_str).filter(|s| !s.is_empty()).collect();
    let kind = kernel_btf::exit_kind(exit.kind).unwrap_or_else(|| exit.kind.to_string());
    let (why, help) = words(&kind, exit.code, &exit.message());
    let said = if said.is_empty() {
        String::new()
    } else {
        format!("; the kernel says: {}", said.join(": "))
    };
    let cause = format!(
        "the scheduler was ended while it ran: {why}{said}. All tasks are in the normal class"
    );
    Diagnostic::scheduler_ended(cause, help)
}

/// `kind` is of `enum scx_exit_kind`.
fn words(kind: &str, code: i64, message: &str) -> (String, String) {
    let again = "run it again".to_owned();
    let report = "see the kernel's log (dmesg), and report it with the task set; --host user does \
                  without sched_ext"
        .to_owned();
    let cpu = code & 0xffff;
    match code & !0xffff {
        CPU_GONE => {
            return (
                format!("CPU {cpu} went offline"),
                format!("bring it back (chcpu -e {cpu}), or use another CPU"),
            )
        }
        TIMER_GONE => {
            return (
                format!(
                    "its timer process of CPU {cpu} (SCHED_FIFO 99) was ended, stopped or kept \
                     from running"
                ),
                again,
            )
        }
        TIMER_STORM => {
            return (
                format!(
                    "its timer process of CPU {cpu} (SCHED_FIFO 99) took more than half of the CPU"
                ),
                report,
            )
        }
        UNARMED => {
            return (
                format!("the kernel refused for a second to arm the timer of CPU {cpu}"),
                report,
            )
        }
        CORE_SCHEDULING => {
            return (
                format!(
                    "a process enabled core scheduling (prctl PR_SCHED_CORE), with which the \
                     kernel may keep CPU {cpu} idle"
                ),
                format!(
                    "end that process, or disable the other hardware threads of the core \
                     (chcpu -d; see \
                     /sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list)"
                ),
            )
        }
        _ => {}
    }
    match kind {
        "SCX_EXIT_DONE" | "SCX_EXIT_UNREG" | "SCX_EXIT_UNREG_BPF" | "SCX_EXIT_UNREG_KERN" => {
            ("it was unregistered from outside".to_owned(), again)
        }
        "SCX_EXIT_SYSRQ" => {
            ("by SysRq-S, from the keyboard or /proc/sysrq-trigger".to_owned(), again)
        }
        "SCX_EXIT_ERROR_STALL" => {
            let task = waited(message)
                .map_or("a runnable task".to_owned(), |task| format!("the runnable task {task}"));
            let help =
                "leave it more time: lower budgets, or fewer tasks (punctual check SET.toml)"
                    .to_owned();
            (format!("by the kernel's watchdog, for {task} waited too long"), help)
        }
        "SCX_EXIT_ERROR" | "SCX_EXIT_ERROR_BPF" => {
            ("the kernel found an error in it".to_owned(), report)
        }
        kind => (format!("for a reason that this version does not know ({kind})"), report),
    }
}

/// Who waited, as the watchdog has it: "name[pid] failed to run for 30.123s".
fn waited(message: &str) -> Option<&str> {
    let (who, _) = message.split_once(" failed to run")?;
    Some(who.trim()).filter(|who| !who.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdogs_victim_is_named() {
        let (why, _) = words("SCX_EXIT_ERROR_STALL", 0, "cat[123] failed to run for 30.012s");
        assert_eq!(why, "by the kernel's watchdog, for the runnable task cat[123] waited too long");
    }

    #[test]
    fn a_cpu_that_went_is_named() {
        let (why, help) = words("SCX_EXIT_UNREG_BPF", CPU_GONE | 3, "");
        assert_eq!(why, "CPU 3 went offline");
        assert!(help.contains("chcpu -e 3"));
    }

    #[test]
    fn every_end_has_words() {
        for kind in ["SCX_EXIT_UNREG", "SCX_EXIT_SYSRQ", "SCX_EXIT_ERROR", "7"] {
            let (why, help) = words(kind, 0, "");
            assert!(!why.is_empty() && !help.is_empty());
        }
    }
}
