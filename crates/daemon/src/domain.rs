//! The reservations on one CPU.

mod kept;
mod limits;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual::{TaskEnd, TaskHandle, Time};
use punctual_diagnostic::Diagnostic;
use punctual_process::Identity;
use punctual_service::{ReservationChange, ReservationInfo, ServiceError, TaskRequest};
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::{next_release, TaskChange};
use punctual_wait_page::SealedPage;

use crate::dispatchers::{DispatcherLayout, Dispatchers, ServiceRun};
use crate::handover::PassedReservation;
use crate::mailbox::{task_name, Mailboxes, NextRelease};
use crate::owner::invalid;
use crate::share::ppm;
use crate::user::User;
use crate::values::{Origin, Values};

use kept::KeptShare;
use limits::check_least_budget;
pub(crate) use limits::LEAST_BUDGET_NS;

/// From a client's request to the first release that it names, at least, ns: as long as without
/// one.
const LEAST_LEAD_NS: u64 = 20_000_000;
/// How long the restoration of a process is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// One CPU.
pub struct Domain {
    cpu: u32,
    dispatchers: Arc<Dispatchers>,
    /// `None` while there is no reservation.
    run: Option<Arc<ServiceRun>>,
    held: BTreeMap<u64, Held>,
    kept: Vec<KeptShare>,
    mail: Arc<Mailboxes>,
    /// The dispatcher stays without reservations: some are to follow.
    expects: bool,
    /// The service ends: nothing is reserved any more.
    ended: bool,
}

struct Held {
    info: ReservationInfo,
    values: Values,
    key: ReservationKey,
    /// Who requested it.
    caller: User,
    /// The process, and its thread if it is for that alone.
    target: (Identity, Option<Identity>),
    /// The thread waits by a page.
    has_page: bool,
    handle: TaskHandle<TaskEnd>,
}

/// What names a reservation, and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct ReservationKey {
    /// Its number.
    pub id: u64,
    /// The lease that holds it.
    pub lease: u64,
    /// Its first release; where another process of the service had it before, with number and time.
    pub next: NextRelease,
}

impl Held {
    fn ppm(&self) -> u64 {
        ppm(self.info.budget_ns, self.info.period_ns)
    }
}

impl Domain {
    /// A CPU without reservations.
    pub fn new(cpu: u32, dispatchers: Arc<Dispatchers>, mail: Arc<Mailboxes>) -> Domain {
        let (run, held, kept) = (None, BTreeMap::new(), Vec::new());
        Domain { cpu, dispatchers, run, held, kept, mail, expects: false, ended: false }
    }

    /// Reserves for a process, or a thread, that was found to be the caller's, and waits for its
    /// releases by the page, if there is one.
    ///
    /// # Errors
    /// A value out of its range; more than `limit_ppm`; it does not fit; the process cannot be
    /// adopted; the machine does not permit a dispatcher on this CPU.
    pub fn reserve(
        &mut self,
        (request, values, page): (&TaskRequest, &Values, Option<&SealedPage>),
        caller: &User,
        limit_ppm: u64,
        layout: &DispatcherLayout,
        key: ReservationKey,
        target: (Identity, Option<Identity>),
    ) -> Result<ReservationInfo, ServiceError> {
        self.forget_ended();
        let (ppm, own) = (ppm(values.budget_ns, values.period_ns), self.of_user_ppm(caller.uid));
        self.check_limit(caller, limit_ppm, ppm, own)?;
        self.check_cost(caller, values)?;
        let soonest = monotonic_ns() + LEAST_LEAD_NS;
        let within = self.within_limit(caller, limit_ppm, (key.id, own + ppm), soonest);
        let first = match request.first_release_ns {
            Some(first) => Some(next_release(first, values.period_ns, within)),
            None => Some(within).filter(|&within| within > soonest),
        };
        // One that another process had was released before.
        let starts = key.next.due_ns.map_or(first.unwrap_or(soonest), |_| 0);
        let first = key.next.due_ns.or(first);
        let id = key.id;
        self.mail.register(id, key.lease, key.next, starts, values.period_ns);
        let handle = match self.add(request, values, page, (id, first), layout) {
            Ok(handle) => handle,
            Err(refusal) => {
                self.mail.remove(id);
                let refusal = self.explain(refusal, caller, values.group.as_deref(), layout);
                self.end_if_empty();
                return Err(refusal);
            }
        };
        let info = ReservationInfo {
            id,
            name: request.name.clone(),
            uid: caller.uid,
            pid: request.pid,
            tid: request.tid,
            cpu: self.cpu,
            role: values.role().map(str::to_owned),
            group: values.group.clone(),
            period_ns: values.period_ns,
            budget_ns: values.budget_ns,
            deadline_ns: values.deadline_ns.unwrap_or(values.period_ns),
            suspensions: 0,
        };
        let (values, caller) = (values.clone(), caller.clone());
        let (info_of_it, has_page) = (info.clone(), page.is_some());
        let held = Held { info: info_of_it, values, key, caller, target, has_page, handle };
        self.held.insert(id, held);
        Ok(info)
    }

