//! What each overrun policy does with a job that needs three units where the budget has two: the
//! RTAI paper's Fig. 2(a), W = 20 ms, P = 50 ms, execution 29, 9, 9 ms.
//!
//!     cargo run --release -p punctual --example overrun -- [CPU]

use std::sync::mpsc::channel;
use std::time::Duration;

use punctual::{Overrun, Punctual, Task, Time};

const MS: Duration = Duration::from_millis(1);

/// Executes until so much of the thread's own time is used.
fn execute(time: Duration) {
    let read = || {
        let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `t` is valid for the call.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
        Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
    };
    let end = read() + time;
    while read() < end {
        std::hint::spin_loop();
    }
}

/// Executes the jobs and returns a line for each; the caller prints, so that no job does.
fn scenario(task: &Task) -> Vec<String> {
    let mut lines = Vec::with_capacity(8);
    // Delayed waits are counted from the first call on.
    let Some(first) = task.wait_period() else { return lines };
    let at = |t: Time| t.since(first.release).as_millis();
    for (job, time) in [29, 9, 9].into_iter().enumerate() {
        let begun = Time::now();
        execute(time * MS);
        let done = Time::now();
        let left = task.remaining_budget().as_micros() as f64 / 1000.0;
        let in_period = task.current().number - first.number;
        let Some(r) = task.wait_period() else { return lines };
        let returned = Time::now();
        let how = if returned.since(done) < MS { "is ignored" } else { "waits" };
        lines.push(format!(
            "  job {job}: {time:2} ms executed from {:3} to {:3} ms, done in period {in_period} \
             with {left:4.1} ms left; its wait {how}, returns at {:3} ms in period {}, lost {}",
            at(begun),
            at(done),
            at(returned),
            r.number - first.number,
            r.lost
        ));
    }
    lines
}

extern "C" fn overran(_: i32) {
    let text = b"  (SIGXCPU: the handler runs, on the next budget)\n";
    // SAFETY: write is async-signal-safe; the text lives for ever.
    unsafe { libc::write(1, text.as_ptr().cast(), text.len()) };
}

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("overrun: {}\n  help: {}", e.cause, e.help);
            std::process::ExitCode::from(e.exit_code())
        }
    }
}

fn run() -> Result<(), punctual::Error> {
    let cpu = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1);
    // SAFETY: the handler makes one system call.
    unsafe { libc::signal(libc::SIGXCPU, overran as *const () as libc::sighandler_t) };
    for overrun in [Overrun::Carry, Overrun::Skip, Overrun::Background, Overrun::Signal] {
        println!("{overrun:?}");
        let (sender, receiver) = channel();
        let running = Punctual::on_cpu(cpu)
            .task("fig2a")
            .period(50 * MS)
            .budget(20 * MS)
            .overrun(overrun)
            .spawn(move |task| {
                let _ = sender.send(scenario(task));
            })
            .admit()?
            .start()?;
        running.wait();
        drop(running);
        for line in receiver.recv().unwrap_or_default() {
            println!("{line}");
        }
    }
    Ok(())
}
