//! RT_GROUP_SCHED: whether our cgroup may have real time at all.
//!
//! A cpu cgroup (v1) has a runtime per period for its real-time tasks. A new one has 0, and the
//! kernel then refuses SCHED_FIFO there with EPERM, to root too.

use crate::finding::{Evidence, Finding, NO_HELP};
use crate::own_cgroup::OwnCgroup;
use crate::probe::Unread;
use crate::scene::Scene;

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![rt_group_sched(scene)]
}

/// A cgroup without real-time runtime.
pub struct Forbidding {
    pub hierarchy: OwnCgroup,
    pub reading: Evidence,
}

impl Forbidding {
    /// Move the shell out of it, which always works; or grant a share, from the top down.
    pub fn help(&self, scene: &Scene) -> Vec<String> {
        let mut help = vec![format!("echo $$ > {}/cgroup.procs", self.hierarchy.mount)];
        let lineage = self.hierarchy.lineage();
        let lacking: Vec<_> =
            lineage[1..].iter().filter(|d| runtime(scene, d) == Some(0)).collect();
        let above = lineage.iter().rev().find(|d| runtime(scene, d).is_some_and(|n| n > 0));
        if let Some(left) = above.and_then(|d| left_over(scene, d)) {
            help.push("# or give this cgroup the remaining runtime of its parent:".into());
            help.extend(lacking.iter().map(|d| format!("echo {left} > {d}/cpu.rt_runtime_us")));
        }
        if scene.config.knows("RT_GROUP_SCHED_DEFAULT_DISABLED") {
            help.push("# or for good:".into());
            help.extend(scene.boot_option("rt_group_sched=0"));
        }
        help
    }
}

fn runtime(scene: &Scene, dir: &str) -> Option<i64> {
    Some(scene.probe.number(&format!("{dir}/cpu.rt_runtime_us")).ok()?.0)
}

/// What the children of `dir` have not been given yet, for the same period.
fn left_over(scene: &Scene, dir: &str) -> Option<i64> {
    let children = scene.probe.list(dir).ok()?;
    let given: i64 = children.iter().filter_map(|c| runtime(scene, &format!("{dir}/{c}"))).sum();
    Some(runtime(scene, dir)? - given).filter(|left| *left > 0)
}

/// Our cgroup, if it is what stands in the way. With throttling off nothing is refused.
pub fn forbidding(scene: &Scene) -> Option<Forbidding> {
    let hierarchy = OwnCgroup::v1(scene.probe, "cpu").ok()?;
    let (runtime, reading) =
        scene.probe.number(&format!("{}/cpu.rt_runtime_us", hierarchy.dir)).ok()?;
    let unlimited =
        scene.probe.number("/proc/sys/kernel/sched_rt_runtime_us").is_ok_and(|(n, _)| n < 0);
    (runtime == 0 && !unlimited).then_some(Forbidding { hierarchy, reading })
}

fn rt_group_sched(scene: &Scene) -> Finding {
    let about = Finding::about("rt-group-sched", "Real time in our cgroup");
    let good = "SCHED_FIFO is not limited by cgroups";
    if let Some(forbidding) = forbidding(scene) {
        return about.saw(&forbidding.reading).saw(&forbidding.hierarchy.reading()).obstacle(
            "the kernel is built with RT_GROUP_SCHED, and this cpu cgroup has no real-time runtime",
            "SCHED_FIFO is refused in it with EPERM, to root too",
            forbidding.help(scene),
        );
    }
    if scene.config.no("RT_GROUP_SCHED") {
        return about.saw(&scene.config.reading("RT_GROUP_SCHED")).good(good);
    }
    match OwnCgroup::v1(scene.probe, "cpu") {
        Ok(hierarchy) => {
            let read = scene.probe.number(&format!("{}/cpu.rt_runtime_us", hierarchy.dir));
            ours(scene, read, about, &hierarchy)
        }
        Err(e) if e.absent() && scene.config.yes("RT_GROUP_SCHED") => {
            about.saw(&scene.config.reading("RT_GROUP_SCHED")).good(
                "no cpu hierarchy of version 1 is mounted, so no cgroup can withhold real time; \
                 where realtime-permitted is refused, this option is why",
            )
        }
        Err(e) => about.saw(&scene.config.reading("RT_GROUP_SCHED")).note(
            format!("no configuration found, and no cpu hierarchy of version 1 ({e})"),
            "if the kernel has RT_GROUP_SCHED, realtime-permitted shows it",
            NO_HELP,
        ),
    }
}

fn ours(
    scene: &Scene,
    read: Result<(i64, Evidence), Unread>,
    about: crate::finding::Draft,
    hierarchy: &OwnCgroup,
) -> Finding {
    match read {
        Ok((n, reading)) => {
            let about = about.saw(&reading);
            let period = scene.probe.number(&format!("{}/cpu.rt_period_us", hierarchy.dir));
            let period = period.map_or(1_000_000, |(p, _)| p);
            if n < 0 || n.saturating_mul(10) >= period.saturating_mul(9) {
                return about.good(
                    "this cgroup may use SCHED_FIFO, for the 90 % that Punctual admits and more",
                );
            }
            about.warning(
                format!(
                    "this cgroup has {n} us of real time in every {period}, less than the 90 % \
                     that Punctual admits"
                ),
                "jobs that use more are held until the period ends",
                [format!("echo $$ > {}/cgroup.procs", hierarchy.mount)],
            )
        }
        Err(e) if e.absent() => about.saw(&hierarchy.reading()).good(
            "SCHED_FIFO is not limited by cgroups (there is no cpu.rt_runtime_us in this one)",
        ),
        Err(e) => about.unknown(
            e.to_string(),
            "a cgroup with no real-time runtime refuses SCHED_FIFO",
            NO_HELP,
        ),
    }
}
