//! Processes that are killed at any instant while they lock, wait and unlock.

mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use common::role::{folder_of, random, Role};
use common::{name, namespace};
use punctual_ipc::{
    Lifetime, LockOutcome, Namespace, SharedBarrier, SharedCondvar, SharedLockError,
    SharedLockState, SharedLockUse, SharedMutex, SharedSemaphore,
};
use punctual_sys::clock::monotonic_ns;

/// Far longer than any wait that must end, ns.
const LIVENESS: u64 = 120_000_000_000;
/// After which a role ends by itself, ns.
const LIFE: u64 = 60_000_000_000;

/// Two numbers that are equal whenever the mutex is free: the first one is written first.
struct Ledger(File);

impl Ledger {
    fn of(folder: &Path) -> Self {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        Self(options.open(folder.join("ledger")).unwrap())
    }

    fn number(&self, n: u64) -> u64 {
        let mut bytes = [0; 8];
        let _ = self.0.read_exact_at(&mut bytes, n * 8);
        u64::from_le_bytes(bytes)
    }

    fn write(&self, n: u64, number: u64) {
        self.0.write_all_at(&number.to_le_bytes(), n * 8).unwrap();
    }

    /// Adds one to both, with the mutex locked; repaired first, if its last holder died.
    fn add(&self, outcome: &LockOutcome<'_>) {
        let first = self.number(0);
        match outcome {
            LockOutcome::Locked(_) => assert_eq!(first, self.number(1), "of a free mutex"),
            LockOutcome::LockedAfterDeath(guard) => {
                assert!(first - self.number(1) <= 1, "the dead one was alone");
                self.write(1, first);
                guard.make_consistent();
            }
        }
        self.write(0, first + 1);
        self.write(1, first + 1);
    }
}

struct Shared {
    ledger: Ledger,
    mutex: SharedMutex,
    changed: SharedCondvar,
    until: u64,
}

fn shared(role: &str) -> Option<Shared> {
    let folder = folder_of(role)?;
    let namespace = Namespace::at(&folder.join("objects")).unwrap();
    Some(Shared {
        ledger: Ledger::of(&folder),
        mutex: SharedMutex::open(&namespace, &name("m")).unwrap(),
        changed: SharedCondvar::open(&namespace, &name("c")).unwrap(),
        until: monotonic_ns() + LIFE,
    })
}

/// Locks and unlocks.
#[test]
fn locker() {
    let Some(Shared { ledger, mutex, changed, until }) = shared("locker") else { return };
    while monotonic_ns() < until {
        let outcome = mutex.lock().unwrap();
        ledger.add(&outcome);
        drop(outcome);
        changed.notify_one();
    }
}

