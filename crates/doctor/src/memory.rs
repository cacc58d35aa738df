//! What can make a memory access slow.

use crate::finding::{Evidence, Finding, NO_HELP};
use crate::parse::chosen;
use crate::scene::Scene;

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![swap(scene), transparent_hugepages(scene)]
}

fn swap(scene: &Scene) -> Finding {
    let about = Finding::about("swap", "Swap");
    let effect =
        "pages of programs that do not lock their memory may have to come back from the disk in \
         the middle of a job";
    let swaps = match scene.probe.read("/proc/swaps") {
        Ok(r) => r,
        Err(e) if e.absent() => {
            return about.saw(&Evidence::new("/proc/swaps", "absent")).good("none")
        }
        Err(e) => return about.unknown(e.to_string(), effect, NO_HELP),
    };
    let devices: Vec<&str> =
        swaps.read.lines().skip(1).filter_map(|l| l.split_whitespace().next()).collect();
    match devices.first() {
        None => about.saw(&Evidence::new("/proc/swaps", "no device")).good("none"),
        Some(_) => about.saw(&Evidence::new("/proc/swaps", devices.join(" "))).note(
            "swap is on",
            effect,
            ["swapoff --all"],
        ),
    }
}

fn transparent_hugepages(scene: &Scene) -> Finding {
    const PATH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let about = Finding::about("transparent-hugepages", "Transparent huge pages");
    let effect = "a page fault may clear or assemble 2 MiB, and khugepaged may move pages under a \
                  running job: some hundred microseconds";
    match scene.probe.read(PATH) {
        Err(e) if e.absent() => about.good("not built in"),
        Err(e) => about.unknown(e.to_string(), effect, NO_HELP),
        Ok(r) => match chosen(&r.read) {
            Some("never") => about.saw(&r).good("off"),
            Some("madvise") => about.saw(&r).good("only for programs that ask"),
            Some("always") => {
                about.saw(&r).note("for every program", effect, [format!("echo madvise > {PATH}")])
            }
            _ => about.saw(&r).unknown("not one of the modes known to us", effect, NO_HELP),
        },
    }
}
