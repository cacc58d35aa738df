//! RT-Linux's square wave: tasks with a period of 100 us make an edge at each release, idle and
//! under load. The paper watched a pin of the parallel port on an oscilloscope; here each edge is
//! the time that its task reads first.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_sys::clock::monotonic_ns;
use rtrb::RingBuffer;

use super::paper::{RT_LINUX, SQUARE_WAVE_PERIOD, SQUARE_WAVE_VARIATION, SWITCH_CYCLES};
use super::result::{MeasuredHost, SquareWaveResult, SquareWaveRow, WaveLoad};
use super::{OverheadPlan, Window};
use crate::cycles::CycleRate;
use crate::distribution::Distribution;
use crate::latency::JobClass;
use crate::loads::{RunningLoad, Workload};
use crate::periodic::{CycleBody, PeriodicJob, PeriodicJobs};

/// Budget of a task, ns. Its edge takes far less; the user host promises no budget so small, so
/// that the set runs as an overload.
const BUDGET: u64 = 30_000;
/// Edges that may wait: some seconds of two tasks.
const RING: usize = 1 << 17;
/// Edges left out at the beginning: caches are cold.
const SKIPPED: u64 = 100;
/// A row ends after so many times its length, and this time, although edges are missing, ns.
const LONGEST: u64 = 3;
const SLACK: u64 = 10_000_000_000;

/// What is measured, in order.
pub fn rows() -> Vec<(MeasuredHost, u32, WaveLoad)> {
    use WaveLoad::{All, DiskCopy, Graphics, Idle, Network};
    let loads = [Idle, DiskCopy, Network, Graphics, All];
    let hosts = [MeasuredHost::User, MeasuredHost::Fifo];
    let of_host =
        |host| [1, 2].into_iter().flat_map(move |tasks| loads.map(move |load| (host, tasks, load)));
    hosts.into_iter().flat_map(of_host).collect()
}

impl SquareWaveResult {
    pub(super) fn new(edges: u64) -> SquareWaveResult {
        SquareWaveResult {
            period_ns: SQUARE_WAVE_PERIOD,
            edges,
            rows: Vec::new(),
            paper_cpu: RT_LINUX.cpu.to_owned(),
            paper_khz: RT_LINUX.khz,
            paper_variation: RT_LINUX.time(SQUARE_WAVE_VARIATION),
            switch: None,
            paper_switch_cycles: SWITCH_CYCLES,
        }
    }
}

impl WaveLoad {
    fn workloads(self) -> &'static [Workload] {
        const ALL: [Workload; 3] = [Workload::IoBoth, Workload::Network, Workload::Graphics];
        match self {
            WaveLoad::Idle => &[],
            WaveLoad::DiskCopy => &ALL[..1],
            WaveLoad::Network => &ALL[1..2],
            WaveLoad::Graphics => &ALL[2..],
            WaveLoad::All => &ALL,
        }
    }
}

/// An edge: how late it was, and how many before it were not made.
struct Edge {
    late: u64,
    skipped: u64,
}

/// Makes edges of the releases that a task gets.
#[derive(Default)]
struct EdgeMaker {
    /// The release after the previous one, and when the previous edge was made.
    previous: Option<(u64, u64)>,
}

impl EdgeMaker {
    /// The edge of a release, made at `now`. A host that comes late reports the latest release: the
    /// edge is then as late as the first one that was due since the previous edge.
    fn edge(&mut self, release: u64, now: u64) -> Edge {
        let (expected, made) = self.previous.unwrap_or((release, 0));
        let behind = made.saturating_sub(expected).div_ceil(SQUARE_WAVE_PERIOD);
        let due = (expected + behind * SQUARE_WAVE_PERIOD).min(release);
        self.previous = Some((release + SQUARE_WAVE_PERIOD, now));
        let skipped = release.saturating_sub(expected) / SQUARE_WAVE_PERIOD;
        Edge { late: now.saturating_sub(due), skipped }
    }
}

