//! cyclictest(8) as the reference: the same CPU, class, period and load as the job.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use punctual_diagnostic::Diagnostic;

use super::{JobClass, SLEEP};
use crate::cyclictest::percentiles;
use crate::loads::become_load;
use crate::periodic::FIFO_PRIORITY;

const HELP: &str = "install it (package rt-tests), or leave --reference away";
/// Its histogram ends here, ns.
const LONGEST: u64 = 1_000_000;

/// Whether it is there.
pub fn check() -> Result<(), Diagnostic> {
    let tried = Command::new("cyclictest").arg("--help").stdin(Stdio::null()).output();
    tried.map(drop).map_err(|e| Diagnostic::refused("cyclictest cannot be run", e, HELP))
}

/// Neither it nor the job tunes the machine: what is compared is the two.
fn arguments(cpu: u32, loops: u64, class: JobClass) -> Vec<String> {
    let priority = if class == JobClass::Other { 0 } else { FIFO_PRIORITY };
    let line = format!(
        "-q -t1 -m -N --default-system -p {priority} -a {cpu} -i {} -l {loops} -h {LONGEST}",
        SLEEP / 1_000
    );
    line.split(' ').map(str::to_owned).collect()
}

/// What is run, for people.
pub fn command_line(cpu: u32, loops: u64, class: JobClass) -> String {
    format!("cyclictest {}", arguments(cpu, loops, class).join(" "))
}

/// Its median, ns; `None` when it was interrupted.
pub fn median(
    cpu: u32,
    loops: u64,
    class: JobClass,
    stop: &AtomicBool,
) -> Result<Option<u64>, Diagnostic> {
    let refused = |e: std::io::Error| Diagnostic::refused("cyclictest cannot be run", e, HELP);
    let mut output = tempfile::tempfile().map_err(refused)?;
    let own = |file: &File| file.try_clone().map(Stdio::from).map_err(refused);
    let mut command = Command::new("cyclictest");
    command
        .args(arguments(cpu, loops, class))
        .stdin(Stdio::null())
        .stdout(own(&output)?)
        .stderr(own(&output)?);
    let parent = i32::try_from(std::process::id()).unwrap_or(0);
    // SAFETY: async-signal-safe calls only.
    unsafe { command.pre_exec(move || become_load(parent)) };
    let mut child = command.spawn().map_err(refused)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(refused)? {
            break status;
        }
        if stop.load(Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut text = String::new();
    output.rewind().and_then(|()| output.read_to_string(&mut text)).map_err(refused)?;
    match percentiles(&text, LONGEST) {
        Some([median, _]) if status.success() => Ok(Some(median)),
        _ => {
            let first = text.lines().next().unwrap_or("no histogram");
            Err(Diagnostic::machine(
                format!("cyclictest failed ({status}): {first}"),
                "run it by hand, or leave --reference away",
            ))
        }
    }
}
