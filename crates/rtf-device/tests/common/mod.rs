//! A device that another process serves, and programs that use it.

#![allow(dead_code)]

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use punctual_ipc::{Content, Fifo, FifoAttr, Lifetime, Name, Namespace};
use punctual_rtf_device::RtfDevice;
use punctual_test_support::{comes_true, ignored};

const FOLDER: &str = "PUNCTUAL_TEST_FOLDER";
const NUMBER: &str = "PUNCTUAL_TEST_NUMBER";

/// Long enough for all that could happen to have happened.
pub const A_WHILE: Duration = Duration::from_millis(100);

/// Whether this kernel has CUSE; if not, the test is reported as ignored, or fails where
/// PUNCTUAL_CUSE=required.
pub fn has_cuse() -> bool {
    let here = Path::new("/dev/cuse").exists();
    let required = std::env::var("PUNCTUAL_CUSE").is_ok_and(|value| value == "required");
    assert!(here || !required, "this kernel has no /dev/cuse, and it is required");
    if !here {
        ignored("this kernel has no /dev/cuse (vm/test KERNEL --module cuse)");
    } else if !rustix::process::geteuid().is_root() {
        ignored("/dev/cuse is for root");
    }
    here && rustix::process::geteuid().is_root()
}

/// A FIFO of a page, and its device.
pub struct Served {
    pub fifo: Fifo,
    pub path: PathBuf,
    server: Child,
    _folder: tempfile::TempDir,
}

impl Served {
    /// In a process of its own: one that ends with an open file of a device that it serves itself
    /// waits for itself for ever.
    pub fn start(content: Content) -> Self {
        // Numbers that no program of this machine uses.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number =
            900_000 + std::process::id() % 1000 * 100 + NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
        let namespace = Namespace::at(&folder.path().join("objects")).expect("it can be made");
        let attr = FifoAttr { capacity: 4096, limit: None, content };
        let name = Name::from(number);
        let fifo = Fifo::create(&namespace, &name, attr, Lifetime::Used).expect("it can be made");
        let mut command = Command::new(std::env::current_exe().expect("/proc is mounted"));
        command.args(["--exact", "server", "--nocapture", "--test-threads=1"]);
        command.env(FOLDER, namespace.path()).env(NUMBER, number.to_string());
        let server =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        let path = PathBuf::from(format!("/dev/rtf{number}"));
        let served = Self { fifo, path, server, _folder: folder };
        // The node is there a little earlier than what is behind it.
        let opens = || File::open(&served.path).is_ok();
        assert!(comes_true(opens), "there is no {}", served.path.display());
        served
    }

    pub fn number(&self) -> u32 {
        self.path.display().to_string().trim_start_matches("/dev/rtf").parse().expect("a number")
    }

    /// Opens the device, as a program does.
    pub fn open(&self, read: bool, write: bool, flags: i32) -> File {
        let mut options = OpenOptions::new();
        options.read(read).write(write).custom_flags(flags);
        options.open(&self.path).expect("it can be opened")
    }

    pub fn shell(&self, script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("DEVICE", &self.path);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("there is a shell")
    }

    /// The CPU time that the server has used, in ticks of 10 ms.
    pub fn server_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.server.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').expect("the name is in parentheses");
        let fields = fields.split_whitespace().skip(11).take(2);
        fields.map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    }

    /// Has the server end as it does when it is asked to.
    pub fn stop(&mut self) {
        drop(self.server.stdin.take());
        assert!(self.server.wait().expect("it is a child").success());
    }

    pub fn kill(&mut self) {
        self.server.kill().expect("it runs");
        self.server.wait().expect("it is a child");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// In the process of the server: serves until its standard input is closed.
pub fn serve() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let number = std::env::var(NUMBER).expect("it is set").parse().expect("a number");
    let namespace = Namespace::at(Path::new(&folder)).expect("it is there");
    let fifo = Fifo::open(&namespace, &Name::from(number)).expect("it is there");
    let device = RtfDevice::create(fifo, number).expect("it can be made");
    device.serve(std::io::stdin().as_fd()).expect("it is served until it is ended");
}
