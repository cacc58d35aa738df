//! Clocks and timers.

use crate::finding::{Evidence, Finding, NO_HELP};
use crate::scene::Scene;
use std::time::Duration;

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![
        high_resolution_timers(scene),
        clock_source(scene),
        clock_cost(scene),
        timer_slack(scene),
        time_synchronisation(scene),
    ]
}

const UNCALLED: &str = "no system call was made";

fn high_resolution_timers(scene: &Scene) -> Finding {
    let about = Finding::about("high-resolution-timers", "High resolution timers");
    let stake =
        "timers end on the tick, every 4 ms at 250 Hz: a budget of a millisecond cannot be \
         enforced";
    let Some(resolution) = scene.calls.as_ref().and_then(|c| c.resolution) else {
        return about.unknown(UNCALLED, stake, NO_HELP);
    };
    let about = about.saw(&Evidence::new(
        "syscall clock_getres(CLOCK_MONOTONIC)",
        format!("{} ns", resolution.as_nanos()),
    ));
    if resolution < Duration::from_micros(1) {
        return about.good("timers end when they are due");
    }
    if scene.config.no("HIGH_RES_TIMERS") {
        return about.saw(&scene.config.reading("HIGH_RES_TIMERS")).obstacle(
            "the kernel is built without them",
            stake,
            ["apt-get update && apt-get install linux-image-amd64 && reboot"],
        );
    }
    if scene.booted_with("highres") == Some("off") {
        return about.saw(&Evidence::new("/proc/cmdline", "highres=off")).obstacle(
            "they are switched off on the kernel command line",
            stake,
            ["sed -i 's/ *highres=off//' /etc/default/grub && update-grub && reboot"],
        );
    }
    about.obstacle(
        "the machine's timer hardware or clock source does not allow them",
        stake,
        NO_HELP,
    )
}

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

fn clock_source(scene: &Scene) -> Finding {
    let about = Finding::about("clock-source", "Clock source");
    let stake = "each reading of the clock enters the kernel and asks a slow device, and a \
                 dispatcher reads it at every decision";
    let current = match scene.probe.read(&format!("{CLOCKSOURCE}/current_clocksource")) {
        Ok(r) => r,
        Err(e) => return about.unknown(e.to_string(), stake, NO_HELP),
    };
    let about = about.saw(&current);
    let available = scene.probe.read(&format!("{CLOCKSOURCE}/available_clocksource"));
    let about = about.saw_any(&available);
    let tsc = available.is_ok_and(|r| r.read.split_whitespace().any(|w| w == "tsc"));
    match current.read.as_str() {
        "tsc"
        | "arch_sys_counter"
        | "kvm-clock"
        | "hyperv_clocksource_tsc_page"
        | "timebase"
        | "riscv_clocksource"
        | "stp" => about.good("read without entering the kernel"),
        "" => about.unknown("the name is empty", stake, NO_HELP),
        other => about.warning(
            format!("{other} is used"),
            stake,
            if tsc {
                vec![format!("echo tsc > {CLOCKSOURCE}/current_clocksource")]
            } else {
                let mut help =
                    vec!["# only where the processors' counters are known to agree:".to_string()];
                help.extend(scene.boot_option("tsc=reliable"));
                help
            },
        ),
    }
}

/// A clock that costs more than this is not read in user space.
const DEAR_NS: u64 = 300;

fn clock_cost(scene: &Scene) -> Finding {
    let about = Finding::about("clock-cost", "Cost of reading a clock");
    let stake = "what a dispatcher spends at every decision";
    let Some((calls, cost)) = scene.calls.as_ref().and_then(|c| Some((c, c.clock_cost?))) else {
        return about.unknown(UNCALLED, stake, NO_HELP);
    };
    let mut about = about.saw(&Evidence::new(
        "syscall clock_gettime(CLOCK_MONOTONIC)",
        format!("{cost} ns, median"),
    ));
    if let Some(ns) = calls.cpu_clock_cost {
        about = about.saw(&Evidence::new(
            "syscall clock_gettime(CLOCK_THREAD_CPUTIME_ID)",
            format!("{ns} ns, median"),
        ));
    }
    if cost > DEAR_NS {
        return about.warning(
            "the clock is read through the kernel, or from a device",
            stake,
            NO_HELP,
        );
    }
    about.good("cheap")
}

fn timer_slack(scene: &Scene) -> Finding {
    let about = Finding::about("timer-slack", "Timer slack");
    let Some(ns) = scene.calls.as_ref().and_then(|c| c.timer_slack) else {
        return about.unknown(UNCALLED, "it delays timers of ordinary tasks", NO_HELP);
    };
    about
        .saw(&Evidence::new("syscall prctl(PR_GET_TIMERSLACK)", format!("{ns} ns")))
        .good("delays timers of ordinary tasks by as much; those of real-time tasks have none")
}

fn time_synchronisation(scene: &Scene) -> Finding {
    let about = Finding::about("time-synchronisation", "Clock steering");
    let Some(d) = scene.calls.as_ref().and_then(|c| c.discipline) else {
        return about.unknown(
            "adjtimex was not made, or refused",
            "periods drift against other machines",
            NO_HELP,
        );
    };
    let about = about.saw(&Evidence::new(
        "syscall adjtimex",
        format!(
            "{}, frequency {} ppb, tick {} us",
            if d.synchronised { "synchronised" } else { "STA_UNSYNC" },
            d.frequency_ppb,
            d.tick_us
        ),
    ));
    if d.synchronised {
        return about.good(
            "CLOCK_MONOTONIC, which periods follow, is steered to true time by at most 500 ppm and \
             never set",
        );
    }
    about.note(
        "no program steers the clock",
        "periods are as long as this machine's oscillator has it, some 50 ppm off; only schedules \
         that span machines notice",
        ["apt-get update && apt-get install chrony"],
    )
}
