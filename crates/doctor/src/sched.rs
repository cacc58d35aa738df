//! How the kernel's own scheduler is set.

use crate::finding::{Draft, Evidence, Finding, NO_HELP};
use crate::scene::Scene;

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![
        rt_throttling(scene),
        fair_server(scene),
        hrtick_deadline(scene),
        hrtick(scene),
        autogroup(scene),
    ]
}

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";

/// Punctual admits 90 % of a CPU, so throttling below that takes promised time away.
fn rt_throttling(scene: &Scene) -> Finding {
    let about = Finding::about("rt-throttling", "Real-time throttling");
    let stake = "a throttle below 90 % of a CPU takes promised budgets away";
    let help = ["sysctl -w kernel.sched_rt_period_us=1000000 kernel.sched_rt_runtime_us=950000"];
    let ((runtime, r), (period, p)) =
        match (scene.probe.number(RUNTIME), scene.probe.number(PERIOD)) {
            (Ok(runtime), Ok(period)) => (runtime, period),
            (Err(e), _) | (_, Err(e)) => return about.unknown(e.to_string(), stake, NO_HELP),
        };
    let about = about.saw(&r).saw(&p);
    let fair_server = scene.since(6, 12) == Some(true);
    if runtime < 0 {
        return about.note(
            "throttling is switched off",
            if fair_server {
                "budgets hold. A runaway SCHED_FIFO task outside of Punctual is bounded by the \
                 fair server alone, and SCHED_DEADLINE is admitted without a limit"
            } else {
                "budgets hold, but a runaway SCHED_FIFO task outside of Punctual takes its CPU for \
                 ever"
            },
            help,
        );
    }
    if runtime == 0 {
        return about.obstacle(
            "real-time tasks have no runtime at all",
            "SCHED_FIFO does not run, or is refused",
            help,
        );
    }
    if runtime.saturating_mul(10) < period.saturating_mul(9) {
        return about.warning(
            format!(
                "real-time tasks have {runtime} us in every {period}, less than the 90 % that \
                 Punctual admits"
            ),
            stake,
            help,
        );
    }
    about.good(
        "a runaway SCHED_FIFO task leaves some 5 % of its CPU to others; the 90 % that Punctual \
         admits never meet it",
    )
}

const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server";

fn fair_server(scene: &Scene) -> Finding {
    let about = Finding::about("fair-server", "Fair server");
    let stake =
        "from Linux 6.12 on ordinary tasks that starve get 50 ms in every second (by default) \
         before SCHED_FIFO";
    let readable = || scene.through_debugfs(&[format!("grep . {FAIR_SERVER}/cpu0/*")]);
    let cpus = match scene.probe.list(FAIR_SERVER) {
        Ok(cpus) => cpus,
        Err(_) if scene.since(6, 12) == Some(false) => {
            let about = about.saw_any(&scene.release);
            return about.good(
                "before Linux 6.12 there is none; real-time throttling alone protects ordinary \
                 tasks",
            );
        }
        Err(e) => return about.unknown(e.to_string(), stake, readable()),
    };
    let mut worst: Option<(i64, i64, Evidence)> = None;
    for cpu in &cpus {
        let get = |file: &str| scene.probe.number(&format!("{FAIR_SERVER}/{cpu}/{file}"));
        let ((runtime, reading), (period, _)) = match (get("runtime"), get("period")) {
            (Ok(r), Ok(p)) => (r, p),
            (Err(e), _) | (_, Err(e)) => return about.unknown(e.to_string(), stake, readable()),
        };
        let more = |w: &(i64, i64, Evidence)| {
            i128::from(runtime) * i128::from(w.1) > i128::from(w.0) * i128::from(period)
        };
        if worst.as_ref().is_none_or(more) {
            worst = Some((runtime, period, reading));
        }
    }
    let Some((runtime, period, reading)) = worst else {
        return about.unknown(format!("{FAIR_SERVER} is empty"), stake, NO_HELP);
    };
    let about = about.saw(&reading);
    let set =
        |ns: i64| vec![format!("for f in {FAIR_SERVER}/cpu*/runtime; do echo {ns} > $f; done")];
    if runtime == 0 {
        return about.note(
            "the fair server is switched off",
            "budgets hold, but a runaway SCHED_FIFO task outside of Punctual can take its CPU for \
             ever",
            set(period / 20),
        );
    }
    if i128::from(runtime) * 10 > i128::from(period) {
        return about.warning(
            format!("ordinary tasks are promised {runtime} ns in every {period} before SCHED_FIFO"),
            "more than the 10 % that Punctual leaves them: on a busy CPU budgets are cut",
            set(period / 20),
        );
    }
    about.good(
        "it keeps ordinary tasks alive beside a runaway SCHED_FIFO task; within the 90 % that \
         Punctual admits it never acts",
    )
}

const FEATURES: &str = "/sys/kernel/debug/sched/features";

/// Whether a scheduler feature is on; the file names it as `X` or `NO_X`.
fn feature(scene: &Scene, name: &str) -> Result<Option<(bool, Evidence)>, String> {
    let text = scene.probe.read(FEATURES).map_err(|e| e.to_string())?;
    let off = format!("NO_{name}");
    Ok(text.read.split_whitespace().find_map(|w| {
        let on = w == name;
        (on || w == off).then(|| (on, Evidence::new(FEATURES, w)))
    }))
}

fn tick_bound(scene: &Scene, about: Draft, name: &str, good: &str, effect: &str) -> Finding {
    if scene.config.no("SCHED_HRTICK") {
        return about.saw(&scene.config.reading("SCHED_HRTICK")).note(
            "the kernel is built without CONFIG_SCHED_HRTICK",
            effect,
            NO_HELP,
        );
    }
    let help = scene.through_debugfs(&[format!("echo {name} > {FEATURES}")]);
    match feature(scene, name) {
        Ok(Some((true, r))) => about.saw(&r).good(good),
        Ok(Some((false, r))) => about.saw(&r).note("the scheduler feature is off", effect, help),
        Ok(None) => about.unknown(format!("{FEATURES} does not name {name}"), effect, NO_HELP),
        Err(why) => about.unknown(why, effect, scene.through_debugfs(&[format!("cat {FEATURES}")])),
    }
}

fn hrtick_deadline(scene: &Scene) -> Finding {
    tick_bound(
        scene,
        Finding::about("hrtick-deadline", "HRTICK_DL"),
        "HRTICK_DL",
        "SCHED_DEADLINE budgets end on a timer of their own, to the microsecond",
        "SCHED_DEADLINE budgets end on the tick, up to 4 ms late at 250 Hz: short ones are not \
         enforced. Punctual has timers of its own",
    )
}

fn hrtick(scene: &Scene) -> Finding {
    tick_bound(
        scene,
        Finding::about("hrtick", "HRTICK"),
        "HRTICK",
        "slices of ordinary programs end on a timer of their own",
        "slices of ordinary programs end on the tick. Jobs do not depend on it",
    )
}

fn autogroup(scene: &Scene) -> Finding {
    let about = Finding::about("sched-autogroup", "Autogroups");
    match scene.probe.number("/proc/sys/kernel/sched_autogroup_enabled") {
        Ok((0, r)) => about.saw(&r).good("off: ordinary programs compete one by one"),
        Ok((_, r)) => about.saw(&r).good(
            "on: ordinary programs share by session, so a task in the background class shares with \
             its session; jobs do not",
        ),
        Err(e) if e.absent() => about.good("not built in"),
        Err(e) => about.unknown(e.to_string(), "only ordinary programs are concerned", NO_HELP),
    }
}
