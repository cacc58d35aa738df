//! Ordinary programs beside the jobs: they share by weight, run at once when they wake, and none
//! waits for long.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::machine::{
    children, cpus, executed, executed_by, name, preempt_rt, set_affinity, state, until, Machine,
};
use crate::punctual::{companion, run, words_of, Running, Scratch, TIMER};

/// The parent of the kernel's threads.
const KTHREADD: u32 = 2;

/// A task with so much in 10 ms of CPU 0, which it uses up or hardly touches.
fn beside(budget: &str, spin: &str) -> String {
    format!(
        "cpu = 0\npolicy = \"edf\"\nduration = \"60s\"\n\
         [[task]]\nname = \"job\"\nperiod = \"10ms\"\nbudget = \"{budget}\"\n\
         work = {{ spin = \"{spin}\" }}\n"
    )
}

/// The scheduler is there, and its task has begun. Before any load: loading takes its time.
fn started(scratch: &Scratch, set: &str) -> Running {
    let set = scratch.file("set.toml", set);
    let run = run(&[set.to_str().expect("a plain path")]);
    run.tasks_after(1, 100_000);
    run
}

/// It was there to the end.
fn ends_well(run: Running) {
    assert_eq!(state().as_deref(), Some("enabled"));
    run.send(libc::SIGINT);
    let output = run.output();
    assert_eq!(output.status.code(), Some(130), "{}", words_of(&output));
}

fn loads(count: usize) -> Vec<Running> {
    let loads: Vec<Running> = (0..count).map(|_| companion("spin")).collect();
    until("they execute", || loads.iter().all(|load| executed(load.id()) > 5_000_000));
    loads
}

fn ids(loads: &[Running]) -> Vec<u32> {
    loads.iter().map(Running::id).collect()
}

fn nice(pid: u32, value: i32) {
    // SAFETY: a system call without memory.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, pid, value) }, 0);
}

/// Of a process, or of this thread.
fn policy(pid: u32, policy: i32) {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: it reads `param`, which is valid.
    let result = unsafe { libc::sched_setscheduler(pid as i32, policy, &param) };
    assert_eq!(result, 0, "policy {policy}");
}

fn ran_in(pids: &[u32], time: Duration) -> Vec<u64> {
    let before: Vec<u64> = pids.iter().map(|&pid| executed(pid)).collect();
    std::thread::sleep(time);
    pids.iter().zip(before).map(|(&pid, before)| executed(pid) - before).collect()
}

/// Waits until each process has its share of the CPU time from now on, in thousandths of one CPU.
/// Two emulated CPUs take turns, in slices that distort a fixed window; over a longer time the
/// shares show fairness.
fn shares_become(pids: &[u32], as_expected: impl Fn(&[u64]) -> bool) {
    let (since, before): (_, Vec<u64>) =
        (Instant::now(), pids.iter().map(|&pid| executed(pid)).collect());
    let mut shares = Vec::new();
    until("shares as expected", || {
        std::thread::sleep(Duration::from_millis(200));
        let time = since.elapsed().as_nanos() as u64;
        shares = pids
            .iter()
            .zip(&before)
            .map(|(&pid, before)| {
                let ran = executed(pid).checked_sub(*before);
                ran.unwrap_or_else(|| panic!("{pid} ended before the shares were as expected"))
                    * 1000
                    / time
            })
            .collect();
        println!("{shares:?}");
        as_expected(&shares)
    });
}

/// Each got its part of what all got, within some turns of 4 ms (which end at ticks).
fn shared_by(weights: &[u64], ran: &[u64]) {
    let (all, weight) = (ran.iter().sum::<u64>(), weights.iter().sum::<u64>());
    for (&part, &got) in weights.iter().zip(ran) {
        let due = all * part / weight;
        assert!(
            got.abs_diff(due) <= 16_000_000 + due / 50,
            "{got} ns of {due}: {ran:?} by {weights:?}"
        );
    }
}

#[test]
fn loads_share_what_a_job_leaves_by_their_nice_values() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let run = started(&scratch, &beside("5ms", "forever"));
    let loads = loads(4);
    let pids = ids(&loads);
    // Where there are two CPUs: on one.
    pids.iter().for_each(|&pid| set_affinity(pid, &[0]));
    pids.iter().zip([0, 5, 10, -5]).for_each(|(&pid, value)| nice(pid, value));
    std::thread::sleep(Duration::from_millis(200));
    // What four fifths per step come to, where nice 0 is 1,024.
    let ran = ran_in(&pids, Duration::from_secs(2));
    shared_by(&[1024, 336, 110, 3125], &ran);
    assert!(ran.iter().sum::<u64>() > 900_000_000, "half of the CPU is theirs: {ran:?}");
    ends_well(run);
}

