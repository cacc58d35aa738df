//! Our own loads. A round makes system calls and allocates nothing.

use std::fs::File;
use std::io::{self, Read};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::console;
use super::process::Rounds;
use super::Workload;

const PAGE: usize = 4096;
/// Memory that the page faults bring in, at most.
const MOST_MEMORY: usize = 64 << 20;
/// Size of the file that is read and written.
const FILE: u64 = 16 << 20;
/// What must be free beside it.
const ROOM: u64 = 16 << 20;
const CHUNK: usize = 64 << 10;
/// Chunks of a round: written ones go to the disk after so many.
const CHUNKS: u64 = 16;
const DATAGRAM: usize = 1_400;
/// A picture of 1920 by 1080, four bytes each: more than a cache holds.
const PICTURE: usize = 1_920 * 1_080 * 4;

/// Prepares a load: files are made, and what it needs is tried.
pub fn prepare(workload: Workload) -> Result<Rounds, String> {
    match workload {
        Workload::Memory => Ok(memory()),
        Workload::IoBoth => io_rounds(true, true),
        Workload::IoWrite => io_rounds(false, true),
        Workload::IoRead => io_rounds(true, false),
        Workload::Procfs => Ok(procfs()),
        Workload::Fork => Ok(Rounds::new(fork_one)),
        Workload::Network => network(),
        Workload::Graphics => graphics(),
        Workload::Console => console::switching(),
        Workload::CapsLock => console::caps_lock(),
        Workload::Idle | Workload::NonRealTime => Err("it is no load".to_owned()),
    }
}

/// Maps memory, touches each page, and gives it back.
fn memory() -> Rounds {
    let available = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix(" kB")?.parse::<usize>().ok()
    });
    // An eighth of what there is, so that no process is killed for it.
    let size = available.map_or(MOST_MEMORY, |kib| (kib << 10) / 8).clamp(PAGE, MOST_MEMORY);
    Rounds::new(move || {
        // SAFETY: an anonymous mapping of our own, written within its size, and unmapped once.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let area = libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            );
            if area == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            for offset in (0..size).step_by(PAGE) {
                area.cast::<u8>().add(offset).write_volatile(1);
            }
            libc::munmap(area, size);
        }
        Ok(())
    })
}

/// Where a load's files are: /tmp, which often is memory, only where there is no /var/tmp.
pub fn directory() -> PathBuf {
    let on_disk = PathBuf::from("/var/tmp");
    if std::env::var_os("TMPDIR").is_none() && on_disk.is_dir() {
        return on_disk;
    }
    std::env::temp_dir()
}

/// A file without a name: it is gone with its last descriptor, however that ends.
fn nameless_file() -> Result<File, String> {
    let directory = directory();
    let at = directory.display();
    check_room(&directory)?;
    let file = tempfile::tempfile_in(&directory)
        .map_err(|e| format!("no file can be made in {at}: {e}"))?;
    // Blocks are reserved and written: reading finds data, writing finds room.
    let zeros = [0u8; CHUNK];
    for offset in (0..FILE).step_by(CHUNK) {
        file.write_all_at(&zeros, offset)
            .map_err(|e| format!("a file in {at} cannot be written: {e}"))?;
    }
    file.sync_data().map_err(|e| format!("a file in {at} cannot be written: {e}"))?;
    Ok(file)
}

/// Whether the loads' files have room.
pub fn check_room(directory: &std::path::Path) -> Result<(), String> {
    let at = directory.display();
    let fs = rustix::fs::statvfs(directory).map_err(|e| format!("{at} cannot be used: {e}"))?;
    let free = fs.f_bavail.saturating_mul(fs.f_frsize);
    if free < FILE + ROOM {
        let (free, needed) = (free >> 20, (FILE + ROOM) >> 20);
        return Err(format!(
            "{at} has {free} MiB free and {needed} are needed (choose another by TMPDIR)"
        ));
    }
    Ok(())
}

fn io_rounds(reads: bool, writes: bool) -> Result<Rounds, String> {
    let file = nameless_file()?;
    let fd = file.as_raw_fd();
    let mut buffer = vec![1u8; CHUNK];
    let mut at = 0u64;
    Ok(Rounds::keeping(fd, move || {
        for _ in 0..CHUNKS {
            if writes {
                file.write_all_at(&buffer, at)?;
            }
            if reads {
                file.read_exact_at(&mut buffer, at)?;
            }
            at = (at + CHUNK as u64) % FILE;
        }
        if writes {
            file.sync_data()?;
        }
        // What was read comes from the disk again, not from memory.
        // SAFETY: advice about a descriptor that `file` owns; no memory is concerned.
        unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED) };
        Ok(())
    }))
}

/// Fills a picture and copies it, as a program without a graphics processor draws.
fn graphics() -> Result<Rounds, String> {
    let refused = |_| "there is no memory for its pictures".to_owned();
    let (mut drawn, mut shown) = (Vec::new(), Vec::new());
    for picture in [&mut drawn, &mut shown] {
        picture.try_reserve_exact(PICTURE).map_err(refused)?;
        picture.resize(PICTURE, 0u8);
    }
    let mut color = 0u8;
    Ok(Rounds::new(move || {
        color = color.wrapping_add(1);
        drawn.fill(color);
        shown.copy_from_slice(std::hint::black_box(&drawn));
        std::hint::black_box(&mut shown);
        Ok(())
    }))
}

/// Files whose contents the kernel makes under locks.
const PROC_FILES: [&str; 8] = [
    "/proc/self/maps",
    "/proc/self/smaps",
    "/proc/self/stat",
    "/proc/self/status",
    "/proc/stat",
    "/proc/meminfo",
    "/proc/interrupts",
    "/proc/slabinfo",
];

fn procfs() -> Rounds {
    let mut buffer = vec![0u8; CHUNK];
    Rounds::new(move || {
        for path in PROC_FILES {
            // Not all of them may be read by all users.
            let Ok(mut file) = File::open(path) else { continue };
            while file.read(&mut buffer).is_ok_and(|read| read > 0) {}
        }
        Ok(())
    })
}

/// Creates a process and waits for its end.
fn fork_one() -> io::Result<()> {
    // SAFETY: the child ends at once; the parent waits for it.
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => libc::_exit(0),
            pid => {
                let mut status = 0;
                libc::waitpid(pid, &mut status, 0);
                Ok(())
            }
        }
    }
}

/// Sends datagrams to itself.
fn network() -> Result<Rounds, String> {
    let refused = |e: io::Error| format!("the loopback interface cannot be used: {e}");
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(refused)?;
    socket.connect(socket.local_addr().map_err(refused)?).map_err(refused)?;
    // A datagram that is lost, for want of memory, must not stop the load.
    socket.set_read_timeout(Some(std::time::Duration::from_millis(100))).map_err(refused)?;
    let mut buffer = vec![0u8; DATAGRAM];
    socket.send(&buffer).and_then(|_| socket.recv(&mut buffer)).map_err(refused)?;
    Ok(Rounds::keeping(socket.as_raw_fd(), move || {
        for _ in 0..CHUNKS {
            socket.send(&buffer)?;
            let _ = socket.recv(&mut buffer);
        }
        Ok(())
    }))
}
