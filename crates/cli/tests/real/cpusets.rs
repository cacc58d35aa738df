//! Programs whose threads choose their CPUs themselves, where the kernel's cpusets keep them on one
//! while they have a reservation on the user host. They need two CPUs, and a hierarchy that offers
//! cpusets: vm/tests.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::PoisonError;

use punctual_process::descendants;
use punctual_service::{ServiceClient, TaskRequest};
use punctual_sys::sched::{self, Mask};
use punctual_test_support::{comes_true, ignored, Scratch};

use crate::bounded::end_all;
use crate::kills_both::CLEANING;
use crate::machine::{permitted, Need};
use crate::privileges::{open_folder, UNPRIVILEGED};
use crate::process::{cgroup_mount, cgroup_of, eventually, kill, threads_of};
use crate::punctual::{adversarial, assert_nothing_left, new_mark, run, run_on, Running};
use crate::service::{Service, SERVICE_NEEDS};

/// The CPUs of affinity_roles.rs.
const CPUS: [u32; 2] = [0, 1];

/// Whether this machine has both, and the tests' cgroup offers cpusets; if not, the test is
/// reported as ignored, or fails where PUNCTUAL_CPUSET=required.
fn has_cpusets() -> bool {
    let offered = || {
        let own = cgroup_mount()?.join(cgroup_of(std::process::id() as i32).trim_matches('/'));
        let list = std::fs::read_to_string(own.join("cgroup.subtree_control")).ok()?;
        list.split_whitespace().any(|name| name == "cpuset").then_some(())
    };
    let here = offered().is_some();
    let required = std::env::var("PUNCTUAL_CPUSET").is_ok_and(|v| v == "required");
    assert!(here || !required, "the cgroup of the tests offers no cpusets, and they are required");
    if !here {
        ignored("the cgroup of the tests offers no cpusets");
    }
    here && permitted(&SERVICE_NEEDS) && permitted(&[Need::Cpus(2)])
}

/// A program of an ordinary user that is no child of Punctual.
struct Program(Child);

impl Program {
    fn start(role: &str) -> Program {
        let words = adversarial(role);
        let mut command = Command::new(&words[0]);
        Program(command.args(&words[1..]).uid(UNPRIVILEGED).gid(65534).spawn().expect("it starts"))
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// It and its children, by their numbers.
    fn processes(&self) -> Vec<i32> {
        let mut all = vec![self.pid()];
        all.extend(descendants(&[self.pid()]));
        all.sort_unstable();
        all
    }

    /// Each of its threads, and its children's, with its CPUs.
    fn affinities(&self) -> Vec<(i32, Mask)> {
        let mut tids: Vec<i32> = self.processes().into_iter().flat_map(threads_of).collect();
        tids.sort_unstable();
        tids.into_iter().filter_map(|tid| Some((tid, sched::affinity(tid).ok()?))).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        end_all(self.processes());
        crate::bounded::wait(&mut self.0);
    }
}

/// What the threads of the role `wander` have written into its file.
struct Wandering {
    path: String,
    _scratch: Scratch,
}

impl Wandering {
    fn new() -> Wandering {
        let scratch = Scratch::new();
        open_folder(scratch.folder());
        let path = scratch.file("found", "");
        let anyone = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(&path, anyone).expect("it is ours");
        Wandering { path, _scratch: scratch }
    }

    fn role(&self) -> String {
        format!("wander {}", self.path)
    }

    /// For each of the four threads, how often it was on each CPU.
    fn found(&self) -> Vec<[u64; 2]> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let numbers = |line: &str| {
            let mut words = line.trim_matches('\0').split(' ').map(|word| word.parse().ok());
            Some([words.next()??, words.next()??])
        };
        text.lines().filter_map(numbers).collect()
    }

    /// Waits until each has executed some times more on this CPU.
    fn await_turns(&self, cpu: u32) -> Vec<[u64; 2]> {
        let on_cpu = |found: &[u64; 2]| found[cpu as usize];
        eventually("there are four threads", || self.found().len() == 4);
        let before = self.found();
        eventually("each executes", || {
            let now = self.found();
            now.iter().zip(&before).all(|(now, then)| on_cpu(now) > on_cpu(then) + 5)
        });
        self.found()
    }

    /// None of them executes on another CPU.
    fn assert_stay_on(&self, cpu: u32) {
        let other = |found: &[[u64; 2]]| -> Vec<u64> {
            found.iter().map(|counts| counts[1 - cpu as usize]).collect()
        };
        // What was executed before the reservation began is written by then.
        let before = other(&self.await_turns(cpu));
        let after = other(&self.await_turns(cpu));
        assert_eq!(before, after, "executions on the other CPU");
    }
}

