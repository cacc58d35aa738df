//! Other processes of a test: this program again, as one of its tests that are a role.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

const ROLE: &str = "PUNCTUAL_TEST_ROLE";
const FOLDER: &str = "PUNCTUAL_TEST_FOLDER";

/// A process; killed when this is dropped.
pub struct Role(Child);

impl Role {
    /// The test of this name, in a process of its own. Its standard output is discarded.
    pub fn start(role: &str, folder: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", role, "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role).env(FOLDER, folder).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    pub fn kill(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }

    /// How it has ended by itself, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In a process of this role: the folder of the test.
pub fn folder_of(role: &str) -> Option<PathBuf> {
    if std::env::var_os(ROLE)? != role {
        return None;
    }
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// A pseudo-random number below `bound`, from a seed that is different in each run.
pub fn random(seed: &mut u64, bound: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % bound
}