/// Measures one row of so many edges.
///
/// # Errors
/// The tasks cannot run. A load that cannot is reported in the row.
pub fn row(
    plan: &OverheadPlan,
    rate: &CycleRate,
    (host, tasks, load): (MeasuredHost, u32, WaveLoad),
    window: &mut Window,
) -> Result<SquareWaveRow, Diagnostic> {
    let row = SquareWaveRow {
        host,
        tasks,
        load,
        lateness: None,
        variation: None,
        skipped: 0,
        not_possible: None,
        notes: Vec::new(),
    };
    let longest = window.length.saturating_mul(LONGEST).saturating_add(SLACK);
    let start = |&workload| RunningLoad::start(workload, plan.cpu, longest, plan.generator);
    let mut loads: Vec<RunningLoad> = match load.workloads().iter().map(start).collect() {
        Ok(loads) => loads,
        Err(why) => return Ok(SquareWaveRow { not_possible: Some(why), ..row }),
    };
    let lost = Arc::new(AtomicU64::new(0));
    let (mut jobs, mut rings) = (Vec::new(), Vec::new());
    for place in 0..tasks {
        let (mut ring, edges) = RingBuffer::new(RING);
        rings.push(edges);
        let (lost, mut left) = (lost.clone(), plan.edges + SKIPPED);
        let mut maker = EdgeMaker::default();
        let cycle = move |release| {
            if ring.push(maker.edge(release, monotonic_ns())).is_err() {
                lost.fetch_add(1, Relaxed);
            }
            left -= 1;
            left > 0
        };
        // Of two tasks one sets and the other clears: the edges are evenly spaced.
        let offset = u64::from(place) * SQUARE_WAVE_PERIOD / u64::from(tasks);
        jobs.push(PeriodicJob { offset, open: Box::new(move || -> CycleBody { Box::new(cycle) }) });
    }
    let class = match host {
        MeasuredHost::Fifo => JobClass::Fifo,
        _ => JobClass::User,
    };
    let periodic = PeriodicJobs {
        cpu: plan.cpu,
        class,
        period: SQUARE_WAVE_PERIOD,
        budget: BUDGET,
        overload: true,
        longest,
        stop: plan.stop.clone(),
    };
    let mut lateness = Distribution::new();
    let (mut seen, mut skipped) = (vec![0; rings.len()], 0);
    let mut drain = || {
        for (ring, seen) in rings.iter_mut().zip(&mut seen) {
            while let Ok(edge) = ring.pop() {
                *seen += 1;
                if *seen > SKIPPED {
                    lateness.add(edge.late);
                    skipped += edge.skipped;
                }
            }
        }
        window.tick(seen.iter().max().copied().unwrap_or(0) * SQUARE_WAVE_PERIOD);
    };
    let end = periodic.run(jobs, &mut drain)?;
    drain();
    let early = loads.iter_mut().find_map(RunningLoad::early_end);
    drop(loads);
    if let Some(early) = early {
        return Ok(SquareWaveRow { not_possible: Some(early), ..row });
    }
    let mut notes = end.notes;
    let measured = lateness.count() + skipped + lost.load(Relaxed);
    let wanted = plan.edges * u64::from(tasks);
    if measured < wanted && !plan.stop.load(Relaxed) {
        notes.push(format!("{measured} of {wanted} edges in the time that they may take"));
    }
    let spread = lateness.spread();
    Ok(SquareWaveRow {
        lateness: spread,
        variation: spread.map(|s| rate.time(s.max_ns - s.min_ns)),
        skipped,
        notes,
        ..row
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_makes_one_edge_late_however_its_host_reports_it() {
        const P: u64 = SQUARE_WAVE_PERIOD;
        let edges = |made: &[(u64, u64)]| {
            let mut maker = EdgeMaker::default();
            made.iter()
                .map(|&(release, now)| maker.edge(release, now))
                .map(|edge| (edge.late, edge.skipped))
                .collect::<Vec<_>>()
        };
        // The user host skips what has gone by: the edge of 2 P was due 2.5 P before.
        let skipping = edges(&[(P, P + 5), (4 * P, 4 * P + P / 2), (5 * P, 5 * P + 5)]);
        assert_eq!(skipping, [(5, 0), (2 * P + P / 2, 2), (5, 0)]);
        // A thread that sleeps until 2 P wakes late, and skips then.
        let sleeping = edges(&[(P, P + 5), (2 * P, 4 * P + P / 2), (5 * P, 5 * P + 5)]);
        assert_eq!(sleeping, [(5, 0), (2 * P + P / 2, 0), (5, 2)]);
    }
}