    fn add(
        &mut self,
        request: &TaskRequest,
        values: &Values,
        page: Option<&SealedPage>,
        (id, first): (u64, Option<u64>),
        layout: &DispatcherLayout,
    ) -> Result<TaskHandle<TaskEnd>, Diagnostic> {
        if self.ended {
            return Err(Diagnostic::machine("the service ends", "try again in a moment"));
        }
        let run = self.dispatcher(layout)?;
        let ns = Duration::from_nanos;
        let mut task = run
            .running
            .task(task_name(&request.name, id))
            .cpu(self.cpu)
            .period(ns(values.period_ns))
            .budget(ns(values.budget_ns))
            .start(ns(request.offset_ns.unwrap_or(0)))
            .overrun(values.overrun);
        if let Some(deadline) = values.deadline_ns {
            task = task.deadline(ns(deadline));
        }
        if let Some(first) = first {
            task = task.first_release(Time::from_nanos(first));
        }
        if let Some(group) = &values.group {
            self.check_group(group, &run)?;
            task = task.group(group);
        }
        match (request.tid, page) {
            (Some(tid), Some(page)) => task.thread_with_page((request.pid, tid), page),
            (Some(tid), None) => task.thread_of(request.pid, tid),
            (None, _) => task.pid(request.pid),
        }
    }

    /// The dispatcher, started if there is none.
    fn dispatcher(&mut self, layout: &DispatcherLayout) -> Result<Arc<ServiceRun>, Diagnostic> {
        match &self.run {
            Some(run) => Ok(run.clone()),
            None => Ok(self.run.insert(self.dispatchers.of_cpu(self.cpu, layout)?).clone()),
        }
    }

    /// Starts the dispatcher for reservations that are to follow.
    ///
    /// # Errors
    /// The machine does not permit it.
    pub fn expect(&mut self, layout: &DispatcherLayout) -> Result<(), Diagnostic> {
        self.expects = true;
        self.dispatcher(layout).map(drop)
    }

    /// They have followed.
    pub fn expect_none(&mut self) {
        self.expects = false;
        self.end_if_empty();
    }

    /// Gives a reservation other values from its next release on: no role's any more.
    ///
    /// # Errors
    /// More than `limit_ppm`; it does not fit; it has ended; a value out of its range.
    pub fn change(
        &mut self,
        id: u64,
        change: &ReservationChange,
        caller: &User,
        limit_ppm: u64,
        layout: &DispatcherLayout,
    ) -> Result<(), ServiceError> {
        self.forget_ended();
        let held = self.held.get(&id).ok_or_else(|| unknown(id))?;
        let others = self.of_user_ppm(caller.uid) - held.ppm();
        let ReservationChange { period_ns: period, budget_ns: budget, deadline_ns: deadline } =
            *change;
        let change = TaskChange { period, budget, deadline, priority: None };
        let (period, deadline) = change.times(held.info.period_ns, held.info.deadline_ns);
        let budget = change.budget.unwrap_or(held.info.budget_ns);
        self.check_limit(caller, limit_ppm, ppm(budget, period), others)?;
        check_least_budget(caller, budget)?;
        let own = (id, others + ppm(budget, period));
        self.check_limit_at(caller, limit_ppm, own, self.mail.next_due(id))?;
        let before = held.ppm();
        let (changed, group) = (held.handle.change(&change.into()), held.info.group.clone());
        changed.map_err(|refusal| self.explain(refusal, caller, group.as_deref(), layout))?;
        // Looked up again: a release that came meanwhile was of the former values.
        let until = self.mail.next_due(id);
        if let Some(held) = self.held.get_mut(&id) {
            let info = &mut held.info;
            (info.period_ns, info.budget_ns, info.deadline_ns) = (period, budget, deadline);
            info.role = None;
            held.values.origin = Origin::Client;
            self.mail.set_period(id, period);
        }
        self.keep(id, caller, before, until);
        Ok(())
    }

