//! The loads that need a console: switching between virtual ones, and the caps-lock light.
//!
//! Only a console in text mode is switched: a desktop would be torn from its user.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use super::process::Rounds;
use punctual_sys::clock::{monotonic_ns, sleep_until};

// linux/kd.h and linux/vt.h.
const KDSETLED: libc::Ioctl = 0x4B32;
const KDGETMODE: libc::Ioctl = 0x4B3B;
const KD_TEXT: libc::c_int = 0;
const LED_CAP: libc::c_ulong = 4;
/// The light shows the keyboard's own state again.
const LED_RESTORE: libc::c_ulong = 0xFF;
const VT_OPENQRY: libc::Ioctl = 0x5600;
const VT_GETSTATE: libc::Ioctl = 0x5603;
const VT_ACTIVATE: libc::Ioctl = 0x5606;
const VT_DISALLOCATE: libc::Ioctl = 0x5608;

/// `struct vt_stat`.
#[repr(C)]
#[derive(Default)]
struct VtStat {
    active: u16,
    signal: u16,
    state: u16,
}

/// Time between two switches: a console is drawn in a few ms.
const PAUSE: u64 = 10_000_000;

fn open_console() -> Result<File, String> {
    let path = "/dev/tty0";
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|e| format!("there is no console: {path}: {e}"))
}

/// An ioctl with a number.
fn set(fd: RawFd, request: libc::Ioctl, value: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these requests take a number, and no memory.
    match unsafe { libc::ioctl(fd, request, value) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// An ioctl that fills in one int.
fn get(fd: RawFd, request: libc::Ioctl) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    // SAFETY: these requests write one int.
    match unsafe { libc::ioctl(fd, request, &raw mut value) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(value),
    }
}

fn text_console() -> Result<File, String> {
    let console = open_console()?;
    match get(console.as_raw_fd(), KDGETMODE) {
        Ok(KD_TEXT) => Ok(console),
        Ok(_) => Err("the console shows graphics and is left alone".to_owned()),
        Err(e) => Err(format!("there is no virtual console: {e}")),
    }
}

/// Why consoles cannot be switched here; `None` if they can.
#[cfg(test)]
pub fn why_no_console() -> Option<String> {
    text_console().err()
}

/// Why there is no caps-lock light; `None` if there is one.
pub fn why_no_caps_lock() -> Option<String> {
    let lights = std::fs::read_dir("/sys/class/leds").into_iter().flatten().flatten();
    let found =
        lights.into_iter().any(|light| light.file_name().to_string_lossy().contains("capslock"));
    (!found).then(|| "no keyboard with a caps-lock light".to_owned())
}

/// Switches between the active console and a free one.
pub fn switching() -> Result<Rounds, String> {
    let console = text_console()?;
    let fd = console.as_raw_fd();
    let refused = |e: io::Error| format!("the console cannot be switched: {e}");
    let mut stat = VtStat::default();
    // SAFETY: the request writes one vt_stat.
    if unsafe { libc::ioctl(fd, VT_GETSTATE, &raw mut stat) } == -1 {
        return Err(refused(io::Error::last_os_error()));
    }
    let home = libc::c_ulong::from(stat.active);
    let free = get(fd, VT_OPENQRY).map_err(refused)?;
    let other =
        libc::c_ulong::try_from(free).map_err(|_| "no virtual console is free".to_owned())?;
    // Tried once, so that a refusal is known before the load runs.
    set(fd, VT_ACTIVATE, home).map_err(refused)?;
    let restore = console.try_clone().map_err(refused)?;
    let mut away = false;
    let rounds = Rounds::keeping(fd, move || {
        away = !away;
        set(console.as_raw_fd(), VT_ACTIVATE, if away { other } else { home })?;
        sleep_until(monotonic_ns() + PAUSE);
        Ok(())
    });
    let restore = move || {
        // What fails here is a console that is gone.
        let _ = set(restore.as_raw_fd(), VT_ACTIVATE, home);
        let _ = set(restore.as_raw_fd(), VT_DISALLOCATE, other);
    };
    Ok(Rounds { restore: Some(Box::new(restore)), ..rounds })
}

/// Switches the caps-lock light on and off.
pub fn caps_lock() -> Result<Rounds, String> {
    if let Some(why) = why_no_caps_lock() {
        return Err(why);
    }
    let console = open_console()?;
    let fd = console.as_raw_fd();
    let refused = |e: io::Error| format!("the caps-lock light cannot be switched: {e}");
    set(fd, KDSETLED, LED_RESTORE).map_err(refused)?;
    let restore = console.try_clone().map_err(refused)?;
    let mut on = false;
    let rounds = Rounds::keeping(fd, move || {
        on = !on;
        set(console.as_raw_fd(), KDSETLED, if on { LED_CAP } else { 0 })
    });
    let restore = move || {
        let _ = set(restore.as_raw_fd(), KDSETLED, LED_RESTORE);
    };
    Ok(Rounds { restore: Some(Box::new(restore)), ..rounds })
}
