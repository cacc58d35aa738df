//! What the tests stand on: one at a time, with what they change put back, and children that
//! examine the machine.

use punctual_doctor::{examine, Document, Finding, Probe};
use punctual_test_support::missing;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};

pub const ASKED: &str = "PUNCTUAL_DOCTOR_SPEAK";
pub const UNPRIVILEGED: u32 = 65534;

static MACHINE: Mutex<()> = Mutex::new(());

/// What is toggled is the whole machine's: one test at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(|e| e.into_inner())
}

/// In CI a test that lacks privilege fails; elsewhere it is reported as ignored.
pub fn root() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        return true;
    }
    missing("effective user 0 (run it with sudo)");
    false
}

/// A file of the machine that gets its content back, whatever happens.
pub struct Kept {
    pub path: PathBuf,
    pub before: String,
}

impl Kept {
    pub fn new(path: impl Into<PathBuf>) -> Option<Self> {
        let path = path.into();
        let before = fs::read_to_string(&path).ok()?.trim().to_string();
        fs::write(&path, &before).ok()?;
        Some(Kept { path, before })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let back = fs::write(&self.path, &self.before);
        if back.is_err() && !std::thread::panicking() {
            panic!("{} could not be put back to {}", self.path.display(), self.before);
        }
    }
}

pub struct RemoveDir(pub PathBuf);

impl Drop for RemoveDir {
    fn drop(&mut self) {
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn get(findings: &[Finding], id: &str) -> Finding {
    findings.iter().find(|f| f.id == id).unwrap_or_else(|| panic!("no finding {id}")).clone()
}

pub fn now(id: &str) -> Finding {
    get(&examine(&Probe::machine()), id)
}

/// Runs `script` with `$DOCTOR` set to a copy of this binary that all users may execute; each
/// `$DOCTOR` in it gives one document.
pub struct Stage {
    dir: tempfile::TempDir,
    doctor: PathBuf,
}

impl Stage {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let doctor = dir.path().join("punctual");
        fs::copy(std::env::current_exe().unwrap(), &doctor).unwrap();
        fs::set_permissions(&doctor, fs::Permissions::from_mode(0o755)).unwrap();
        Stage { dir, doctor }
    }

    pub fn command(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .args(["-ec", script])
            .current_dir("/")
            .env("PATH", format!("{}:{path}:/usr/sbin:/sbin", self.dir.path().display()))
            .env(
                "DOCTOR",
                format!("{} speaks_when_asked --exact --nocapture", self.doctor.display()),
            )
            .env(ASKED, "1")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, script: &str) -> Vec<Document> {
        listen(self.command(script))
    }

    pub fn run_unprivileged(&self, script: &str) -> Vec<Document> {
        let mut command = self.command(script);
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        listen(command)
    }
}

pub fn listen(mut command: Command) -> Vec<Document> {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text.split("BEGIN-DOCUMENT")
        .skip(1)
        .map(|part| serde_json::from_str(part.split("END-DOCUMENT").next().unwrap()).unwrap())
        .collect()
}
