//! A 1 kHz control loop with 250 us of guaranteed execution in every millisecond; prints its own
//! jitter.
//!
//!     cargo run --release -p punctual --example servo -- [CPU] [SECONDS]
//!
//! Try it beside something greedy on the same CPU: `taskset -c 1 sh -c 'while :; do :; done'`.

use std::sync::mpsc::channel;
use std::time::Duration;

use punctual::{Overrun, Policy, Punctual, Task};

/// What one job found.
struct Sample {
    /// From the release to the loop's running.
    latency: Duration,
    /// Releases that it never saw.
    lost: u32,
}

/// Some 100 us of control law; the budget has room for the odd slow round.
fn control(task: &Task, state: &mut f64) {
    let enough = Duration::from_micros(150);
    while task.remaining_budget() > enough {
        *state = std::hint::black_box(*state * 0.999 + 1.0);
    }
}

fn servo(task: &Task, samples: &mut Vec<Sample>) {
    let mut state = 0.0;
    while let Some(released) = task.wait_period() {
        let latency = released.release.elapsed();
        control(task, &mut state);
        // Room was made before: nothing is allocated here.
        if samples.len() < samples.capacity() {
            samples.push(Sample { latency, lost: released.lost });
        }
    }
}

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("servo: {}\n  help: {}", e.cause, e.help);
            std::process::ExitCode::from(e.exit_code())
        }
    }
}

fn run() -> Result<(), punctual::Error> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u32>());
    let cpu = arguments.next().and_then(Result::ok).unwrap_or(1);
    let seconds = arguments.next().and_then(Result::ok).unwrap_or(5).clamp(1, 600);

    let (done, result) = channel();
    let running = Punctual::on_cpu(cpu)
        .policy(Policy::Edf)
        .task("servo")
        .period(Duration::from_millis(1))
        .budget(Duration::from_micros(250))
        .overrun(Overrun::Skip)
        .spawn(move |task| {
            let mut samples = Vec::with_capacity(seconds as usize * 1_000);
            servo(task, &mut samples);
            // The run is over: from here on this is an ordinary thread.
            let _ = done.send(samples);
        })
        .admit()?
        .start()?;
    println!("1 kHz on CPU {cpu} for {seconds} s ...");
    std::thread::sleep(Duration::from_secs(seconds.into()));
    let outcome = running.stop()?;

    if let Ok(samples) = result.recv() {
        let lost: u32 = samples.iter().map(|s| s.lost).sum();
        let mut latencies: Vec<u128> = samples.iter().map(|s| s.latency.as_nanos() / 100).collect();
        latencies.sort_unstable();
        let at = |percent: usize| {
            latencies.get(latencies.len() * percent / 100).map_or(0.0, |&l| l as f64 / 10.0)
        };
        let worst = latencies.last().map_or(0.0, |&l| l as f64 / 10.0);
        println!(
            "release to running, {} jobs: median {} us, p99 {} us, worst {worst} us",
            samples.len(),
            at(50),
            at(99)
        );
        println!("releases lost: {lost}");
    }
    println!("{}", punctual::results::table(&outcome.results, &punctual::results::View::default()));
    for problem in outcome.problems {
        eprintln!("{problem}");
    }
    Ok(())
}
