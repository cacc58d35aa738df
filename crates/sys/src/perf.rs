//! Context switches of threads, as the kernel records them (perf_event_open): no tracepoint, no
//! BPF, no privilege but what `perf_event_paranoid` asks for.
//!
//! ```text
//!   thread 1, CPU 0 ─┐
//!   thread 2, CPU 0 ─┴─> ring of CPU 0 ─┐
//!   thread 1, CPU 1 ─┐                  ├─> drain()
//!   thread 2, CPU 1 ─┴─> ring of CPU 1 ─┘
//! ```
//!
//! The event itself counts nothing; it carries the records of switches and of threads that end.
//! Threads and processes that the observed ones start inherit it, so each needs one event per CPU:
//! only an event of one CPU may be both inherited and mapped. No record wakes a reader.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a thread does at a context switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// It gets the CPU.
    In,
    /// It gives the CPU away and waits.
    Blocked,
    /// It is preempted (or yielded).
    Preempted,
    /// It ends.
    Exit,
}

/// A record of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchRecord {
    /// CLOCK_MONOTONIC, ns.
    pub time: u64,
    /// The thread.
    pub tid: i32,
    /// What it does.
    pub switch: Switch,
}

/// Records the switches of threads, and of what they start, until dropped.
#[derive(Debug)]
pub struct SwitchRecorder {
    rings: Vec<Ring>,
    /// Events without a ring of their own.
    followers: Vec<OwnedFd>,
}

/// The event of each CPU that has the ring for all other events of that CPU.
#[derive(Debug)]
struct Ring {
    cpu: i32,
    event: OwnedFd,
    map: Mapping,
}

impl SwitchRecorder {
    /// Begins to record these threads. Each CPU gets a ring of 512 KiB, which is what an
    /// unprivileged user may lock by default (perf_event_mlock_kb): 21,845 switches.
    ///
    /// # Errors
    /// EACCES, EPERM: `perf_event_paranoid` or a seccomp filter forbids it; ENOSYS: the kernel has
    /// no perf events; ESRCH: none of the threads exists; EMFILE, ENOMEM.
    pub fn start(threads: &[i32]) -> io::Result<SwitchRecorder> {
        let mut recorder = SwitchRecorder { rings: Vec::new(), followers: Vec::new() };
        for &thread in threads {
            match recorder.add(thread) {
                // It ended meanwhile.
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                added => added?,
            }
        }
        match recorder.rings.is_empty() {
            true => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            false => Ok(recorder),
        }
    }

    /// Records one more thread.
    fn add(&mut self, thread: i32) -> io::Result<()> {
        // SAFETY: a system call without pointers.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        for cpu in 0..i32::try_from(cpus).unwrap_or(1).max(1) {
            let event = match open(thread, cpu) {
                // The CPU is offline.
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => continue,
                opened => opened?,
            };
            match self.rings.iter().find(|ring| ring.cpu == cpu) {
                Some(ring) => {
                    // SAFETY: both are events, and no memory is passed.
                    let set = unsafe {
                        libc::ioctl(event.as_raw_fd(), SET_OUTPUT as _, ring.event.as_raw_fd())
                    };
                    if set != 0 {
                        return Err(io::Error::last_os_error());
                    }
                    self.followers.push(event);
                }
                None => {
                    let map = Mapping::of(&event)?;
                    self.rings.push(Ring { cpu, event, map });
                }
            }
        }
        Ok(())
    }

    /// Takes what was recorded since the last call, CPU by CPU, each in order of time; returns how
    /// many records found no room since then.
    pub fn drain(&mut self, record: &mut dyn FnMut(SwitchRecord)) -> u64 {
        self.rings.iter_mut().map(|ring| ring.map.drain(record)).sum()
    }
}

/// PERF_EVENT_IOC_SET_OUTPUT.
const SET_OUTPUT: u64 = 0x2405;

/// The kernel's `struct perf_event_attr`, version 5 (112 bytes), which every kernel since 4.8
/// accepts.
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.
const SOFTWARE: u32 = 1;
const DUMMY: u64 = 9;
/// PERF_SAMPLE_TID, PERF_SAMPLE_TIME: what each record ends with.
const TID_AND_TIME: u64 = 1 << 1 | 1 << 2;
/// inherit, exclude_kernel (the dummy counts nothing, and without it the call needs more
/// privilege), task, watermark, sample_id_all, use_clockid, context_switch.
const FLAGS: u64 = 1 << 1 | 1 << 5 | 1 << 13 | 1 << 14 | 1 << 18 | 1 << 25 | 1 << 26;
/// PERF_FLAG_FD_CLOEXEC.
const CLOSE_ON_EXEC: u64 = 1 << 3;

