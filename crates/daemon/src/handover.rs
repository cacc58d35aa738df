//! Another process of the service, perhaps of another build, takes everything over: the socket, the
//! connections with what was read of a half message, the reservations under their numbers, the
//! events that no client has fetched.
//!
//! ```text
//!  new process                        old process
//!  HandOver(version) ───────────────>  calls pause
//!                    <─────── Offer    what there is
//!  ready: configuration, host ──────>
//!                    <── descriptors   socket, connections, locks of the CPUs
//!  Release(ids) ────────────────────>  restores these programs: ordinary ones from now on
//!                    <─── Released
//!  reserves for them, and so on; Done
//!                    <───── Passed     ends; the new one serves
//! ```
//!
//! A program is an ordinary one between its two dispatchers, in its own class and cgroup and not
//! frozen, so that each process records and restores it as if there were no other one, and the
//! guardians need to know of nothing else. On the user host programs are passed one by one, and
//! both processes dispatch the CPU, whose lock they share, until the last one; the reservations of
//! both together are those that were admitted. The kernel has one scheduler of sched_ext, so there,
//! all programs are passed at once.
//!
//! Until `Passed` is sent, the old process continues with everything if the new one ends, and makes
//! the reservations again that it had released. If the old one ends, the new one makes those that
//! it does not have yet once the old one's guardian has restored their programs.
//!
//! Where systemd restarts the service, the old process ends before the new one starts (`store`).

mod message;
mod pass_on;
mod store;
mod take_over;
mod taken;

pub(crate) use message::{check_successor, PassedReservation};
pub(crate) use pass_on::pass_on;
pub(crate) use store::{leave, SystemdFds};
pub(crate) use take_over::Predecessor;
