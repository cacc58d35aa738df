//! The same work for the kernel's dispatcher and the native one (`bpf/selftest/`).

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::cell::RefCell;
use std::rc::Rc;

use punctual_dispatcher::raw::Limits;

use crate::kernel::{Kernel, KernelError};

extern "C" {
    #[link_name = "punctual_selftest_limits"]
    static LIMITS: Limits;
}

/// All that a block of the arena has room for (`bpf/selftest/limits.h`).
fn limits() -> Limits {
    // SAFETY: a constant of `bpf/selftest/native.c`.
    unsafe { LIMITS }
}

/// As `struct pd_create_call` in `bpf/selftest/calls.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct CreateCall {
    limits: Limits,
    domain: u32,
    unused: u32,
}

/// As `struct pd_call` in `bpf/selftest/calls.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Call {
    domain: u32,
    unused: u32,
    seed: u64,
    hash: u64,
    batch: u32,
    count: u32,
    jobs: u32,
    trees: u32,
    begin: u32,
    left: u32,
}

/// A value as the bytes that a program gets as its context.
fn bytes<T: Copy>(value: &mut T) -> &mut [u8] {
    // SAFETY: the call structures have no padding, and any bytes are a value of theirs.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(value).cast(), size_of::<T>()) }
}

/// A dispatcher somewhere, put through its paces.
pub trait Subject {
    /// `count` operations of batch `batch`, drawn from `seed` by batch 0; a hash of every return
    /// value, event and trace record so far.
    ///
    /// # Errors
    /// The kernel's.
    fn exercise(&mut self, seed: u64, batch: u32, count: u32) -> Result<u64, KernelError>;

    /// `jobs` jobs under EDF, for [`Subject::decide`]: in group 0, or, with `trees`, in the lowest
    /// of three levels of groups, with two levels of budget groups beside them.
    ///
    /// # Errors
    /// The kernel's, and more than 4,096 jobs or none.
    fn prepare_decisions(&mut self, jobs: u32, trees: bool) -> Result<(), KernelError>;

    /// So many full decisions (charge, end one job, what is due, add one, select, next timer); a
    /// hash of what was decided so far.
    ///
    /// # Errors
    /// The kernel's.
    fn decide(&mut self, count: u32) -> Result<u64, KernelError>;
}

/// The kernel's, of one domain.
pub struct InKernel {
    kernel: Rc<RefCell<Kernel>>,
    domain: u32,
}

impl InKernel {
    /// Makes the dispatcher of domain 0 in the arena of a freshly loaded object.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(kernel: Kernel) -> Result<InKernel, KernelError> {
        InKernel::make(Rc::new(RefCell::new(kernel)), 0)
    }

    /// Makes that of another domain beside it.
    ///
    /// # Errors
    /// The kernel's; a domain that is there already, or is none.
    pub fn beside(&self, domain: u32) -> Result<InKernel, KernelError> {
        InKernel::make(Rc::clone(&self.kernel), domain)
    }

    /// Its domain.
    pub fn number(&self) -> u32 {
        self.domain
    }

    fn make(kernel: Rc<RefCell<Kernel>>, domain: u32) -> Result<InKernel, KernelError> {
        let mut call = CreateCall { limits: limits(), domain, unused: 0 };
        let result = kernel.borrow_mut().run("punctual_create", bytes(&mut call))?;
        match result {
            0 => Ok(InKernel { kernel, domain }),
            _ => Err(KernelError::Limits),
        }
    }

    fn call(&mut self, program: &'static str, call: &mut Call) -> Result<(), KernelError> {
        call.domain = self.domain;
        match self.kernel.borrow_mut().run(program, bytes(call))? {
            0 => Ok(()),
            _ => Err(KernelError::Limits),
        }
    }
}

impl Subject for InKernel {
    fn exercise(&mut self, seed: u64, batch: u32, count: u32) -> Result<u64, KernelError> {
        let mut call = Call { seed, batch, count, ..Call::default() };
        self.call("punctual_begin", &mut call)?;
        loop {
            self.call("punctual_tell", &mut call)?;
            self.call("punctual_host", &mut call)?;
            if call.left == 0 {
                return Ok(call.hash);
            }
        }
    }

    fn prepare_decisions(&mut self, jobs: u32, trees: bool) -> Result<(), KernelError> {
        self.call(
            "punctual_decisions",
            &mut Call { jobs, trees: trees.into(), begin: 1, ..Call::default() },
        )
    }

    fn decide(&mut self, count: u32) -> Result<u64, KernelError> {
        let mut call = Call { count, ..Call::default() };
        self.call("punctual_decisions", &mut call)?;
        Ok(call.hash)
    }
}

extern "C" {
    fn punctual_native_size(limits: *const Limits) -> u64;
    fn punctual_native_create(memory: *mut u8, limits: *const Limits) -> i32;
    fn punctual_native_begin(memory: *mut u8, call: *mut Call) -> i32;
    fn punctual_native_tell(memory: *mut u8, call: *mut Call) -> i32;
    fn punctual_native_host(memory: *mut u8, call: *mut Call) -> i32;
    fn punctual_native_decisions(memory: *mut u8, call: *mut Call) -> i32;
}

/// The native build's.
pub struct Native {
    /// What the workload keeps, then the dispatcher.
    memory: *mut u8,
    layout: Layout,
}

impl Native {
    /// One with the same limits.
    pub fn new() -> Native {
        // SAFETY: the limits are a plain value.
        let size = unsafe { punctual_native_size(&limits()) } as usize;
        let layout = Layout::from_size_align(size, 64).expect("the size of an array of arrays");
        // SAFETY: the limits are valid, so the size is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: zeroed, aligned memory of the size asked for.
        let failed = unsafe { punctual_native_create(memory, &limits()) };
        assert_eq!(failed, 0, "the native dispatcher takes the arena's limits");
        Native { memory, layout }
    }

    fn call(
        &mut self,
        function: unsafe extern "C" fn(*mut u8, *mut Call) -> i32,
        call: &mut Call,
    ) -> Result<(), KernelError> {
        // SAFETY: `memory` holds a dispatcher, which `&mut self` makes ours alone.
        match unsafe { function(self.memory, call) } {
            0 => Ok(()),
            _ => Err(KernelError::Limits),
        }
    }
}

impl Default for Native {
    fn default() -> Native {
        Native::new()
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`.
        unsafe { dealloc(self.memory, self.layout) };
    }
}

impl Subject for Native {
    fn exercise(&mut self, seed: u64, batch: u32, count: u32) -> Result<u64, KernelError> {
        let mut call = Call { seed, batch, count, ..Call::default() };
        self.call(punctual_native_begin, &mut call)?;
        loop {
            self.call(punctual_native_tell, &mut call)?;
            self.call(punctual_native_host, &mut call)?;
            if call.left == 0 {
                return Ok(call.hash);
            }
        }
    }

    fn prepare_decisions(&mut self, jobs: u32, trees: bool) -> Result<(), KernelError> {
        self.call(
            punctual_native_decisions,
            &mut Call { jobs, trees: trees.into(), begin: 1, ..Call::default() },
        )
    }

    fn decide(&mut self, count: u32) -> Result<u64, KernelError> {
        let mut call = Call { count, ..Call::default() };
        self.call(punctual_native_decisions, &mut call)?;
        Ok(call.hash)
    }
}
