//! How soon `punctual check` answers, the whole process.

use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::windows::Spread;
use crate::{tools, Bench, Failure, Part, Verdict};

/// One hundred tasks of different periods and shorter deadlines, so many ppm of the CPU together.
fn hundred(cpu: u32, policy: &str, ppm: u64) -> String {
    let mut set = format!("cpu = {cpu}\npolicy = \"{policy}\"\n");
    for n in 0..100u64 {
        // 10 ms to 1 s, every third with a deadline of four fifths.
        let period = 10_000_000 + n * n * 99_000 + n * 1_234;
        let budget = period * ppm / 100_000_000;
        let deadline = if n % 3 == 0 { period / 5 * 4 } else { period };
        set += &format!(
            "[[task]]\nname = \"t{n}\"\npriority = {}\nperiod = \"{period}ns\"\n\
             budget = \"{budget}ns\"\ndeadline = \"{deadline}ns\"\n\
             work = {{ spin = \"{budget}ns\" }}\n",
            100 - n
        );
    }
    set
}

fn once(bench: &Bench, file: &std::path::Path, code: i32) -> Result<f64, Failure> {
    let begun = Instant::now();
    let status = Command::new(&bench.punctual)
        .arg("check")
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let took = begun.elapsed().as_nanos() as f64;
    if status.code() != Some(code) {
        return Err(format!("punctual check: exit code {:?}, not {code}", status.code()).into());
    }
    Ok(took)
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let times = if bench.quick { 5 } else { 21 };
    println!("Admission: punctual check of 100 tasks, whole process, ms");
    let mut figures = json!({});
    let mut worst = (String::new(), 0.0);
    for (policy, ppm, code) in [
        ("rm", 700_000, 0),
        ("dm", 700_000, 0),
        ("fp", 700_000, 0),
        ("edf", 850_000, 0),
        ("fp", 990_000, 3),
        ("edf", 990_000, 3),
    ] {
        let file = tools::set_file(&hundred(bench.cpu, policy, ppm))?;
        let all =
            (0..times).map(|_| once(bench, file.path(), code)).collect::<Result<Vec<_>, _>>()?;
        let spread = Spread::of(all);
        let name = format!(
            "{policy}, {} %, {}",
            ppm / 10_000,
            if code == 0 { "fits" } else { "does not fit" }
        );
        println!("  {name:<28} {}", spread.show(1e6, 2));
        figures[&name] = spread.json();
        if spread.median() > worst.1 {
            worst = (name, spread.median());
        }
    }
    println!();
    Ok(Part {
        figures,
        verdicts: vec![Verdict::new(
            "check of 100 tasks",
            "50 ms",
            format!("{:.1} ms ({})", worst.1 / 1e6, worst.0),
            worst.1 < 50e6,
        )],
    })
}
