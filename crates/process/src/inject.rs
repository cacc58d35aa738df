//! A system call that a process makes while it is held at its exec, before its first instruction:
//! what a program cannot be relied on to do for itself.
//!
//! The process executes one instruction of ours in place of its first one, which is then restored
//! with all registers. It is stopped before and after.

use std::ffi::c_void;
use std::io;
use std::mem::{size_of, MaybeUninit};
use std::ptr::null_mut;

use crate::exec::stop_of;

/// `NT_PRSTATUS` of linux/elf.h: the general registers.
const GENERAL_REGISTERS: usize = 1;

/// As many signals may reach the process while it executes its one instruction.
const MOST_SIGNALS: usize = 64;

#[cfg(target_arch = "x86_64")]
mod machine {
    pub type Registers = libc::user_regs_struct;

    /// `syscall`, in the lower bytes of a word; the others stay.
    pub const INSTRUCTION: u64 = 0x050f;
    pub const INSTRUCTION_MASK: u64 = 0xffff;

    pub fn program_counter(registers: &Registers) -> u64 {
        registers.rip
    }

    /// The registers for a call.
    pub fn call(registers: &Registers, number: u64, arguments: [u64; 3]) -> Registers {
        let [rdi, rsi, rdx] = arguments;
        // No system call that the kernel could restart.
        Registers { rax: number, orig_rax: u64::MAX, rdi, rsi, rdx, ..*registers }
    }

    pub fn result(registers: &Registers) -> u64 {
        registers.rax
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    pub type Registers = libc::user_regs_struct;

    /// `svc #0`.
    pub const INSTRUCTION: u64 = 0xd400_0001;
    pub const INSTRUCTION_MASK: u64 = 0xffff_ffff;

    pub fn program_counter(registers: &Registers) -> u64 {
        registers.pc
    }

    pub fn call(registers: &Registers, number: u64, arguments: [u64; 3]) -> Registers {
        let mut changed = *registers;
        changed.regs[..3].copy_from_slice(&arguments);
        changed.regs[8] = number;
        changed
    }

    pub fn result(registers: &Registers) -> u64 {
        registers.regs[0]
    }
}

/// Has the process `pid`, which the calling thread holds at its exec, make a system call. Returns
/// what the call returned.
///
/// # Errors
/// The error of the call; ENOSYS: not on this kind of processor; ESRCH: the process is not held, or
/// was killed.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn system_call(pid: i32, number: i64, arguments: [u64; 3]) -> io::Result<u64> {
    let before = registers(pid)?;
    let at = machine::program_counter(&before);
    let word = peek(pid, at)?;
    poke(pid, at, word & !machine::INSTRUCTION_MASK | machine::INSTRUCTION)?;
    let result = set_registers(pid, &machine::call(&before, number as u64, arguments))
        .and_then(|()| step(pid))
        .and_then(|()| registers(pid))
        .map(|after| machine::result(&after) as i64);
    // Both, whatever became of the call: a process that is gone has nothing to be restored.
    let restored = poke(pid, at, word).and_then(|()| set_registers(pid, &before));
    match result.and_then(|result| restored.map(|()| result))? {
        errno @ -4095..=-1 => Err(io::Error::from_raw_os_error(-errno as i32)),
        result => Ok(result as u64),
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn system_call(_: i32, _: i64, _: [u64; 3]) -> io::Result<u64> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

fn done(result: libc::c_long) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn registers(pid: i32) -> io::Result<machine::Registers> {
    let mut registers = MaybeUninit::<machine::Registers>::zeroed();
    let mut vector = libc::iovec {
        iov_base: registers.as_mut_ptr().cast(),
        iov_len: size_of::<machine::Registers>(),
    };
    // SAFETY: the kernel writes at most as many bytes as the structure has; any are a value of it.
    unsafe {
        let vector = &raw mut vector;
        done(libc::ptrace(libc::PTRACE_GETREGSET, pid, GENERAL_REGISTERS, vector))?;
        Ok(registers.assume_init())
    }
}

fn set_registers(pid: i32, registers: &machine::Registers) -> io::Result<()> {
    let mut vector = libc::iovec {
        iov_base: std::ptr::from_ref(registers).cast_mut().cast(),
        iov_len: size_of::<machine::Registers>(),
    };
    // SAFETY: the kernel reads the structure.
    unsafe {
        let vector = &raw mut vector;
        done(libc::ptrace(libc::PTRACE_SETREGSET, pid, GENERAL_REGISTERS, vector))
    }
}

fn peek(pid: i32, at: u64) -> io::Result<u64> {
    // SAFETY: the C library's function returns the word, by which -1 is no error of its own; the
    // address is the other process's.
    unsafe {
        *libc::__errno_location() = 0;
        let at = at as *mut c_void;
        let word = libc::ptrace(libc::PTRACE_PEEKTEXT, pid, at, null_mut::<c_void>());
        match *libc::__errno_location() {
            0 => Ok(word as u64),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

fn poke(pid: i32, at: u64, word: u64) -> io::Result<()> {
    // SAFETY: writes into the memory of the other process alone, in a page of its own.
    done(unsafe { libc::ptrace(libc::PTRACE_POKETEXT, pid, at as *mut c_void, word) })
}

/// Has it execute one instruction. Signals that reach it meanwhile are sent again afterwards.
fn step(pid: i32) -> io::Result<()> {
    let mut signals = Vec::new();
    let stepped = loop {
        // SAFETY: no memory is passed.
        done(unsafe {
            libc::ptrace(libc::PTRACE_SINGLESTEP, pid, null_mut::<c_void>(), null_mut::<c_void>())
        })?;
        match stop_of(pid) {
            Some(libc::SIGTRAP) => break Ok(()),
            Some(signal) if signals.len() < MOST_SIGNALS => signals.push(signal),
            Some(_) => break Err(io::Error::from_raw_os_error(libc::EINTR)),
            None => break Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    for signal in signals {
        // SAFETY: our child, which was not waited for to its end.
        unsafe { libc::kill(pid, signal) };
    }
    stepped
}
