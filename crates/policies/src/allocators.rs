//! All policies of one dispatcher, and the tasks that they release.

use punctual_dispatcher::{
    late_waits, Dispatcher, For, Limits, Refusal, ReservationId, TaskId, Wait,
};
use punctual_taskset::{Costs, DomainId, PolicySpec, ServerKind, TaskSet, TaskSpec};

use crate::arrival::Stream;
use crate::at_work::AtWork;
use crate::calls::LONGEST_ANSWER;
use crate::entry::{overrun, PolicyEntry, Setup};
use crate::error::refused;
use crate::group_jobs::{GroupJobInFlight, ProgramGroups};
use crate::jobs;
use crate::policy::MemberParams;
use crate::servers::{self, KINDS};
use crate::slot::{Phase, Slot};
use crate::{edf, policies, Gsi, JOBS};
use punctual_diagnostic::Diagnostic;

/// How allocators are made. Hosts where tasks run use [`AllocatorOptions::in_real_time`], the
/// simulator the default.
#[derive(Clone, Copy)]
pub struct AllocatorOptions {
    /// The table of policies; `None`: those of Punctual and of the program as of then
    /// ([`policies`]), which a plugin may join at any time.
    pub policies: Option<&'static [&'static PolicyEntry]>,
    /// Makes every job here, in answer to a timer, where the dispatcher's reservations could.
    pub job_by_job: bool,
    /// Room for so many tasks beside those of the set.
    pub room: u32,
    /// Groups beside those of the set, which the program replenishes by its own jobs.
    pub program_groups: ProgramGroups,
    /// What the host takes for its own work: time tables have room for it.
    pub costs: Costs,
    /// What a policy of the program may take for one event, ns of CPU time; `None`: as long as it
    /// likes.
    pub longest_answer: Option<u64>,
}

impl Default for AllocatorOptions {
    fn default() -> AllocatorOptions {
        AllocatorOptions {
            policies: None,
            job_by_job: false,
            room: 0,
            program_groups: ProgramGroups::default(),
            costs: Costs::NONE,
            longest_answer: None,
        }
    }
}

impl AllocatorOptions {
    /// The table of policies.
    pub(crate) fn table(&self) -> &'static [&'static PolicyEntry] {
        self.policies.unwrap_or_else(policies)
    }

    /// Where tasks run in real time.
    #[must_use]
    pub fn in_real_time() -> AllocatorOptions {
        AllocatorOptions { longest_answer: Some(LONGEST_ANSWER), ..AllocatorOptions::default() }
    }
}

/// The allocators of one dispatcher: the policy of each scheduling group, servers, budget groups,
/// and the releases of each task.
pub struct Allocators {
    pub(crate) set: TaskSet,
    pub(crate) domain: DomainId,
    pub(crate) options: AllocatorOptions,
    pub(crate) origin: u64,
    begun: bool,
    /// Policies at work; slots and groups know them by place.
    pub(crate) at_work: Vec<AtWork>,
    /// By group number: the place of its policy above.
    pub(crate) groups: Vec<u32>,
    /// Those of the set's tasks, room for others, then those of servers.
    pub(crate) slots: Vec<Slot>,
    /// Where those of servers begin.
    pub(crate) servers: usize,
    /// The place of the first kind of server in `at_work`.
    pub(crate) kinds: u32,
    /// By task number: its slot.
    pub(crate) by_task: Vec<u32>,
    /// Slots of servers whose policies receive events.
    pub(crate) observed: Vec<u32>,
    /// Slots whose timer was refused, to be asked for again.
    pub(crate) unarmed: u32,
    /// A policy that may be stopped is or was at work.
    pub(crate) guarded: bool,
    /// Jobs of the program's groups.
    pub(crate) group_jobs: Vec<Option<GroupJobInFlight>>,
}

/// No slot.
pub(crate) const NO_SLOT: u32 = u32::MAX;

