//! Which threads have a reservation or a nice level by this interface, and the limits of users.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual_daemon::{Lease, Reservations, User};
use punctual_process::Identity;
use punctual_service::TaskRequest;

use crate::limits::{check_nice, check_priority, CallWindow, PROCESSES, THREADS, USERS};
use crate::refusal::CallRefusal;
use crate::thread::ClientThread;

/// How long the reservation of a thread that has ended may remain.
const ENDED_AFTER: Duration = Duration::from_secs(1);

/// All threads with something by this interface.
pub struct Promotions {
    reservations: Arc<Reservations>,
    users: Mutex<BTreeMap<u32, Promoted>>,
    /// There may be threads now.
    added: Condvar,
}

/// The threads of one user.
struct Promoted {
    calls: CallWindow,
    threads: BTreeMap<ClientThread, Grant>,
}

/// What a thread has.
enum Grant {
    Reservation(Lease),
    NiceLevel,
}

impl Promotions {
    /// With the threads whose reservations the service took over from another process.
    pub fn new(reservations: Arc<Reservations>) -> Promotions {
        let mut users: BTreeMap<u32, Promoted> = BTreeMap::new();
        for (lease, info) in reservations.claim() {
            let thread = info.tid.and_then(Identity::of);
            let Some(identity) = thread else { continue };
            let thread = ClientThread { identity, pid: info.pid };
            let user = users.entry(info.uid).or_insert_with(|| Promoted::new(Instant::now()));
            user.threads.insert(thread, Grant::Reservation(lease));
        }
        Promotions { reservations, users: Mutex::new(users), added: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Promoted>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks polkit about the caller, where the configuration does not decide itself. Other calls
    /// are served meanwhile.
    ///
    /// # Errors
    /// polkit does not permit it, or does not answer.
    pub async fn authorize(&self, caller: &mut User) -> Result<(), CallRefusal> {
        Ok(self.reservations.authorize(caller).await?)
    }

    /// Reserves for a thread of the caller. One that has a reservation keeps it.
    ///
    /// # Errors
    /// A limit of RealtimeKit's; not the caller's thread; refused by the service.
    pub fn make_realtime(
        &self,
        caller: &User,
        (process, thread): (u64, u64),
        priority: u32,
    ) -> Result<(), CallRefusal> {
        check_priority(priority)?;
        let section_gone =
            || CallRefusal::Denied("the service has no section [realtime_kit]".into());
        let budget = self.reservations.thread_budget().ok_or_else(section_gone)?;
        let mut users = self.lock();
        let user = self.admit_call(&mut users, caller)?;
        let thread = ClientThread::find(process, thread, caller)?;
        if let Some(Grant::Reservation(_)) = user.threads.get(&thread) {
            return Ok(());
        }
        user.check_room(&thread)?;
        let request = TaskRequest {
            tid: Some(thread.identity.pid),
            overrun: Some("background".to_owned()),
            ..TaskRequest::new(thread.name(), thread.pid, budget.period_ns, budget.budget_ns)
        };
        let mut lease = self.reservations.lease(caller.clone());
        let reserved =
            self.reservations.reserve_thread(&mut lease, &request).map_err(CallRefusal::from);
        let gone = || CallRefusal::Failed(format!("thread {} has ended", thread.identity.pid));
        // Its number may have become another thread's before.
        if let Err(refusal) =
            reserved.and_then(|_| thread.is_alive().then_some(()).ok_or_else(gone))
        {
            self.reservations.end_lease(&mut lease);
            return Err(refusal);
        }
        user.threads.insert(thread, Grant::Reservation(lease));
        self.added.notify_all();
        Ok(())
    }

    /// Gives a thread of the caller a nice level. One that has a reservation loses it.
    ///
    /// # Errors
    /// A limit of RealtimeKit's; not the caller's thread; the user has no share of any CPU.
    pub fn make_high_priority(
        &self,
        caller: &User,
        (process, thread): (u64, u64),
        nice: i32,
    ) -> Result<(), CallRefusal> {
        check_nice(nice)?;
        let mut users = self.lock();
        let user = self.admit_call(&mut users, caller)?;
        if !self.reservations.permits(caller) {
            let cause = format!("user {} has no share of a CPU (docs/service.md)", caller.uid);
            return Err(CallRefusal::Denied(cause));
        }
        let thread = ClientThread::find(process, thread, caller)?;
        user.check_room(&thread)?;
        if let Some(Grant::Reservation(mut lease)) = user.threads.remove(&thread) {
            self.reservations.end_lease(&mut lease);
        }
        thread.set_nice(nice)?;
        if nice < 0 {
            user.threads.insert(thread, Grant::NiceLevel);
            self.added.notify_all();
        }
        Ok(())
    }

    /// Takes back what all these threads have.
    pub fn reset_known(&self) {
        let mut users = std::mem::take(&mut *self.lock());
        // The end of a reservation restores what its thread had before.
        for grant in users.values_mut().flat_map(|user| user.threads.values_mut()) {
            if let Grant::Reservation(lease) = grant {
                self.reservations.end_lease(lease);
            }
        }
        users.values().flat_map(|user| user.threads.keys()).for_each(ClientThread::demote);
    }

    /// The processes that have reservations by any interface.
    pub fn reserved_processes(&self) -> BTreeSet<i32> {
        let root = User::new(0, Vec::new());
        self.reservations.status(&root).reservations.iter().map(|r| r.pid).collect()
    }

    /// Counts a call of a user.
    fn admit_call<'a>(
        &self,
        users: &'a mut BTreeMap<u32, Promoted>,
        caller: &User,
    ) -> Result<&'a mut Promoted, CallRefusal> {
        let now = Instant::now();
        if users.len() >= USERS && !users.contains_key(&caller.uid) {
            return Err(CallRefusal::Denied(format!("{USERS} users have threads")));
        }
        let user = users.entry(caller.uid).or_insert_with(|| Promoted::new(now));
        user.calls.count(now)?;
        self.drop_ended(user);
        Ok(user)
    }

