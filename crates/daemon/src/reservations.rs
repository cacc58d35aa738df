//! All CPUs, and the calls of clients on them. Its methods wait: for a dispatcher's start, some
//! 30 ms, and for the restoration of processes.

mod changes;
mod passed;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use punctual::results::HostKind;
use punctual_diagnostic::is_printable;
use punctual_polkit::{Polkit, PolkitSubject};
use punctual_process::{threads_of, Identity};
use punctual_service::{
    CpuStatus, EventsReply, ReservationInfo, ServiceError, StatusReply, TaskRequest, NAME_LIMIT,
};
use punctual_wait_page::{NewPage, SealedPage};

use crate::access::AccessRules;
use crate::dispatchers::{DispatcherLayout, Dispatchers};
use crate::domain::{unknown, Domain, ReservationKey};
use crate::mailbox::{Mailboxes, NextRelease};
use crate::owner::{check_owner, invalid};
use crate::thread_budget::ThreadBudget;
use crate::user::User;
use crate::values::Values;

/// What polkit is asked for.
const ACTION: &str = "io.punctual.reserve";
/// Tasks of one request.
const AT_ONCE: usize = 64;

/// The machine's reservations.
pub struct Reservations {
    access: RwLock<AccessRules>,
    polkit: Polkit,
    dispatchers: Arc<Dispatchers>,
    domains: BTreeMap<u32, Mutex<Domain>>,
    mail: Arc<Mailboxes>,
    ids: AtomicU64,
    /// Written while another process of the service takes everything over: what else changes
    /// reservations waits.
    changes: RwLock<()>,
    /// Leases of other interfaces than Varlink that were taken over and not claimed yet.
    unclaimed: Mutex<Vec<(Lease, ReservationInfo)>>,
}

/// What one connection reserved: reservation and CPU.
#[derive(Debug)]
pub struct Lease {
    number: u64,
    caller: User,
    held: BTreeMap<u64, u32>,
    /// By which the thread of its next reservation may wait.
    page: Option<NewPage>,
}

impl Lease {
    /// The user whose it is.
    pub fn caller(&self) -> &User {
        &self.caller
    }
}

impl Reservations {
    /// A machine with these CPUs, and without reservations. `host`: the user host or the kernel
    /// host.
    pub fn new(
        cpus: impl IntoIterator<Item = u32>,
        access: AccessRules,
        host: HostKind,
    ) -> Reservations {
        let mail = Arc::new(Mailboxes::default());
        let dispatchers = Arc::new(Dispatchers::new(host, mail.clone()));
        let domain = |cpu| (cpu, Mutex::new(Domain::new(cpu, dispatchers.clone(), mail.clone())));
        let domains = cpus.into_iter().map(domain).collect();
        let (access, ids) = (RwLock::new(access), AtomicU64::new(1));
        let (changes, unclaimed, polkit) = (RwLock::default(), Mutex::default(), Polkit::default());
        Reservations { access, polkit, dispatchers, domains, mail, ids, changes, unclaimed }
    }

