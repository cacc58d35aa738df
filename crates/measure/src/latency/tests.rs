//! What does not need a real-time machine.

use super::job::JobWindow;
use super::*;
use crate::distribution::LatencySpread;
use crate::loads::RunningLoad;

fn plan(workloads: &[Workload]) -> LatencyPlan {
    LatencyPlan {
        cpu: 0,
        class: JobClass::Other,
        periods: 20,
        workloads: workloads.to_vec(),
        generator: Some(Generator::BuiltIn),
        reference: false,
        requirements: Vec::new(),
        stop: Arc::default(),
    }
}

#[test]
fn an_ordinary_job_is_measured_and_never_wakes_early() {
    let window = JobWindow {
        cpu: 0,
        class: JobClass::Other,
        periods: 20,
        longest: 60_000_000_000,
        stop: Arc::default(),
    };
    let mut samples = Vec::new();
    let begun = punctual_sys::clock::monotonic_ns();
    window.run(&mut |sample| samples.push(sample)).expect("an ordinary thread needs no privilege");
    let took = punctual_sys::clock::monotonic_ns() - begun;
    assert_eq!(samples.len(), 20);
    assert!(took >= 20 * SLEEP, "each of 20 periods sleeps 100 us, and all took {took} ns");
    for sample in samples {
        assert!(sample.latency > 0 && sample.latency < took, "{sample:?}");
        assert!(sample.waited.is_none_or(|waited| waited <= sample.latency), "{sample:?}");
    }
}

#[test]
fn rows_are_measured_in_order_with_progress_and_their_parts_add_up() {
    let mut seen = Vec::new();
    let rows = [Workload::Idle, Workload::Fork];
    let (result, error) =
        measure(&plan(&rows), &mut |progress| seen.push(progress)).expect("it is ordinary");
    assert!(error.is_none() && !result.interrupted);
    assert_eq!(result.rows.iter().map(|row| row.workload).collect::<Vec<_>>(), rows);
    let last = seen.last().expect("there is progress");
    assert_eq!((last.done, last.planned, last.workload), (40, 40, Workload::Fork));
    for row in &result.rows {
        let latency = row.latency.expect("it was measured");
        assert_eq!(latency.count + row.lost, 20);
        assert!(latency.min_ns <= latency.p50_ns && latency.p999_ns <= latency.max_ns);
        if let (Some(waited), Some(rest)) = (row.scheduling_delay, row.timer_and_switch) {
            let parts = waited.average_ns + rest.average_ns;
            assert!(parts.abs_diff(latency.average_ns) <= 2, "{row:?}");
        }
    }
    assert_eq!(result.rows[1].generator, Some(Generator::BuiltIn));
}

#[test]
fn an_interrupted_measurement_keeps_the_row_that_it_was_in() {
    let plan =
        LatencyPlan { periods: u64::from(u32::MAX), ..plan(&[Workload::Idle, Workload::Fork]) };
    let stop = plan.stop.clone();
    let (result, _) = measure(&plan, &mut |_| stop.store(true, Relaxed)).expect("it is ordinary");
    assert!(result.interrupted);
    assert_eq!(result.rows.len(), 1, "the second row did not begin");
    assert!(result.rows[0].latency.is_some_and(|latency| latency.count > 0));
}

#[test]
fn every_row_but_the_ordinary_one_is_judged_and_an_impossible_one_is_not() {
    let (mut result, _) = measure(&plan(&[Workload::Idle]), &mut |_| {}).expect("it is ordinary");
    let slow = LatencySpread {
        count: 1,
        min_ns: 1,
        average_ns: 1,
        p50_ns: 1,
        p99_ns: 2_000_000,
        p999_ns: 2_000_000,
        max_ns: 2_000_000,
    };
    let template = result.rows.remove(0);
    let row = |workload| LatencyRow { workload, latency: Some(slow), ..template.clone() };
    let console = LatencyRow {
        not_possible: Some("no console".into()),
        latency: None,
        ..row(Workload::Console)
    };
    result.rows = vec![row(Workload::Fork), row(Workload::NonRealTime), console];
    result.judge(
        &Requirement::parse_list("p99=1ms,p50=1ms", &LatencySpread::FIGURES).expect("it is right"),
    );
    let broken: Vec<_> =
        result.violations.iter().map(|v| (v.workload.as_str(), v.measured_ns)).collect();
    assert_eq!(broken, [("fork", Some(2_000_000))]);
    assert_eq!(result.judged(), 1);
}

#[test]
fn the_ratio_is_the_median_of_the_windows_ratios() {
    let windows = [[110, 100], [300, 100], [50, 100]];
    let reference = ReferenceResult::of("cyclictest".into(), &windows).expect("there are windows");
    assert_eq!((reference.ratio_ppm, reference.p50_ns.len()), (1_100_000, 3));
    assert_eq!(ReferenceResult::of(String::new(), &[]), None);
}

#[test]
fn the_papers_table_has_ten_rows_each_a_workload_of_ours() {
    let missing: Vec<_> =
        Workload::ALL.into_iter().filter(|w| PaperRow::of(*w).is_none()).collect();
    assert_eq!(missing, [Workload::Network]);
    assert!(
        RunningLoad::start(Workload::Idle, 0, 0, None).is_ok_and(|load| load.generator.is_none())
    );
}

#[test]
fn a_row_whose_load_has_ended_has_no_figures_and_keeps_no_requirement() {
    let plan = LatencyPlan {
        requirements: Requirement::parse_list("max=60min", &LatencySpread::FIGURES).expect("right"),
        ..plan(&[])
    };
    let row = row::without_load(Workload::Fork, JobClass::Fifo, "the load ended");
    let mut result = LatencyResult::new(&plan, Machine::detect(), Noise::default());
    result.rows.push(row);
    result.judge(&plan.requirements);
    assert_eq!(result.violations.len(), 1, "{result:?}");
    assert!(result.rows[0].notes[0].contains("left out"));
}
