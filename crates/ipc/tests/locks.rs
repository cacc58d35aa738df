//! Locks between processes, as threads of one process use them.

mod common;

use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

use common::{name, namespace};
use punctual_ipc::{
    lock_names, remove_lock, Lifetime, LockKind, LockOutcome, Namespace, SharedBarrier,
    SharedCondvar, SharedLockError, SharedLockOwner, SharedLockState, SharedLockUse, SharedMutex,
    SharedSemaphore, MOST_HELD,
};
use punctual_sys::clock::monotonic_ns;

/// Far longer than any wait that must end, ns.
const LIVENESS: u64 = 120_000_000_000;

fn soon() -> u64 {
    monotonic_ns() + 1_000_000
}

fn liveness() -> u64 {
    monotonic_ns() + LIVENESS
}

fn mutex(namespace: &Namespace, text: &str) -> SharedMutex {
    SharedMutex::create(namespace, &name(text), Lifetime::Used).expect("it can be made")
}

fn semaphore(namespace: &Namespace, units: u32, maximum: u32) -> SharedSemaphore {
    SharedSemaphore::create(namespace, &name("s"), units, maximum, Lifetime::Used)
        .expect("it can be made")
}

/// Runs `f` in a thread, until that has ended with all of its destructors; a scope waits for the
/// closure alone.
fn in_thread(f: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(f).join().expect("it does not panic"));
}

/// Whether a lock that was acquired is consistent.
fn is_consistent(outcome: &LockOutcome<'_>) -> bool {
    matches!(outcome, LockOutcome::Locked(_))
}

#[test]
fn the_kinds_have_their_names_in_common_and_none_opens_as_another() {
    let (_folder, namespace) = namespace();
    let _mutex = mutex(&namespace, "bus");
    let error = SharedCondvar::create(&namespace, &name("bus"), Lifetime::Used).unwrap_err();
    assert_eq!(error.errno, Some(libc::EEXIST));
    assert!(error.to_string().contains("there is a lock bus already"), "{error}");
    let opened = [
        SharedCondvar::open(&namespace, &name("bus")).err(),
        SharedSemaphore::open(&namespace, &name("bus")).err(),
        SharedBarrier::open(&namespace, &name("bus")).err(),
        SharedBarrier::remove(&namespace, &name("bus")).err(),
    ];
    for error in opened {
        let error = error.expect("it is a mutex");
        assert_eq!(error.errno, Some(libc::EINVAL));
        assert!(error.to_string().contains("the lock bus is a mutex, and not a "), "{error}");
    }
    SharedMutex::open(&namespace, &name("bus")).unwrap();
    let error = SharedMutex::open(&namespace, &name("other")).unwrap_err();
    assert_eq!(error.errno, Some(libc::ENOENT));
    assert!(error.to_string().contains("`punctual lock list`"), "{error}");
    // FIFOs have names of their own.
    let attr = punctual_ipc::FifoAttr::default();
    punctual_ipc::Fifo::create(&namespace, &name("bus"), attr, Lifetime::Used).unwrap();
    SharedMutex::remove(&namespace, &name("bus")).unwrap();
    assert_eq!(lock_names(&namespace).unwrap(), []);
}

#[test]
fn impossible_parameters_are_refused() {
    let (_folder, namespace) = namespace();
    for (units, maximum) in [(0, 0), (2, 1), (0, 1 << 31), (u32::MAX, u32::MAX)] {
        let made = SharedSemaphore::create(&namespace, &name("s"), units, maximum, Lifetime::Used);
        assert_eq!(made.unwrap_err().errno, Some(libc::EINVAL), "{units} of {maximum}");
    }
    for parties in [0, (1 << 20) + 1, u32::MAX] {
        let made = SharedBarrier::create(&namespace, &name("b"), parties, Lifetime::Used);
        assert_eq!(made.unwrap_err().errno, Some(libc::EINVAL), "{parties}");
    }
    assert_eq!(lock_names(&namespace).unwrap(), []);
}

