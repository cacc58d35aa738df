//! The commands that are measured.

use crate::{Bench, Failure};
use punctual::{Punctual, Running};
use serde_json::Value;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Load averages, for the description.
pub fn load() -> String {
    std::fs::read_to_string("/proc/loadavg")
        .map_or_else(|_| "unknown".into(), |l| l.split(' ').take(2).collect::<Vec<_>>().join(" "))
}

/// Shows what is going on, on a terminal.
pub fn progress(text: &str) {
    use std::io::IsTerminal;
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
    }
}

/// Prints a line of a table whose columns have these widths; negative ones are aligned to the left.
pub fn row<const N: usize>(widths: [i32; N], cells: [&str; N]) {
    let columns = widths.into_iter().zip(cells).map(|(width, cell)| match usize::try_from(width) {
        Ok(width) => format!(" {cell:>width$}"),
        Err(_) => format!(" {cell:<width$}", width = width.unsigned_abs() as usize),
    });
    println!(" {}", columns.collect::<String>());
}

/// A file of the source tree.
pub fn in_tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A task set as a file that lives as long as this.
pub fn set_file(text: &str) -> Result<tempfile::NamedTempFile, Failure> {
    let mut file = tempfile::Builder::new().prefix("bench").suffix(".toml").tempfile()?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Tries again for a minute while another dispatcher has the CPU.
pub fn patiently<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        match attempt() {
            Err(e)
                if e.to_string().contains("already has a dispatcher")
                    && Instant::now() < give_up =>
            {
                std::thread::sleep(Duration::from_millis(200));
            }
            done => return done,
        }
    }
}

/// A dispatcher of this process, for tasks that are threads of it.
pub fn start(cpu: u32) -> Result<Running, Failure> {
    patiently(|| Ok(Punctual::on_cpu(cpu).admit()?.start()?))
}

/// Runs a set under the command and gives its results document. Missed deadlines are no failure.
pub fn punctual(bench: &Bench, set: &str, options: &[&str]) -> Result<Value, Failure> {
    let file = set_file(set)?;
    patiently(|| run(bench, file.path(), options))
}

fn run(bench: &Bench, file: &Path, options: &[&str]) -> Result<Value, Failure> {
    let done = Command::new(&bench.punctual)
        .arg("run")
        .arg(file)
        .args(["--json", "--quiet"])
        .args(options)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{}: {e}", bench.punctual.display()))?;
    if !matches!(done.status.code(), Some(0 | 1)) {
        // With --json a failure is reported on standard output.
        let [out, err] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text));
        return Err(format!("punctual run: {}: {out}{err}", done.status).into());
    }
    let mut document: Value = serde_json::from_slice(&done.stdout)?;
    Ok(document["result"].take())
}

/// Output of a command that must succeed.
pub fn output(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    if !done.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(String::from_utf8(done.stdout)?)
}

/// The result in a command's JSON output.
pub fn result_of(text: &str) -> Result<Value, Failure> {
    let mut document: Value = serde_json::from_str(text)?;
    match document["result"].take() {
        result if result["tasks"].is_array() => Ok(result),
        _ => Err(text.to_owned().into()),
    }
}

/// The result in a file that a run in a guest wrote.
pub fn result_in(file: &Path) -> Result<Value, Failure> {
    result_of(&std::fs::read_to_string(file)?)
        .map_err(|e| format!("{}: {e}", file.display()).into())
}

/// A line of a guest's shell script: a run whose results go into a file. Missed deadlines are no
/// failure; another one ends the script, and is its output.
pub fn run_step(options: &str, to: &str) -> String {
    format!(
        "punctual run --load --quiet --json {options} >results/{to} || [ $? = 1 ] || {{ cat \
         results/{to}; exit 1; }}\n"
    )
}

/// Has a guest execute such a script.
pub fn in_guest(run: &mut Command, script: &str) -> Result<(), Failure> {
    let done = run.args(["--", "sh", "-c", script]).output()?;
    if done.status.success() {
        return Ok(());
    }
    let [out, err] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text));
    Err(format!("{}: {err}{out}", done.status).into())
}

/// CPU time, ns, and peak memory, KiB, of a process and of those that it waited for.
pub struct Usage {
    pub cpu: f64,
    pub kib: i64,
    pub code: Option<i32>,
}

/// Runs a command to its end.
pub fn usage(command: &mut Command) -> Result<Usage, Failure> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid value; the child is ours and not waited for yet.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::wait4(child.id() as i32, &mut status, 0, &mut usage) < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    let cpu = ns(usage.ru_utime) + ns(usage.ru_stime);
    Ok(Usage { cpu, kib: usage.ru_maxrss, code: ExitStatus::from_raw(status).code() })
}
