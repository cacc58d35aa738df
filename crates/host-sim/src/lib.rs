//! The simulator: a host in exact virtual time.
