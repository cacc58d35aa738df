//! One dispatcher per CPU on a machine.
//!
//! The lock is an flock on an open file. All that share this open file hold it, as the guardian
//! does: when the owner is killed, the CPU stays taken until the guardian has given everything back
//! and gone, so a new dispatcher never starts among the remains of the old one. Commands do not
//! share it (close-on-exec, and [`spawn`](crate::spawn) starts no process that stays between fork
//! and exec). The file is never unlinked: unlinking would let two processes hold two locks of one
//! name.
//!
//! A service that replaces another one gets the open files of the other's locks
//! ([`InheritedLocks`]): both hold the CPU until the older one is gone, and no third process can
//! take it in between.

use crate::proc::{printable, Identity};
use punctual_diagnostic::Diagnostic;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{flock, open, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How punctuald names itself as an owner.
pub const SERVICE: &str = "punctuald";

/// A CPU that this process dispatches. Given up when all clones, and the guardian that shares it,
/// are gone.
#[derive(Debug, Clone)]
pub struct CpuLock {
    cpu: u32,
    file: Arc<OwnedFd>,
}

/// The locks of this process, by CPU.
static HELD: Mutex<BTreeMap<u32, Weak<OwnedFd>>> = Mutex::new(BTreeMap::new());
/// Open files of locks that another process passed to this one, and that are not taken yet.
static INHERITED: Mutex<BTreeMap<u32, OwnedFd>> = Mutex::new(BTreeMap::new());

fn entries<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Open files of locks that another process holds and has passed to this one:
/// [`CpuLock::take`] uses these. Dropping it closes those that were not taken.
#[derive(Debug)]
pub struct InheritedLocks(());

impl InheritedLocks {
    /// Each CPU with the open file of its lock.
    pub fn new(files: impl IntoIterator<Item = (u32, OwnedFd)>) -> InheritedLocks {
        entries(&INHERITED).extend(files);
        InheritedLocks(())
    }
}

impl Drop for InheritedLocks {
    fn drop(&mut self) {
        entries(&INHERITED).clear();
    }
}

impl CpuLock {
    /// Takes `cpu`; `owner` describes us to a second dispatcher that is refused (a command line,
    /// for example).
    ///
    /// Where the old owner is dead and its guardian still restores, this waits for it, five seconds
    /// at most. Not real-time safe.
    ///
    /// # Errors
    /// The CPU belongs to another dispatcher (named), or no lock file can be made.
    pub fn take(cpu: u32, owner: &str) -> Result<Self, Diagnostic> {
        let inherited = entries(&INHERITED).remove(&cpu);
        let file = inherited.map_or_else(|| lock_file(cpu), Ok)?;
        let lock = Self { cpu, file: Arc::new(file) };
        lock.name_owner(owner);
        entries(&HELD).insert(cpu, Arc::downgrade(&lock.file));
        Ok(lock)
    }

    /// The locks that this process holds now.
    pub fn held() -> Vec<CpuLock> {
        let lock = |(&cpu, file): (&u32, &Weak<_>)| Some(Self { cpu, file: file.upgrade()? });
        entries(&HELD).iter().filter_map(lock).collect()
    }

    /// Names this process as the owner, in the error of a second dispatcher that is refused.
    pub fn name_owner(&self, owner: &str) {
        let me = Identity::own();
        let text = format!(
            "pid {}\nstart {}\nsince {}\ncommand {}\n",
            me.pid,
            me.start,
            now(),
            printable(owner)
        );
        // The contents only inform: failing to write them (a full file system) does not weaken the
        // lock.
        let _ = rustix::fs::ftruncate(&self.file, 0);
        let _ = rustix::io::pwrite(&self.file, text.as_bytes(), 0);
    }

    /// The CPU.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }
}

impl AsFd for CpuLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The file of a CPU's lock, locked.
fn lock_file(cpu: u32) -> Result<OwnedFd, Diagnostic> {
    let path = directory().join(format!("punctual-cpu{cpu}.lock"));
    let file = open_file(&path)?;
    for round in 0.. {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::WOULDBLOCK) => {
                let held = read(&file);
                if held.alive || round >= 250 {
                    return Err(held.refusal(cpu, &path).with_errno(libc::EBUSY));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(Errno::INTR) => {}
            Err(e) => {
                return Err(Diagnostic::refused(
                    format!("cannot lock {}", path.display()),
                    e,
                    "put it on a file system that can lock, through PUNCTUAL_STATE_DIR",
                ))
            }
        }
    }
    Ok(file)
}

struct Held {
    pid: i32,
    since: String,
    command: String,
    alive: bool,
}

impl Held {
    fn refusal(&self, cpu: u32, path: &std::path::Path) -> Diagnostic {
        let Held { pid, since, command, alive } = self;
        if *alive {
            let help = match command.as_str() {
                SERVICE => "use another CPU, or reserve by the service: --host service".to_owned(),
                _ => format!("use another CPU, or end that one: kill {pid}"),
            };
            Diagnostic::machine(
                format!(
                    "CPU {cpu} already has a dispatcher: process {pid} ({command}), since {since}"
                ),
                help,
            )
        } else {
            Diagnostic::machine(
                format!(
                    "CPU {cpu} belonged to process {pid} ({command}), which is gone, but {} is \
                     still held",
                    path.display()
                ),
                "its guardian should have finished: find the holder with `fuser` and run \
                 `punctual clean`",
            )
        }
    }
}

fn read(file: &OwnedFd) -> Held {
    let mut buf = [0u8; 512];
    let n = rustix::io::pread(file, &mut buf, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&buf[..n]).into_owned();
    let field = |name: &str| {
        printable(text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("unknown"))
    };
    let pid = field("pid ").parse().unwrap_or(0);
    let start = field("start ").parse().unwrap_or(0);
    // Just taken and not yet written looks like a dead owner: the caller then waits and reads
    // again.
    Held {
        pid,
        since: field("since "),
        command: field("command "),
        alive: Identity { pid, start }.can_act(),
    }
}

/// One place for all users, so that they see each other's locks.
pub(crate) fn directory() -> PathBuf {
    if let Some(dir) = std::env::var_os("PUNCTUAL_STATE_DIR") {
        return PathBuf::from(dir);
    }
    let run_lock = PathBuf::from("/run/lock");
    if run_lock.is_dir() && rustix::fs::access(&run_lock, rustix::fs::Access::WRITE_OK).is_ok() {
        run_lock
    } else {
        PathBuf::from("/tmp")
    }
}

fn open_file(path: &std::path::Path) -> Result<OwnedFd, Diagnostic> {
    let failed = |e: Errno| {
        Diagnostic::refused(
            format!("cannot open the CPU lock {}", path.display()),
            e,
            "make its directory writable (as /run/lock is: mode 1777), or remove the file if \
             nothing uses it",
        )
    };
    if let Some(dir) = path.parent() {
        let _ = std::fs::create_dir_all(dir);
    }
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // Opened before created: fs.protected_regular refuses O_CREAT on a file that another user made
    // in a sticky directory.
    let file = match open(path, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            match open(path, flags | OFlags::CREATE | OFlags::EXCL, Mode::from_raw_mode(0o666)) {
                Ok(f) => {
                    // Past the umask: any user must be able to lock it.
                    let _ = rustix::fs::fchmod(&f, Mode::from_raw_mode(0o666));
                    f
                }
                Err(Errno::EXIST) => open(path, flags, Mode::empty()).map_err(failed)?,
                Err(e) => return Err(failed(e)),
            }
        }
        other => other.map_err(failed)?,
    };
    let kind =
        rustix::fs::fstat(&file).map(|s| FileType::from_raw_mode(s.st_mode)).map_err(failed)?;
    if kind != FileType::RegularFile {
        return Err(failed(Errno::INVAL));
    }
    Ok(file)
}

/// Now, UTC, for people.
pub(crate) fn now() -> String {
    // SAFETY: an all-zero tm is a valid one to write to; time with a null pointer only returns.
    let t = unsafe {
        let mut broken_down = std::mem::zeroed();
        libc::gmtime_r(&libc::time(std::ptr::null_mut()), &mut broken_down);
        broken_down
    };
    let (year, month, day) = (t.tm_year + 1900, t.tm_mon + 1, t.tm_mday);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", t.tm_hour, t.tm_min, t.tm_sec)
}