#[test]
fn changes_of_nice_value_and_policy_hold_from_then_on() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let run = started(&scratch, &beside("2ms", "forever"));
    let loads = loads(2);
    let pids = ids(&loads);
    pids.iter().for_each(|&pid| set_affinity(pid, &[0]));
    for round in 0..30 {
        nice(pids[0], round % 20);
        policy(
            pids[1],
            [libc::SCHED_BATCH, libc::SCHED_IDLE, libc::SCHED_OTHER][round as usize % 3],
        );
        std::thread::sleep(Duration::from_millis(3));
    }
    nice(pids[0], 5);
    // What they were ahead or behind by.
    std::thread::sleep(Duration::from_millis(200));
    shared_by(&[336, 1024], &ran_in(&pids, Duration::from_millis(800)));
    nice(pids[0], 0);
    policy(pids[1], libc::SCHED_BATCH);
    std::thread::sleep(Duration::from_millis(200));
    shared_by(&[1024, 1024], &ran_in(&pids, Duration::from_millis(800)));
    ends_well(run);
}

/// How late this thread ran that had slept for 7 ms each time, in order.
fn wakes_late(rounds: usize) -> Vec<u64> {
    // SAFETY: a system call without memory: timers of this thread may be no 50 us late.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let nap = Duration::from_millis(7);
    let mut late: Vec<u64> = (0..rounds)
        .map(|_| {
            let begin = Instant::now();
            std::thread::sleep(nap);
            (begin.elapsed() - nap).as_nanos() as u64
        })
        .collect();
    late.sort_unstable();
    late
}

/// Four loads, and a job that hardly runs; `None` where the clock is not counted.
fn beside_four(scratch: &Scratch) -> Option<(Vec<Running>, Running)> {
    if cpus() > 1 {
        eprintln!("not run: more CPUs than one have no counted clock");
        return None;
    }
    let run = started(scratch, &beside("1ms", "50us"));
    Some((loads(4), run))
}

#[test]
fn a_woken_program_preempts_a_load() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let Some((_loads, run)) = beside_four(&scratch) else { return };
    let late = wakes_late(100);
    // The kernel's own scheduler takes 6 us without PREEMPT_RT, in the median.
    let most = if preempt_rt() { 40_000 } else { 10_000 };
    assert!(late[90] < most, "{late:?}");
    ends_well(run);
}

#[test]
fn batch_and_idle_programs_break_into_no_turn() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    if preempt_rt() {
        eprintln!(
            "not run: timers' threads interrupt turns, and who is first by its virtual time goes \
             on"
        );
        return;
    }
    let scratch = Scratch::new();
    let Some((_loads, run)) = beside_four(&scratch) else { return };
    for how in [libc::SCHED_BATCH, libc::SCHED_IDLE] {
        let late = std::thread::scope(|threads| {
            let sleeper = threads.spawn(|| {
                policy(0, how);
                wakes_late(30)
            });
            sleeper.join().expect("it sleeps and wakes")
        });
        // Turns end at ticks, every 4 ms, whenever one wakes between them.
        assert!(late[15] > 300_000, "policy {how}: {late:?}");
        assert!(late[29] < 500_000_000, "policy {how}: {late:?}");
    }
    ends_well(run);
}

/// A thread waits for a turn of each of two loads at most, 3 ms each, of which a period of 10 ms
/// leaves 0.5 ms (6 % less the timer process and other threads): 120 ms. A program waits so when it
/// is new, after its exec (its parent preempts it) and at its exit, and so does its parent.
const START: Duration = Duration::from_millis(4 * 120);

#[test]
fn a_shell_stays_usable_beside_loads_and_a_set_of_94_percent() {
    let Some(_machine) = Machine::with_sched_ext() else { return };
    let scratch = Scratch::new();
    let run = started(&scratch, &beside("9400us", "forever"));
    let _loads = loads(2);
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(50));
        let begin = Instant::now();
        let status = Command::new("true").status().expect("it starts");
        assert!(status.success());
        eprintln!("a start took {:?}", begin.elapsed());
        assert!(begin.elapsed() < START, "{:?}", begin.elapsed());
    }
    ends_well(run);
}

/// The CPU that it was last on.
fn cpu_of(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let (_, behind) = text.rsplit_once(") ").expect("a name");
    behind.split_whitespace().nth(36).and_then(|cpu| cpu.parse().ok()).expect("a CPU")
}

