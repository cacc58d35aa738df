//! `punctuald`: one service that owns the dispatchers of a machine, for programs of all users.
//!
//! ```text
//!  client ──Varlink──> connection ──> Reservations ──> Domain, one per CPU
//!                      (SO_PEERCRED)  (limits; polkit) (admission; the dispatcher, a
//!                                                       punctual::Running, while needed)
//!  client <──TakeEvents── Mailboxes <──observer──────────┘
//! ```
//!
//! Another process of the service, of another build perhaps, takes all of this over while clients
//! stay connected (`handover`).
//!
//! Other interfaces than Varlink reserve by [`Reservations`], too, with leases of their own.
//!
//! A connection is a lease: what it reserved is released when it ends. The service runs in the
//! ordinary class; only its dispatchers have real-time priority, and budgets hold while it is busy.

mod access;
mod allowance;
mod clients;
mod config_value;
mod connection;
mod dispatchers;
mod domain;
mod handover;
mod listen;
mod mailbox;
mod owner;
mod reservations;
mod scheduling_groups;
mod serve;
mod share;
mod thread_budget;
mod user;
mod values;

pub use access::{AccessRules, CONFIG};
pub use connection::converse;
pub use owner::check_owner;
pub use punctual::results::HostKind;
pub use reservations::{Lease, Reservations};
pub use serve::{serve, ServeOptions, ServiceEnd};
pub use thread_budget::ThreadBudget;
pub use user::User;