#[test]
fn a_lock_of_another_version_or_a_damaged_one_is_refused_and_can_be_removed() {
    let (_folder, namespace) = namespace();
    let kept = |text: &str| {
        drop(SharedMutex::create(&namespace, &name(text), Lifetime::Persistent).unwrap());
        let memory = namespace.path().join("lock").join(text).join("memory");
        std::fs::OpenOptions::new().write(true).open(memory).unwrap()
    };
    let refused = |text: &str| {
        let error = SharedMutex::open(&namespace, &name(text)).unwrap_err();
        assert_eq!(error.errno, Some(libc::EBADMSG));
        assert!(error.to_string().contains("of another version of Punctual; remove it"), "{error}");
    };
    kept("version").write_all_at(&[99], 8).unwrap();
    kept("size").write_all_at(&[99], 12).unwrap();
    kept("kind").write_all_at(&[99], 16).unwrap();
    kept("parameter").write_all_at(&[99], 20).unwrap();
    kept("short").set_len(100).unwrap();
    for text in ["version", "size", "kind", "parameter", "short"] {
        refused(text);
        assert_eq!(
            SharedLockState::of(&namespace, &name(text)).unwrap_err().errno,
            Some(libc::EBADMSG)
        );
    }
    SharedMutex::remove(&namespace, &name("short")).unwrap();
    for text in ["version", "size", "kind", "parameter"] {
        remove_lock(&namespace, &name(text)).unwrap();
    }
    assert_eq!(lock_names(&namespace).unwrap(), []);
}

#[test]
fn a_mutex_is_one_threads_at_a_time() {
    let (_folder, namespace) = namespace();
    let mutex = mutex(&namespace, "m");
    let other = SharedMutex::open(&namespace, &name("m")).unwrap();
    let (inside, rounds) = (AtomicBool::new(false), 2000);
    thread::scope(|scope| {
        for n in 0..4 {
            let mutex = if n % 2 == 0 { &mutex } else { &other };
            let inside = &inside;
            scope.spawn(move || {
                for _ in 0..rounds {
                    let outcome = mutex.lock_until(liveness()).unwrap();
                    assert!(is_consistent(&outcome));
                    assert!(!inside.swap(true, SeqCst), "two hold it");
                    thread::yield_now();
                    inside.store(false, SeqCst);
                }
            });
        }
    });
    drop(mutex.try_lock().unwrap());
}

#[test]
fn a_thread_that_holds_a_mutex_is_refused_where_it_would_wait_for_itself() {
    let (_folder, namespace) = namespace();
    let mutex = mutex(&namespace, "m");
    let again = SharedMutex::open(&namespace, &name("m")).unwrap();
    let guard = mutex.lock().unwrap().into_guard();
    assert_eq!(mutex.lock().unwrap_err(), SharedLockError::Deadlock);
    assert_eq!(mutex.try_lock().unwrap_err(), SharedLockError::Busy);
    // By its second mapping the kernel finds it.
    assert_eq!(again.lock().unwrap_err(), SharedLockError::Deadlock);
    assert_eq!(again.try_lock().unwrap_err(), SharedLockError::Busy);
    assert_eq!(again.release(), Err(SharedLockError::NotHeld));
    in_thread(|| {
        assert_eq!(mutex.try_lock().unwrap_err(), SharedLockError::Busy);
        assert_eq!(mutex.lock_until(soon()).unwrap_err(), SharedLockError::TimedOut);
        assert_eq!(again.lock_until(0).unwrap_err(), SharedLockError::TimedOut);
        assert_eq!(mutex.release(), Err(SharedLockError::NotHeld));
        assert_eq!(mutex.set_consistent(), Err(SharedLockError::NotHeld));
    });
    assert_eq!(mutex.set_consistent(), Err(SharedLockError::Consistent));
    drop(guard);
    assert_eq!(mutex.release(), Err(SharedLockError::NotHeld));
    // One that is free is locked whatever the time is.
    drop(mutex.lock_until(0).unwrap());
}

