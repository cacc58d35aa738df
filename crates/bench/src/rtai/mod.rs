//! Switches from task to task by liblxrt beside the same over POSIX threads, as RTAI's switch test
//! has them: ns for each switch.

mod calls;
mod pairs;
mod pthread;

use crate::side_by_side::{figure, in_turns, print, print_heading, Subject, Windows};
use crate::{tools, Bench, Failure, Part};
use serde_json::{Map, Value};
use std::process::Command;

pub use pairs::serve;

/// Bytes in a mailbox.
const MESSAGE: usize = 64;

/// What the two threads are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    Pthread,
    PthreadFifo,
    Soft,
    Hard,
}

impl Kind {
    fn option(self) -> &'static str {
        match self {
            Kind::Pthread => "pthread",
            Kind::PthreadFifo => "pthread-fifo",
            Kind::Soft => "soft",
            Kind::Hard => "hard",
        }
    }
}

/// In the order of the figures of [`serve`].
const SWITCHES: [(&str, &str); 4] = [
    ("suspend_resume", "suspend/resume"),
    ("semaphore", "semaphore signal/wait"),
    ("rpc", "rpc/receive-return"),
    ("mailbox", "mailbox send/receive, 64 bytes"),
];

/// Of RTAI 3.6.2 on Freescale's MCF5329, hard tasks in user space: its own
/// base/arch/m68knommu/patches/readme_2.6.25.txt (2008), ns. It has none of mailboxes.
const PUBLISHED: [u32; 3] = [43_814, 47_476, 63_158];

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let mut figures = Map::new();
    for (name, heading, kinds) in [
        ("soft", "Switches by liblxrt, soft tasks", [Kind::Pthread, Kind::Soft]),
        ("hard", "Switches by liblxrt, hard tasks", [Kind::PthreadFifo, Kind::Hard]),
    ] {
        let all = windows(bench, heading, kinds)?;
        print_heading(heading);
        let mut found = Map::new();
        for (k, (key, what)) in SWITCHES.iter().enumerate() {
            let (_, value) = print(what, &figure(&all, k));
            found.insert((*key).into(), value);
        }
        figures.insert(name.into(), Value::Object(found));
        println!();
    }
    println!(
        "Published by RTAI (3.6.2, MCF5329, user space; readme_2.6.25.txt), ns for each switch:"
    );
    for ((_, what), ns) in SWITCHES.iter().zip(PUBLISHED) {
        println!("  {what:<30} {ns}");
    }
    println!();
    Ok(Part { figures: figures.into(), verdicts: Vec::new() })
}

fn windows(bench: &Bench, what: &str, kinds: [Kind; 2]) -> Result<Windows<[f64; 4]>, Failure> {
    let subjects = kinds.map(|kind| {
        let name = match kind {
            Kind::Pthread => "pthread",
            Kind::PthreadFifo => "pthread, SCHED_FIFO",
            Kind::Soft | Kind::Hard => "liblxrt",
        };
        Subject::new(name, move || tools::patiently(|| window(bench, kind)))
    });
    in_turns(bench, what, subjects.into())
}

/// Measures in a process of its own.
fn window(bench: &Bench, kind: Kind) -> Result<[f64; 4], Failure> {
    let objects = tempfile::tempdir_in("/dev/shm")?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--switches", kind.option(), "--cpu", &bench.cpu.to_string()]);
    command.args(bench.quick.then_some("--quick"));
    command.env("PUNCTUAL_SHM_DIR", objects.path().join("rtai"));
    command.env("PUNCTUAL_RTAI_HOST", "user");
    let text = tools::output(&mut command)?;
    let figures: Vec<f64> = serde_json::from_str(text.trim())?;
    figures.try_into().map_err(|_| format!("not four figures: {text}").into())
}
