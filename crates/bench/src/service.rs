//! The service: one more reservation beside a thousand, and what it does while it has none.

use crate::windows::Spread;
use crate::{tools, Bench, Failure, Part, Verdict};
use punctual_service::{ServiceClient, TaskRequest};
use punctual_sys::sched::thread_id;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Of the reservations that are there, and the one that is added: all fit on one CPU.
const PERIOD_NS: u64 = 20_000_000_000;
const BUDGET_NS: u64 = 1_000_000;
const RESERVATIONS: usize = 1_000;
/// The most of one call.
const OF_ONE_CALL: usize = 64;
const IDLE: Duration = Duration::from_secs(10);

/// A service of its own, which ends with this.
struct Service {
    child: Child,
    folder: tempfile::TempDir,
}

impl Service {
    fn start(bench: &Bench) -> Result<Service, Failure> {
        let folder = tempfile::Builder::new().prefix("bench").tempdir()?;
        let config = folder.path().join("service.toml");
        std::fs::write(&config, format!("cpus = [{}]\n", bench.cpu))?;
        let child = Command::new(&bench.punctual)
            .args(["serve", "--host", "user", "--config"])
            .arg(&config)
            .arg("--socket")
            .arg(folder.path().join("socket"))
            .env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/none")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Service { child, folder })
    }

    fn client(&mut self) -> Result<ServiceClient, Failure> {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(client) = ServiceClient::connect(&self.folder.path().join("socket"))? {
                return Ok(client);
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("punctual serve ended: {status}").into());
            }
            if Instant::now() > end {
                return Err("punctual serve does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How often its threads have begun to execute so far.
    fn wake_ups(&self) -> Result<u64, Failure> {
        let mut all = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let status = std::fs::read_to_string(thread?.path().join("status"))?;
            let switches = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
            all += switches.unwrap_or_default().trim().parse::<u64>()?;
        }
        Ok(all)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // SAFETY: a child that was not waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        let _ = self.child.wait();
    }
}

/// A process of threads that sleep until this is dropped. The service adopts none of a process that
/// started it, as this one did.
struct SleepingThreads {
    process: Child,
    tids: Vec<i32>,
}

impl SleepingThreads {
    fn start(count: usize) -> Result<SleepingThreads, Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--threads", &count.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().ok_or("it has no output")?;
        let numbers = BufReader::new(output).lines().take(count);
        let tids = numbers.map(|line| Ok(line?.parse()?)).collect::<Result<_, Failure>>()?;
        Ok(SleepingThreads { process, tids })
    }

    fn request(&self, tid: i32) -> TaskRequest {
        let name = format!("t{tid}");
        let pid = self.process.id() as i32;
        TaskRequest { tid: Some(tid), ..TaskRequest::new(&name, pid, PERIOD_NS, BUDGET_NS) }
    }
}

impl Drop for SleepingThreads {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// The process of [`SleepingThreads`]: prints the numbers of its threads, and ends with its input.
pub fn threads(count: usize) -> Result<(), Failure> {
    for _ in 0..count {
        std::thread::Builder::new().stack_size(64 << 10).spawn(|| {
            println!("{}", thread_id());
            loop {
                std::thread::park();
            }
        })?;
    }
    std::io::stdin().lines().for_each(drop);
    Ok(())
}

/// What a client waits for one more reservation, ns.
fn one_more(
    client: &mut ServiceClient,
    request: &TaskRequest,
    times: usize,
) -> Result<Spread, Failure> {
    let mut took = Vec::new();
    for _ in 0..times {
        let begun = Instant::now();
        let made = client.reserve(std::slice::from_ref(request))?;
        took.push(begun.elapsed().as_nanos() as f64);
        for info in made {
            client.release(info.id)?;
        }
    }
    Ok(Spread::of(took))
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let times = if bench.quick { 20 } else { 200 };
    tools::progress("service");
    let mut service = Service::start(bench)?;
    drop(service.client()?);
    // What its start and the client left to do.
    std::thread::sleep(Duration::from_secs(1));
    let before = service.wake_ups()?;
    std::thread::sleep(IDLE);
    let idle = (service.wake_ups()? - before) as f64 / IDLE.as_secs_f64();
    let sleeping = SleepingThreads::start(RESERVATIONS + 1)?;
    let (last, others) = sleeping.tids.split_last().ok_or("no threads")?;
    let last = sleeping.request(*last);
    let mut client = service.client()?;
    let alone = tools::patiently(|| one_more(&mut client, &last, times))?;
    for some in others.chunks(OF_ONE_CALL) {
        let requests: Vec<_> = some.iter().map(|tid| sleeping.request(*tid)).collect();
        tools::patiently(|| Ok(client.reserve(&requests)?))?;
    }
    let among = one_more(&mut client, &last, times)?;
    tools::progress("");
    println!("The service");
    println!("  one reservation, no other, us                    {}", alone.show(1e3, 0));
    println!("  one among {RESERVATIONS}, us                           {}", among.show(1e3, 0));
    println!("  wake-ups a second without reservations           {idle:.1}\n");
    Ok(Part {
        figures: json!({ "alone_ns": alone.json(), "among_ns": among.json(),
            "reservations": RESERVATIONS, "idle_wake_ups_a_second": idle }),
        verdicts: vec![
            Verdict::new(
                format!("one reservation more among {RESERVATIONS}"),
                "5 ms",
                format!("{} ms", among.show(1e6, 2)),
                among.median() < 5e6,
            ),
            Verdict::new(
                "wake-ups of the idle service",
                "1 a second",
                format!("{idle:.1}"),
                idle < 1.0,
            ),
        ],
    })
}