#[test]
fn two_threads_that_wait_for_each_other_are_found() {
    let (_folder, namespace) = namespace();
    let (first, second) = (mutex(&namespace, "a"), mutex(&namespace, "b"));
    let (held, is_held) = mpsc::channel();
    let of_first = first.lock().unwrap().into_guard();
    let outcomes = thread::scope(|scope| {
        let other = scope.spawn(|| {
            let _second = second.lock().unwrap().into_guard();
            held.send(()).unwrap();
            first.lock().map(drop)
        });
        is_held.recv().unwrap();
        let outcome = second.lock().map(drop);
        drop(of_first);
        [outcome, other.join().unwrap()]
    });
    let deadlocks = outcomes.iter().filter(|r| **r == Err(SharedLockError::Deadlock)).count();
    assert_eq!(deadlocks, 1, "one of both is refused, and the other then has it: {outcomes:?}");
}

#[test]
fn a_thread_that_ends_leaves_its_mutexes_unlocked_and_inconsistent() {
    let (_folder, namespace) = namespace();
    let mutexes = ["a", "b", "c"].map(|text| mutex(&namespace, text));
    in_thread(|| {
        for mutex in &mutexes {
            std::mem::forget(mutex.lock().unwrap());
        }
        mutexes[1].release().unwrap();
    });
    assert!(is_consistent(&mutexes[1].lock().unwrap()));
    for mutex in [&mutexes[0], &mutexes[2]] {
        // Until it is called consistent.
        for _ in 0..2 {
            assert!(!is_consistent(&mutex.try_lock().unwrap()));
            assert!(!is_consistent(&mutex.lock().unwrap()));
        }
        let LockOutcome::LockedAfterDeath(guard) = mutex.lock().unwrap() else { panic!() };
        guard.make_consistent();
        drop(guard);
        assert!(is_consistent(&mutex.lock().unwrap()));
    }
}

#[test]
fn a_mutex_that_is_closed_while_a_thread_holds_it_is_unlocked_when_the_thread_ends() {
    let (_folder, namespace) = namespace();
    let kept = mutex(&namespace, "m");
    in_thread(|| {
        let again = SharedMutex::open(&namespace, &name("m")).unwrap();
        std::mem::forget(again.lock().unwrap());
        assert!(again.is_held() && again.is_held_by_process() && !kept.is_held());
        drop(again);
        assert_eq!(kept.try_lock().unwrap_err(), SharedLockError::Busy);
    });
    assert!(!is_consistent(&kept.lock_until(liveness()).unwrap()));
}

/// By the system call alone, without destructors.
extern "C" fn lock_and_exit(mutex: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: what the test below passes.
    let mutex = unsafe { &*mutex.cast::<SharedMutex>() };
    std::mem::forget(mutex.lock().unwrap());
    // SAFETY: ends this thread, which has nothing that anyone needs.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!()
}

#[test]
fn the_kernel_unlocks_what_a_thread_holds_that_ends_by_the_system_call() {
    let (_folder, namespace) = namespace();
    let mutex = mutex(&namespace, "m");
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the mutex outlives the thread, as it is locked below after its end.
    let made = unsafe {
        let argument = (&raw const mutex).cast_mut().cast();
        libc::pthread_create(thread.as_mut_ptr(), std::ptr::null(), lock_and_exit, argument)
    };
    assert_eq!(made, 0);
    // SAFETY: made above.
    unsafe { libc::pthread_join(thread.assume_init(), std::ptr::null_mut()) };
    let LockOutcome::LockedAfterDeath(guard) = mutex.lock_until(liveness()).unwrap() else {
        panic!("its holder has ended")
    };
    assert!(guard.mutex().is_held());
}

