//! Objects by name and by handle.
//!
//! A handle is what RTAI's programs have as the address of an object in the kernel. Here it is a
//! number that is no address: it says which slot it means, and which of the objects that this slot
//! has had. So a handle whose object is gone, or a pointer of another kind, is an error.

use std::ffi::c_void;

use super::layout::{SlotHead, SlotKind, OBJECTS, TASKS};
use super::{Arena, Transaction};

/// The upper 16 bits of a handle: no address has them on today's machines, and it is greater than
/// RTAI's error numbers.
const TAG: u64 = 0x5254 << 48;
const GENERATION_SHIFT: u32 = 20;
const GENERATION_MASK: u64 = (1 << 28) - 1;
const INDEX_SHIFT: u32 = 4;
const INDEX_MASK: u64 = (1 << 16) - 1;

/// The slot of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskIndex(u16);

impl TaskIndex {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// What a word says: 0 for none, else the task and 1.
    pub fn from_word(word: u64) -> Option<TaskIndex> {
        let index = word.checked_sub(1)?;
        (index < TASKS as u64).then_some(TaskIndex(index as u16))
    }

    pub fn word(self) -> u64 {
        u64::from(self.0) + 1
    }
}

/// The slot of an object of another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectIndex(u16);

impl ObjectIndex {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// As [`TaskIndex::from_word`].
    pub fn from_word(word: u64) -> Option<ObjectIndex> {
        let index = word.checked_sub(1)?;
        (index < OBJECTS as u64).then_some(ObjectIndex(index as u16))
    }

    pub fn word(self) -> u64 {
        u64::from(self.0) + 1
    }
}

/// A handle as C passes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(u64);

impl Handle {
    fn new(place: usize, generation: u64) -> Handle {
        let generation = (generation & GENERATION_MASK) << GENERATION_SHIFT;
        Handle(TAG | generation | (place as u64) << INDEX_SHIFT)
    }

    pub fn from_pointer(pointer: *const c_void) -> Handle {
        Handle(pointer.addr() as u64)
    }

    pub fn pointer(self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0 as usize)
    }

    /// Its place, first the tasks, then the other objects; `None`: no object had this handle.
    fn place(self) -> Option<usize> {
        let place = (self.0 >> INDEX_SHIFT & INDEX_MASK) as usize;
        let generation = self.0 >> GENERATION_SHIFT & GENERATION_MASK;
        (place < TASKS + OBJECTS && Handle::new(place, generation) == self).then_some(place)
    }
}

/// How long a new object lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// As long as the process that made it.
    Process,
    /// Until as many deleted it as asked for it.
    Users,
}

impl Arena {
    fn head(&self, place: usize) -> Option<&SlotHead> {
        let layout = self.layout();
        match place.checked_sub(TASKS) {
            None => Some(&layout.tasks[place].head),
            Some(index) => layout.objects.get(index).map(|object| &object.head),
        }
    }

    /// The places that objects may have.
    fn places(&self) -> impl Iterator<Item = (usize, &SlotHead)> {
        let layout = self.layout();
        let used = |word: u64, most: usize| (word as usize).min(most);
        let tasks = &layout.tasks[..used(layout.tasks_used.get(), TASKS)];
        let objects = &layout.objects[..used(layout.objects_used.get(), OBJECTS)];
        let tasks = tasks.iter().map(|task| &task.head).enumerate();
        let objects = objects.iter().map(|object| &object.head).enumerate();
        tasks.chain(objects.map(|(index, head)| (TASKS + index, head)))
    }

    /// The place of an object of this handle that lives.
    fn living(&self, handle: Handle) -> Option<(usize, &SlotHead)> {
        let place = handle.place()?;
        let head = self.head(place)?;
        let lives = head.kind.get() != SlotKind::Free as u64;
        (lives && Handle::new(place, head.generation.get()) == handle).then_some((place, head))
    }
}

impl<'a> Transaction<'a> {
    /// The living task of a handle.
    pub fn find_task(&self, handle: Handle) -> Option<TaskIndex> {
        let (place, head) = self.arena.living(handle)?;
        let is_task = place < TASKS && SlotKind::of(head) == Some(SlotKind::Task);
        is_task.then_some(TaskIndex(place as u16))
    }

