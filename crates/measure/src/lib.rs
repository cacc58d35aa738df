//! How deterministic this machine is, and what is in the way
