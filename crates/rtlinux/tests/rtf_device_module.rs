//! A program whose FIFOs are the devices /dev/rtfN, and another one that opens such a device, as
//! the ordinary half of a program of RT-Linux does.

use std::ffi::{c_int, c_uint, c_void};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;

use punctual_rtlinux as _;
use punctual_test_support::process::{end_of, ignored_test};
use punctual_test_support::{comes_true, ignored};

extern "C" {
    fn rtf_create(fifo: c_uint, size: c_int) -> c_int;
    fn rtf_destroy(fifo: c_uint) -> c_int;
    fn rtf_put(fifo: c_uint, from: *const c_void, count: c_int) -> c_int;
    fn rtf_get(fifo: c_uint, to: *mut c_void, count: c_int) -> c_int;
}

const COMMANDS: c_uint = 60;
const RESULTS: c_uint = 61;
/// Set for the process of the scenario.
const DEVICES: &str = "PUNCTUAL_RTLINUX_DEVICES";

/// Opens the devices, in a process of its own.
#[test]
#[ignore = "it is no test by itself"]
fn ordinary_half() {
    let mut commands = OpenOptions::new().write(true).open("/dev/rtf60").expect("it is served");
    let mut results = OpenOptions::new().read(true).open("/dev/rtf61").expect("it is served");
    commands.write_all(b"go").expect("there is room");
    let mut result = [0; 8];
    assert_eq!(results.read(&mut result).expect("it comes"), 4);
    assert_eq!(&result[..4], b"done");
}

/// The half with the FIFOs, in a process of its own; else nothing.
#[test]
#[ignore = "it is no test by itself"]
fn real_time_half() {
    if std::env::var_os(DEVICES).is_none() {
        return;
    }
    // SAFETY: calls of RT-Linux, with what they take.
    unsafe {
        // A second time, once the first devices are gone.
        for _ in 0..2 {
            assert_eq!((rtf_create(COMMANDS, 100), rtf_create(RESULTS, 100)), (0, 0));
            let mut other = ignored_test("ordinary_half").spawn().expect("it runs");
            let mut command = [0u8; 8];
            assert!(comes_true(|| rtf_get(COMMANDS, command.as_mut_ptr().cast(), 8) == 2));
            assert_eq!(&command[..2], b"go");
            assert_eq!(rtf_put(RESULTS, b"done".as_ptr().cast(), 4), 4);
            assert!(other.wait().expect("it is a child").success());
            assert_eq!((rtf_destroy(COMMANDS), rtf_destroy(RESULTS)), (0, 0));
            assert!(!Path::new("/dev/rtf60").exists() && !Path::new("/dev/rtf61").exists());
        }
        // One that is left goes with the process.
        assert_eq!(rtf_create(COMMANDS, 100), 0);
        assert!(Path::new("/dev/rtf60").exists());
    }
}

#[test]
fn an_ordinary_program_opens_the_fifos_of_another_one_as_devices() {
    let here = Path::new("/dev/cuse").exists();
    let required = std::env::var("PUNCTUAL_CUSE").is_ok_and(|value| value == "required");
    assert!(here || !required, "this kernel has no /dev/cuse, and it is required");
    // SAFETY: no arguments.
    if !here || unsafe { libc::geteuid() } != 0 {
        return ignored("/dev/cuse is needed, and root (vm/test KERNEL --module cuse)");
    }
    if Path::new("/dev/rtf60").exists() || Path::new("/dev/rtf61").exists() {
        return ignored("/dev/rtf60 or /dev/rtf61 is in use");
    }
    let folder = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
    let mut command = ignored_test("real_time_half");
    command.env(DEVICES, "yes").env("PUNCTUAL_SHM_DIR", folder.path().join("objects"));
    let ended = end_of(&mut command.spawn().expect("it runs"));
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
    assert!(!Path::new("/dev/rtf60").exists());
}
