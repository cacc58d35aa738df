//! Tasks, semaphores and mailboxes of liblxrt, as programs in C have them (crates/rtai/include).

use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{hint, ptr};

use crate::Failure;
// Has its functions linked.
use punctual_rtai as _;

mod c {
    use super::{c_int, c_long, c_ulong, c_void};

    extern "C" {
        pub fn rt_task_init_schmod(
            name: c_ulong,
            priority: c_int,
            stack_size: c_int,
            max_msg_size: c_int,
            policy: c_int,
            cpus_allowed: c_int,
        ) -> *mut c_void;
        pub fn rt_make_hard_real_time();
        pub fn rt_is_hard_real_time(task: *mut c_void) -> c_int;
        pub fn rt_task_suspend(task: *mut c_void) -> c_int;
        pub fn rt_task_resume(task: *mut c_void) -> c_int;
        pub fn rt_typed_sem_init(name: c_ulong, value: c_int, kind: c_int) -> *mut c_void;
        pub fn rt_sem_signal(sem: *mut c_void) -> c_int;
        pub fn rt_sem_wait(sem: *mut c_void) -> c_int;
        pub fn rt_typed_mbx_init(name: c_ulong, size: c_int, order: c_int) -> *mut c_void;
        pub fn rt_mbx_send(mbx: *mut c_void, message: *mut c_void, size: c_int) -> c_int;
        pub fn rt_mbx_receive(mbx: *mut c_void, message: *mut c_void, size: c_int) -> c_int;
        pub fn rt_rpc(task: *mut c_void, word: c_ulong, result: *mut c_long) -> *mut c_void;
        pub fn rt_receive(task: *mut c_void, word: *mut c_long) -> *mut c_void;
        pub fn rt_return(task: *mut c_void, result: c_ulong) -> *mut c_void;
    }
}

const CNT_SEM: c_int = 2;
const FIFO_Q: c_int = 4;

/// A handle of an object.
pub struct Object(AtomicPtr<c_void>);

impl Object {
    fn pointer(&self) -> *mut c_void {
        self.0.load(Ordering::Relaxed)
    }

    fn of(pointer: *mut c_void) -> Result<Object, Failure> {
        match pointer.is_null() {
            true => Err("liblxrt has no room for an object".into()),
            false => Ok(Object(AtomicPtr::new(pointer))),
        }
    }

    /// A task that is to begin.
    pub fn none() -> Object {
        Object(AtomicPtr::new(ptr::null_mut()))
    }

    /// Waits for it.
    pub fn await_begin(&self) {
        while self.0.load(Ordering::Acquire).is_null() {
            hint::spin_loop();
            std::thread::yield_now();
        }
    }

    /// The calling thread becomes this task.
    pub fn begin(&self, cpu: u32, is_hard: bool) -> Result<(), Failure> {
        // SAFETY: calls without memory of the caller.
        let task = unsafe {
            let task = c::rt_task_init_schmod(0, 1, 0, 0, libc::SCHED_FIFO, 1 << cpu);
            if is_hard {
                c::rt_make_hard_real_time();
                if c::rt_is_hard_real_time(task) == 0 {
                    return Err("the task stays soft".into());
                }
            }
            task
        };
        self.0.store(task, Ordering::Release);
        Ok(())
    }

    pub fn semaphore() -> Result<Object, Failure> {
        // SAFETY: as above.
        Object::of(unsafe { c::rt_typed_sem_init(0, 0, CNT_SEM) })
    }

    pub fn mailbox(size: usize) -> Result<Object, Failure> {
        // SAFETY: as above.
        Object::of(unsafe { c::rt_typed_mbx_init(0, size as c_int, FIFO_Q) })
    }

    pub fn signal(&self) {
        // SAFETY: as above.
        unsafe { c::rt_sem_signal(self.pointer()) };
    }

    pub fn wait(&self) {
        // SAFETY: as above.
        unsafe { c::rt_sem_wait(self.pointer()) };
    }

    pub fn send(&self, mut message: [u8; super::MESSAGE]) {
        let bytes = message.as_mut_ptr().cast();
        // SAFETY: the bytes of the message.
        unsafe { c::rt_mbx_send(self.pointer(), bytes, super::MESSAGE as c_int) };
    }

    pub fn receive(&self) -> [u8; super::MESSAGE] {
        let mut message = [0; super::MESSAGE];
        let bytes = message.as_mut_ptr().cast();
        // SAFETY: the bytes of the message.
        unsafe { c::rt_mbx_receive(self.pointer(), bytes, super::MESSAGE as c_int) };
        message
    }

    pub fn resume(&self) {
        // SAFETY: as above.
        unsafe { c::rt_task_resume(self.pointer()) };
    }

    /// The calling thread's task.
    pub fn suspend(&self) {
        // SAFETY: as above.
        unsafe { c::rt_task_suspend(self.pointer()) };
    }

    /// Calls this task.
    pub fn call(&self, word: u64) -> u64 {
        let mut result = 0;
        // SAFETY: the word of the result.
        unsafe { c::rt_rpc(self.pointer(), word, &mut result) };
        result as u64
    }
}

/// Answers one call of any task.
pub fn answer() {
    let mut word = 0;
    // SAFETY: the word of the message.
    unsafe {
        let caller = c::rt_receive(ptr::null_mut(), &mut word);
        c::rt_return(caller, word as c_ulong + 1);
    }
}
