//! The service, with one client of an ordinary user. What that client reserves is real: for a
//! process of that user, on a CPU of this machine.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Arc, OnceLock};

use punctual_daemon::{converse, AccessRules, HostKind, Reservations, User};

use crate::client::append_message;
use crate::stream::Stream;

/// A user that the machine need not know.
const USER: u32 = 64_242;
/// Calls of one client: below the number at which the service begins to answer later.
const CALLS: usize = 32;

struct Service {
    reservations: Arc<Reservations>,
    /// A process of the user.
    process: Child,
}

/// The service that all inputs share.
fn service() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(|| {
        let rules = format!("[[allow]]\nuser = \"{USER}\"\nshare = \"50%\"\n");
        let rules = AccessRules::parse(&rules, "the fuzzer's").expect("they are right");
        let mut sleep = Command::new("sleep");
        // SAFETY: prctl is async-signal-safe.
        unsafe {
            sleep.arg("infinity").uid(USER).gid(USER).pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            })
        };
        Service {
            reservations: Arc::new(Reservations::new([0], rules, HostKind::User)),
            process: sleep.spawn().expect("sleep, as another user: the fuzzer runs as root"),
        }
    })
}

/// One client, from its connection to its end.
///
/// # Panics
/// The client has gone, and something is still reserved.
///
/// # Safety
/// `data` points to `size` bytes, or `size` is 0.
#[no_mangle]
pub unsafe extern "C" fn punctual_fuzz_service(data: *const u8, size: usize) {
    let bytes = match size {
        0 => &[],
        // SAFETY: as the caller promises.
        _ => unsafe { std::slice::from_raw_parts(data, size) },
    };
    let (mut stream, mut messages) = (Stream(bytes), Vec::new());
    let service = service();
    for _ in 0..CALLS {
        if stream.is_empty() {
            break;
        }
        append_message(&mut stream, i64::from(service.process.id()), &mut messages);
    }
    let (mut client, server) = UnixStream::pair().expect("two sockets");
    // All of it at once, as a client does that floods the service. What does not fit is cut off.
    client.set_nonblocking(true).expect("a socket");
    drop(client.write(&messages));
    client.shutdown(Shutdown::Write).expect("a socket");
    let reader = std::thread::spawn(move || io::copy(&mut client, &mut io::sink()));
    let user = User::new(USER, vec![USER]);
    converse(service.reservations.clone(), server, user);
    drop(reader.join());
    let root = User::new(0, vec![0]);
    let status = service.reservations.status(&root);
    assert_eq!(status.reservations, [], "the client has gone");
    assert!(status.cpus.iter().all(|cpu| cpu.reserved_ppm == 0), "the client has gone");
}