#[test]
fn two_cpus_a_program_that_changes_its_affinity_all_the_time_executes_on_its_cpu_alone() {
    if !has_cpusets() {
        return;
    }
    for cpu in CPUS {
        // A command, from its first instruction on.
        let wandering = Wandering::new();
        let mut args = run_on(cpu, "--host user --period 20ms --budget 10ms --duration 100s --");
        args.extend(adversarial(&wandering.role()));
        let punctual = Running::start(&args);
        wandering.assert_stay_on(cpu);
        assert!(wandering.found().iter().all(|found| found[1 - cpu as usize] == 0));
        kill(punctual.pid(), libc::SIGINT);
        punctual.end().assert_code(130).assert_nothing_left(&[cpu]);

        // A program of an ordinary user with a reservation of the service.
        let wandering = Wandering::new();
        let program = Program::start(&wandering.role());
        CPUS.iter().for_each(|cpu| drop(wandering.await_turns(*cpu)));
        let service = Service::start(cpu);
        let mut client = service.client();
        let request = TaskRequest::new("wander", program.pid(), 20_000_000, 10_000_000);
        let id = service.reserve(&mut client, &[request])[0];
        wandering.assert_stay_on(cpu);
        client.release(id).expect("its own");
        CPUS.iter().for_each(|cpu| drop(wandering.await_turns(*cpu)));
        drop(client);
        service.end(cpu);
    }
}

/// A program of the role `choose-cpus`, and the CPUs that it had before.
struct Chooser {
    program: Program,
    scratch: Scratch,
    before: Vec<(i32, Mask)>,
}

impl Chooser {
    fn start() -> Chooser {
        let scratch = Scratch::new();
        open_folder(scratch.folder());
        let program = Program::start(&format!("choose-cpus {}", scratch.path("more")));
        let is_ready = || {
            let masks: Vec<Mask> = program.affinities().into_iter().map(|(_, mask)| mask).collect();
            let count = |mask: u64| masks.iter().filter(|m| **m == [mask]).count();
            (masks.len(), count(1), count(2), count(3)) == (8, 3, 3, 2)
        };
        eventually("each thread has chosen its CPUs", is_ready);
        let before = program.affinities();
        Chooser { program, scratch, before }
    }

    fn request(&self) -> TaskRequest {
        TaskRequest::new("choose", self.program.pid(), 20_000_000, 5_000_000)
    }

    fn is_on(&self, cpu: u32) -> bool {
        self.program.affinities().iter().all(|(_, mask)| *mask == sched::only(cpu))
    }

    /// The kernel itself keeps all its threads there: no moment passes in which one is elsewhere.
    fn assert_kept_on(&self, cpu: u32) {
        assert!(self.is_on(cpu), "{:?}", self.program.affinities());
        for (tid, _) in self.program.affinities() {
            sched::set_affinity(tid, &[3]).expect("one of them is its own");
            assert_eq!(sched::affinity(tid).ok(), Some(sched::only(cpu)), "thread {tid}");
            let refused = sched::set_affinity(tid, &sched::only(1 - cpu)).expect_err("it is kept");
            assert_eq!(refused.raw_os_error(), Some(libc::EINVAL), "thread {tid}");
        }
    }

    /// Each thread has just the CPUs that it had before.
    fn assert_as_before(&self) {
        comes_true(|| self.program.affinities() == self.before);
        assert_eq!(self.program.affinities(), self.before);
    }
}

#[test]
fn two_cpus_affinity_is_restored_thread_by_thread_however_a_reservation_ends() {
    if !has_cpusets() {
        return;
    }
    let chooser = Chooser::start();
    for cpu in CPUS {
        let reserve = |service: &Service| -> (ServiceClient, u64) {
            let mut client = service.client();
            let id = service.reserve(&mut client, &[chooser.request()])[0];
            chooser.assert_kept_on(cpu);
            (client, id)
        };
        let mut service = Service::start(cpu);
        let (mut client, id) = reserve(&service);
        client.release(id).expect("its own");
        chooser.assert_as_before();
        let _held = reserve(&service);
        kill(service.running.pid(), libc::SIGKILL);
        service.running.reap();
        chooser.assert_as_before();
        service.start_again();
        let _held = reserve(&service);
        service.end(cpu);
        chooser.assert_as_before();
        restored_by_clean(&chooser, cpu);
    }
}

/// After a run whose guardian was killed with it.
fn restored_by_clean(chooser: &Chooser, cpu: u32) {
    let _one = CLEANING.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = chooser.program.pid();
    let of = format!("--host user --period 20ms --budget 5ms --duration 100s --pid {pid}");
    let mut punctual = Running::start(&run_on(cpu, &of));
    punctual.wait_for("the adopted program", |_| chooser.is_on(cpu));
    chooser.assert_kept_on(cpu);
    let guardian = punctual.guardian().expect("it has one");
    kill(guardian, libc::SIGKILL);
    kill(punctual.pid(), libc::SIGKILL);
    punctual.reap();
    run(&["clean"]).assert_code(0);
    chooser.assert_as_before();
    assert_nothing_left(punctual.pid(), &punctual.mark, &[cpu]);
}

