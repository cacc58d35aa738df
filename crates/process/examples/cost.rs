//! What the real-time operations cost on this machine, and how exact cpu.stat is: `cargo run
//! --release -p punctual-process --example cost [CPU]` (as root; two seconds; keeps the CPU half
//! busy).

use punctual_process::*;
use std::time::Duration;

fn now(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec, which lives here.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn timed<T>(times: &mut Vec<u64>, f: impl FnOnce() -> T) -> T {
    let start = now(libc::CLOCK_MONOTONIC);
    let out = f();
    times.push(now(libc::CLOCK_MONOTONIC) - start);
    out
}

fn print(what: &str, values: &mut [u64]) {
    values.sort_unstable();
    let at = |p: usize| values[(values.len() - 1) * p / 1000];
    println!(
        "{what:44} p50 {:>8}  p99 {:>8}  max {:>8} ns  (n {})",
        at(500),
        at(990),
        at(1000),
        values.len()
    );
}

/// One of `threads` threads, or of one, in `loops`-long bursts; everything by the park given.
fn run(
    journal: &Journal,
    base: Option<&CgroupBase>,
    cpu: u32,
    script: &str,
    label: &str,
) -> Result<(), punctual_diagnostic::Diagnostic> {
    let park = Park::for_command(journal, base, "cost")?;
    let mut spec = CommandSpec::new(["sh", "-c", script]).on(cpu);
    spec.level = 10;
    let child = spawn(journal, spec, &park)?;
    let threads = Threads::new(&park, 64, cpu);
    // SAFETY: plain scheduling calls on this thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
        let p = libc::sched_param { sched_priority: 99 };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &p);
    }
    park.resume().ok();
    std::thread::sleep(Duration::from_millis(20));
    let _ = park.rescan();
    let _ = threads.rescan(&park.threads());
    let clock = (!child.id().pid << 3) | 2;
    let single = park.procs().len() == 1;
    let [mut stat, mut proc, mut freeze, mut thaw, mut level] = [(); 5].map(|()| Vec::new());
    let [mut slice, mut turn, mut error, mut after] = [(); 4].map(|()| Vec::new());
    for _ in 0..500 {
        let u0 = park.usage_ns().unwrap_or(0);
        let c0 = timed(&mut proc, || now(clock));
        timed(&mut thaw, || park.resume()).ok();
        std::thread::sleep(Duration::from_millis(1));
        let u1 = timed(&mut stat, || park.usage_ns()).unwrap_or(0);
        let c1 = now(clock);
        error.push((u1 - u0).abs_diff(c1 - c0));
        timed(&mut level, || threads.set_level(10)).ok();
        if !single {
            let executed = timed(&mut slice, || threads.end_slice(100_000));
            timed(&mut turn, || threads.requeue(executed));
        }
        timed(&mut freeze, || park.park()).ok();
        std::thread::sleep(Duration::from_micros(1000));
        // What it still used after the freeze was asked for: its way into the freezer.
        after.push(park.usage_ns().unwrap_or(0) - u1);
    }
    // SAFETY: as above.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &libc::sched_param { sched_priority: 0 })
    };
    println!("{label}: {} processes, {} threads", park.procs().len(), threads.count());
    print("  usage_ns", &mut stat);
    print("  (a process clock, to compare)", &mut proc);
    print("  resume", &mut thaw);
    print("  park", &mut freeze);
    print("  Threads::set_level", &mut level);
    if !single {
        print("  Threads::end_slice", &mut slice);
        print("  Threads::requeue", &mut turn);
    }
    if single {
        print("  usage_ns against the process clock, error", &mut error);
    }
    print("  executed between park and standstill", &mut after);
    park.kill().ok();
    Ok(())
}

fn main() {
    let cpu = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1);
    let journal = Journal::create().unwrap_or_else(|e| stop(&e));
    let guardian = Guardian::start(&journal, &[]).unwrap_or_else(|e| stop(&e));
    let one = "i=0; while [ $i -lt 9000000 ]; do i=$((i+1)); done";
    let four = format!("for k in 1 2 3; do ({one}) & done; {one}");
    let base = CgroupBase::create(&journal);
    if let Err(e) = &base {
        println!("no freezer: {e}");
    }
    for (script, label) in [(one, "one process"), (four.as_str(), "four processes")] {
        if let Ok(b) = &base {
            run(&journal, Some(b), cpu, script, &format!("freezer, {label}"))
                .unwrap_or_else(|e| stop(&e));
        }
        run(&journal, None, cpu, script, &format!("stop signals, {label}"))
            .unwrap_or_else(|e| stop(&e));
    }
    let report = restore(&journal);
    guardian.dismiss();
    println!("{} killed, {} groups removed, {:?}", report.killed, report.groups, report.problems);
}

fn stop(e: &punctual_diagnostic::Diagnostic) -> ! {
    eprintln!("{e}");
    std::process::exit(e.exit_code().into())
}
