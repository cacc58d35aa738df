//! The allocators: policies that make jobs for the dispatcher (RED-Linux IV-C, IV-D).
//!
//! A host makes one [`Allocators`] for each dispatcher and creates the dispatcher with its
//! [`Allocators::limits`]. It calls [`Allocators::begin`] once, [`Allocators::add`] for each task,
//! and hands every event of the dispatcher, in order, to [`Allocators::handle`], after
//! [`Dispatcher::advance`](punctual_dispatcher::Dispatcher::advance) and until none is left; then
//! it advances once more if any event came, and selects. Where a task calls `wait_period`,
//! it calls [`Allocators::done`]. Neither `handle` nor `done` allocates, locks or makes a system
//! call.
//!
//! The dispatcher's own reservations implement the standard periodic policies (close to the
//! mechanism, so that no host needs a round trip); where a policy makes several jobs of a release,
//! or releases are not periodic, allocators add jobs when timers expire. One file per policy, one
//! table: [`POLICIES`]; a program may [`register`] policies of its own. Names and descriptions are
//! in [`punctual_taskset::registry`].

mod added_jobs;
mod allocators;
mod arrival;
mod at_work;
mod band;
mod calls;
mod ceiling;
mod context;
mod dm;
mod dual;
mod edf;
mod entry;
mod error;
mod fair;
mod fp;
mod group_jobs;
mod gsi;
mod guarded;
mod handle;
mod imprecise;
mod jobs;
mod objective;
mod per_release;
mod period_builder;
mod policy;
mod policy_swap;
mod reclaiming;
mod registered;
mod release;
mod release_event;
mod reserve;
mod resync;
mod rm;
mod servers;
mod slot;
mod standard;
mod stopped;
mod suspension;
mod swap;
mod td;
mod wakeup;

pub use added_jobs::{AddedJob, JobRefusal, JOBS};
pub use allocators::{AllocatorOptions, Allocators};
pub use calls::{call_in_progress, on_stuck_policy, stuck_policy, StuckPolicy};
pub use ceiling::LockCeiling;
pub use context::{Context, JobParams};
pub use entry::{Make, PolicyEntry, Setup, Urgency};
pub use group_jobs::{GroupJob, JobPlace, ProgramGroups};
pub use gsi::{Gsi, LocalDispatcher};
pub use per_release::{per_release, ReleasePolicy};
pub use period_builder::{NewRelease, PeriodBuilder, PeriodParams};
pub use policy::{MemberParams, PolicyEvent, Release, ReservationParams, SchedulingPolicy};
pub use policy_swap::PolicySwap;
pub use punctual_diagnostic::Diagnostic;
pub use punctual_dispatcher::{Attribute, End, Refusal, Standing, INFINITE};
pub use punctual_taskset::ReleaseAttributes;
pub use punctual_taskset::{AdmissionTest, GroupDemand, MemberDemand, PolicyInfo};
pub use registered::{by_name, policies, register};
pub use release_event::ReleaseEvent;

/// The policies of Punctual. [`policies`] has those of the program, too.
pub static POLICIES: &[&PolicyEntry] = &[
    &rm::POLICY,
    &dm::POLICY,
    &edf::POLICY,
    &fp::POLICY,
    &td::POLICY,
    &imprecise::POLICY,
    &dual::POLICY,
    &objective::POLICY,
    &fair::WFQ,
    &fair::SFQ,
];

/// All kinds of server, which are policies whose members are servers.
pub static SERVERS: &[&PolicyEntry] = &servers::KINDS;

/// The guide's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/policies.md")]
struct Guide;
