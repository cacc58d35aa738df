//! What a trace costs: converting ten million records, recording them, and watching a run.

use std::io::BufReader;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use punctual_sys::clock::thread_cpu_ns;
use punctual_trace::{Header, Limits, Record, TraceReader, TraceSink};
use serde_json::{json, Value};

use crate::windows::Spread;
use crate::{tools, Bench, Failure, Part, Verdict};

/// Virtual time of examples/servo.toml that makes so many records, s: ten million, and a million.
const CONVERTED: [u64; 2] = [690, 69];
const MOST_SECONDS: f64 = 10.0;
const MOST_MB: f64 = 500.0;
/// Per record.
const MOST_NS: f64 = 100.0;
/// Records that are written at a time, as the user host does.
const BATCH: usize = 64;
const WATCHED_SECONDS: u64 = 10;
const MOST_WATCHING_PPM: f64 = 20_000.0;

/// The set of the RTAI paper's Tables 2 and 3: some 1,200 events a second.
const SET: &str = r#"
cpu = 0
policy = "rm"
task = [
  { name = "tau1", period = "2ms", budget = "1ms", work = { spin = "forever" } },
  { name = "tau2", period = "5ms", budget = "1ms", work = { spin = "forever" } },
]
"#;

fn convert(bench: &Bench) -> Result<(Value, Vec<Verdict>), Failure> {
    let folder = tempfile::tempdir()?;
    let (trace, out) = (folder.path().join("t"), folder.path().join("out"));
    let seconds = CONVERTED[usize::from(bench.quick)];
    tools::progress("trace: making a trace");
    let set = tools::in_tree("examples/servo.toml");
    let made = Command::new(&bench.punctual)
        .args(["sim", "--quiet", "--duration", &format!("{seconds}s"), "--trace"])
        .arg(&trace)
        .arg(set)
        .stdout(Stdio::null())
        .status()?;
    if !made.success() {
        return Err("punctual sim ended with an error".into());
    }
    let mut reader = TraceReader::new(BufReader::new(std::fs::File::open(&trace)?))?;
    let records = reader.by_ref().count();
    println!("Reading a trace of {records} records: CPU time and peak memory");
    println!("  {:<28} {:>24} {:>12}", "", "s", "MB");
    let (mut figures, mut verdicts) = (serde_json::Map::new(), Vec::new());
    let file = trace.display().to_string();
    let out = out.display().to_string();
    let subcommands: [(&str, &[&str]); 6] = [
        ("export, Perfetto", &["trace", "export", &file, "-o", &out]),
        ("export, Chrome", &["trace", "export", &file, "--format", "chrome", "-o", &out]),
        ("stats", &["trace", "stats", &file]),
        (
            "cut, a tenth",
            &["trace", "cut", &file, "--to", &format!("{}s", seconds / 10), "-o", &out],
        ),
        ("diff, with itself", &["trace", "diff", &file, &file]),
        ("sim --replay", &["sim", "--replay", &file]),
    ];
    for (name, arguments) in subcommands {
        let (mut cpu, mut kib) = (Vec::new(), 0);
        for _ in 0..bench.windows.min(3) {
            tools::progress(&format!("trace: {name}"));
            let used = tools::usage(Command::new(&bench.punctual).args(arguments).arg("--quiet"))?;
            if used.code != Some(0) {
                return Err(format!("punctual {arguments:?} ended with {:?}", used.code).into());
            }
            cpu.push(used.cpu);
            kib = kib.max(used.kib);
        }
        tools::progress("");
        let (cpu, mb) = (Spread::of(cpu), kib as f64 * 1.024e-3);
        println!("  {name:<28} {:>24} {mb:>12.1}", cpu.show(1e9, 2));
        if name.starts_with("export") {
            verdicts.push(Verdict::new(
                format!("{records} records: {name}"),
                format!("{MOST_SECONDS} s, {MOST_MB} MB"),
                format!("{} s, {mb:.0} MB", cpu.show(1e9, 1)),
                cpu.median() < MOST_SECONDS * 1e9 && mb < MOST_MB,
            ));
        }
        figures.insert(name.to_owned(), json!({ "cpu_ns": cpu.json(), "peak_kib": kib }));
    }
    println!();
    figures.insert("records".to_owned(), records.into());
    Ok((figures.into(), verdicts))
}

