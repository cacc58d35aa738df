//! The memory in which the objects of all RTAI programs of a user are, as RTAI has them in the
//! kernel: a program finds what another one made by its name.
//!
//! Each operation is a *transaction*: it holds the one lock, and records the value before of each
//! word that it changes. When a program is killed in the middle, the next one withdraws what it
//! had changed: the operation has happened as a whole or has not. Threads are woken afterwards. A
//! program that is killed between these two leaves threads asleep, so that a thread that waits
//! looks again once a second.

#[cfg(test)]
mod dying_tests;
mod heap;
mod layout;
pub mod queue;
mod reap;
mod registry;
mod transaction;

use std::io;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::OnceLock;

use punctual::fifo::{Name, Namespace};
use punctual::Error;
use punctual_ipc::Region;

pub use layout::{ObjectSlot, SlotKind, TaskSlot, WatchdogSettings, Word, OBJECTS, TASKS};
pub use registry::{Handle, ObjectIndex, Owner, TaskIndex};
pub use transaction::{BlockedSignals, Transaction};

use layout::Layout;

const NAME: &str = "rtai";
/// The first bytes of the arena, and of no other memory.
const MAGIC: u64 = u64::from_le_bytes(*b"PNCTRTAI");
/// Of the layout, and of what its words mean.
const VERSION: u64 = 2;

/// The arena of this user, mapped into this process.
#[derive(Debug)]
pub struct Arena {
    region: Region,
}

impl Arena {
    /// That of the user of this process. Makes it where no program has it open; removes what
    /// processes that ended left in it.
    ///
    /// # Errors
    /// There is no shared memory; the arena is of another version, or of another PID namespace.
    fn open() -> Result<Arena, Error> {
        let name: Name = NAME.parse()?;
        let pid_namespace = pid_namespace();
        let fill = |base: NonNull<u8>| {
            // SAFETY: the region has the size of a layout; zeros are one.
            let layout = unsafe { base.cast::<Layout>().as_ref() };
            layout.lock.init()?;
            for task in &layout.tasks {
                task.life.init()?;
            }
            crate::watchdog::init(&layout.watchdog);
            layout.version.store(VERSION);
            layout.size.store(size_of::<Layout>() as u64);
            layout.pid_namespace.store(pid_namespace);
            layout.magic.store(MAGIC);
            Ok::<(), io::Error>(())
        };
        let namespace = Namespace::of_user()?;
        let region = Region::open_or_create(&namespace, &name, size_of::<Layout>(), fill)?;
        let arena = Arena { region };
        let layout = arena.layout();
        let good = layout.magic.get() == MAGIC
            && layout.version.get() == VERSION
            && layout.size.get() == size_of::<Layout>() as u64;
        if !good {
            return Err(Error::machine(
                "the memory of the RTAI programs is damaged, or of another version of Punctual",
                "end the RTAI programs of this user, or name another folder by PUNCTUAL_SHM_DIR",
            ));
        }
        if layout.pid_namespace.get() != pid_namespace {
            return Err(Error::machine(
                "the RTAI programs of this user are in another PID namespace",
                "start this one in the same container, or name another folder by PUNCTUAL_SHM_DIR",
            ));
        }
        Ok(arena)
    }

    fn layout(&self) -> &Layout {
        // SAFETY: the region has this size, and lives as long as `self`; all of it is atomic.
        unsafe { self.region.base().cast::<Layout>().as_ref() }
    }

    /// Outside of a transaction only as a hint.
    pub fn watchdog(&self) -> &WatchdogSettings {
        &self.layout().watchdog
    }

    pub fn task(&self, task: TaskIndex) -> &TaskSlot {
        &self.layout().tasks[task.index()]
    }

    pub fn object(&self, object: ObjectIndex) -> &ObjectSlot {
        &self.layout().objects[object.index()]
    }
}

/// The arena; `None` where it cannot be had, which is reported once.
pub fn arena() -> Option<&'static Arena> {
    static ARENA: OnceLock<Option<Arena>> = OnceLock::new();
    let open = || match Arena::open() {
        Ok(arena) => {
            arena.reap();
            Some(arena)
        }
        Err(error) => {
            eprintln!("liblxrt: {error}");
            None
        }
    };
    ARENA.get_or_init(open).as_ref()
}

/// Its number in the kernel.
fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    Path::new("/proc/self/ns/pid").metadata().map_or(0, |status| status.ino())
}