    /// Releases what threads had that have ended.
    fn drop_ended(&self, user: &mut Promoted) {
        user.threads.retain(|thread, grant| {
            let remains = match grant {
                Grant::Reservation(lease) => thread.is_alive() && !self.has_ended(lease),
                Grant::NiceLevel => thread.has_nice_level(),
            };
            if let (false, Grant::Reservation(lease)) = (remains, grant) {
                self.reservations.end_lease(lease);
            }
            remains
        });
    }

    /// Whether a reservation has ended by itself; takes its events, which no client fetches.
    fn has_ended(&self, lease: &Lease) -> bool {
        loop {
            let reply = self.reservations.take_events(lease);
            if reply.events.iter().any(|event| event.ended.is_some()) {
                return true;
            }
            if !reply.more {
                return false;
            }
        }
    }

    /// Looks for threads that have ended, while there are any.
    pub fn collect_ended(&self) {
        loop {
            let users = self.lock();
            drop(self.added.wait_while(users, |users| users.is_empty()));
            std::thread::sleep(ENDED_AFTER);
            let now = Instant::now();
            self.lock().retain(|_, user| {
                self.drop_ended(user);
                !user.threads.is_empty() || !user.calls.is_over(now)
            });
        }
    }
}

impl Promoted {
    fn new(now: Instant) -> Promoted {
        Promoted { calls: CallWindow::new(now), threads: BTreeMap::new() }
    }

    fn check_room(&self, thread: &ClientThread) -> Result<(), CallRefusal> {
        if self.threads.contains_key(thread) {
            return Ok(());
        }
        if self.threads.len() >= THREADS {
            return Err(CallRefusal::Denied(format!("this user has {THREADS} such threads")));
        }
        let processes: BTreeSet<i32> = self.threads.keys().map(|thread| thread.pid).collect();
        if processes.len() >= PROCESSES && !processes.contains(&thread.pid) {
            return Err(CallRefusal::Denied(format!(
                "this user has such threads in {PROCESSES} processes"
            )));
        }
        Ok(())
    }
}