impl Allocators {
    /// For the part of a set that belongs to one domain's dispatcher.
    ///
    /// # Errors
    /// What a policy cannot do with its tasks, with cause and help.
    pub fn new(set: &TaskSet, domain: DomainId) -> Result<Allocators, Diagnostic> {
        Allocators::with(set, domain, AllocatorOptions::default())
    }

    /// As [`Allocators::new`], with other options.
    ///
    /// # Errors
    /// As there.
    pub fn with(
        set: &TaskSet,
        domain: DomainId,
        options: AllocatorOptions,
    ) -> Result<Allocators, Diagnostic> {
        let tasks = set.tasks.len() + options.room as usize;
        let mut all = Allocators {
            set: set.clone(),
            domain,
            options,
            origin: 0,
            begun: false,
            at_work: Vec::new(),
            groups: Vec::with_capacity(set.groups.len() + 1),
            slots: Vec::with_capacity(tasks),
            servers: tasks,
            kinds: 0,
            by_task: vec![NO_SLOT; tasks],
            observed: Vec::new(),
            unarmed: 0,
            guarded: false,
            group_jobs: vec![None; options.program_groups.jobs() as usize],
        };
        // Room for a swap of all groups: each slot may still have its release in flight under an
        // earlier policy.
        let slots = tasks + servers::members(set, domain).len();
        all.at_work.reserve_exact(2 * (set.groups.len() + 1) + KINDS.len() + slots);
        let costs = options.costs;
        for group in 0..=set.groups.len() as u32 {
            let (entry, policy) = all.named(set, group)?;
            let members = tasks as u32;
            let setup = Setup { set, domain, group, policy, costs, members };
            let at_work = AtWork::make(entry, &setup, options.longest_answer)?;
            all.guarded |= at_work.is_guarded();
            all.groups.push(all.at_work.len() as u32);
            all.at_work.push(at_work);
        }
        all.add_program_groups()?;
        for (index, spec) in set.tasks.iter().enumerate() {
            all.slots.push(slot_for(spec, index as u32));
        }
        all.slots.resize_with(tasks, Slot::unused);
        all.add_servers()?;
        Ok(all)
    }

    /// The groups of the program, whose members are under the policy of those of the set that take
    /// jobs of the program.
    fn add_program_groups(&mut self) -> Result<(), Diagnostic> {
        let ProgramGroups { scheduling, budget } = self.options.program_groups;
        if scheduling + budget == 0 {
            return Ok(());
        }
        let jobs = self.at_work.iter().position(|at| std::ptr::eq(at.entry, &JOBS));
        let jobs = jobs.ok_or_else(|| {
            let cause = "no group of the set takes jobs of the program";
            Diagnostic::usage(cause, format!("give one the policy \"{}\"", JOBS.info.name))
        })?;
        self.groups.extend(std::iter::repeat_n(jobs as u32, scheduling as usize));
        Ok(())
    }

