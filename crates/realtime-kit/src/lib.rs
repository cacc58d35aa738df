//! The D-Bus interface of RealtimeKit, org.freedesktop.RealtimeKit1: a thread that asks for a
//! real-time priority gets a reservation instead, and one that asks for a nice level gets that.
//!
//! ```text
//!  client ──D-Bus──> Interface ──────────> Promotions ──────────> daemon::Reservations
//!                    (user and process     (limits of each user,  (share, admission, a lease
//!                     from the bus)         which threads)         for each thread)
//! ```
//!
//! A reservation ends with its thread, not with the client's connection: RealtimeKit takes nothing
//! back when a client disconnects, and xdg-desktop-portal asks for threads of other processes.
//! RealtimeKit's watchdog (the canary) and its check of RLIMIT_RTTIME have no counterpart: a thread
//! that does not block uses up its budget, and continues in the ordinary class.

mod bus;
mod interface;
mod limits;
mod promotions;
mod refusal;
mod reset;
mod thread;

use std::sync::Arc;

use punctual_daemon::Reservations;

use crate::promotions::Promotions;

/// The name on the bus, and of the interface.
pub const NAME: &str = "org.freedesktop.RealtimeKit1";
/// The object.
pub const PATH: &str = "/org/freedesktop/RealtimeKit1";

/// Serves the interface by threads of its own for as long as this process runs. Where there is no
/// system bus, it is looked for again; what is in the way is reported on standard error.
pub fn start(reservations: Arc<Reservations>) {
    let promotions = Arc::new(Promotions::new(reservations));
    let spawn = |name: &str, work: fn(Arc<Promotions>)| {
        let promotions = promotions.clone();
        let thread = std::thread::Builder::new().name(name.to_owned());
        if let Err(e) = thread.spawn(move || work(promotions)) {
            eprintln!("punctuald: {NAME} cannot be served: {e}");
        }
    };
    spawn("realtime-kit", bus::serve);
    spawn("thread-ends", |promotions| promotions.collect_ended());
}