/// Locks for a time at most, or at once.
#[test]
fn impatient() {
    let Some(Shared { ledger, mutex, until, .. }) = shared("impatient") else { return };
    let mut seed = monotonic_ns();
    while monotonic_ns() < until {
        let outcome = match random(&mut seed, 2) {
            0 => mutex.try_lock(),
            _ => mutex.lock_until(monotonic_ns() + random(&mut seed, 100_000)),
        };
        match outcome {
            Ok(outcome) => ledger.add(&outcome),
            Err(SharedLockError::Busy | SharedLockError::TimedOut) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits for changes.
#[test]
fn waiting() {
    let Some(Shared { ledger, mutex, changed, until }) = shared("waiting") else { return };
    while monotonic_ns() < until {
        let outcome = mutex.lock().unwrap();
        ledger.add(&outcome);
        let at_most = monotonic_ns() + 100_000;
        let (outcome, _) = changed.wait_until(outcome.into_guard(), at_most).unwrap();
        ledger.add(&outcome);
    }
}

#[test]
fn of_a_thousand_kills_none_leaves_a_mutex_locked_or_lets_two_hold_it() {
    const KILLS: u64 = 1000;
    const ROLES: [&str; 4] = ["locker", "impatient", "waiting", "locker"];
    let (folder, namespace) = namespace();
    let mutex = SharedMutex::create(&namespace, &name("m"), Lifetime::Used).unwrap();
    let _changed = SharedCondvar::create(&namespace, &name("c"), Lifetime::Used).unwrap();
    let ledger = Ledger::of(folder.path());
    let mut roles = ROLES.map(|role| Role::start(role, folder.path()));
    let mut seed = u64::from(std::process::id()) << 32 | monotonic_ns();
    println!("seed {seed}");
    let mut before = 0;
    for _ in 0..KILLS {
        let until = monotonic_ns() + LIVENESS;
        while ledger.number(0) == before {
            assert!(monotonic_ns() < until, "nothing moves after {before}");
            thread::sleep(Duration::from_micros(50));
        }
        thread::sleep(Duration::from_micros(random(&mut seed, 1000)));
        before = ledger.number(0);
        let which = random(&mut seed, 4) as usize;
        for (role, name) in roles.iter_mut().zip(ROLES) {
            // But for the end of its life.
            let ended = role.ended();
            assert!(ended.is_none_or(|status| status.success()), "{name}: {ended:?}");
        }
        roles[which].kill();
        roles[which] = Role::start(ROLES[which], folder.path());
    }
    roles.iter_mut().for_each(Role::kill);
    // None that is left holds it.
    ledger.add(&mutex.lock_until(monotonic_ns() + LIVENESS).unwrap());
    assert_eq!(ledger.number(0), ledger.number(1));
    let state = SharedLockState::of(&namespace, &name("m")).unwrap();
    assert_eq!(state.usage, SharedLockUse::Mutex { owner: None, inconsistent: false });
}

/// Holds the mutex until it is killed.
#[test]
fn holder() {
    let Some(Shared { mutex, until, .. }) = shared("holder") else { return };
    let _guard = mutex.lock().unwrap().into_guard();
    while monotonic_ns() < until {
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_thread_that_waits_gets_the_mutex_of_a_killed_process() {
    let (folder, namespace) = namespace();
    let mutex = SharedMutex::create(&namespace, &name("m"), Lifetime::Used).unwrap();
    let _changed = SharedCondvar::create(&namespace, &name("c"), Lifetime::Used).unwrap();
    let state = || SharedLockState::of(&namespace, &name("m")).unwrap();
    for _ in 0..5 {
        let mut holder = Role::start("holder", folder.path());
        let until = monotonic_ns() + LIVENESS;
        loop {
            if let SharedLockUse::Mutex { owner: Some(owner), .. } = state().usage {
                assert_eq!(owner.process, Some(holder.pid()));
                break;
            }
            assert!(monotonic_ns() < until && holder.ended().is_none());
            thread::yield_now();
        }
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let outcome = mutex.lock_until(until).unwrap();
                matches!(&outcome, LockOutcome::LockedAfterDeath(guard)
                    if { guard.make_consistent(); true })
            });
            while state().waiters == 0 {
                assert!(monotonic_ns() < until);
                thread::yield_now();
            }
            holder.kill();
            assert!(waits.join().unwrap(), "its holder was killed");
        });
    }
}

/// Takes units, and records each.
#[test]
fn consumer() {
    let Some(folder) = folder_of("consumer") else { return };
    let namespace = Namespace::at(&folder.join("objects")).unwrap();
    let semaphore = SharedSemaphore::open(&namespace, &name("s")).unwrap();
    let until = monotonic_ns() + LIFE;
    let ledger = Ledger::of(&folder);
    while semaphore.acquire_until(until).is_ok() {
        ledger.write(0, ledger.number(0) + 1);
    }
}

#[test]
fn a_killed_process_takes_at_most_the_unit_that_it_has_acquired() {
    let (folder, namespace) = namespace();
    let semaphore = SharedSemaphore::create(&namespace, &name("s"), 0, 5, Lifetime::Used).unwrap();
    let ledger = Ledger::of(folder.path());
    let mut consumer = Role::start("consumer", folder.path());
    let mut seed = monotonic_ns();
    let (mut released, kills) = (0u64, 100);
    let deadline = || monotonic_ns() + LIVENESS;
    let release = |until| loop {
        match semaphore.release() {
            Ok(()) => break,
            Err(SharedLockError::Full) => thread::sleep(Duration::from_micros(50)),
            Err(error) => panic!("{error}"),
        }
        assert!(monotonic_ns() < until, "units are taken");
    };
    for _ in 0..kills {
        for _ in 0..random(&mut seed, 200) + 6 {
            release(deadline());
            released += 1;
        }
        consumer.kill();
        consumer = Role::start("consumer", folder.path());
    }
    let until = deadline();
    let units = || match SharedLockState::of(&namespace, &name("s")).unwrap().usage {
        SharedLockUse::Semaphore { units, .. } => units,
        other => panic!("{other:?}"),
    };
    while units() > 0 {
        assert!(monotonic_ns() < until, "the rest is taken");
        thread::sleep(Duration::from_millis(1));
    }
    consumer.kill();
    let consumed = ledger.number(0);
    assert!((released - kills - 1..=released).contains(&consumed), "{consumed} of {released}");
}

/// Waits at the barrier.
#[test]
fn party() {
    let Some(folder) = folder_of("party") else { return };
    let namespace = Namespace::at(&folder.join("objects")).unwrap();
    let barrier = SharedBarrier::open(&namespace, &name("b")).unwrap();
    let _ = barrier.wait_until(monotonic_ns() + LIFE);
}

#[test]
fn a_process_that_is_killed_at_a_barrier_has_come() {
    let (folder, namespace) = namespace();
    let barrier = SharedBarrier::create(&namespace, &name("b"), 2, Lifetime::Used).unwrap();
    let mut party = Role::start("party", folder.path());
    let until = monotonic_ns() + LIVENESS;
    let state = || SharedLockState::of(&namespace, &name("b")).unwrap();
    while state().usage != (SharedLockUse::Barrier { came: 1, parties: 2 }) {
        assert!(monotonic_ns() < until && party.ended().is_none());
        thread::yield_now();
    }
    party.kill();
    assert_eq!(state().waiters, 0, "it is gone");
    assert_eq!(barrier.wait_until(until), Ok(true));
    let missing = barrier.wait_until(monotonic_ns() + 1_000_000);
    assert_eq!(missing, Err(SharedLockError::TimedOut));
}

#[test]
fn the_name_of_a_lock_is_free_when_the_last_process_with_it_is_killed() {
    let (folder, namespace) = namespace();
    let mutex = SharedMutex::create(&namespace, &name("m"), Lifetime::Used).unwrap();
    let changed = SharedCondvar::create(&namespace, &name("c"), Lifetime::Used).unwrap();
    let mut holder = Role::start("holder", folder.path());
    let until = monotonic_ns() + LIVENESS;
    while mutex.try_lock().is_ok() {
        assert!(monotonic_ns() < until && holder.ended().is_none());
        thread::yield_now();
    }
    drop((mutex, changed));
    SharedMutex::open(&namespace, &name("m")).expect("the holder has it open");
    holder.kill();
    common::until(|| punctual_ipc::lock_names(&namespace).unwrap().is_empty());
    SharedMutex::create(&namespace, &name("m"), Lifetime::Used).unwrap();
    let left = std::fs::read_dir(namespace.path().join("lock")).unwrap().count();
    assert_eq!(left, 0, "nothing is left");
}
