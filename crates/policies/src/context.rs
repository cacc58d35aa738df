//! What a policy may do about one member, at one instant: the dispatcher's commands, and no more.

use punctual_dispatcher::{End, For, OverrunPolicy, Refusal, Standing};

use crate::jobs;
use crate::policy::{MemberParams, Release};
use crate::slot::{Phase, Slot};
use crate::Gsi;

/// A job of a member: what of its attributes the policy decides. Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobParams {
    /// Not eligible before.
    pub start: u64,
    /// Not eligible at or after; [`INFINITE`](punctual_dispatcher::INFINITE) for none.
    pub finish: u64,
    /// Its share of the release's budget: at most [`Release::left`].
    pub budget: u64,
    /// Importance: larger first.
    pub priority: i64,
}

/// A member of a group when an event of it is handled (RED-Linux IV-D).
///
/// A member has one job at a time. No call allocates, locks or makes a system call.
pub struct Context<'a> {
    pub(crate) gsi: &'a mut dyn Gsi,
    pub(crate) slots: &'a mut [Slot],
    /// Of the member, in `slots`.
    pub(crate) place: usize,
    pub(crate) rank: i64,
    /// Of the policy of the group.
    pub(crate) wakeup_rule: bool,
}

impl Context<'_> {
    fn slot(&self) -> &Slot {
        &self.slots[self.place]
    }

    /// The time of this instant, CLOCK_MONOTONIC ns.
    pub fn now(&self) -> u64 {
        self.gsi.now()
    }

    /// From which offsets count, CLOCK_MONOTONIC ns.
    pub fn start_of_run(&self) -> u64 {
        self.slot().origin
    }

    /// The member. Its `index` is the place of what a policy keeps of it.
    pub fn member(&self) -> &MemberParams {
        &self.slot().member
    }

    /// What becomes of the rest of a job when its release ends before it is done.
    pub fn overrun(&self) -> OverrunPolicy {
        self.slot().overrun
    }

    /// The task's release in flight; between two, the latest one.
    pub fn release(&self) -> &Release {
        &self.slot().release
    }

    /// When the arrival that is served was due, or the one that waits to be, CLOCK_MONOTONIC ns.
    pub fn arrival(&self) -> u64 {
        self.slot().arrival
    }

    /// The priority of the member in its group, as the policy of the group has it: for the jobs of
    /// servers, which compete in groups of other policies.
    pub fn rank(&self) -> i64 {
        self.rank
    }

    /// Whether the policy of the group cuts a member that wakes in mid-job to its bandwidth: for
    /// servers, which compete in groups of other policies.
    pub fn cuts_on_waking(&self) -> bool {
        self.wakeup_rule
    }

    /// Begins a release of a member that the policy paces: due at `at`, with this absolute deadline
    /// (both CLOCK_MONOTONIC ns) and `budget` ns, from which carried enforcement error is settled
    /// ([`Release::left`]). A release in flight ends as replenished; its job is taken back. One per
    /// event.
    ///
    /// # Errors
    /// [`Refusal::Nothing`] when no arrival is served: after a completion, before the first one;
    /// [`Refusal::Invalid`] without a budget; [`Refusal::Busy`] for a member that is not paced, and
    /// for a second release at one event.
    pub fn begin_release(&mut self, at: u64, deadline: u64, budget: u64) -> Result<(), Refusal> {
        let slot = &mut self.slots[self.place];
        if !slot.paced || slot.begun {
            return Err(Refusal::Busy);
        }
        let over = slot.job.is_none()
            && matches!(slot.last_end, End::Completed | End::Cancelled | End::TaskGone);
        if slot.phase != Phase::Open || slot.open && over {
            return Err(Refusal::Nothing);
        }
        if budget == 0 {
            return Err(Refusal::Invalid);
        }
        let exhausted = slot.job.is_none() && slot.last_end == End::Exhausted;
        let ended_at = if slot.job.is_some() { self.gsi.now() } else { slot.ended_at };
        take_back(self.gsi, slot)?;
        if slot.open {
            slot.replenished = Some(slot.replenish(ended_at, exhausted));
        }
        slot.begin_release(at, deadline, budget);
        slot.begun = true;
        Ok(())
    }

    /// Adds a job of the release in flight.
    ///
    /// # Errors
    /// [`Refusal::Busy`] while another job of the member is in flight or a reservation releases it,
    /// [`Refusal::Nothing`] between two releases, [`Refusal::Invalid`] without a budget;
    /// [`Refusal::Full`] when the dispatcher has no room.
    pub fn add_job(&mut self, job: &JobParams) -> Result<(), Refusal> {
        let slot = &mut self.slots[self.place];
        match slot.phase {
            Phase::Open if slot.job.is_some() => Err(Refusal::Busy),
            Phase::Open => jobs::add(self.gsi, slot, job),
            Phase::Reserved(_) => Err(Refusal::Busy),
            _ => Err(Refusal::Nothing),
        }
    }

    /// Replaces the job in flight: attributes of a job never change. What it executed is charged to
    /// the release.
    ///
    /// # Errors
    /// [`Refusal::Nothing`] without a job in flight; as [`Context::add_job`].
    pub fn replace_job(&mut self, job: &JobParams) -> Result<(), Refusal> {
        self.standing().ok_or(Refusal::Nothing)?;
        let slot = &mut self.slots[self.place];
        if slot.job.is_none() || slot.phase != Phase::Open {
            return Err(Refusal::Busy);
        }
        // There is room for another one then.
        take_back(self.gsi, slot)?;
        jobs::add(self.gsi, slot, job)
    }

    /// Takes back the job in flight of a task, or of a server. Its end is an event.
    ///
    /// # Errors
    /// [`Refusal::Nothing`] without one; [`Refusal::Busy`] for a task that a reservation releases.
    pub fn cancel_job(&mut self) -> Result<(), Refusal> {
        let job = self.slot().current_job(self.gsi).ok_or(Refusal::Nothing)?;
        let Slot { phase, member, .. } = self.slot();
        if matches!((phase, member.serves), (Phase::Reserved(_), For::Task(_))) {
            return Err(Refusal::Busy);
        }
        self.gsi.cancel_job(job)
    }

    /// Takes `ns` off the budget that is left of the release in flight: reported as not used.
    pub fn give_up(&mut self, ns: u64) {
        let slot = &mut self.slots[self.place];
        let ns = ns.min(slot.granted.saturating_sub(slot.used));
        slot.granted -= ns;
        slot.cut_off += ns;
        slot.release.left = slot.granted - slot.used;
    }

    /// Adds `ns` to the budget that is left of the release in flight: time that is sure to remain
    /// beside the budgets of others. Results count what of it was executed as assigned.
    ///
    /// # Errors
    /// [`Refusal::Nothing`] between two releases; [`Refusal::Busy`] for a task that a reservation
    /// releases, and for a member that is paced, whose budgets [`Context::begin_release`] has.
    pub fn extend(&mut self, ns: u64) -> Result<(), Refusal> {
        let slot = &mut self.slots[self.place];
        match slot.phase {
            Phase::Open if slot.paced => Err(Refusal::Busy),
            Phase::Open => {
                let ns = ns.min(u64::MAX - slot.granted);
                slot.granted += ns;
                slot.extended += ns;
                slot.release.left = slot.granted.saturating_sub(slot.used);
                Ok(())
            }
            Phase::Reserved(_) => Err(Refusal::Busy),
            _ => Err(Refusal::Nothing),
        }
    }

    /// What the job in flight does; `None` without one.
    pub fn standing(&self) -> Option<Standing> {
        self.slot().current_job(self.gsi).and_then(|job| self.gsi.standing(job))
    }

    /// The remaining budget of the job in flight, ns; 0 without one.
    pub fn remaining(&self) -> u64 {
        self.slot().current_job(self.gsi).map_or(0, |job| self.gsi.remaining(job))
    }

    /// What the job in flight has executed, ns; 0 without one.
    pub fn used(&self) -> u64 {
        self.slot().current_job(self.gsi).map_or(0, |job| self.gsi.used(job))
    }

    /// What a task of the member's group, or the member itself, has executed in all its jobs so
    /// far, ns; 0 of one that is not in the group. `member` is its index. On the kernel host this
    /// is a command while the task has a job.
    pub fn executed(&self, member: u32) -> u64 {
        let of_group = |slot: &&Slot| slot.member.group == self.slot().member.group;
        let Some(slot) = self.slots.get(member as usize).filter(of_group) else { return 0 };
        let in_flight = slot.current_job(self.gsi).map_or(0, |job| self.gsi.used(job));
        slot.executed.saturating_add(in_flight)
    }

    /// What the release in flight has executed in jobs that are over, ns. Idle time that a host
    /// charged ([`Allocators::charged_idle`](crate::Allocators::charged_idle)) is not in it.
    pub fn executed_in_release(&self) -> u64 {
        self.slot().used.saturating_sub(self.slot().idle)
    }

    /// What the wake-up rule has cut off the release in flight, ns: by
    /// [`give_up`](Context::give_up), or as idle time that a host charged.
    pub fn cut(&self) -> u64 {
        self.slot().cut_off.saturating_add(self.slot().idle)
    }

    /// Requests the event [`Timer`](crate::PolicyEvent::Timer) at `at`, CLOCK_MONOTONIC ns, in
    /// place of one that was set before. For policies whose entry has `timers`.
    ///
    /// # Errors
    /// [`Refusal::Full`] when the dispatcher has no timer left; none is set then.
    pub fn set_timer(&mut self, at: u64) -> Result<(), Refusal> {
        self.cancel_timer();
        let slot = &mut self.slots[self.place];
        let cookie = jobs::POLICY_TIMER | u64::from(slot.member.index);
        slot.policy_timer = Some((self.gsi.ask_timer(at, cookie)?, at));
        Ok(())
    }

    /// Cancels the timer that the policy set for this member, if there is one.
    pub fn cancel_timer(&mut self) {
        jobs::cancel_policy_timer(self.gsi, &mut self.slots[self.place]);
    }
}

/// Cancels the job in flight that the policy made, and charges what it has executed. Its end then
/// finds another use.
fn take_back(gsi: &mut dyn Gsi, slot: &mut Slot) -> Result<(), Refusal> {
    let Some(job) = slot.job else { return Ok(()) };
    let used = gsi.used(job);
    gsi.cancel_job(job)?;
    slot.charge(used);
    slot.job = None;
    slot.use_of = slot.use_of.wrapping_add(1);
    Ok(())
}
