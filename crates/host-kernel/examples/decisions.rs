//! What a full decision costs as BPF in the running kernel, beside the native build.
//!
//!     cargo run --release -p punctual-host-kernel --example decisions

use punctual_host_kernel::selftest::compare_decisions;
use punctual_host_kernel::{Kernel, KernelError};

fn main() -> Result<(), KernelError> {
    let kernel = Kernel::load()?;
    println!(
        "loaded in {:.1} ms; instructions that the verifier went through:",
        kernel.load_time().as_secs_f64() * 1e3
    );
    for p in kernel.statistics() {
        println!("  {:<22}{:>7}", p.name, p.verified);
    }
    println!("ns per decision      native     BPF   ratio (p10, median, p90)");
    for jobs in [1, 10, 100, 1000, 4000] {
        let c = compare_decisions(jobs, 400)?;
        let [low, middle, high] = c.ratios;
        println!("  {:>5} jobs {:>15.0} {:>7.0}   {low:.2}  {middle:.2}  {high:.2}", c.jobs, c.native, c.kernel);
    }
    Ok(())
}
