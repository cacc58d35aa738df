//! Loads by stress-ng(1), which many measurements use.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::built_in;
use super::process::{become_load, LoadProcess};
use super::Workload;

/// The stressor of a workload; `None`: stress-ng has none that only does this.
fn stressor(workload: Workload) -> Option<&'static [&'static str]> {
    match workload {
        Workload::Memory => Some(&["--vm", "1", "--vm-bytes", "16M", "--vm-method", "write64"]),
        Workload::IoBoth => Some(&["--hdd", "1", "--hdd-bytes", "16M"]),
        Workload::IoWrite => {
            Some(&["--hdd", "1", "--hdd-bytes", "16M", "--hdd-opts", "wr-seq,fdatasync"])
        }
        Workload::IoRead => Some(&["--hdd", "1", "--hdd-bytes", "16M", "--hdd-opts", "rd-seq"]),
        Workload::Procfs => Some(&["--procfs", "1"]),
        Workload::Fork => Some(&["--fork", "1"]),
        Workload::Network => Some(&["--udp", "1", "--udp-if", "lo"]),
        Workload::Graphics => Some(&["--stream", "1"]),
        Workload::Idle | Workload::CapsLock | Workload::Console | Workload::NonRealTime => None,
    }
}

/// Starts it on `cpu` for at most `life` ns; `None`: stress-ng is not installed, or has no such
/// load.
pub fn start(workload: Workload, cpu: u32, life: u64) -> Result<Option<LoadProcess>, String> {
    let Some(stressor) = stressor(workload) else { return Ok(None) };
    let room = built_in::directory();
    built_in::check_room(&room)?;
    let directory = tempfile::Builder::new()
        .prefix("punctual-load")
        .tempdir_in(&room)
        .map_err(|e| format!("no directory can be made in {}: {e}", room.display()))?;
    let seconds = life.div_ceil(1_000_000_000).max(1).to_string();
    let mut command = Command::new("stress-ng");
    command
        .args(stressor)
        .args(["--taskset", &cpu.to_string(), "--timeout", &format!("{seconds}s"), "--quiet"])
        .arg("--temp-path")
        .arg(directory.path())
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let parent = i32::try_from(std::process::id()).unwrap_or(0);
    // SAFETY: async-signal-safe calls only.
    unsafe { command.pre_exec(move || become_load(parent)) };
    match command.spawn() {
        Ok(child) => {
            let pid = i32::try_from(child.id())
                .map_err(|_| "its process id is out of range".to_owned())?;
            // Reaped by the LoadProcess: a Child that is dropped is neither ended nor reaped.
            Ok(Some(LoadProcess::adopt(pid, directory)))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(format!("stress-ng cannot be started: {e}")),
    }
}