    /// Suspends a reservation once more, at the request of this process.
    ///
    /// # Errors
    /// It has ended; it is a thread without a page, or that process; the host suspends nothing.
    pub fn suspend(&mut self, id: u64, by: Option<Identity>) -> Result<(), ServiceError> {
        let held = self.held.get_mut(&id).ok_or_else(|| unknown(id))?;
        if held.target.1.is_none() && by == Some(held.target.0) {
            let cause = "a process that suspends itself cannot resume itself".to_owned();
            return Err(invalid(cause, "suspend it by a connection of another process"));
        }
        held.handle.suspend()?;
        held.info.suspensions += 1;
        Ok(())
    }

    /// Takes back one suspension.
    ///
    /// # Errors
    /// It has ended, or is not suspended.
    pub fn resume(&mut self, id: u64) -> Result<(), ServiceError> {
        let held = self.held.get_mut(&id).ok_or_else(|| unknown(id))?;
        held.handle.resume()?;
        held.info.suspensions -= 1;
        Ok(())
    }

    /// Suspends a reservation as often as another process of the service had.
    ///
    /// # Errors
    /// As of [`suspend`](Domain::suspend).
    pub fn suspend_passed(&mut self, id: u64, suspensions: u32) -> Result<(), ServiceError> {
        (0..suspensions).try_for_each(|_| self.suspend(id, None))
    }

    /// Releases reservations; waits until their processes are restored.
    pub fn release(&mut self, ids: &[u64]) {
        let held: Vec<Held> = ids.iter().filter_map(|id| self.held.remove(id)).collect();
        for held in &held {
            // Refused only where the run has ended, which restored it.
            let _ = held.handle.stop();
        }
        let until = Instant::now() + PATIENCE;
        while held.iter().any(|held| !held.handle.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        held.iter().for_each(|held| self.keep_share(held));
        self.end_if_empty();
    }

    /// All reservations, for another process of the service.
    pub fn export(&mut self) -> Vec<PassedReservation> {
        self.forget_ended();
        let pass = |held: &Held| PassedReservation {
            info: held.info.clone(),
            overrun: held.values.overrun.to_string(),
            origin: held.values.origin.clone(),
            lease: held.key.lease,
            groups: held.caller.groups.clone(),
            is_authorized: held.caller.is_authorized,
            process: held.target.0,
            thread: held.target.1,
            has_page: held.has_page,
        };
        self.held.values().map(pass).collect()
    }

    /// Restores the processes of reservations that another process of the service takes over, and
    /// leaves the dispatcher; its client sees no end.
    pub fn let_go(&mut self, ids: &[u64]) {
        let held: Vec<Held> = ids.iter().filter_map(|id| self.held.remove(id)).collect();
        for held in &held {
            self.mail.set_leaves(held.key.id);
            // Refused only where the run has ended, which restored it.
            let _ = held.handle.stop();
        }
        let until = Instant::now() + PATIENCE;
        while held.iter().any(|held| !held.handle.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
            // A request has the run look at once for what has ended.
            let _ = self.run.as_ref().map(|run| run.running.alive());
        }
    }

    /// Forgets reservations whose processes are gone.
    pub fn forget_ended(&mut self) {
        let ended = self.held.iter().filter(|(_, held)| held.handle.is_finished());
        let ended: Vec<u64> = ended.map(|(&id, _)| id).collect();
        for id in ended {
            self.held.remove(&id).iter().for_each(|held| self.keep_share(held));
        }
        self.end_if_empty();
    }

    /// Releases all reservations, and the CPU.
    pub fn end(&mut self) {
        (self.ended, self.expects) = (true, false);
        self.held.clear();
        self.end_if_empty();
    }

    fn end_if_empty(&mut self) {
        if !self.held.is_empty() || self.expects {
            return;
        }
        self.run.take().into_iter().for_each(|run| self.dispatchers.give_back(run));
    }
}

/// A reservation that the caller does not have.
pub fn unknown(id: u64) -> ServiceError {
    ServiceError::InvalidRequest {
        cause: format!("this connection has no reservation {id}"),
        help: "use the id that Reserve returned; it ends with its process".to_owned(),
    }
}