    /// All living tasks, of all programs.
    pub fn tasks(&self) -> impl Iterator<Item = TaskIndex> + use<'a> {
        let arena = self.arena;
        let is_task =
            |task: &TaskIndex| SlotKind::of(&arena.task(*task).head) == Some(SlotKind::Task);
        (1..=self.layout().tasks_used.get()).filter_map(TaskIndex::from_word).filter(is_task)
    }

    /// The living proxy of a handle.
    pub fn find_proxy(&self, handle: Handle) -> Option<TaskIndex> {
        let (place, head) = self.arena.living(handle)?;
        let is_proxy = place < TASKS && SlotKind::of(head) == Some(SlotKind::Proxy);
        is_proxy.then_some(TaskIndex(place as u16))
    }

    /// The living object of a handle, if it is of this kind.
    pub fn find_object(&self, handle: Handle, kind: SlotKind) -> Option<ObjectIndex> {
        let (place, head) = self.arena.living(handle)?;
        let index = place.checked_sub(TASKS)?;
        (SlotKind::of(head) == Some(kind)).then_some(ObjectIndex(index as u16))
    }

    pub fn handle_of_task(&self, task: TaskIndex) -> Handle {
        Handle::new(task.index(), self.task(task).head.generation.get())
    }

    pub fn handle_of_object(&self, object: ObjectIndex) -> Handle {
        Handle::new(TASKS + object.index(), self.object(object).head.generation.get())
    }

    /// The object of this name, of whatever kind.
    pub fn find_name(&self, name: u64) -> Option<(Handle, Option<SlotKind>)> {
        let named = |head: &SlotHead| head.kind.get() != 0 && head.name.get() == name;
        let (place, head) = self.arena.places().find(|(_, head)| named(head))?;
        Some((Handle::new(place, head.generation.get()), SlotKind::of(head)))
    }

    /// The name of a living object.
    pub fn name_of(&self, handle: Handle) -> Option<u64> {
        self.arena.living(handle).map(|(_, head)| head.name.get())
    }

    /// A name that no object has, for one without.
    pub fn unused_name(&mut self) -> u64 {
        let given = &self.layout().names_given;
        loop {
            let name = crate::api::NAMES_END + given.get();
            self.set(given, given.get() + 1);
            if self.find_name(name).is_none() {
                return name;
            }
        }
    }

    /// A free slot of the tasks; `None`: there are [`TASKS`]. With `lives` the calling thread holds
    /// its life from now on.
    pub fn claim_task(&mut self, lives: bool) -> Option<TaskIndex> {
        let layout = self.layout();
        for (index, slot) in layout.tasks.iter().enumerate() {
            if slot.head.kind.get() != SlotKind::Free as u64 {
                continue;
            }
            // Of a thread that is just ending, it is locked still.
            let Ok(Some(life)) = slot.life.try_lock() else { continue };
            if lives {
                life.keep();
            }
            if layout.tasks_used.get() <= index as u64 {
                self.set(&layout.tasks_used, index as u64 + 1);
            }
            return Some(TaskIndex(index as u16));
        }
        None
    }

    /// A free slot for another object; `None`: there are [`OBJECTS`].
    pub fn claim_object(&mut self) -> Option<ObjectIndex> {
        let layout = self.layout();
        let is_free = |object: &super::ObjectSlot| object.head.kind.get() == SlotKind::Free as u64;
        let index = layout.objects.iter().position(is_free)?;
        if layout.objects_used.get() <= index as u64 {
            self.set(&layout.objects_used, index as u64 + 1);
        }
        Some(ObjectIndex(index as u16))
    }

    /// A new object has no owner, and no tasks that wait.
    pub fn reset_object(&mut self, id: ObjectIndex) {
        let object = self.object(id);
        let words = [&object.owner, &object.next_owned, &object.position, &object.buffer.length];
        for word in words.into_iter().chain([&object.waiters.first, &object.waiters.last]) {
            self.set(word, 0);
        }
    }

    /// Gives a slot that was claimed its object.
    pub fn register(&mut self, head: &SlotHead, kind: SlotKind, name: u64, owner: Owner) {
        let process = super::reap::this_process();
        let (id, start) = match owner {
            Owner::Process => (process.id, process.start),
            Owner::Users => (0, 0),
        };
        self.set(&head.generation, head.generation.get().wrapping_add(1));
        self.set(&head.name, name);
        self.set(&head.users, 1);
        self.set(&head.process, id);
        self.set(&head.process_start, start);
        self.set(&head.kind, kind as u64);
    }

    /// Another program uses an object that none of them owns; `None`: one owns it alone.
    pub fn add_user(&mut self, handle: Handle) -> Option<Handle> {
        let (_, head) = self.arena.living(handle)?;
        self.set(&head.users, head.users.get().saturating_add(1));
        Some(handle)
    }

    /// A program uses an object no more; how many do.
    pub fn remove_user(&mut self, object: ObjectIndex) -> i32 {
        let users = &self.object(object).head.users;
        self.set(users, users.get().saturating_sub(1));
        users.get().min(i32::MAX as u64) as i32
    }

    /// Frees a slot.
    pub fn deregister(&mut self, head: &SlotHead) {
        self.set(&head.kind, SlotKind::Free as u64);
        self.set(&head.name, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_says_its_slot_and_nothing_else_is_one() {
        for place in [0, TASKS, TASKS + OBJECTS - 1] {
            for generation in [1, 77, GENERATION_MASK] {
                assert_eq!(Handle::new(place, generation).place(), Some(place));
            }
        }
        let one = Handle::new(3, 9);
        for bit in 0..64 {
            let other = Handle(one.0 ^ 1 << bit);
            assert!(other.place() != one.place() || other != one);
        }
        for bad in [0, 1, 0x3FFF_FF05, 0x7fff_1234_5670, u64::MAX, one.0 | 1, one.0 ^ 1 << 63] {
            assert_eq!(Handle(bad).place(), None, "{bad:#x}");
        }
        assert_eq!(Handle::new(TASKS + OBJECTS, 1).place(), None);
    }
}
