//! What stands in the page.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// Of the layout: a client of another one refuses the page.
pub const VERSION: u32 = 3;

/// How a thread waits (`waits_by`): it sleeps on `answered`.
pub const BY_PAGE: u32 = 0;
/// By sched_yield; a late wait returns at once.
pub const BY_YIELD: u32 = 1;
/// By sched_yield; a release that overruns loses those that come meanwhile.
pub const BY_YIELD_AND_SKIPS: u32 = 2;

/// The page from its beginning. Times are CLOCK_MONOTONIC ns.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Words {
    pub service: ServiceWords,
    pub client: ClientWords,
}

/// Written by the service.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct ServiceWords {
    pub version: AtomicU32,
    /// The waits up to this one return, modulo 2^32. The client sleeps on it.
    pub answered: AtomicU32,
    /// Not 0: the reservation has ended, and nothing is answered any more.
    pub over: AtomicU32,
    /// Of the values below: odd while they change.
    pub sequence: AtomicU32,
    /// The latest release; where the thread waits by sched_yield, the first one.
    pub number: AtomicU64,
    pub release: AtomicU64,
    pub deadline: AtomicU64,
    pub budget: AtomicU64,
    /// The reading of the thread's CPU clock at which the budget is used up, ns.
    pub exhausted_at: AtomicU64,
    /// Releases lost so far, modulo 2^32.
    pub lost: AtomicU32,
    /// One of the constants above.
    pub waits_by: AtomicU32,
    /// Where it waits by sched_yield, ns: releases follow the first one at this distance.
    pub period: AtomicU64,
    /// Where it waits by sched_yield: how often it was suspended and resumed; odd: it is suspended.
    pub suspensions: AtomicU32,
}

/// Written by the client; never read where the thread waits by sched_yield.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct ClientWords {
    /// Waits begun, modulo 2^32.
    pub asked: AtomicU32,
    /// When the latest one began.
    pub asked_at: AtomicU64,
}
