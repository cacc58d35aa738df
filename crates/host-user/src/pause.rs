//! Times in which a dispatcher does not act: it is paused, or was stopped.
//!
//! ```text
//!   Host::pause ──> each dispatcher parks and lowers all tasks ──> the caller stops this process
//!   Host::resume ─> each dispatcher handles one late event: releases continue from now on
//! ```
//!
//! Without a pause (SIGSTOP, a debugger, a hang) another process lowers the tasks
//! (`punctual_process::Enforcing`), and the dispatcher raises them at its next event.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use punctual_sys::clock;

use crate::children::Child;
use crate::engine::Engine;
use crate::host::Host;
use crate::member::{MemberKind, RunMode};

/// How long a pause waits until all tasks stand still. One that does not, because its freezer write
/// waits for example, continues in the ordinary class.
const PATIENCE: Duration = Duration::from_secs(1);

/// The control side's request to pause a dispatcher, and its answer.
#[derive(Debug, Default)]
pub struct PauseRequest {
    wanted: AtomicBool,
    paused: AtomicBool,
}

impl Host {
    /// Parks all tasks, in the ordinary class, and makes no releases until
    /// [`resume`](Self::resume): this process may be stopped then. Not real-time safe.
    pub fn pause(&mut self) {
        self.request_pause(true);
        let end = Instant::now() + PATIENCE;
        let paused = |host: &Host| {
            host.engines.iter().all(|e| e.doorbell.pause.paused.load(SeqCst))
                && host.children.iter().all(Child::stands_still)
        };
        // A program creates threads until it stands still, with the level of their creators.
        let new_threads =
            |host: &Host| host.children.iter().map(Child::find_threads).sum::<usize>();
        while (!paused(self) || new_threads(self) > 0) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Continues: releases are made from now on.
    pub fn resume(&mut self) {
        self.request_pause(false);
    }

    fn request_pause(&self, wanted: bool) {
        for engine in &self.engines {
            engine.doorbell.pause.wanted.store(wanted, SeqCst);
            engine.doorbell.ring();
        }
    }
}

impl Engine {
    /// At the beginning of an event: if another process demoted the tasks, because this dispatcher
    /// did not act for `late` ns, the event sets all levels.
    pub(crate) fn take_over(&mut self, now: u64, late: u64) {
        if !self.enforcing.acts(now) {
            return;
        }
        self.stats.did_not_act(late);
        for m in self.members.iter_mut().flatten() {
            m.reranked = true;
            if let MemberKind::Program(p) = &m.kind {
                p.threads.note_demoted();
            }
        }
    }

    /// Parks all tasks and sleeps while a pause is wanted; returns when it began, if one was.
    pub(crate) fn pause(&mut self) -> Option<u64> {
        if !self.doorbell.pause.wanted.load(SeqCst) {
            return None;
        }
        let began = clock::monotonic_ns();
        self.take_over(began, 0);
        let handed_over_to = self.withdraw_direct(began);
        self.forbid_silence();
        self.charge(began, 0, handed_over_to.is_some());
        if let Some(waiter) = handed_over_to {
            self.handed_over(waiter, began);
        }
        let Engine { members, dispatcher, .. } = self;
        for m in members.iter_mut().flatten() {
            if m.run_mode != RunMode::Parked {
                if m.asleep {
                    // In its gate its wake-up cannot be observed.
                    let _ = dispatcher.task_ready(m.task, began);
                }
                m.park();
            }
            // A freezer write may wait, and nothing bounds the execution until then.
            m.set_level(0);
        }
        self.cpu.ranked.clear();
        self.post_freezer_requests();
        self.enforcing.sleeps_until(u64::MAX);
        self.doorbell.pause.paused.store(true, SeqCst);
        loop {
            let seen = self.doorbell.rings();
            if !self.doorbell.pause.wanted.load(SeqCst) || self.doorbell.stop_requested() {
                break;
            }
            self.doorbell.sleep(seen, u64::MAX);
        }
        self.doorbell.pause.paused.store(false, SeqCst);
        self.cpu.slept_at = clock::monotonic_ns();
        self.stats.did_not_act(self.cpu.slept_at - began);
        Some(began)
    }
}