#[test]
fn a_thread_holds_so_many_and_no_more() {
    let (_folder, namespace) = namespace();
    let mutexes: Vec<_> = (0..=MOST_HELD).map(|n| mutex(&namespace, &n.to_string())).collect();
    let (last, others) = mutexes.split_last().unwrap();
    for mutex in others {
        mutex.acquire(0).unwrap();
    }
    assert_eq!(last.lock().unwrap_err(), SharedLockError::TooMany);
    // In no particular order.
    for mutex in others.iter().step_by(2).chain(others.iter().skip(1).step_by(2)) {
        mutex.release().unwrap();
    }
    drop(last.lock().unwrap());
}

/// A robust mutex of the C library, on the robust list of the thread that holds it.
struct OfLibrary(Box<std::cell::UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: it is made for that.
unsafe impl Sync for OfLibrary {}

impl OfLibrary {
    fn new() -> Self {
        let mutex = Self(Box::new(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)));
        // SAFETY: attributes and a mutex that nothing else uses.
        unsafe {
            let mut attr = std::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attr);
            libc::pthread_mutexattr_setrobust(&raw mut attr, libc::PTHREAD_MUTEX_ROBUST);
            libc::pthread_mutex_init(mutex.0.get(), &raw const attr);
        }
        mutex
    }

    fn lock(&self) -> i32 {
        // SAFETY: initialized.
        unsafe { libc::pthread_mutex_lock(self.0.get()) }
    }

    fn unlock(&self) {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(self.0.get()) }, 0);
    }
}

#[test]
fn mutexes_share_the_robust_list_with_those_of_the_c_library() {
    let (_folder, namespace) = namespace();
    let ours = ["a", "b", "c"].map(|text| mutex(&namespace, text));
    let theirs = [OfLibrary::new(), OfLibrary::new(), OfLibrary::new()];
    in_thread(|| {
        // Whichever is before, between and behind the others when it is removed.
        for removed in 0..6 {
            for n in 0..3 {
                ours[n].acquire(0).unwrap();
                assert_eq!(theirs[n].lock(), 0);
            }
            for n in (removed..6).chain(0..removed) {
                match n % 2 {
                    0 => ours[n / 2].release().unwrap(),
                    _ => theirs[n / 2].unlock(),
                }
            }
        }
        for n in 0..3 {
            ours[n].acquire(0).unwrap();
            assert_eq!(theirs[n].lock(), 0);
        }
        ours[1].release().unwrap();
        theirs[0].unlock();
    });
    let consistent = ours.each_ref().map(|mutex| is_consistent(&mutex.lock().unwrap()));
    assert_eq!(consistent, [false, true, false]);
    assert_eq!(theirs.each_ref().map(OfLibrary::lock), [0, libc::EOWNERDEAD, libc::EOWNERDEAD]);
}

#[test]
fn the_child_of_a_fork_holds_nothing_of_its_parent() {
    let (_folder, namespace) = namespace();
    let mutex = mutex(&namespace, "m");
    let guard = mutex.lock().unwrap().into_guard();
    // SAFETY: the child makes system calls alone, and ends without destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let as_child = [
            mutex.release() == Err(SharedLockError::NotHeld),
            !mutex.is_held(),
            mutex.try_acquire() == Err(SharedLockError::Busy),
            mutex.acquire(soon()) == Err(SharedLockError::TimedOut),
        ];
        // SAFETY: ends this process.
        unsafe { libc::_exit(as_child.iter().position(|ok| !ok).map_or(0, |n| n as i32 + 1)) };
    }
    let mut status = 0;
    // SAFETY: the child above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "check {} fails in the child", libc::WEXITSTATUS(status));
    assert!(mutex.is_held());
    drop(guard);
    // One that the child takes itself is its own.
    // SAFETY: as above.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let locked = mutex.acquire(liveness()) == Ok(true);
        // SAFETY: as above; the mutex is locked.
        unsafe { libc::_exit(i32::from(!locked)) };
    }
    // SAFETY: as above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert!(!is_consistent(&mutex.lock_until(liveness()).unwrap()));
}

