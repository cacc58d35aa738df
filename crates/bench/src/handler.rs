//! What an event costs: time in the handler, and CPU in all beside the floor.

use crate::floor::{self, Cost, Reading};
use crate::windows::Spread;
use crate::{threads, tools, Bench, Failure, Part, Verdict};
use punctual_host_user::{Host, HostOptions, Output};
use punctual_measure::overhead::paper::{PaperTasks, RTAI_TABLES_2_3};
use punctual_measure::overhead::sets::TABLE_2;
use punctual_program_jobs::ProgramGroups;
use punctual_sys::clock::CpuClock;
use punctual_taskset::{DomainId, TaskSet};
use punctual_trace::{Header, Limits, Trace, TraceBuffer, TraceSink};
use serde_json::json;
use std::time::Duration;

/// Records of what happens in an event, with its time: ready, blocked, done, charge, advance
/// (dispatcher/record.h).
const IN_EVENTS: [u32; 5] = [4, 5, 7, 8, 12];
const WARM_UP: u64 = 100_000_000;
/// From handing over to the first release, ns.
const LEAD: u64 = 5_000_000;
const HOUSEKEEPING: Duration = Duration::from_millis(25);

struct Window {
    cost: Cost,
    handler_mean: u64,
    handler_max: u64,
    late_p50: u64,
    granularity: u64,
    /// Of the events, ns from the first.
    instants: Vec<u64>,
}

