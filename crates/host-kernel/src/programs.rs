//! The test-run programs of a loaded object, as any thread may call them.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libbpf_rs::Object;

use crate::abi::Context;

/// Kept apart from the object, which one thread owns.
pub(crate) struct Programs(Vec<(OsString, OwnedFd)>);

impl Programs {
    pub fn of(object: &Object) -> std::io::Result<Programs> {
        let own =
            |p: libbpf_rs::Program<'_>| Ok((p.name().to_owned(), p.as_fd().try_clone_to_owned()?));
        object
            .progs()
            .filter(|p| p.autoload())
            .map(own)
            .collect::<std::io::Result<_>>()
            .map(Programs)
    }

    /// A program's descriptor.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn fd(&self, name: &str) -> Result<BorrowedFd<'_>, String> {
        let found = self.0.iter().find(|(n, _)| n == name);
        found
            .map(|(_, fd)| fd.as_fd())
            .ok_or_else(|| format!("the BPF object has no program {name}"))
    }

    /// Runs a program once with its context, which it may change; what it returned.
    ///
    /// # Errors
    /// The kernel's, with the program's name.
    pub fn run<C: Context>(&self, context: &mut C) -> Result<i32, String> {
        let name = context.program();
        let fd = self.fd(name)?;
        // SAFETY: all zero is a value of it; the size says which fields are there.
        let mut options: libbpf_sys::bpf_test_run_opts = unsafe { std::mem::zeroed() };
        options.sz = size_of_val(&options) as _;
        options.ctx_in = std::ptr::from_mut(context).cast();
        options.ctx_size_in = size_of::<C>() as u32;
        // SAFETY: the context is valid for reading and writing as long as the call takes.
        let failed = unsafe { libbpf_sys::bpf_prog_test_run_opts(fd.as_raw_fd(), &mut options) };
        if failed < 0 {
            return Err(format!(
                "BPF program {name}: {}",
                std::io::Error::from_raw_os_error(-failed)
            ));
        }
        Ok(options.retval as i32)
    }
}
