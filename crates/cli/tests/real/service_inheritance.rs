//! Programs, and single threads, that wait for mutexes with priority inheritance: what executes at
//! their levels meanwhile takes nothing from the budgets of others.

use punctual_service::{PeriodReport, TaskRequest};
use punctual_sys::clock::CpuClock;
use punctual_test_support::judge_timing;

use crate::machine::permitted_cpu;
use crate::process::eventually;
use crate::service::{Service, SERVICE_NEEDS};
use crate::service_threads::{periods_of, Program};

const MS: u64 = 1_000_000;

fn request(program: &Program, tid: Option<i32>, [budget, period]: [u64; 2]) -> TaskRequest {
    TaskRequest { tid, ..TaskRequest::new("program", program.pid(), period * MS, budget * MS) }
}

fn sum(periods: &[PeriodReport], of: fn(&PeriodReport) -> u64) -> u64 {
    periods.iter().map(of).sum()
}

/// A program with 10 ms in 20 beside one with 1 ms in 10 that waits for a mutex whose owner is an
/// ordinary program. With `alone`, its first thread alone has that reservation.
fn victim_receives_its_budget_beside(cpu: u32, attack: &str, nap: &str, alone: bool) {
    let service = Service::start(cpu);
    let mut client = service.client();
    let victim = Program::start("spin");
    let owner = Program::start(&format!("inherit-owner {cpu} {nap}"));
    let bad = Program::start(&format!("inherit {attack} {}", owner.pid()));
    let tid = alone.then(|| bad.pid());
    let wanted = [request(&victim, None, [10, 20]), request(&bad, tid, [1, 10])];
    let ids = service.reserve(&mut client, &wanted);
    // The first wait is paid for from when it is seen.
    periods_of(&mut client, ids[0], 3);
    let periods = periods_of(&mut client, ids[0], 40);
    let received = sum(&periods, |p| p.received_ns);
    let assigned = sum(&periods, |p| p.assigned_ns);
    let misses = periods.iter().filter(|p| p.miss).count();
    let percent = received as f64 * 100.0 / assigned as f64;
    println!("{attack}: {percent:.1} % of its budgets, {misses} periods missed");
    judge_timing(|| {
        assert!(received + assigned / 100 >= assigned, "{attack}: {received} of {assigned} ns");
    });
    drop(client);
    service.end(cpu);
}

#[test]
fn a_program_that_waits_with_inheritance_pays_for_what_executes_at_its_level() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    for attack in ["always", "requeued", "many", "beside-execution"] {
        victim_receives_its_budget_beside(cpu.0, attack, "", false);
    }
}

#[test]
fn a_program_whose_waits_begin_and_end_between_two_events_pays_for_them() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    for attack in ["mostly", "in-turns", "new-threads"] {
        victim_receives_its_budget_beside(cpu.0, attack, "nap", false);
    }
}

#[test]
fn a_program_whose_waits_end_by_a_time_out_while_the_owner_executes_pays_for_it() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    for nap in ["", "nap"] {
        victim_receives_its_budget_beside(cpu.0, "time-out", nap, false);
    }
}

#[test]
fn a_single_thread_pays_whenever_it_waits() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    for (attack, nap) in [("always", ""), ("mostly", "nap"), ("time-out", ""), ("time-out", "nap")]
    {
        victim_receives_its_budget_beside(cpu.0, attack, nap, true);
    }
}

#[test]
fn a_program_whose_threads_share_a_mutex_pays_for_their_execution_alone() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    let mut client = service.client();
    let program = Program::start("inherit-share");
    let _load = Program::start(&format!("inherit-owner {}", cpu.0));
    eventually("it has its threads", || crate::process::threads_of(program.pid()).len() == 2);
    let id = service.reserve(&mut client, &[request(&program, None, [10, 20])])[0];
    periods_of(&mut client, id, 5);
    let executed = || CpuClock::of_process(program.pid()).read().expect("it lives");
    let before = executed();
    let periods = periods_of(&mut client, id, 40);
    let (executed, received) = (executed() - before, sum(&periods, |p| p.received_ns));
    println!("{executed} ns executed, {received} ns paid for in {} periods", periods.len());
    judge_timing(|| assert!(received <= executed + executed / 20, "{received} of {executed}"));
    drop(client);
    service.end(cpu.0);
}
