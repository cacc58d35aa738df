//! Shares that users have beyond those of their reservations. When a reservation ends or is
//! changed, its budget may be used up already; so its share is its user's until its next release,
//! and no other reservation's.
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

/// The share of a reservation in the release in progress, which has ended or has another one from
/// the next release on.
pub(super) struct KeptShare {
    /// Number of the reservation.
    id: u64,
    uid: u32,
    ppm: u64,
    /// That release, CLOCK_MONOTONIC ns.
    until: u64,
}

impl Domain {
    /// A reservation has ended.
    pub(super) fn keep_share(&mut self, held: &Held) {
        if let Some(until) = self.mail.forget(held.key.id) {
            self.keep(held.key.id, &held.caller, held.ppm(), until);
        }
    }

    /// A reservation of this user has this share until then, whatever follows.
    pub(super) fn keep(&mut self, id: u64, user: &User, ppm: u64, until: u64) {
        let now = monotonic_ns();
        self.kept.retain(|kept| kept.until > now);
        // After several changes in one period the first one says what it has.
        if !user.is_root() && self.kept.iter().all(|kept| kept.id != id) {
            self.kept.push(KeptShare { id, uid: user.uid, ppm, until });
        }
    }

    fn kept_of(&self, uid: u32, time: u64) -> impl Iterator<Item = &KeptShare> {
        self.kept.iter().filter(move |kept| kept.uid == uid && kept.until > time)
    }

    /// What is kept beyond the share that the reservation has from its next release on.
    fn excess(&self, kept: &KeptShare) -> u64 {
        kept.ppm.saturating_sub(self.held.get(&kept.id).map_or(0, Held::ppm))
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
    /// `limit_ppm` with what is kept of other reservations than `id`.
    pub(super) fn within_limit(
        &self,
        caller: &User,
        limit_ppm: u64,
        (id, own_ppm): (u64, u64),
        soonest: u64,
    ) -> u64 {
        if caller.is_root() {
            return soonest;
        }
        let others = self.kept_of(caller.uid, soonest).filter(|kept| kept.id != id);
        let mut kept: Vec<&KeptShare> = others.collect();
        kept.sort_unstable_by_key(|kept| kept.until);
        let excess = kept.iter().map(|kept| self.excess(kept));
        let mut total = excess.sum::<u64>().saturating_add(own_ppm);
        let mut first = soonest;
        for kept in kept {
            if total <= limit_ppm {
                break;
            }
            (total, first) = (total - self.excess(kept), kept.until);
        }
        first
    }

    /// # Errors
    /// At that time a user with `own_ppm` of its own has more than `limit_ppm` with what is kept of
    /// other reservations than `id`.
    pub(super) fn check_limit_at(
        &self,
        caller: &User,
        limit_ppm: u64,
        (id, own_ppm): (u64, u64),
        time: u64,
    ) -> Result<(), ServiceError> {
        let later = self.within_limit(caller, limit_ppm, (id, own_ppm), time);
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
