//! Reservations on their way from one process of the service to another (`handover`).

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{MutexGuard, PoisonError, RwLockWriteGuard};
use std::time::{Duration, Instant};

use punctual_diagnostic::Diagnostic;
use punctual_service::{ReservationInfo, ServiceError, TaskRequest};

use super::{Lease, Reservations};
use crate::domain::ReservationKey;
use crate::handover::PassedReservation;
use crate::mailbox::{Mailboxes, NextRelease};
use crate::owner::invalid;
use crate::user::User;
use crate::values::{Origin, Values};

impl Reservations {
    /// Has all calls that change reservations wait.
    pub(crate) fn pause_changes(&self) -> RwLockWriteGuard<'_, ()> {
        self.changes.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn mail(&self) -> &Mailboxes {
        &self.mail
    }

    /// The next number of a lease or a reservation.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.load(Relaxed)
    }

    /// Numbers below this are never given again.
    pub(crate) fn set_next_id(&self, next: u64) {
        self.ids.store(next, Relaxed);
    }

    pub(crate) fn export(&self) -> Vec<PassedReservation> {
        self.domains
            .keys()
            .filter_map(|cpu| self.domain(*cpu))
            .flat_map(|mut d| d.export())
            .collect()
    }

    /// Restores the processes of these reservations for another process. `ends`: a dispatcher whose
    /// reservations are all gone ends, too.
    pub(crate) fn let_go(&self, ids: &[u64], ends: bool) {
        for mut domain in self.domains.keys().filter_map(|cpu| self.domain(*cpu)) {
            domain.let_go(ids);
            if ends {
                domain.forget_ended();
            }
        }
    }

    /// Starts the dispatchers of these CPUs, as far as they are the service's, for reservations
    /// that follow.
    ///
    /// # Errors
    /// The machine does not permit it.
    pub(crate) fn expect(&self, on: impl IntoIterator<Item = u32>) -> Result<(), Diagnostic> {
        let layout = self.layout();
        let mut domains = on.into_iter().filter(|cpu| layout.cpus.contains(cpu));
        domains.try_for_each(|cpu| self.domain(cpu).map_or(Ok(()), |mut d| d.expect(&layout)))
    }

    /// Loads what the first of the reservations that follow needs, where that can be done while
    /// another process has the machine: the kernel host's scheduler.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) fn load_scheduler(&self) -> Result<(), Diagnostic> {
        self.dispatchers.load_scheduler()
    }

    /// All have followed.
    pub(crate) fn expect_none(&self) {
        self.domains.keys().filter_map(|cpu| self.domain(*cpu)).for_each(|mut d| d.expect_none());
    }

    /// Makes a reservation that another process of the service had, under the same number.
    /// `patience`: how long a refusal is none that a dying process may cause, whose guardian
    /// restores the program first.
    ///
    /// # Errors
    /// It does not fit here; its process has ended.
    pub(crate) fn take_over(
        &self,
        passed: &PassedReservation,
        next: NextRelease,
        patience: Duration,
    ) -> Result<(), ServiceError> {
        let until = Instant::now() + patience;
        loop {
            let refusal = match self.take_over_once(passed, next) {
                Ok(()) => return Ok(()),
                Err(refusal) => refusal,
            };
            let may_pass = matches!(
                refusal,
                ServiceError::InvalidRequest { .. } | ServiceError::MachineRefused { .. }
            );
            if !may_pass || !passed.is_alive() || Instant::now() >= until {
                return Err(refusal);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// One that was refused ends for its client, with the reason.
    pub(crate) fn end_passed(&self, passed: &PassedReservation, refusal: ServiceError) {
        let PassedReservation { info, lease, .. } = passed;
        let cause = refusal.diagnostic().cause;
        // A thread may return once its page says that the reservation has ended: not by itself.
        let (ended, cause) = match passed.is_alive() || passed.has_page {
            true => {
                eprintln!("punctuald: reservation {} ({:?}) ends: {cause}", info.id, info.name);
                ("refused", Some(cause))
            }
            false => ("ended", None),
        };
        self.mail.end(info.id, *lease, ended, cause);
    }

    fn take_over_once(
        &self,
        passed: &PassedReservation,
        next: NextRelease,
    ) -> Result<(), ServiceError> {
        let PassedReservation { info, lease, process, thread, .. } = passed;
        let ended = || invalid(format!("process {} has ended", info.pid), "start it again");
        if passed.has_page {
            // It is sealed against further mappings that can be written.
            let cause = "its thread waits by a page of the older process".to_owned();
            return Err(ServiceError::NotPermitted { cause, help: "reserve again".to_owned() });
        }
        if !passed.is_alive() {
            return Err(ended());
        }
        let (caller, layout) = (passed.user(), self.layout());
        let domain = self.domain(info.cpu).filter(|_| layout.cpus.contains(&info.cpu));
        let mut domain = domain.ok_or_else(|| {
            let cause = format!("no reservations are made on CPU {}", info.cpu);
            invalid(cause, format!("use one of {:?}", layout.cpus))
        })?;
        let (request, limit_ppm) = (passed.request(), self.limit_ppm(&caller, info.cpu));
        let values = self.passed_values(&caller, passed, &request)?;
        let key = ReservationKey { id: info.id, lease: *lease, next };
        let what = (&request, &values, None);
        domain.reserve(what, &caller, limit_ppm, &layout, key, (*process, *thread))?;
        if let Err(refusal) = domain.suspend_passed(info.id, info.suspensions) {
            domain.release(&[info.id]);
            return Err(refusal);
        }
        // Its number may have become another process's before it was adopted.
        if !passed.is_alive() {
            domain.release(&[info.id]);
            return Err(ended());
        }
        Ok(())
    }

    /// The values that the reservation had, if its user may still have them.
    fn passed_values(
        &self,
        caller: &User,
        passed: &PassedReservation,
        request: &TaskRequest,
    ) -> Result<Values, ServiceError> {
        let access = self.access.read().unwrap_or_else(PoisonError::into_inner);
        let origin = match &passed.origin {
            Origin::Interface => Origin::Interface,
            Origin::Client => {
                access.check_role(caller, None)?;
                Origin::Client
            }
            Origin::Role { name, .. } => {
                access.check_role(caller, Some(name))?;
                Origin::Role { name: name.clone(), is_named: access.names_role(caller, name) }
            }
        };
        Ok(Values { origin, group: passed.info.group.clone(), ..Values::of_request(request)? })
    }

    /// The lease of a connection, or of another interface, that another process had.
    pub(crate) fn passed_lease<'a>(
        &self,
        number: u64,
        caller: User,
        held: impl IntoIterator<Item = &'a PassedReservation>,
    ) -> Lease {
        let held = held.into_iter().map(|passed| (passed.info.id, passed.info.cpu)).collect();
        Lease { number, caller, held, page: None }
    }

    pub(crate) fn add_unclaimed(&self, lease: Lease, info: ReservationInfo) {
        self.unclaimed().push((lease, info));
    }

    /// Leases of other interfaces than Varlink that another process of the service had, each with
    /// its reservation.
    pub fn claim(&self) -> Vec<(Lease, ReservationInfo)> {
        std::mem::take(&mut *self.unclaimed())
    }

    fn unclaimed(&self) -> MutexGuard<'_, Vec<(Lease, ReservationInfo)>> {
        self.unclaimed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// Names it in its process and in those that take it over.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}