fn open(thread: i32, cpu: i32) -> io::Result<OwnedFd> {
    let attributes = EventAttributes {
        kind: SOFTWARE,
        size: std::mem::size_of::<EventAttributes>() as u32,
        config: DUMMY,
        sample_type: TID_AND_TIME,
        flags: FLAGS,
        // The kernel wakes nothing that does not poll; this makes it try as seldom as it can.
        wakeup_watermark: u32::MAX,
        clockid: libc::CLOCK_MONOTONIC,
        ..EventAttributes::default()
    };
    // SAFETY: `attributes` is as long as it says, and only read.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread,
            cpu,
            -1i32,
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(fd) {
        // SAFETY: the call returned a new descriptor, which nothing else owns.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The records' part of a mapping, bytes: a power of two, as the kernel wants it.
const RING: usize = 512 << 10;
/// Offsets in the kernel's `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// An event's ring, mapped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    page: usize,
}

// SAFETY: it owns its mapping; the kernel's side is reached through atomics.
unsafe impl Send for Mapping {}

impl Mapping {
    fn of(event: &OwnedFd) -> io::Result<Mapping> {
        // SAFETY: a system call without pointers.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        // SAFETY: a new mapping of an event; the kernel chooses the place.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page + RING,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast()) {
            Some(start) if start.as_ptr() as isize != -1 => Ok(Mapping { start, page }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// A position in the ring, bytes since its beginning.
    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: aligned, within the mapping's first page, and written by the kernel as a whole.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// `N` bytes at a position, which may go round the ring's end.
    fn bytes<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        for (n, byte) in (0..).zip(&mut bytes) {
            let place = (at.wrapping_add(n) % RING as u64) as usize;
            // SAFETY: within the mapping; the kernel does not write between tail and head.
            *byte = unsafe { self.start.as_ptr().add(self.page + place).read() };
        }
        bytes
    }

    fn drain(&mut self, record: &mut dyn FnMut(SwitchRecord)) -> u64 {
        // Pairs with the kernel's barrier before it stores the head: what is below it is whole.
        let head = self.position(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.position(DATA_TAIL).load(Ordering::Relaxed);
        let mut lost = 0;
        while tail != head {
            let header = self.bytes::<8>(tail);
            let number = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
            let (kind, misc, size) = (number(0), number(4), u64::from(number(6)));
            if size < 8 {
                // No record is so short: the ring is not as it should be, and the rest is lost.
                lost += 1;
                break;
            }
            match kind {
                LOST => lost += u64::from_le_bytes(self.bytes(tail + 16)),
                SWITCH => {
                    let switch = match misc {
                        misc if misc & SWITCH_OUT == 0 => Switch::In,
                        misc if misc & PREEMPTED == 0 => Switch::Blocked,
                        _ => Switch::Preempted,
                    };
                    let [_, tid] = self.pair(tail + size - 16);
                    let time = u64::from_le_bytes(self.bytes(tail + size - 8));
                    record(SwitchRecord { time, tid, switch });
                }
                EXIT => {
                    // pid, parent's pid; tid, parent's tid; time.
                    let [tid, _] = self.pair(tail + 16);
                    let time = u64::from_le_bytes(self.bytes(tail + 24));
                    record(SwitchRecord { time, tid, switch: Switch::Exit });
                }
                _ => {}
            }
            tail += size;
        }
        // The kernel may overwrite what is below the tail; all reads come before.
        self.position(DATA_TAIL).store(head, Ordering::Release);
        lost
    }

    /// Two numbers that stand side by side.
    fn pair(&self, at: u64) -> [i32; 2] {
        [0, 4].map(|n| i32::from_le_bytes(self.bytes(at + n)))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows from it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.page + RING) };
    }
}

/// Kinds of record (PERF_RECORD_*) and of switch (PERF_RECORD_MISC_*).
const LOST: u16 = 2;
const EXIT: u16 = 4;
const SWITCH: u16 = 14;
const SWITCH_OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_sleep_of_a_thread_is_a_blocked_and_an_in_and_its_end_an_exit() {
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let (tell, tid) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: a system call without arguments.
            tell.send(unsafe { libc::gettid() }).expect("it is received");
            begun.recv().expect("it is sent");
            (0..5).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
        });
        let tid = tid.recv().expect("it is sent");
        let mut recorder = match SwitchRecorder::start(&[tid]) {
            Ok(recorder) => recorder,
            Err(e) => return eprintln!("ignored: perf events are refused: {e}"),
        };
        begin.send(()).expect("it waits");
        thread.join().expect("it ends");
        let mut records = Vec::new();
        assert_eq!(recorder.drain(&mut |record| records.push(record)), 0, "none is lost");
        records.sort_by_key(|record| record.time);
        assert!(records.iter().all(|record| record.tid == tid), "{records:?}");
        let count = |switch| records.iter().filter(|record| record.switch == switch).count();
        assert!(count(Switch::Blocked) >= 5 && count(Switch::In) >= 5, "{records:?}");
        assert_eq!(records.last().map(|record| record.switch), Some(Switch::Exit), "{records:?}");
        assert_eq!(recorder.drain(&mut |record| panic!("{record:?} was taken before")), 0);
    }

    #[test]
    fn what_is_not_there_cannot_be_recorded() {
        let error = SwitchRecorder::start(&[i32::MAX]).err().and_then(|e| e.raw_os_error());
        assert!(matches!(error, Some(libc::ESRCH | libc::EACCES | libc::EPERM)), "{error:?}");
    }
}
