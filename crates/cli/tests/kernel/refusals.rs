//! What the machine or the set lacks: one error, before anything runs.

use std::ffi::CStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::budgets::TWO;
use crate::machine::{state, Machine};
use crate::punctual::{says, start, Scratch, PUNCTUAL};

const OTHERS: [&str; 2] = ["--host user", "--host sim"];

#[test]
fn a_kernel_without_sched_ext_is_named_with_the_other_hosts() {
    let _machine = Machine::any();
    if state().is_some() {
        return;
    }
    let scratch = Scratch::new();
    let output = start(&scratch.file("refused.toml", TWO), &[]).output();
    says(&output, 4, &OTHERS);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("sched_ext") || said.contains("too old"), "{said}");
}

/// What the command says in a process that is arranged like this.
fn said(program: &Path, arrange: impl FnOnce(&mut Command)) -> Output {
    let scratch = Scratch::new();
    let mut command = Command::new(program);
    command.args(["run", "--host", "kernel"]).arg(scratch.file("set.toml", TWO));
    arrange(&mut command);
    command.output().expect("it was built")
}

/// Nothing is at this place, for the command only.
fn without(place: &'static CStr) -> Output {
    said(&PUNCTUAL, |command| {
        let hide = move || {
            let none = std::ptr::null();
            // SAFETY: system calls with constant strings, between fork and exec.
            let failed = unsafe {
                libc::unshare(libc::CLONE_NEWNS) != 0
                    || libc::mount(
                        none,
                        c"/".as_ptr(),
                        none,
                        libc::MS_REC | libc::MS_PRIVATE,
                        none.cast(),
                    ) != 0
                    || libc::mount(
                        c"none".as_ptr(),
                        place.as_ptr(),
                        c"tmpfs".as_ptr(),
                        0,
                        none.cast(),
                    ) != 0
            };
            if failed {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        };
        // SAFETY: what it calls may be called there.
        unsafe { command.pre_exec(hide) };
    })
}

#[test]
fn a_kernel_that_does_not_show_sched_ext_is_refused() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let output = without(c"/sys/kernel");
    says(&output, 4, &["no sched_ext", OTHERS[0], OTHERS[1]]);
}

#[test]
fn a_kernel_without_btf_is_refused() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let output = without(c"/sys/kernel/btf");
    says(&output, 4, &["no BTF", OTHERS[0], OTHERS[1]]);
}

#[test]
fn a_user_without_privilege_is_refused() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    // Another user may not read the folder that it was built in.
    let scratch = Scratch::new();
    let copy = scratch.path("punctual");
    std::fs::copy(&*PUNCTUAL, &copy).expect("room for a program");
    let output = said(&copy, |command| {
        command.uid(65_534).gid(65_534);
    });
    says(&output, 4, &["CAP_BPF", OTHERS[0], OTHERS[1]]);
}

/// The verifier's own refusal, reported with the end of its log: in a copy of the command, the
/// first instruction of one of the scheduler's programs reads a register that was never written.
#[test]
fn what_the_verifier_refuses_is_reported_in_its_words() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let mut bytes = std::fs::read(&*PUNCTUAL).expect("it was built");
    let at = first_instruction(&bytes)
        .expect("the command has an object with struct_ops programs in it");
    // r0 = r9
    bytes[at..at + 8].copy_from_slice(&[0xbf, 0x90, 0, 0, 0, 0, 0, 0]);
    let scratch = Scratch::new();
    let spoilt = scratch.path("punctual");
    std::fs::write(&spoilt, bytes).expect("room for a program");
    std::fs::set_permissions(&spoilt, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("it is ours");
    let output = said(&spoilt, |_| ());
    says(&output, 4, &["refused to load the scheduler", "R9 ", OTHERS[0], OTHERS[1]]);
}

/// Where in a program's file the instructions of the scheduler's `dispatch` begin: an ELF file of
/// BPF within the program, that has such a section.
fn first_instruction(bytes: &[u8]) -> Option<usize> {
    let number = |at: usize, size: usize| -> Option<usize> {
        let digits = bytes.get(at..at + size)?;
        Some(digits.iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte)))
    };
    let section = |object: usize, n: usize| {
        Some(object + number(object + 0x28, 8)? + n * number(object + 0x3a, 2)?)
    };
    let magic = b"\x7fELF\x02\x01\x01";
    let objects =
        (1..bytes.len() - 64).filter(|&at| bytes[at] == 0x7f && bytes[at..].starts_with(magic));
    // 247: EM_BPF.
    let mut objects = objects.filter(|&object| number(object + 0x12, 2) == Some(247));
    objects.find_map(|object| {
        let names = section(object, number(object + 0x3e, 2)?)?;
        let names = object + number(names + 0x18, 8)?;
        (0..number(object + 0x3c, 2)?).find_map(|n| {
            let header = section(object, n)?;
            let name = bytes.get(names + number(header, 4)?..)?;
            name.starts_with(b"struct_ops/").then_some(())?;
            Some(object + number(header + 0x18, 8)?)
        })
    })
}
