//! Threads that are tasks of Punctual: in the group of this program, by their priorities.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use punctual::Attached;
use punctual_classic::{report_refusal, ClassicSets, CpuSet, InterfaceNames, MemberId, TaskShare};
use punctual_sys::sched::{self, Mask};

use crate::loaded;
use crate::thread::{self, ThreadIndex};

/// The sets of this program.
pub static SETS: ClassicSets = ClassicSets::new(InterfaceNames {
    library: "librtlinux",
    group: "rtlinux",
    prefix: "PUNCTUAL_RTLINUX",
    tasks: (thread::THREADS + crate::loader::PROGRAMS) as u32,
});

/// The calling thread as a task, until this is dropped.
struct ThisThread {
    // In this order: the thread leaves before its part of the group is free, and its slot is free
    // when nothing is left of it.
    attached: Option<Attached>,
    member: Option<Member>,
}

/// A member of a set, until this is dropped.
struct Member {
    set: Arc<CpuSet>,
    id: MemberId,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.set.remove(self.id);
    }
}

impl Drop for ThisThread {
    fn drop(&mut self) {
        drop(self.attached.take());
        drop(self.member.take());
        thread::leave();
    }
}

thread_local! {
    static THIS: RefCell<Option<ThisThread>> = const { RefCell::new(None) };
}

/// The member of a thread with this identity.
pub fn member_of_thread(id: u64) -> MemberId {
    MemberId(id)
}

/// The member of a program that this one has loaded.
pub fn member_of_program(pid: i32) -> MemberId {
    MemberId(1 << 63 | pid as u64)
}

/// The calling thread has this slot, and is a task from now on, if it can be; else why not is
/// reported. Returns at its first release.
pub fn enter(thread: ThreadIndex, name: &str) {
    thread::enter(thread);
    let wanted = thread::with_thread(thread, |slot| (slot.id, slot.cpu));
    let share = || {
        let priority = thread::with_thread(thread, |slot| slot.priority).unwrap_or(0);
        TaskShare::Group { priority }
    };
    let (attached, member) = match wanted {
        // The program that has loaded this one has it scheduled, with all its threads.
        _ if loaded::is_loaded() => (None, None),
        None => (None, None),
        Some((id, cpu)) => {
            let attach = || {
                let set = SETS.on(cpu.map_or(u64::MAX, |cpu| 1 << cpu.min(63)))?;
                let id = member_of_thread(id);
                let attached = set.attach(id, name, share)?;
                Ok((attached, Member { set, id }))
            };
            match attach() {
                Ok((attached, member)) => (Some(attached), Some(member)),
                Err(error) => {
                    report_refusal(SETS.names(), &error);
                    (None, None)
                }
            }
        }
    };
    THIS.with_borrow_mut(|this| *this = Some(ThisThread { attached, member }));
}

/// In the child of a fork: what its parent's thread was.
pub fn forget() {
    let this = THIS.try_with(|this| this.try_borrow_mut().ok()?.take());
    std::mem::forget(this);
}

/// What threads of this program may execute on: as the first one that asked.
pub fn cpus() -> Option<&'static Mask> {
    static CPUS: OnceLock<Option<Mask>> = OnceLock::new();
    CPUS.get_or_init(|| sched::affinity(0).ok()).as_ref()
}