#[test]
fn a_word_that_another_process_wrote_is_an_error_and_nothing_more() {
    let (_folder, namespace) = namespace();
    let mutex = mutex(&namespace, "m");
    let memory = namespace.path().join("lock/m/memory");
    let memory = std::fs::OpenOptions::new().write(true).open(memory).unwrap();
    let at = rustix::param::page_size() as u64 - 16;
    let write = |word: u32| memory.write_all_at(&word.to_ne_bytes(), at).unwrap();
    // A thread that is not there.
    write(0x3fff_fff0);
    assert_eq!(mutex.lock().unwrap_err(), SharedLockError::Damaged);
    assert_eq!(mutex.try_lock().unwrap_err(), SharedLockError::Busy);
    write(0);
    let guard = mutex.lock().unwrap().into_guard();
    // Free, although this thread holds it: no other thread of this process gets it.
    write(0);
    in_thread(|| assert_eq!(mutex.lock().unwrap_err(), SharedLockError::Damaged));
    assert!(mutex.is_held());
    write(0x3fff_fff0);
    drop(guard);
    assert!(!mutex.is_held());
    write(libc::FUTEX_OWNER_DIED);
    assert!(!is_consistent(&mutex.try_lock().unwrap()));
}

#[test]
fn a_notification_ends_a_wait_with_the_mutex_locked_again() {
    let (_folder, namespace) = namespace();
    let mutex = mutex(&namespace, "m");
    let filled = SharedCondvar::create(&namespace, &name("c"), Lifetime::Used).unwrap();
    let units = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let mut guard = mutex.lock().unwrap().into_guard();
                    while units.load(SeqCst) == 0 {
                        let (outcome, is_late) = filled.wait_until(guard, liveness()).unwrap();
                        assert!(!is_late);
                        guard = outcome.into_guard();
                    }
                    assert!(mutex.is_held());
                    units.fetch_sub(1, SeqCst);
                    drop(guard);
                }
            });
        }
        for n in 0..400 {
            let _guard = mutex.lock().unwrap().into_guard();
            units.fetch_add(1, SeqCst);
            match n % 3 {
                0 => filled.notify_all(),
                _ => filled.notify_one(),
            }
        }
    });
    assert_eq!(units.load(SeqCst), 0);
}

#[test]
fn a_wait_for_a_condition_ends_at_its_time_and_needs_the_mutex() {
    let (_folder, namespace) = namespace();
    let mutex = mutex(&namespace, "m");
    let never = SharedCondvar::create(&namespace, &name("c"), Lifetime::Used).unwrap();
    assert_eq!(never.wait_unlocked(&mutex, 0), Err(SharedLockError::NotHeld));
    let guard = mutex.lock().unwrap().into_guard();
    let (outcome, is_late) = never.wait_until(guard, soon()).unwrap();
    assert!(is_late && is_consistent(&outcome) && mutex.is_held());
    // Without a notification, it looks again.
    let (outcome, is_late) = never.wait_until(outcome.into_guard(), u64::MAX).unwrap();
    assert!(!is_late && is_consistent(&outcome));
}

#[test]
fn a_semaphore_has_so_many_units_and_threads_wait_for_more() {
    let (_folder, namespace) = namespace();
    let semaphore = semaphore(&namespace, 2, 3);
    let other = SharedSemaphore::open(&namespace, &name("s")).unwrap();
    assert_eq!(other.maximum(), 3);
    semaphore.acquire().unwrap();
    other.try_acquire().unwrap();
    assert_eq!(semaphore.try_acquire(), Err(SharedLockError::NoUnit));
    assert_eq!(semaphore.acquire_until(soon()), Err(SharedLockError::TimedOut));
    for _ in 0..3 {
        semaphore.release().unwrap();
    }
    assert_eq!(other.release(), Err(SharedLockError::Full));
    for _ in 0..3 {
        semaphore.acquire_until(0).unwrap();
    }
    // Each unit ends one wait.
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| (0..200).for_each(|_| other.acquire_until(liveness()).unwrap()))
            })
            .collect();
        for _ in 0..600 {
            while semaphore.release().is_err() {
                thread::yield_now();
            }
        }
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(semaphore.try_acquire(), Err(SharedLockError::NoUnit));
}

