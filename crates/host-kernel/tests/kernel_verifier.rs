//! What the verifier goes through, compared with what it went through when that was last written
//! down.
//!
//! The folder `verifier` has a file for each kernel: `6.18`, `7.3`, `7.3-rt` (Debian's, as in
//! `vm/kernel`), and releases that differ from these (`6.18.44`).
//! `crates/host-kernel/tests/verifier/renew` updates them.

use punctual_host_kernel::{Kernel, KernelError, ProgramStatistics, SchedulerLoad};
use punctual_test_support::has_sched_ext;
use std::fmt::Write as _;

/// Of one program, whatever the kernel.
const MOST_VERIFIED: u32 = 20_000;
/// More than was written down: that much is another patch release of the compiler or the kernel.
const TOLERANCE_PERCENT: u32 = 5;
const TOLERANCE: u32 = 100;
/// Where to write what was seen, instead of comparing.
const RENEW: &str = "PUNCTUAL_RENEW_VERIFIER";

const WRITTEN: [(&str, &str); 4] = [
    ("6.18", include_str!("verifier/6.18")),
    ("6.18.44", include_str!("verifier/6.18.44")),
    ("7.3", include_str!("verifier/7.3")),
    ("7.3-rt", include_str!("verifier/7.3-rt")),
];

/// `6.18.15+deb13-cloud-amd64` is 6.18.15 and 6.18; PREEMPT_RT has files of its own. The most exact
/// first.
fn names(release: &str) -> [String; 2] {
    let end = release.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(release.len());
    let exact = &release[..end];
    let line: Vec<_> = exact.split('.').take(2).collect();
    let rt = if release.split(['-', '+']).any(|word| word == "rt") { "-rt" } else { "" };
    [format!("{exact}{rt}"), format!("{}{rt}", line.join("."))]
}

fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .expect("proc is mounted")
        .trim()
        .to_owned()
}

/// One program in each line: object, name, instructions, bytes of machine code.
fn lines(object: &str, programs: &[ProgramStatistics]) -> String {
    programs.iter().fold(String::new(), |mut all, p| {
        let _ =
            writeln!(all, "{object:<12} {:<28} {:>6} {:>7}", p.name, p.verified, p.machine_code);
        all
    })
}

/// A program's figures in such lines.
fn find(text: &str, object: &str, program: &str) -> Option<(u32, u32)> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(object) && words.next() == Some(program)).then_some(())?;
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    })
}

/// What of `seen` is more than `written` and the tolerance, and what nothing is written of.
fn grown(written: &str, object: &str, seen: &[ProgramStatistics]) -> Vec<String> {
    let mut wrong = Vec::new();
    for p in seen {
        let Some((verified, machine_code)) = find(written, object, &p.name) else {
            wrong.push(format!("{object}, {}: nothing is written down of it", p.name));
            continue;
        };
        for (what, now, then) in [
            ("verified instructions", p.verified, verified),
            ("bytes of machine code", p.machine_code, machine_code),
        ] {
            if now > then + then * TOLERANCE_PERCENT / 100 + TOLERANCE {
                wrong.push(format!("{object}, {}: {now} {what}, {then} are written down", p.name));
            }
        }
    }
    wrong
}

fn compare(object: &str, seen: &[ProgramStatistics]) {
    let release = release();
    print!("{}", lines(object, seen));
    if let Ok(folder) = std::env::var(RENEW) {
        let file = format!("{folder}/{object}");
        std::fs::write(&file, lines(object, seen)).unwrap_or_else(|e| panic!("{file}: {e}"));
        return;
    }
    for p in seen {
        assert!(
            p.verified < MOST_VERIFIED,
            "{object}, {}: {} instructions, at most {MOST_VERIFIED}",
            p.name,
            p.verified
        );
    }
    let names = names(&release);
    let written = names.iter().find_map(|name| WRITTEN.iter().find(|(file, _)| file == name));
    let Some((file, text)) = written else {
        eprintln!(
            "nothing is written down of kernel {release}: only the limit of {MOST_VERIFIED} was \
             looked at"
        );
        return;
    };
    let wrong = grown(text, object, seen);
    assert!(
        wrong.is_empty(),
        "more than crates/host-kernel/tests/verifier/{file} says, and {TOLERANCE_PERCENT} % and \
         {TOLERANCE}:\n  {}\nif that is as it should be: crates/host-kernel/tests/verifier/renew",
        wrong.join("\n  ")
    );
}

#[test]
fn the_dispatcher_takes_the_verifier_no_more_than_was_written_down() {
    let kernel = match Kernel::load() {
        Ok(kernel) => kernel,
        Err(KernelError::Missing(missing)) if std::env::var("CI").as_deref() != Ok("true") => {
            eprintln!("not run: {missing}");
            return;
        }
        Err(e) => panic!("{e}"),
    };
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    println!(
        "loaded in {:.1} ms, of which {:.1} executed",
        ms(kernel.load_time()),
        ms(kernel.load_execution())
    );
    compare("dispatcher", &kernel.statistics());
}

#[test]
fn the_scheduler_takes_the_verifier_no_more_than_was_written_down() {
    if !has_sched_ext() {
        return;
    }
    let load = SchedulerLoad::try_it().unwrap_or_else(|e| panic!("{e}"));
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    println!("loaded in {:.1} ms, of which {:.1} executed", ms(load.time), ms(load.execution));
    compare("scheduler", &load.programs);
}

#[test]
fn growth_beyond_the_tolerance_is_reported_by_name() {
    let program =
        |name: &str, verified| ProgramStatistics { name: name.into(), verified, machine_code: 500 };
    let written = lines("object", &[program("first", 1_000), program("second", 2_000)]);
    assert_eq!(
        grown(&written, "object", &[program("first", 1_150), program("second", 10)]),
        [""; 0]
    );
    assert_eq!(
        grown(&written, "object", &[program("first", 1_151), program("third", 1)]),
        [
            "object, first: 1151 verified instructions, 1000 are written down",
            "object, third: nothing is written down of it"
        ]
    );
}

#[test]
fn a_release_has_its_own_file_or_its_lines() {
    assert_eq!(names("6.18.15+deb13-cloud-amd64"), ["6.18.15", "6.18"]);
    assert_eq!(names("7.3.4+deb13-rt-amd64"), ["7.3.4-rt", "7.3-rt"]);
    assert_eq!(names("7.3"), ["7.3", "7.3"]);
}