#[test]
fn two_cpus_children_are_kept_on_the_cpu_and_regain_their_own() {
    if !has_cpusets() {
        return;
    }
    for cpu in CPUS {
        let chooser = Chooser::start();
        let service = Service::start(cpu);
        let mut client = service.client();
        let id = service.reserve(&mut client, &[chooser.request()])[0];
        chooser.assert_kept_on(cpu);
        // A child that is created in the meantime has the CPUs of its parent's first thread then.
        std::fs::write(chooser.scratch.path("more"), "").expect("there is room");
        eventually("there is a child more", || chooser.program.affinities().len() == 9);
        chooser.assert_kept_on(cpu);
        client.release(id).expect("its own");
        let old = |tid: i32| chooser.before.iter().any(|(before, _)| *before == tid);
        let restored = || {
            let (old, new): (Vec<_>, Vec<_>) =
                chooser.program.affinities().into_iter().partition(|(tid, _)| old(*tid));
            old == chooser.before && new.iter().map(|(_, mask)| mask).eq([&sched::only(0)])
        };
        comes_true(restored);
        assert!(restored(), "{:?}, before {:?}", chooser.program.affinities(), chooser.before);
        drop(client);
        service.end(cpu);
    }
}

/// A cgroup as systemd makes it of a unit with Delegate= and DelegateSubgroup=punctuald.
struct Unit(PathBuf);

impl Unit {
    fn make(delegated: bool) -> Unit {
        let unit = cgroup_mount().expect("it is required").join(format!("unit-{}", new_mark()));
        std::fs::create_dir_all(unit.join("punctuald")).expect("root may");
        if delegated {
            let path = std::ffi::CString::new(unit.as_os_str().as_encoded_bytes()).expect("a path");
            let name = c"user.delegate".as_ptr();
            // SAFETY: both names end with a zero, and the value has one byte.
            let set = unsafe { libc::setxattr(path.as_ptr(), name, b"1".as_ptr().cast(), 1, 0) };
            assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
        }
        Unit(unit)
    }

    /// `punctual`, started in the subgroup.
    fn start(&self, args: &[String]) -> Running {
        let procs = self.0.join("punctuald/cgroup.procs");
        let join = move || std::fs::write(&procs, "0");
        // SAFETY: between fork and exec it opens, writes and closes a file.
        Running::from(|c| unsafe { c.args(args).pre_exec(join) })
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        for dir in [self.0.join("punctuald"), self.0.clone()] {
            if !comes_true(|| std::fs::remove_dir(&dir).is_ok()) {
                println!("{} is left", dir.display());
            }
        }
    }
}

#[test]
fn two_cpus_programs_have_cpusets_beside_the_group_that_systemd_makes_for_the_service() {
    if !has_cpusets() {
        return;
    }
    let cpu = CPUS[1];
    for delegated in [true, false] {
        let unit = Unit::make(delegated);
        let mut args = run_on(cpu, "--host user --period 20ms --budget 5ms --duration 100s --");
        args.extend(adversarial("spin"));
        let mut punctual = unit.start(&args);
        let group = || -> Option<String> {
            let parent = punctual_pid(&unit.0)?;
            Some(cgroup_of(parent))
        };
        punctual.wait_for("its command", |_| group().is_some());
        let group = group().expect("it is there");
        let name = unit.0.file_name().expect("it has a name").to_string_lossy();
        let below = if delegated { format!("/{name}/") } else { format!("/{name}/punctuald/") };
        assert!(group.starts_with(&format!("{below}punctual-{}-", punctual.pid())), "{group}");
        let effective = cgroup_mount().expect("it is required").join(group.trim_matches('/'));
        let effective = std::fs::read_to_string(effective.join("cpuset.cpus.effective")).ok();
        let kept = effective.as_deref().map(str::trim) == Some("1");
        assert_eq!(kept, delegated, "{group}: {effective:?}");
        kill(punctual.pid(), libc::SIGINT);
        punctual.end().assert_code(130).assert_nothing_left(&[cpu]);
    }
}

/// The process in a group of a command below `dir`.
fn punctual_pid(dir: &Path) -> Option<i32> {
    let entries = std::fs::read_dir(dir).ok()?.flatten().filter(|e| e.path().is_dir());
    entries.into_iter().find_map(|entry| {
        let procs = || std::fs::read_to_string(entry.path().join("cgroup.procs")).ok();
        match entry.file_name().to_string_lossy().starts_with("run.") {
            true => procs()?.lines().next()?.parse().ok(),
            false => punctual_pid(&entry.path()),
        }
    })
}