    /// The policy that the set names for a group.
    fn named<'s>(
        &self,
        set: &'s TaskSet,
        group: u32,
    ) -> Result<(&'static PolicyEntry, &'s PolicySpec), Diagnostic> {
        let (policy, place) = match group.checked_sub(1) {
            None => (&set.policy, "policy".to_owned()),
            Some(g) => {
                let g = &set.groups[g as usize];
                (&g.policy, crate::error::place("group", &g.name, g.line))
            }
        };
        Ok((find(self.options.table(), policy, place)?, policy))
    }

    /// What the dispatcher must be created with; the trace ring has 65,536 records.
    pub fn limits(&self) -> Limits {
        let mine = self.set.tasks.iter().filter(|t| t.domain == self.domain).count() as u32;
        let tasks = (mine + self.options.room).max(1);
        // A task may have windows and others from its next release on.
        let of_set = &self.slots[..self.set.tasks.len()];
        let windows = 2 * of_set.iter().map(|slot| self.windows_of(slot)).sum::<u64>();
        let servers = (self.slots.len() - self.servers) as u32;
        let set_timers = self
            .at_work
            .iter()
            .enumerate()
            .any(|(place, at_work)| at_work.entry.timers && self.is_used(place as u32));
        let of_program = self.options.program_groups;
        Limits {
            jobs: 2 * tasks + 2 * servers + 8 + of_program.jobs(),
            tasks,
            reservations: tasks + servers,
            groups: self.set.groups.len() as u32 + 1 + of_program.scheduling,
            budget_groups: self.set.budget_groups.len() as u32 + of_program.budget,
            timers: if set_timers { 2 * tasks + servers } else { tasks } + 8,
            depth: Limits::DEPTH,
            events: (8 * (tasks + servers + 8) + 2 * of_program.jobs()).next_power_of_two(),
            records: 1 << 16,
            windows: windows.min(1 << 20) as u32,
        }
    }

    /// Whether a policy at work has a group or a member.
    pub(crate) fn is_used(&self, place: u32) -> bool {
        self.groups.contains(&place)
            || self.slots.iter().any(|slot| slot.by == place || slot.next_by == place)
    }

    /// How many windows a reservation of the task needs, all rows together.
    fn windows_of(&self, slot: &Slot) -> u64 {
        let policy = &self.at_work[self.groups[slot.member.group as usize] as usize].policy;
        let rows = 0..policy.rows(&slot.member);
        rows.map(|number| policy.windows(&slot.member, number).len() as u64).sum()
    }

    /// The start: orders of all groups, budgets of budget groups, server jobs. Offsets count from
    /// `origin` (ns, now or later). Called again, it moves the origin for tasks that are added from
    /// then on, and nothing else.
    ///
    /// # Errors
    /// A dispatcher with other limits than [`Allocators::limits`].
    pub fn begin(&mut self, gsi: &mut dyn Gsi, origin: u64) -> Result<(), Refusal> {
        self.origin = origin;
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        for (group, &at) in self.groups.iter().enumerate() {
            gsi.set_order(group as u32, self.at_work[at as usize].entry.order)?;
        }
        self.begin_servers(gsi)
    }

    /// Registers a task of the set: `task` is its number in the dispatcher. Its first release is at
    /// origin + offset, or the next one of its grid if that is past (its number shows which). An
    /// index that was removed may be added again when the events of its removal were handled.
    ///
    /// # Errors
    /// [`Refusal::Nothing`] for an index that is not in the set or is another domain's,
    /// [`Refusal::Busy`] for one that is there already; otherwise as the dispatcher says.
    pub fn add(&mut self, gsi: &mut dyn Gsi, index: usize, task: TaskId) -> Result<(), Refusal> {
        let spec = self.set.tasks.get(index).ok_or(Refusal::Nothing)?;
        if spec.domain != self.domain {
            return Err(Refusal::Nothing);
        }
        if !matches!(self.slots[index].phase, Phase::Empty) {
            return Err(Refusal::Busy);
        }
        let executed = self.slots[index].executed;
        self.slots[index] = Slot { executed, ..slot_for(spec, index as u32) };
        self.register(gsi, index, task)
    }

    /// Registers a task that is in no set, as `index` (any one beyond the set's, within
    /// [`AllocatorOptions::room`]). Allocates nothing unless its arrival is a list.
    ///
    /// # Errors
    /// [`Refusal::Full`] beyond the room, [`Refusal::Invalid`] for an index of the set or a
    /// task that the group's policy cannot admit while tasks run; otherwise as [`Allocators::add`].
    pub fn add_other(
        &mut self,
        gsi: &mut dyn Gsi,
        index: usize,
        task: TaskId,
        spec: &TaskSpec,
    ) -> Result<(), Refusal> {
        if index < self.set.tasks.len() {
            return Err(Refusal::Invalid);
        }
        if index >= self.servers {
            return Err(Refusal::Full);
        }
        if !matches!(self.slots[index].phase, Phase::Empty) {
            return Err(Refusal::Busy);
        }
        let executed = self.slots[index].executed;
        self.slots[index] = Slot { executed, ..slot_for(spec, index as u32) };
        self.register(gsi, index, task)
    }

    fn register(&mut self, gsi: &mut dyn Gsi, index: usize, task: TaskId) -> Result<(), Refusal> {
        let route = self.by_task.get_mut(task.0 as usize).ok_or(Refusal::Full)?;
        *route = index as u32;
        let slot = &mut self.slots[index];
        slot.member.serves = For::Task(task);
        let of_group = *self.groups.get(slot.member.group as usize).ok_or(Refusal::Nothing)?;
        let by = slot.server.map_or(of_group, |kind| self.kinds + servers::place_of(kind));
        if !self.at_work[by as usize].policy.admits(&slot.member) {
            return Err(Refusal::Invalid);
        }
        (slot.by, slot.next_by) = (by, by);
        slot.origin = self.origin;
        if std::ptr::eq(self.at_work[by as usize].entry, &JOBS) {
            // It has no releases but the jobs that the program adds.
            slot.stream = Stream::List(Box::default(), 0);
        }
        (slot.next, slot.number) =
            slot.stream.first(slot.origin, slot.member.offset, slot.member.period, gsi.now());
        slot.phase = Phase::Waiting;
        let taken = match self.reserve(gsi, index) {
            Ok(true) => Ok(()),
            Ok(false) => self.arm(gsi, index),
            Err(refusal) => Err(refusal),
        };
        if taken.is_err() {
            self.slots[index].phase = Phase::Empty;
        }
        taken
    }

    /// Takes a task out: it is never released again. What is in flight ends: as gone if the
    /// dispatcher's `task_gone` was called right before, else as cancelled; [`Allocators::handle`]
    /// tells.
    pub fn remove(&mut self, gsi: &mut dyn Gsi, task: TaskId) {
        let Some(s) = self.slot_of(task) else { return };
        let slot = &mut self.slots[s];
        if let Some(timer) = slot.timer.take() {
            // It may have expired already; its event then finds no release.
            let _ = gsi.cancel_timer(timer);
        }
        jobs::cancel_policy_timer(gsi, slot);
        if let Phase::Reserved(r) = slot.phase {
            let _ = gsi.remove_reservation(r);
        }
        if let Some(job) = slot.job {
            let _ = gsi.cancel_job(job);
        }
        slot.phase = Phase::Empty;
    }

    /// What a task's `wait_period` does: to be called in place of the dispatcher's `task_done`,
    /// which it calls.
    ///
    /// # Errors
    /// As of [`Dispatcher::task_done`].
    pub fn done(
        &mut self,
        dispatcher: &mut Dispatcher,
        task: TaskId,
        now: u64,
    ) -> Result<Wait, Refusal> {
        if let Some(s) = self.slot_of(task) {
            let slot = &mut self.slots[s];
            slot.waits = true;
            if !matches!(slot.phase, Phase::Reserved(_)) {
                // Between two releases the latest one has overrun, and this may be its own wait.
                let ended = !slot.open;
                if late_waits::is_late(slot.delayed, ended)
                    && slot.overrun != punctual_dispatcher::OverrunPolicy::Skip
                {
                    slot.delayed -= 1;
                    return Ok(Wait::Ignored);
                }
                slot.lost =
                    slot.lost.saturating_add(slot.delayed - late_waits::own(slot.delayed, ended));
                slot.delayed = 0;
            }
        }
        dispatcher.task_done(task, now)
    }

    /// Releases that the task's last `wait_period` missed; asking resets it.
    pub fn take_lost(&mut self, dispatcher: &mut Dispatcher, task: TaskId) -> u32 {
        let Some(s) = self.slot_of(task) else { return 0 };
        let slot = &mut self.slots[s];
        let own = std::mem::take(&mut slot.lost);
        match slot.phase {
            Phase::Reserved(r) => own.saturating_add(dispatcher.take_lost(r)),
            _ => own,
        }
    }

    /// Waits of the task that are late now, and would be ignored if they came.
    pub fn late_waits(&self, dispatcher: &Dispatcher, task: TaskId) -> u32 {
        let Some(s) = self.slot_of(task) else { return 0 };
        let slot = &self.slots[s];
        let (delayed, ended) = match slot.phase {
            _ if slot.overrun == punctual_dispatcher::OverrunPolicy::Skip => return 0,
            Phase::Reserved(r) => (dispatcher.delayed(r), dispatcher.job_of(r).is_none()),
            _ => (slot.delayed, !slot.open),
        };
        delayed - late_waits::own(delayed, ended)
    }

    /// The reservation that a task executes on at this time; `None` while its policy makes its
    /// jobs.
    pub fn reservation_of(&self, task: TaskId) -> Option<ReservationId> {
        match self.slots[self.slot_of(task)?].phase {
            Phase::Reserved(r) => Some(r),
            _ => None,
        }
    }

    /// Whether some policy has to receive events while the set runs; else the dispatcher's
    /// reservations carry out all members that there are now.
    pub fn asks_policies(&self) -> bool {
        let mut tasks = self.slots[..self.servers].iter();
        let observes = |slot: &Slot| self.at_work[slot.by as usize].policy.observes(&slot.member);
        !self.observed.is_empty()
            || tasks.any(|slot| match slot.phase {
                Phase::Empty => false,
                Phase::Reserved(_) => observes(slot),
                _ => true,
            })
    }

    /// Whether the task's remaining budget is cut when it wakes in mid-job (the revised CBS wake-up
    /// rule).
    pub fn cuts_on_waking(&self, task: TaskId) -> bool {
        let Some(s) = self.slot_of(task) else { return false };
        match self.slots[s].server {
            Some(ServerKind::Adaptive) => self.entry_of_group(s).wakeup_rule,
            _ => self.at_work[self.slots[s].by as usize].entry.wakeup_rule,
        }
    }

    /// Of what the host has charged to the task's job, `ns` were idle time, in place of a cut by
    /// the wake-up rule. To be called before the end of the job is handled.
    pub fn charged_idle(&mut self, task: TaskId, ns: u64) {
        if let Some(s) = self.slot_of(task) {
            self.slots[s].idle += ns;
        }
    }

    /// The policy of the group in which a member competes.
    pub(crate) fn entry_of_group(&self, s: usize) -> &'static PolicyEntry {
        let group = self.slots[s].member.group as usize;
        self.at_work[self.groups[group] as usize].entry
    }

    /// A task's place in the set.
    pub fn index_of(&self, task: TaskId) -> Option<usize> {
        self.slot_of(task)
    }

    /// The ordering of a group.
    pub fn order_of(&self, group: u32) -> Option<&[punctual_dispatcher::Attribute]> {
        self.policy_of(group).map(|entry| entry.order)
    }

    /// The policy of a group at this time.
    pub fn policy_of(&self, group: u32) -> Option<&'static PolicyEntry> {
        self.groups.get(group as usize).map(|&at| self.at_work[at as usize].entry)
    }

    /// The slot of a task that is, or was last, of that number.
    pub(crate) fn slot_of(&self, task: TaskId) -> Option<usize> {
        let s = *self.by_task.get(task.0 as usize)?;
        (s != NO_SLOT).then_some(s as usize)
    }
}

/// The entry of a table for this policy.
pub(crate) fn find(
    table: &'static [&'static PolicyEntry],
    policy: &PolicySpec,
    place: String,
) -> Result<&'static PolicyEntry, Diagnostic> {
    if policy.reclaim {
        return Ok(&edf::RECLAIMING);
    }
    let name = &policy.name;
    table.iter().copied().find(|p| p.info.name == *name).ok_or_else(|| {
        let names: Vec<&str> = table.iter().map(|p| p.info.name).collect();
        refused(
            place,
            format!("there is no policy \"{name}\""),
            format!("use {}", names.join(", ")),
        )
    })
}

fn slot_for(spec: &TaskSpec, index: u32) -> Slot {
    let mut slot = Slot::new(MemberParams::of(spec, index, TaskId::NONE), overrun(spec.overrun));
    slot.stream = Stream::of(spec);
    slot.server = spec.server;
    slot
}