#[test]
fn a_barrier_lets_all_through_when_the_last_one_comes() {
    const PARTIES: u32 = 3;
    const PHASES: u32 = 300;
    let (_folder, namespace) = namespace();
    let barrier = SharedBarrier::create(&namespace, &name("b"), PARTIES, Lifetime::Used).unwrap();
    assert_eq!(SharedBarrier::open(&namespace, &name("b")).unwrap().parties(), PARTIES);
    // One that does not wait long enough has not come.
    assert_eq!(barrier.wait_until(soon()), Err(SharedLockError::TimedOut));
    let (came, last) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..PARTIES {
            scope.spawn(|| {
                for phase in 0..PHASES {
                    came.fetch_add(1, SeqCst);
                    let is_last = barrier.wait_until(liveness()).unwrap();
                    last.fetch_add(u32::from(is_last), SeqCst);
                    let came = came.load(SeqCst);
                    assert!((phase + 1) * PARTIES <= came, "{came} came before phase {phase}");
                    assert!(came < (phase + 2) * PARTIES, "phase {phase} waits for all");
                }
            });
        }
    });
    assert_eq!(last.load(SeqCst), PHASES);
}

#[test]
fn the_state_says_who_holds_and_who_waits() {
    let (_folder, namespace) = namespace();
    let mutex = mutex(&namespace, "m");
    let semaphore = semaphore(&namespace, 1, 4);
    let barrier = SharedBarrier::create(&namespace, &name("b"), 2, Lifetime::Persistent).unwrap();
    let _condvar = SharedCondvar::create(&namespace, &name("c"), Lifetime::Used).unwrap();
    let state = |text: &str| SharedLockState::of(&namespace, &name(text)).unwrap();
    let free = SharedLockUse::Mutex { owner: None, inconsistent: false };
    assert_eq!((state("m").usage, state("m").in_use), (free, true));
    assert_eq!(state("c").usage.kind(), LockKind::Condvar);
    assert_eq!(state("s").usage, SharedLockUse::Semaphore { units: 1, maximum: 4 });
    assert_eq!(state("b").lifetime, Lifetime::Persistent);
    let guard = mutex.lock().unwrap().into_guard();
    semaphore.acquire().unwrap();
    let owner = SharedLockOwner {
        thread: punctual_sys::sched::thread_id() as u32,
        process: Some(std::process::id()),
    };
    thread::scope(|scope| {
        let waits = [
            scope.spawn(|| mutex.lock_until(liveness()).map(drop)),
            scope.spawn(|| semaphore.acquire_until(liveness())),
            scope.spawn(|| barrier.wait_until(liveness()).map(drop)),
        ];
        let until = liveness();
        while ["m", "s", "b"].iter().any(|text| state(text).waiters != 1) {
            assert!(monotonic_ns() < until, "they wait");
            thread::yield_now();
        }
        let held = SharedLockUse::Mutex { owner: Some(owner), inconsistent: false };
        assert_eq!(state("m").usage, held);
        assert_eq!(state("s").usage, SharedLockUse::Semaphore { units: 0, maximum: 4 });
        assert_eq!(state("b").usage, SharedLockUse::Barrier { came: 1, parties: 2 });
        drop(guard);
        semaphore.release().unwrap();
        assert!(barrier.wait().unwrap());
        waits.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    });
    assert!(["m", "s", "b"].iter().all(|text| state(text).waiters == 0));
    assert_eq!(state("m").usage, free);
}
