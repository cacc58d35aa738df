//! Reservations for single threads of programs: the thread alone has a budget and a real-time
//! priority, and what its program does moves no other budget.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use punctual_process::descendants;
use punctual_service::{PeriodReport, ServiceClient, TaskRequest};
use punctual_test_support::{judge_timing, LIVENESS};

use crate::bounded::{end_all, end_within};
use crate::machine::{permitted_cpu, wait_for_cpu};
use crate::privileges::UNPRIVILEGED;
use crate::process::{attributes, eventually, kill, threads_of};
use crate::punctual::adversarial;
use crate::service::{Service, SERVICE_NEEDS};
use crate::victim::Victim;

pub fn request(pid: i32, tid: Option<i32>, budget_ns: u64) -> TaskRequest {
    TaskRequest { tid, ..TaskRequest::new("thread", pid, 10_000_000, budget_ns) }
}

/// A program of an ordinary user.
pub struct Program(Child);

impl Program {
    pub fn start(role: &str) -> Program {
        Program::start_as(UNPRIVILEGED, role)
    }

    /// The same of another user.
    pub fn start_as(uid: u32, role: &str) -> Program {
        let words = adversarial(role);
        let mut command = Command::new(&words[0]);
        Program(command.args(&words[1..]).uid(uid).gid(65534).spawn().expect("it starts"))
    }

    pub fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// Waits until it has ended, with 0.
    pub fn assert_success(mut self) {
        let mut ended = None;
        eventually("it ends", || {
            ended = self.0.try_wait().expect("it is ours");
            ended.is_some()
        });
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
    }

    /// Its second thread.
    pub fn second(&self) -> i32 {
        let second = || threads_of(self.pid()).into_iter().find(|tid| *tid != self.pid());
        eventually("it has a second thread", || second().is_some());
        second().unwrap_or(0)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        end_all(descendants(&[self.pid()]).into_iter().chain([self.pid()]));
        let _ = end_within(&mut self.0, LIVENESS);
    }
}

/// The first `count` periods of a reservation from the third on.
pub fn periods_of(client: &mut ServiceClient, id: u64, count: usize) -> Vec<PeriodReport> {
    let mut periods = Vec::new();
    eventually("its periods are reported", || {
        let events = client.take_events().expect("it serves").events;
        for event in events {
            match event.period {
                Some(period) if event.id == id => periods.push(period),
                Some(_) => {}
                None => println!("{event:?}"),
            }
        }
        periods.len() >= count + 2
    });
    periods.drain(2..count + 2).collect()
}

#[test]
fn a_thread_regains_what_it_had_when_it_is_released_or_its_client_or_the_service_ends() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let mut service = Service::start(cpu.0);
    let victim = Victim::start();
    let mut tids = threads_of(victim.pid());
    tids.sort_unstable();
    // The first thread, one that is not, and two at a time.
    for chosen in [&tids[..1], &tids[1..2], &tids[2..4]] {
        let others: Vec<i32> = tids.iter().filter(|tid| !chosen.contains(tid)).copied().collect();
        let of_others = || others.iter().map(|tid| attributes(*tid)).collect::<Vec<_>>();
        let before = of_others();
        let requests: Vec<TaskRequest> =
            chosen.iter().map(|tid| request(victim.pid(), Some(*tid), 1_000_000)).collect();
        let reserve = |service: &Service| {
            let mut client = service.client();
            let ids = service.reserve(&mut client, &requests);
            assert!(!victim.is_as_before());
            assert_eq!(of_others(), before, "its other threads are not touched");
            (client, ids)
        };
        let (mut client, ids) = reserve(&service);
        let refusal = client.reserve(&requests[..1]).expect_err("it has a reservation");
        assert!(refusal.cause.contains("already adopted"), "{refusal}");
        let whole = client.reserve(&[request(victim.pid(), None, 1_000_000)]);
        assert!(whole.expect_err("a thread of it has").cause.contains("already adopted"));
        ids.into_iter().for_each(|id| client.release(id).expect("its own"));
        victim.assert_as_before();
        drop(reserve(&service));
        eventually("it is as before", || victim.is_as_before());
        let _held = reserve(&service);
        kill(service.running.pid(), libc::SIGKILL);
        service.running.reap();
        eventually("it is as before", || victim.is_as_before());
        service.start_again();
        wait_for_cpu(cpu.0);
    }
    let mut client = service.client();
    for (pid, tid, words) in
        [(victim.pid(), 1, "no thread"), (victim.pid(), 4_194_303, "there is no process")]
    {
        let refusal = client.reserve(&[request(pid, Some(tid), 1_000_000)]).expect_err("none");
        assert!(refusal.cause.contains(words), "{refusal}");
    }
    victim.assert_as_before();
    service.end(cpu.0);
}

#[test]
fn threads_receive_their_budgets_whatever_the_program_of_another_does() {
    let Some(cpu) = permitted_cpu(&SERVICE_NEEDS) else { return };
    let service = Service::start(cpu.0);
    for attack in ["spin", "fork", "exec", "exec-parked", "move", "inherit", "end"] {
        let (good, bad) =
            (Program::start("attack spin"), Program::start(&format!("attack {attack}")));
        let mut client = service.client();
        let wanted = [
            request(good.pid(), Some(good.second()), 3_000_000),
            request(bad.pid(), Some(bad.second()), 1_000_000),
        ];
        let first = || attributes(bad.pid()).map(|a| (a.policy, a.nice));
        let own = Some((libc::SCHED_BATCH, 5));
        eventually("its first thread has attributes of its own", || first() == own);
        let ids = service.reserve(&mut client, &wanted);
        let periods = periods_of(&mut client, ids[0], 100);
        let received: u64 = periods.iter().map(|p| p.received_ns).sum();
        let misses = periods.iter().filter(|p| p.miss).count();
        println!("{attack}: {received} ns in {} periods, {misses} missed", periods.len());
        judge_timing(|| {
            let assigned: u64 = periods.iter().map(|p| p.assigned_ns).sum();
            let short =
                periods.iter().filter(|p| p.received_ns + p.assigned_ns / 100 < p.assigned_ns);
            let short: Vec<_> = short.collect();
            assert!(received.abs_diff(assigned) <= assigned / 100, "{attack}: {short:#?}");
            assert_eq!(misses, 0, "{attack}");
        });
        drop(client);
        let is_ordinary = |tid: i32| {
            attributes(tid)
                .is_none_or(|a| matches!(a.policy, libc::SCHED_OTHER | libc::SCHED_BATCH))
        };
        let all = |pid: i32| {
            let processes = descendants(&[pid]).into_iter().chain([pid]);
            processes.flat_map(threads_of).collect::<Vec<_>>()
        };
        for program in [&good, &bad] {
            eventually("all of it is ordinary again", || {
                all(program.pid()).into_iter().all(is_ordinary)
            });
        }
        if !attack.starts_with("exec") {
            assert_eq!(first(), own, "{attack}: the first thread is not touched");
        }
    }
    service.end(cpu.0);
}
