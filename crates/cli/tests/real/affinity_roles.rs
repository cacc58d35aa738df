//! Roles of this test binary (see adversarial.rs) whose threads choose their CPUs: the first two of
//! the machine, or both.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use punctual_sys::sched;
use punctual_test_support::execute_briefly;

use super::{in_child, LIFE};

/// CPU 0, CPU 1, and both.
const CHOICES: [u64; 3] = [1, 2, 3];

/// The characters of a number in the file of [`wander`], with the blank or the end of its line.
const NUMBER: usize = 21;

/// Two threads and a child of two threads, each of which changes its affinity all the time. Each
/// writes into its own line of the file how often it found itself on CPU 0, and on CPU 1.
pub fn wander(path: &str) {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { std::process::exit(98) };
    in_child(|| in_two_threads(&file, 2));
    in_two_threads(&file, 0);
}

fn in_two_threads(file: &File, line: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| change_cpus(file, line));
        change_cpus(file, line + 1);
    });
}

fn change_cpus(file: &File, line: usize) {
    let end = Instant::now() + LIFE;
    let mut found = [0u64; 2];
    for choice in CHOICES.into_iter().cycle().take_while(|_| Instant::now() < end) {
        let _ = sched::set_affinity(0, &[choice]);
        for _ in 0..100 {
            execute_briefly();
        }
        // SAFETY: a call without arguments.
        let cpu = unsafe { libc::sched_getcpu() };
        if let Some(count) = found.get_mut(cpu as usize) {
            *count += 1;
        }
        let text = format!("{:020} {:020}\n", found[0], found[1]);
        let _ = file.write_all_at(text.as_bytes(), (line * 2 * NUMBER) as u64);
    }
}

/// A process and its child, each with a thread on CPU 0, one on CPU 1 and one on both; the first
/// thread is on CPU 0 in the one, on CPU 1 in the other. Once the file is there, one child more.
pub fn choose_cpus(path: &str) {
    in_child(|| {
        die_with_parent();
        threads_of_all_choices(1);
        rest(LIFE);
    });
    threads_of_all_choices(0);
    while !Path::new(path).exists() {
        rest(Duration::from_millis(10));
    }
    in_child(|| {
        die_with_parent();
        rest(LIFE);
    });
    rest(LIFE);
}

fn die_with_parent() {
    // SAFETY: passes no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

fn threads_of_all_choices(first: usize) {
    let (ready, is_ready) = std::sync::mpsc::channel();
    for choice in CHOICES {
        let ready = ready.clone();
        std::thread::spawn(move || {
            let _ = sched::set_affinity(0, &[choice]);
            let _ = ready.send(());
            rest(LIFE);
        });
    }
    CHOICES.iter().for_each(|_| assert!(is_ready.recv().is_ok()));
    let _ = sched::set_affinity(0, &CHOICES[first..=first]);
}

/// Sleeps, and executes for a moment now and then.
fn rest(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        execute_briefly();
        std::thread::sleep(Duration::from_millis(4));
    }
}
