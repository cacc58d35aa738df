//! What does not need a real-time machine.

use std::sync::atomic::AtomicBool;

use super::decisions::{Decisions, JobShape};
use super::events::losses;
use super::gaps::{Gap, GapPage, LOAD};
use super::paper::{PaperTasks, RED_LINUX, RTAI_TABLES_2_3, RT_LINUX};
use super::*;
use crate::cycles::MeasuredTime;
use crate::distribution::Distribution;
use punctual_sys::clock::monotonic_ns;

fn plan(parts: &[OverheadPart]) -> OverheadPlan {
    OverheadPlan {
        cpu: 0,
        parts: parts.to_vec(),
        events: 1_000_000,
        decisions: 1_000_000,
        budget_periods: 10,
        edges: 100,
        generator: Some(Generator::BuiltIn),
        spinner: Vec::new(),
        requirements: Vec::new(),
        stop: Arc::default(),
    }
}

#[test]
fn the_papers_times_are_cycles_of_their_clocks() {
    let cycles = |time: MeasuredTime| time.cycles.expect("the clock is known");
    // 15 us at 120 MHz; 1.14 us at 1 GHz.
    assert_eq!(cycles(RT_LINUX.time(15_000)), 1_800);
    assert_eq!(cycles(RED_LINUX.time(1_140)), 1_140);
    let worst = RTAI_TABLES_2_3.iter().max_by_key(|row| row.max_ns).expect("six rows");
    assert_eq!((worst.tasks, worst.machine.cpu), (PaperTasks::Lxrt, "Pentium II 266"));
    assert_eq!(cycles(worst.machine.time(worst.max_ns)), 25_600);
}

#[test]
fn a_loss_begins_at_the_release_where_another_program_may_have_executed_before() {
    let gap = |begin, end, before, after| Gap { begin, end, before, after };
    let releases = [(1_000_000, 2_000_000), (1_000_000, 5_000_000)];
    let gaps = [
        // Before the first instant that counts.
        gap(900_000, 1_010_000, LOAD, 1),
        // Another program had the CPU since 2.5 ms; the release is at 3 ms.
        gap(2_500_000, 3_008_000, LOAD, 1),
        // The same after the task's own last job.
        gap(4_200_000, 5_004_000, 1, 1),
        // From task to task, which was released long before: all of it.
        gap(6_000_000, 6_012_000, 1, 2),
        // The load: another program may have been first.
        gap(6_500_000, 6_900_000, 2, LOAD),
        // The load executed until after the release.
        gap(7_003_000, 7_009_000, LOAD, 1),
        // An interrupt.
        gap(7_500_000, 7_502_000, 1, 1),
    ];
    let found = losses(&gaps, &releases, 1_000_000);
    let spread = |of: &Distribution| of.spread().expect("some");
    let switches = spread(&found.switches);
    assert_eq!((switches.count, switches.min_ns, switches.max_ns), (4, 4_000, 12_000));
    assert_eq!(switches.average_ns, (8_000 + 4_000 + 12_000 + 6_000) / 4);
    let interruptions = spread(&found.interruptions);
    assert_eq!((interruptions.count, interruptions.max_ns), (1, 2_000));
}

#[test]
fn spinners_find_each_gap_once_also_through_another_mapping() {
    let page = GapPage::new().expect("shared memory");
    let other = GapPage::open(std::path::Path::new(&page.path())).expect("the same memory");
    let never = AtomicBool::new(false);
    let spin = |page: &GapPage, who, ns| page.spin(who, monotonic_ns() + ns, &never);
    spin(&page, 1, 100_000);
    std::thread::sleep(Duration::from_millis(2));
    spin(&other, 2, 100_000);
    let (gaps, lost) = page.gaps();
    assert_eq!(lost, 0);
    let between: Vec<_> = gaps.iter().filter(|gap| (gap.before, gap.after) == (1, 2)).collect();
    assert_eq!(between.len(), 1, "{gaps:?}");
    assert!(between[0].end - between[0].begin >= 2_000_000, "{between:?}");
    assert!(gaps.windows(2).all(|pair| pair[0].end <= pair[1].begin), "{gaps:?}");

    let file = tempfile::NamedTempFile::new().expect("a file");
    assert!(GapPage::open(file.path()).is_err(), "a file of another size is no page");
}

#[test]
fn decisions_are_made_with_any_number_of_jobs_flat_and_in_trees() {
    for shape in [JobShape::Flat, JobShape::Trees] {
        for jobs in [1, 10, 1_000] {
            let mut decisions = Decisions::new(jobs, shape).expect("room");
            let mut made = 0;
            decisions.run(500, &mut |_| made += 1).expect("jobs without end");
            assert_eq!(made, 500, "{jobs} jobs, {shape:?}");
        }
    }
    assert!(Decisions::new(0, JobShape::Flat).is_err(), "no job is none to select");
}

#[test]
fn parts_are_measured_with_progress_and_what_was_not_asked_for_is_absent() {
    let mut plan = plan(&[OverheadPart::Decisions]);
    plan.requirements =
        Requirement::parse_list("decision-average=1ns,decision-max=60min,variation=1s", &FIGURES)
            .expect("they are figures");
    let mut seen = Vec::new();
    let (result, error) =
        measure(&plan, &mut |step| seen.push(step.clone())).expect("it needs no privilege");
    assert!(error.is_none() && !result.interrupted);
    assert!(result.events.is_none() && result.budgets.is_none() && result.square_wave.is_none());
    let part = result.decisions.as_ref().expect("it was asked for");
    let native: Vec<_> =
        part.rows.iter().filter(|row| row.build == DispatcherBuild::Native).collect();
    assert_eq!(native.iter().map(|row| row.jobs).collect::<Vec<_>>(), decisions::JOBS);
    for row in native {
        assert!(row.count > 0 && row.min.ns <= row.average.ns && row.average.ns <= row.max.ns);
    }
    let bpf = part.rows.iter().any(|row| row.build == DispatcherBuild::Bpf);
    assert_ne!(bpf, part.bpf_not_possible.is_some(), "measured, or why not");
    assert!(seen.windows(2).all(|pair| pair[0].done <= pair[1].done), "{seen:?}");
    assert!(seen.iter().all(|step| step.done <= step.planned), "{seen:?}");

    let broken: Vec<_> =
        result.violations.iter().map(|violation| violation.requirement.figure.as_str()).collect();
    assert!(broken.iter().filter(|figure| **figure == "decision-average").count() >= 5);
    assert!(!broken.contains(&"decision-max"), "{broken:?}");
    // The square wave was not measured, so that its requirement is not kept.
    assert_eq!(result.violations.last().expect("variation").measured_ns, None);
}

#[test]
fn a_cpu_that_is_not_there_is_refused_before_anything_is_measured() {
    let plan = OverheadPlan { cpu: 100_000, ..plan(&[OverheadPart::Decisions]) };
    let refused = measure(&plan, &mut |_| {}).expect_err("there is no such CPU");
    assert_eq!((refused.kind, refused.exit_code()), (Kind::Usage, 2));
}

#[test]
fn a_stop_before_the_first_row_measures_nothing() {
    let plan = plan(&[OverheadPart::Decisions]);
    plan.stop.store(true, Relaxed);
    let (result, error) = measure(&plan, &mut |_| {}).expect("nothing can fail");
    assert!(result.interrupted && error.is_none() && result.decisions.is_none());
}

#[test]
fn names_of_parts_are_found_again() {
    for part in OverheadPart::ALL {
        assert_eq!(OverheadPart::named(part.name()), Some(part));
    }
    assert_eq!(OverheadPart::named("table-2"), None);
}