    /// What schedules them: `user` or `kernel`, as `punctual serve --host` has them.
    pub fn host(&self) -> &'static str {
        self.dispatchers.host()
    }

    /// Replaces the configuration, for reservations to come.
    pub fn set_access(&self, access: AccessRules) {
        *self.access.write().unwrap_or_else(PoisonError::into_inner) = access;
    }

    /// What a thread gets that asks by the interface of RealtimeKit; `None`: nothing.
    pub fn thread_budget(&self) -> Option<ThreadBudget> {
        self.access.read().unwrap_or_else(PoisonError::into_inner).thread_budget()
    }

    /// Whether a user may reserve anything.
    pub fn permits(&self, caller: &User) -> bool {
        self.cpus().into_iter().any(|cpu| self.limit_ppm(caller, cpu) > 0)
    }

    fn limit_ppm(&self, caller: &User, cpu: u32) -> u64 {
        self.access.read().unwrap_or_else(PoisonError::into_inner).limit_ppm(caller, cpu)
    }

    fn domain(&self, cpu: u32) -> Option<MutexGuard<'_, Domain>> {
        Some(self.domains.get(&cpu)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Of a call that changes reservations.
    fn change(&self) -> RwLockReadGuard<'_, ()> {
        self.changes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn cpus(&self) -> Vec<u32> {
        self.layout().cpus
    }

    fn layout(&self) -> DispatcherLayout {
        let access = self.access.read().unwrap_or_else(PoisonError::into_inner);
        let cpus: Vec<u32> =
            self.domains.keys().copied().filter(|&cpu| access.has_cpu(cpu)).collect();
        let groups = access.groups().iter().filter(|group| cpus.contains(&group.cpu));
        DispatcherLayout { groups: groups.cloned().collect(), cpus }
    }

    /// The lease of a new connection.
    pub fn lease(&self, caller: User) -> Lease {
        Lease { number: self.ids.fetch_add(1, Relaxed), caller, held: BTreeMap::new(), page: None }
    }

    /// What the CPUs have promised.
    pub fn status(&self, caller: &User) -> StatusReply {
        let mut cpus: Vec<CpuStatus> = Vec::new();
        let (mut groups, mut reservations) = (Vec::new(), Vec::new());
        let layout = self.layout();
        for &cpu in &layout.cpus {
            let limit_ppm = self.limit_ppm(caller, cpu);
            if let Some(mut domain) = self.domain(cpu) {
                cpus.push(domain.status(caller, limit_ppm, &layout));
                groups.extend(domain.list_groups(&layout));
                reservations.extend(domain.list(caller));
            }
        }
        let (version, host) = (env!("CARGO_PKG_VERSION").to_owned(), self.host().to_owned());
        StatusReply { version, host, cpus, groups, reservations }
    }

    fn needs_polkit(&self, caller: &User) -> bool {
        self.access.read().unwrap_or_else(PoisonError::into_inner).needs_polkit(caller)
    }

    /// Asks polkit about a user without an entry in the configuration, if that has a section for
    /// it. Waits for the answer, at most 10 s, without keeping others from the reservations.
    ///
    /// # Errors
    /// polkit does not permit it, or does not answer.
    pub async fn authorize(&self, caller: &mut User) -> Result<(), ServiceError> {
        caller.is_authorized = false;
        if !self.needs_polkit(caller) {
            return Ok(());
        }
        let uid = caller.uid;
        let refused = |why: String| ServiceError::NotPermitted {
            cause: format!("user {uid} may reserve nothing: it has no entry, and {why}"),
            help: format!("ask the administrator for an entry, or for {ACTION} of polkit"),
        };
        let process = caller.process.and_then(|p| Some((u32::try_from(p.pid).ok()?, p.start)));
        let Some((pid, start)) = process else {
            return Err(refused("the process that connected has ended".to_owned()));
        };
        let answer = self.polkit.check(PolkitSubject { pid, start, uid }, ACTION).await;
        answer.map_err(|why| refused(why.to_string()))?;
        caller.is_authorized = true;
        Ok(())
    }

    /// The same on the caller's thread, which waits.
    fn wait_for_polkit(&self, caller: &mut User) -> Result<(), ServiceError> {
        // Not without a question: the runtime has a thread and descriptors.
        if self.needs_polkit(caller) {
            return async_io::block_on(self.authorize(caller));
        }
        caller.is_authorized = false;
        Ok(())
    }

    /// Reserves for all these processes, or for none.
    ///
    /// # Errors
    /// The first refusal.
    pub fn reserve(
        &self,
        lease: &mut Lease,
        requests: &[TaskRequest],
    ) -> Result<Vec<ReservationInfo>, ServiceError> {
        if requests.is_empty() || requests.len() > AT_ONCE {
            let cause = format!("a request is for 1 to {AT_ONCE} tasks, not {}", requests.len());
            return Err(invalid(cause, "split it"));
        }
        // Another process may take over meanwhile.
        self.wait_for_polkit(&mut lease.caller)?;
        let _changes = self.change();
        let mut reserved: Vec<ReservationInfo> = Vec::new();
        for request in requests {
            let values = self.values(&lease.caller, request);
            match values.and_then(|values| self.reserve_one(lease, request, &values)) {
                Ok(info) => reserved.push(info),
                Err(refusal) => {
                    self.release_all(lease, reserved.iter().map(|info| info.id).collect());
                    return Err(refusal);
                }
            }
        }
        Ok(reserved)
    }

    /// Reserves for one thread, with values that are not the caller's choice: by an interface that
    /// takes them from the configuration.
    ///
    /// # Errors
    /// As of [`reserve`](Reservations::reserve).
    pub fn reserve_thread(
        &self,
        lease: &mut Lease,
        request: &TaskRequest,
    ) -> Result<ReservationInfo, ServiceError> {
        self.reserve_one(lease, request, &Values::of_interface(request)?)
    }

    /// What a caller gets by a request, if it may have that.
    fn values(&self, caller: &User, request: &TaskRequest) -> Result<Values, ServiceError> {
        let access = self.access.read().unwrap_or_else(PoisonError::into_inner);
        let role = request.role.as_deref();
        let values = match role {
            None => Values::of_request(request)?,
            Some(role) => {
                let is_named = access.names_role(caller, role);
                Values::of_role(role, is_named, request, (access.folders(), access.groups()))?
            }
        };
        access.check_role(caller, role).map(|()| values)
    }

    fn reserve_one(
        &self,
        lease: &mut Lease,
        request: &TaskRequest,
        values: &Values,
    ) -> Result<ReservationInfo, ServiceError> {
        let name = &request.name;
        if name.is_empty() || name.len() > NAME_LIMIT || !name.chars().all(is_printable) {
            let cause = format!("a task's name is 1 to {NAME_LIMIT} printable bytes");
            return Err(invalid(cause, "choose another name"));
        }
        let process = check_owner(request.pid, &lease.caller)?;
        let thread = check_thread(request, &lease.caller)?;
        let page = match request.page {
            Some(true) => Some(take_page(lease, request)?),
            _ => None,
        };
        let info = self.place(lease, (request, values, page.as_ref()), (process, thread))?;
        lease.held.insert(info.id, info.cpu);
        // Its number may have become another process's before it was adopted.
        let same = |id: &Identity| Identity::of(id.pid) == Some(*id);
        if !same(&process) || !thread.iter().all(same) {
            self.release_all(lease, vec![info.id]);
            return Err(invalid(format!("process {} has ended", request.pid), "start it again"));
        }
        Ok(info)
    }

    /// On the CPU that the client or the role names, else on the first that admits it, the emptiest
    /// first.
    fn place(
        &self,
        lease: &Lease,
        what: (&TaskRequest, &Values, Option<&SealedPage>),
        target: (Identity, Option<Identity>),
    ) -> Result<ReservationInfo, ServiceError> {
        let Lease { number, caller, .. } = lease;
        let layout = self.layout();
        // A run inside the kernel that has ended makes room for another one with its last CPU.
        layout.cpus.iter().filter_map(|cpu| self.domain(*cpu)).for_each(|mut d| d.forget_ended());
        let mut cpus = layout.cpus.clone();
        match what.1.cpu {
            Some(cpu) if cpus.contains(&cpu) => cpus = vec![cpu],
            Some(cpu) => {
                let help = format!("use one of {cpus:?}, or leave it out");
                return Err(invalid(format!("no reservations are made on CPU {cpu}"), help));
            }
            None => {
                let reserved = |cpu: &u32| self.domain(*cpu).map(|mut d| d.reserved_ppm(&layout));
                cpus.sort_by_cached_key(|cpu| {
                    (self.limit_ppm(caller, *cpu) == 0, reserved(cpu), std::cmp::Reverse(*cpu))
                });
            }
        }
        let mut refused = None;
        for cpu in cpus {
            let Some(mut domain) = self.domain(cpu) else { continue };
            let id = self.ids.fetch_add(1, Relaxed);
            let key = ReservationKey { id, lease: *number, next: NextRelease::default() };
            let limit_ppm = self.limit_ppm(caller, cpu);
            match domain.reserve(what, caller, limit_ppm, &layout, key, target) {
                Ok(info) => return Ok(info),
                Err(refusal) => _ = refused.get_or_insert(refusal),
            }
        }
        Err(refused.unwrap_or_else(|| {
            invalid("no reservations are made on any CPU".to_owned(), "see the configuration")
        }))
    }

    /// Makes a page by which the thread of the lease's next reservation may wait for its releases;
    /// the descriptor that the client maps.
    ///
    /// # Errors
    /// The user may reserve nothing; no memory or descriptor.
    pub fn make_page(&self, lease: &mut Lease) -> Result<OwnedFd, ServiceError> {
        self.wait_for_polkit(&mut lease.caller)?;
        if !self.permits(&lease.caller) {
            return Err(ServiceError::NotPermitted {
                cause: format!("user {} may reserve nothing", lease.caller.uid),
                help: "ask the administrator for a share (docs/service.md)".to_owned(),
            });
        }
        let made = NewPage::make().and_then(|page| {
            let memory = page.memory().try_clone_to_owned()?;
            lease.page = Some(page);
            Ok(memory)
        });
        made.map_err(|e| ServiceError::MachineRefused {
            cause: format!("no page can be made: {e}"),
            help: "raise the limits of punctuald (LimitNOFILE, LimitMEMLOCK)".to_owned(),
        })
    }

    /// Releases one reservation.
    ///
    /// # Errors
    /// Not of this lease.
    pub fn release(&self, lease: &mut Lease, id: u64) -> Result<(), ServiceError> {
        if !lease.held.contains_key(&id) {
            return Err(unknown(id));
        }
        let _changes = self.change();
        self.release_all(lease, vec![id]);
        Ok(())
    }

    fn release_all(&self, lease: &mut Lease, ids: Vec<u64>) {
        let mut by_cpu: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for id in ids {
            if let Some(cpu) = lease.held.remove(&id) {
                by_cpu.entry(cpu).or_default().push(id);
            }
        }
        for (cpu, ids) in by_cpu {
            if let Some(mut domain) = self.domain(cpu) {
                domain.release(&ids);
            }
        }
    }

    /// What became of the reservations of a lease since the last call.
    pub fn take_events(&self, lease: &Lease) -> EventsReply {
        self.mail.take(lease.number)
    }

    /// The client has gone.
    pub fn end_lease(&self, lease: &mut Lease) {
        let _changes = self.change();
        self.mail.close(lease.number);
        let ids = lease.held.keys().copied().collect();
        self.release_all(lease, ids);
        self.forget_ended();
    }

    /// Forgets reservations whose processes are gone, and ends dispatchers that none needs.
    fn forget_ended(&self) {
        for &cpu in self.domains.keys() {
            if let Some(mut domain) = self.domain(cpu) {
                domain.forget_ended();
            }
        }
    }

    /// Releases everything.
    pub fn end(&self) {
        for &cpu in self.domains.keys() {
            if let Some(mut domain) = self.domain(cpu) {
                domain.end();
            }
        }
    }
}

/// The thread that a request names, if it is one of the process and the caller's: credentials are
/// of single threads.
fn check_thread(request: &TaskRequest, caller: &User) -> Result<Option<Identity>, ServiceError> {
    let Some(tid) = request.tid else { return Ok(None) };
    let thread = check_owner(tid, caller)?;
    if !threads_of(request.pid).contains(&tid) {
        let cause = format!("process {} has no thread {tid}", request.pid);
        return Err(invalid(cause, "give the number of one of its threads"));
    }
    Ok(Some(thread))
}

/// The lease's page, for the thread of this request.
fn take_page(lease: &mut Lease, request: &TaskRequest) -> Result<SealedPage, ServiceError> {
    if request.tid.is_none() {
        let cause = "a page is for a single thread".to_owned();
        return Err(invalid(cause, "give the number of the thread (tid), or no page"));
    }
    let page = lease.page.take().ok_or_else(|| {
        invalid("this connection has no page".to_owned(), "call MakePage for each reservation")
    })?;
    page.seal().map_err(|e| {
        let cause = format!("the page cannot be kept: {e}");
        invalid(cause, "leave it as MakePage returned it, and do not remove its memory")
    })
}
