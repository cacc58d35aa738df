//! Who is at the other end of a socket, as the kernel noted when it was connected.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The process that connected, with its effective user and groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its number, in our pid namespace; 0 if it is in none of ours.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Its group, then its supplementary groups.
    pub groups: Vec<u32>,
}

/// Groups that a process may have in Linux.
const GROUPS: usize = 65_536;

impl Peer {
    /// The peer of a connected Unix socket.
    ///
    /// # Errors
    /// It is none.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Peer> {
        let mut of = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut size = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: `of` is valid for `size` bytes.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut of).cast(),
                &mut size,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut groups = vec![of.gid];
        groups.extend(supplementary(socket)?);
        Ok(Peer { pid: of.pid, uid: of.uid, groups })
    }
}

/// A pidfd of the process that connected, which never names a later one; closed on exec. Since
/// Linux 6.5.
///
/// # Errors
/// ENOPROTOOPT: an older kernel; ESRCH or EINVAL: the process was reaped.
pub fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut pidfd: libc::c_int = -1;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `pidfd` is valid for `size` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            (&raw mut pidfd).cast(),
            &mut size,
        )
    };
    match result {
        // SAFETY: the kernel has opened it for this call.
        0 => Ok(unsafe { OwnedFd::from_raw_fd(pidfd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn supplementary(socket: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut groups: Vec<u32> = vec![0; 64];
    loop {
        let mut size = (groups.len() * size_of::<u32>()) as libc::socklen_t;
        // SAFETY: `groups` is valid for `size` bytes.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &mut size,
            )
        };
        let count = size as usize / size_of::<u32>();
        match result {
            0 => {
                groups.truncate(count);
                return Ok(groups);
            }
            _ => {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::ERANGE) || count > GROUPS {
                    return Err(error);
                }
                groups.resize(count.max(groups.len() + 1), 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_peer_of_a_pair_is_this_process() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let peer = Peer::of(one.as_fd()).expect("it is connected");
        // SAFETY: no arguments.
        let (pid, uid, gid) = unsafe { (libc::getpid(), libc::geteuid(), libc::getegid()) };
        assert_eq!((peer.pid, peer.uid, peer.groups[0]), (pid, uid, gid));
        // SAFETY: asks for their number alone.
        let count = unsafe { libc::getgroups(0, std::ptr::null_mut()) };
        assert_eq!(peer.groups.len() as i32, 1 + count);
    }

    #[test]
    fn the_pidfd_of_a_pair_is_of_this_process_where_the_kernel_has_it() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        match peer_pidfd(one.as_fd()) {
            Ok(pidfd) => assert!(!crate::pidfd::has_ended(pidfd)),
            Err(e) => assert_eq!(e.raw_os_error(), Some(libc::ENOPROTOOPT), "{e}"),
        }
    }

    #[test]
    fn a_file_has_no_peer() {
        let file = std::fs::File::open("/dev/null").expect("it is there");
        assert!(Peer::of(file.as_fd()).is_err());
        assert!(peer_pidfd(file.as_fd()).is_err());
    }
}
