//! Everything that a process has taken over.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::message::{PassedConnection, PassedReservation};
use crate::clients::Clients;
use crate::listen::Listening;
use crate::user::User;

/// The socket, the connections, and the reservations that were made here.
pub(crate) struct Taken {
    listening: Listening,
    connections: Vec<(PassedConnection, UnixStream)>,
    reserved: Vec<PassedReservation>,
}

impl Taken {
    pub fn new(
        listening: Listening,
        connections: Vec<(PassedConnection, UnixStream)>,
        reserved: Vec<PassedReservation>,
    ) -> Taken {
        Taken { listening, connections, reserved }
    }

    /// Serves the clients, with what they hold.
    pub fn resume(self, clients: &Arc<Clients>) -> Listening {
        let reservations = clients.reservations();
        let mut by_lease: BTreeMap<u64, Vec<PassedReservation>> = BTreeMap::new();
        for passed in self.reserved {
            by_lease.entry(passed.lease).or_default().push(passed);
        }
        for (PassedConnection { lease, unread }, stream) in self.connections {
            let held = by_lease.remove(&lease).unwrap_or_default();
            match User::of_connection(&stream) {
                Ok(mut user) => {
                    user.is_authorized = held.iter().any(|passed| passed.is_authorized);
                    let lease = reservations.passed_lease(lease, user, &held);
                    clients.resume_client(stream, lease, unread);
                }
                Err(e) => eprintln!("punctuald: a client cannot be taken over: {e}"),
            }
        }
        // Those of another interface; each of a lease of its own.
        for (lease, held) in by_lease {
            for passed in held {
                let lease = reservations.passed_lease(lease, passed.user(), [&passed]);
                reservations.add_unclaimed(lease, passed.info);
            }
        }
        self.listening
    }
}
