//! Roles of this test binary (see adversarial.rs) with a second thread that misbehaves while the
//! first one sleeps: from 100 ms after its first execution at a real-time level on.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::{spin, LIFE};

/// Plays what `attack` names in a second thread.
pub fn attack(attack: &str) {
    let attack = attack.to_owned();
    let second = std::thread::spawn(move || {
        await_reservation();
        spin(Duration::from_millis(100));
        match attack.as_str() {
            "spin" => spin(LIFE),
            "fork" => fork_without_end(),
            "exec" => exec(),
            "exec-parked" => exec_parked(),
            "move" => leave_its_cpu(),
            "inherit" => have_another_inherit(),
            "end" => {}
            _ => std::process::exit(99),
        }
    });
    // Attributes of the first one's own.
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: scheduling calls on the calling thread; the parameter lives here.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &none);
        libc::setpriority(libc::PRIO_PROCESS, 0, 5);
    }
    let _ = second.join();
    std::thread::sleep(LIFE);
}

/// Executes until it does so at a real-time level.
fn await_reservation() {
    let end = Instant::now() + LIFE;
    while Instant::now() < end {
        spin(Duration::from_millis(1));
        // SAFETY: a system call without memory.
        let policy = unsafe { libc::sched_getscheduler(0) };
        if policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO {
            return;
        }
    }
}

/// Children that spin, a new one each millisecond, at most fifty at a time.
fn fork_without_end() {
    let end = Instant::now() + LIFE;
    let mut children = Vec::new();
    while Instant::now() < end {
        // SAFETY: the child spins and ends: it allocates nothing.
        match unsafe { libc::fork() } {
            0 => {
                spin(Duration::from_millis(50));
                // SAFETY: ends this process.
                unsafe { libc::_exit(0) };
            }
            pid => children.push(pid),
        }
        if children.len() == 50 {
            for pid in children.drain(..) {
                // SAFETY: a child of ours.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            }
        }
        spin(Duration::from_millis(1));
    }
}

/// Becomes the first thread of its process, and spins.
fn exec() {
    let error = std::os::unix::process::CommandExt::exec(
        std::process::Command::new("/proc/self/exe").arg("adversarial:spin"),
    );
    eprintln!("{error}");
    std::process::exit(98);
}

/// The same beyond its budget.
fn exec_parked() {
    let end = Instant::now() + LIFE;
    // SAFETY: a system call without memory.
    while unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK != libc::SCHED_IDLE {
        if Instant::now() > end {
            return;
        }
    }
    exec();
}

/// Spins on all CPUs.
fn leave_its_cpu() {
    let end = Instant::now() + LIFE;
    while Instant::now() < end {
        // SAFETY: a system call on the calling thread; the mask lives here.
        unsafe {
            let mut every: libc::cpu_set_t = std::mem::zeroed();
            (0..64).for_each(|cpu| libc::CPU_SET(cpu, &mut every));
            libc::sched_setaffinity(0, std::mem::size_of_val(&every), &every);
        }
        spin(Duration::from_micros(500));
    }
}

/// Waits for a mutex whose owner executes without end, at this thread's priority meanwhile: an
/// ordinary thread of the same CPU, without a reservation.
fn have_another_inherit() {
    static OWNER: AtomicU32 = AtomicU32::new(0);
    std::thread::spawn(|| {
        // SAFETY: a system call without memory.
        OWNER.store(unsafe { libc::gettid() } as u32, SeqCst);
        spin(LIFE);
    });
    while OWNER.load(SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: the word lives as long as the program.
    unsafe { libc::syscall(libc::SYS_futex, OWNER.as_ptr(), libc::FUTEX_LOCK_PI, 0, 0) };
    std::thread::sleep(LIFE);
}