fn dispatcher_window(cpu: u32, length: u64) -> Result<Window, Failure> {
    let set = TaskSet::parse(&format!("cpu = {cpu}\n{TABLE_2}"), "table-2")?;
    let load = threads::Load::ordinary(cpu, length + 500_000_000);
    let mut tids = None;
    let mut readings: Vec<Reading> = Vec::new();
    let mut begun = 0;
    let mut read = |host: &Host| {
        let tids = tids.get_or_insert_with(|| {
            [threads::named("tau1"), threads::named("tau2"), Some(load.tid())]
        });
        let others =
            tids.iter().flatten().map(|&tid| CpuClock::of_thread(tid).read().unwrap_or(0)).sum();
        let costs = host.readings();
        let wall = punctual_host_user::now();
        begun = if begun == 0 { wall } else { begun };
        if wall - begun > WARM_UP && wall - begun < length - 30_000_000 {
            readings.push(Reading {
                wall,
                events: costs.iter().map(|c| c.reading.events).sum(),
                own: costs.iter().map(|c| c.cpu_time).sum(),
                others,
            });
        }
    };
    let buffer = TraceBuffer::default();
    let header =
        Header::new("user", set.cpus()[0], &set.policy.name, Vec::new(), Limits::default());
    let sink = TraceSink::new(buffer.clone(), header);
    let traces = vec![(DomainId(0), sink.clone())];
    let options = HostOptions {
        set: set.clone(),
        room: 0,
        program_groups: ProgramGroups::default(),
        owner: "bench".into(),
        traces,
        records: 1 << 17,
        confine: false,
    };
    let mut host = Host::start(&options)?;
    for (index, spec) in set.tasks.iter().enumerate() {
        host.add_spec(index as u32, spec, false, Output::Nowhere)?;
    }
    let origin = punctual_host_user::now() + LEAD;
    host.begin(origin)?;
    while punctual_host_user::now() < origin + length {
        std::thread::sleep(HOUSEKEEPING);
        host.housekeep(&mut |_| {});
        read(&host);
    }
    let finished = host.finish(&mut |_| {});
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
        return Err("the window was too short".into());
    };
    let reading = finished.readings[0].reading;
    sink.finish()?;
    let trace = Trace::read(&mut &buffer.bytes()[..])?;
    let mut times = trace
        .records
        .iter()
        .filter(|r| IN_EVENTS.contains(&r.kind))
        .map(|r| r.time)
        .collect::<Vec<_>>();
    times.dedup();
    let origin = times.first().copied().unwrap_or(0);
    Ok(Window {
        cost: first.until(last),
        handler_mean: reading.handler_mean,
        handler_max: reading.handler_max,
        late_p50: reading.late_p50,
        granularity: finished.readings[0].precision.granularity,
        instants: times.into_iter().map(|t| t - origin).collect(),
    })
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let length = if bench.quick { 1_000_000_000 } else { 2_000_000_000 };
    let mut windows = Vec::new();
    let mut floors = Vec::new();
    for n in 0..bench.windows {
        tools::progress(&format!("handler: window {} of {}", n + 1, bench.windows));
        let window = tools::patiently(|| dispatcher_window(bench.cpu, length))?;
        let mut floor = Err(floor::TOO_BUSY.into());
        for _ in 0..5 {
            floor = floor::window(bench.cpu, &window.instants, window.granularity);
            if floor.is_ok() {
                break;
            }
        }
        floors.push(floor?);
        windows.push(window);
    }
    tools::progress("");
    let mean = Spread::of(windows.iter().map(|w| w.handler_mean as f64));
    let max = Spread::of(windows.iter().map(|w| w.handler_max as f64));
    let rate = Spread::of(windows.iter().map(|w| w.cost.events as f64 * 1e9 / w.cost.wall as f64));
    println!(
        "Time in the handler per event, us: RTAI's Table 2 set (2 ms/1 ms and 5 ms/1 ms, \
         spinning), beside a background load"
    );
    println!("  {:<46} {:>20} {:>24}", "", "average", "maximum");
    for row in RTAI_TABLES_2_3 {
        let tasks = match row.tasks {
            PaperTasks::Rtai => "RTAI tasks (Table 2)",
            PaperTasks::Lxrt => "LXRT tasks (Table 3)",
        };
        let platform = format!("{tasks}, {}", row.machine.cpu);
        let [average, maximum] = [row.average_ns, row.max_ns].map(|ns| ns as f64 / 1e3);
        println!("  {platform:<46} {average:>20} {maximum:>24}");
    }
    println!(
        "  {:<46} {:>20} {:>24}\n",
        "Punctual, this machine",
        mean.show(1e3, 2),
        max.show(1e3, 1)
    );

    let own: Vec<f64> = windows.iter().map(|w| w.cost.own_per_event()).collect();
    let floor_own: Vec<f64> = floors.iter().map(Cost::own_per_event).collect();
    let lost: Vec<f64> = windows.iter().map(|w| w.cost.lost_per_event()).collect();
    let floor_lost: Vec<f64> = floors.iter().map(Cost::lost_per_event).collect();
    let own_ratio = Spread::ratios(&own, &floor_own);
    let lost_ratio = Spread::ratios(&lost, &floor_lost);
    println!(
        "CPU in all per event, us ({:.0} events/s), beside a bare thread woken at the same \
         instants",
        rate.median()
    );
    const COLUMNS: [i32; 4] = [-34, 22, 22, 20];
    tools::row(COLUMNS, ["", "Punctual", "bare thread", "ratio"]);
    for (what, a, b, ratio) in [
        ("by the thread's own CPU clock", &own, &floor_own, &own_ratio),
        ("by what tasks and load did not get", &lost, &floor_lost, &lost_ratio),
    ] {
        let [a, b] = [a, b].map(|figures| Spread::of(figures.iter().copied()).show(1e3, 2));
        tools::row(COLUMNS, [what, &a, &b, &ratio.show(1.0, 2)]);
    }
    println!();
    Ok(Part {
        figures: json!({
            "handler_mean_ns": mean.json(), "handler_max_ns": max.json(),
            "events_per_s": rate.json(),
            "lateness_p50_ns": Spread::of(windows.iter().map(|w| w.late_p50 as f64)).json(),
            "cpu_per_event_ns": { "punctual": Spread::of(own).json(),
                "floor": Spread::of(floor_own).json(), "ratio": own_ratio.json() },
            "lost_per_event_ns": { "punctual": Spread::of(lost).json(),
                "floor": Spread::of(floor_lost).json(), "ratio": lost_ratio.json() },
        }),
        verdicts: vec![
            Verdict::new(
                "handler, average, Table 2's set",
                "2.5 us",
                mean.show(1e3, 2),
                mean.median() <= 2_500.0,
            ),
            Verdict::new(
                "CPU per event against the floor, thread's clock",
                "1.25",
                own_ratio.show(1.0, 2),
                own_ratio.median() <= 1.25,
            ),
            Verdict::new(
                "CPU per event against the floor, lost by others",
                "1.25",
                lost_ratio.show(1.0, 2),
                lost_ratio.median() <= 1.25,
            ),
        ],
    })
}