#[test]
fn two_cpus_programs_that_wait_are_moved_and_run_where_they_may() {
    let Some(_machine) = Machine::with_two_cpus() else { return };
    let scratch = Scratch::new();
    let run = started(&scratch, &beside("5ms", "forever"));
    let loads = loads(4);
    let pids = ids(&loads);
    for round in 0..30 {
        for (at, &pid) in pids.iter().enumerate() {
            set_affinity(pid, [&[0][..], &[1], &[0, 1]][(round + at) % 3]);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // Three on one CPU, one on that of the job.
    for (at, &pid) in pids.iter().enumerate() {
        set_affinity(pid, if at == 0 { &[0] } else { &[1] });
    }
    std::thread::sleep(Duration::from_millis(200));
    // Half of a CPU, and a third each. The timer process of PREEMPT_RT takes CPU 0 before the first
    // of them, and what both emulated CPUs execute during its turn counts as its own: up to a
    // quarter of a CPU, by the phase of its timers. The kernel's real-time threads take up to 5 %
    // there (ktimers/0, rcuc/0, rcu_preempt). So all of these are judged together.
    let mut counted = pids.clone();
    counted.extend(children(run.id()).into_iter().filter(|&pid| name(pid) == TIMER));
    counted.extend(children(KTHREADD).into_iter().filter(|&pid| {
        let name = name(pid);
        cpu_of(pid) == 0 && (name.ends_with("/0") || name == "rcu_preempt")
    }));
    shares_become(&counted, |shares| {
        // Of 1,500 thousandths that a job of half a CPU leaves, less what the emulation loses.
        let all = shares.iter().sum::<u64>().max(1);
        let shares: Vec<u64> = shares.iter().map(|share| share * 1_500 / all).collect();
        let on_the_jobs = shares[0] + shares[4..].iter().sum::<u64>();
        (430..=550).contains(&on_the_jobs)
            && shares[0] > 100
            && shares[1..4].iter().all(|share| (270..=400).contains(share))
    });
    assert_eq!(pids.iter().map(|&pid| cpu_of(pid)).collect::<Vec<_>>(), [0, 1, 1, 1]);
    ends_well(run);
}

#[test]
fn two_cpus_neither_idles_while_a_program_waits() {
    let Some(_machine) = Machine::with_two_cpus() else { return };
    let scratch = Scratch::new();
    let run = started(&scratch, &beside("5ms", "forever"));
    // Two CPUs less the half of one that the job uses: a CPU and a half in all.
    let loads = loads(2);
    let (since, before) = (Instant::now(), executed_by(&ids(&loads)));
    // Of a CPU and a half, less what the emulated CPUs lose by taking turns; one CPU alone has at
    // most 100 %.
    until("more than one CPU", || {
        std::thread::sleep(Duration::from_millis(200));
        let share =
            u128::from(executed_by(&ids(&loads)) - before) * 100 / since.elapsed().as_nanos();
        println!("{share} %");
        share > 115
    });
    ends_well(run);
}

#[test]
fn two_cpus_one_that_is_bound_and_two_that_wander_share() {
    let Some(_machine) = Machine::with_two_cpus() else { return };
    let scratch = Scratch::new();
    let run = started(&scratch, &beside("1ms", "50us"));
    let loads = loads(3);
    let pids = ids(&loads);
    set_affinity(pids[0], &[1]);
    std::thread::sleep(Duration::from_millis(200));
    // Two thirds of a CPU each; even with a fair share of CPU 1 alone, the pinned process has half
    // of that CPU.
    shares_become(&pids, |shares| shares[0] >= 450 && shares[1] >= 500 && shares[2] >= 500);
    ends_well(run);
}

#[test]
fn two_cpus_one_that_is_bound_later_takes_no_more_than_its_share() {
    let Some(_machine) = Machine::with_two_cpus() else { return };
    let scratch = Scratch::new();
    let run = started(&scratch, &beside("1ms", "50us"));
    // While one alone executes, the virtual time of CPU 1's own queue stays behind the shared
    // queue's.
    let mut all = loads(1);
    std::thread::sleep(Duration::from_secs(6));
    all.extend(loads(1));
    set_affinity(all[1].id(), &[1]);
    std::thread::sleep(Duration::from_millis(200));
    all.extend(loads(1));
    let ran = ran_in(&ids(&all), Duration::from_secs(4));
    let total: u64 = ran.iter().sum();
    // A third each; a quarter each for the first and the last if the bound one keeps its CPU, 28 %
    // if turns without a switch are not all charged.
    assert!([ran[0], ran[2]].iter().all(|&part| part * 10 > total * 3), "{ran:?} ns of {total}");
    ends_well(run);
}
