//! Shares that users have beyond their reservations: until the next release of one that has ended,
//! or was changed, its user may have used its budget, and has it once in a period.
//!
//! So that this holds on a CPU without other reservations, too, it does not depend on the
//! dispatcher, whose admission keeps shares in the same way for as long as it exists. A process of
//! the service that replaces another one does not know what that kept.

use punctual_service::ServiceError;
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::fmt_ns;

use super::{Domain, Held};
use crate::user::User;

/// Shares of one user that are kept, on one CPU, root excepted: each costs time at the next
/// request.
const PER_USER: usize = 48;

/// What a user had by a reservation.
pub(super) struct KeptShare {
    pub uid: u32,
    pub ppm: u64,
    /// CLOCK_MONOTONIC, ns.
    pub until: u64,
}

impl Domain {
    /// A reservation has ended.
    pub(super) fn keep_share(&mut self, held: &Held) {
        if let Some(until) = self.mail.forget(held.key.id) {
            self.keep(&held.caller, held.ppm(), until);
        }
    }

    /// A user has so much until then.
    pub(super) fn keep(&mut self, user: &User, ppm: u64, until: u64) {
        let now = monotonic_ns();
        self.kept.retain(|kept| kept.until > now);
        if ppm > 0 && !user.is_root() {
            self.kept.push(KeptShare { uid: user.uid, ppm, until });
        }
    }

    fn kept_of(&self, uid: u32, time: u64) -> impl Iterator<Item = &KeptShare> {
        self.kept.iter().filter(move |kept| kept.uid == uid && kept.until > time)
    }

    /// # Errors
    /// Too many shares of this user are kept.
    pub(super) fn check_kept(&self, caller: &User) -> Result<(), ServiceError> {
        let kept = self.kept_of(caller.uid, monotonic_ns()).count();
        if caller.is_root() || kept < PER_USER {
            return Ok(());
        }
        Err(ServiceError::NotPermitted {
            cause: format!(
                "user {} has released {kept} reservations on CPU {} whose periods last still",
                caller.uid, self.cpu
            ),
            help: "try again after one of these periods, or keep the reservations".to_owned(),
        })
    }

    /// The first time from `soonest` on at which a user with `own_ppm` of its own has no more than
    /// `limit_ppm` with what is kept.
    pub(super) fn within_limit(
        &self,
        caller: &User,
        limit_ppm: u64,
        own_ppm: u64,
        soonest: u64,
    ) -> u64 {
        if caller.is_root() {
            return soonest;
        }
        let mut kept: Vec<&KeptShare> = self.kept_of(caller.uid, soonest).collect();
        kept.sort_unstable_by_key(|kept| kept.until);
        let mut total = kept.iter().map(|kept| kept.ppm).sum::<u64>().saturating_add(own_ppm);
        let mut first = soonest;
        for kept in kept {
            if total <= limit_ppm {
                break;
            }
            (total, first) = (total - kept.ppm, kept.until);
        }
        first
    }

    /// # Errors
    /// With what is kept at that time, a user with `own_ppm` of its own has more than `limit_ppm`.
    pub(super) fn check_limit_at(
        &self,
        caller: &User,
        limit_ppm: u64,
        own_ppm: u64,
        time: u64,
    ) -> Result<(), ServiceError> {
        let later = self.within_limit(caller, limit_ppm, own_ppm, time);
        if later == time {
            return Ok(());
        }
        let cause = format!(
            "user {} has the shares of reservations that it has released or changed until their \
             next releases",
            caller.uid
        );
        let wait = fmt_ns(later.saturating_sub(monotonic_ns()));
        Err(ServiceError::NotPermitted { cause, help: format!("try again in {wait}") })
    }
}
