//! A running set, seen and changed from another process: `punctual top`.
//!
//! ```text
//!   punctual run                                  punctual top
//!   Server ── /run/punctual/top/PID.sock ──────── Client ──> TopView ──> draw
//!   answers between two polls of its run          state: order, filter, cursor
//! ```
//!
//! A line of JSON each way: a [`Query`](protocol::Query), its [`Reply`](protocol::Reply). Only
//! the user who runs the set, and root, can open the socket.

pub mod client;
mod draw;
pub mod protocol;
pub mod server;
mod terminal;
mod view;

pub use terminal::show;

/// The figures as text: a line for the set, one for each group and task.
#[must_use]
pub fn text(snapshot: protocol::Snapshot) -> String {
    view::TopView::new(snapshot).plain()
}