/// CPU time per record that is written to a file, ns.
fn written(records: usize) -> Result<f64, Failure> {
    let file = tempfile::tempfile()?;
    let header = Header::new("user", 0, "edf", Vec::new(), Limits::default());
    let sink = TraceSink::new(file, header);
    sink.begin(Limits::default());
    let begun = thread_cpu_ns();
    let mut batch = [Record::default(); BATCH];
    for n in 0..records / BATCH {
        batch.iter_mut().for_each(|record| record.time += n as u64);
        sink.records(&batch);
    }
    sink.finish()?;
    Ok((thread_cpu_ns() - begun) as f64 / (records / BATCH * BATCH) as f64)
}

fn record(bench: &Bench) -> Result<(Value, Vec<Verdict>), Failure> {
    let (mut figures, mut verdicts) = (serde_json::Map::new(), Vec::new());
    let records = if bench.quick { 1 << 18 } else { 1 << 21 };
    let each = (0..bench.windows).map(|_| written(records)).collect::<Result<Vec<_>, _>>()?;
    let each = Spread::of(each);
    println!("A record that is written to a file, CPU time, ns: {}", each.show(1.0, 1));
    figures.insert("written_ns".to_owned(), each.json());
    verdicts.push(Verdict::new(
        "recording: CPU time of a record in the file",
        format!("{MOST_NS} ns"),
        format!("{} ns", each.show(1.0, 1)),
        each.median() <= MOST_NS,
    ));
    println!();
    Ok((figures.into(), verdicts))
}

/// CPU time of `punctual top` beside a running set, parts per million of a CPU.
fn watch(bench: &Bench) -> Result<(Value, Verdict), Failure> {
    let state = tempfile::tempdir()?;
    let set = tools::set_file(&SET.replace("cpu = 0", &format!("cpu = {}", bench.cpu)))?;
    let mut run = Command::new(&bench.punctual);
    run.args(["run", "--quiet", "--duration", &format!("{}s", WATCHED_SECONDS + 20)]);
    run.arg(set.path()).env("PUNCTUAL_STATE_DIR", state.path());
    let mut run = run.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0).spawn()?;
    let socket = state.path().join("top").join(format!("{}.sock", run.id()));
    let seen = watching(bench, &mut run, state.path(), &socket);
    // SAFETY: kill only sends a signal, to a child that is not waited for yet.
    unsafe { libc::kill(run.id() as i32, libc::SIGINT) };
    run.wait()?;
    let ppm = seen?.cpu / (WATCHED_SECONDS as f64 * 1e9) * 1e6;
    println!("punctual top on a terminal of 120 columns: {:.2} % of a CPU\n", ppm / 1e4);
    let verdict = Verdict::new(
        "punctual top: of a CPU",
        "2 %",
        format!("{:.2} %", ppm / 1e4),
        ppm < MOST_WATCHING_PPM,
    );
    Ok((json!({ "cpu_ppm": ppm }), verdict))
}

fn watching(
    bench: &Bench,
    run: &mut std::process::Child,
    state: &Path,
    socket: &Path,
) -> Result<tools::Usage, Failure> {
    while !socket.exists() {
        if let Some(status) = run.try_wait()? {
            return Err(format!("punctual run ended before it was watched: {status}").into());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // script(1) makes a terminal; its own time counts, too.
    let line = format!(
        "stty cols 120 rows 40; exec timeout -s INT {WATCHED_SECONDS} {} top {}",
        bench.punctual.display(),
        run.id()
    );
    tools::progress("trace: top");
    let used = tools::usage(
        Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("PUNCTUAL_STATE_DIR", state)
            .env("TERM", "xterm-256color"),
    );
    tools::progress("");
    used
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let (converted, mut verdicts) = convert(bench)?;
    let (recorded, more) = record(bench)?;
    verdicts.extend(more);
    let (top, verdict) = tools::patiently(|| watch(bench))?;
    verdicts.push(verdict);
    Ok(Part {
        figures: json!({ "reading": converted, "recording": recorded, "top": top }),
        verdicts,
    })
}
