//! `punctuald`: one service that owns the dispatchers of a machine, for programs of all users.
//!
//! ```text
//!  client ──Varlink──> connection ──> Reservations ──> Domain, one per CPU
//!                      (SO_PEERCRED)  (limits)         (admission; the dispatcher, a
//!                                                       punctual::Running, while needed)
//!  client <──TakeEvents── Mailboxes <──observer──────────┘
//! ```
//!
//! A connection is a lease: what it reserved is released when it ends. The service runs in the
//! ordinary class; only its dispatchers have real-time priority, and budgets hold while it is busy.

mod access;
mod connection;
mod domain;
mod listen;
mod mailbox;
mod owner;
mod reservations;
mod serve;

pub use access::CONFIG;
pub use serve::{serve, ServeOptions};
