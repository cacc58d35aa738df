//! `punctual run --host kernel`: the dispatcher inside the kernel, with real programs. Where the
//! kernel has no sched_ext it must say so; the rest is shown in virtual machines with a counted
//! clock: `vm/tests`. With PUNCTUAL_SCHED_EXT=required its absence is a failure.

#[path = "../real/adversarial.rs"]
mod adversarial;
mod adversary;
mod attributes;
mod best_effort;
mod budgets;
#[path = "../real/busy_threads.rs"]
mod busy_threads;
#[path = "../real/cgroup_roles.rs"]
mod cgroup_roles;
mod check;
mod check_finds;
mod costs;
mod ended_results;
mod exits;
mod explained;
mod kernels_own;
mod lending;
mod loader;
#[path = "../real/locking_roles.rs"]
mod locking_roles;
mod machine;
mod measure;
mod papers;
mod policies;
#[path = "../real/profile_roles.rs"]
mod profile_roles;
mod punctual;
mod refusals;
mod reload;
mod rtlinux;
mod service;
mod slices;
mod storms;
mod suspension;
mod tasks;
mod timer;
mod trace;
mod when_locked_down;
