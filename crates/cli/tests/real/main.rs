//! The real command with real processes: what it refuses, what it does, and that nothing stays
//! behind, whatever is killed and however tasks behave. docs/faults.md is the table of it.
//!
//! `PUNCTUAL_FAULT_ROUNDS` (200) is the number of kills in all, `PUNCTUAL_FAULT_SEED` chooses their
//! instants.

mod adopted;
mod adversarial;
mod audio_session;
mod behaviour;
mod bounded;
mod busy_threads;
mod cgroup_roles;
mod cgroup_work;
mod costs;
mod determinism;
mod explained;
mod freezer_lock;
mod hierarchy;
mod jackd;
mod kills;
mod kills_beside_cgroup_work;
mod kills_both;
mod library_by_service;
mod locking_roles;
mod machine;
mod measure;
mod pipewire;
mod polkit;
mod privileges;
mod process;
mod profile;
mod profile_roles;
mod pulseaudio;
mod punctual;
mod realtime_kit;
mod refusals;
mod reload;
mod rtai_by_service;
mod screen;
mod self_suspending;
mod service;
mod service_attacks;
mod service_by_role;
mod service_changes;
mod service_groups;
mod service_pages;
mod service_replacement;
mod service_restart;
mod service_threads;
mod shared_locks;
mod stalls;
mod stops;
mod system_bus;
mod tasks;
mod time_slices;
mod top;
mod victim;
