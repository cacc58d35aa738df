//! Runs of synthetic periods, for the tests of results and of what is made of them (`report`).

use super::*;

/// A period of a task 0 with 1 ms period and 100 us budget, released at `number` ms, that got it
/// all.
pub fn period(number: u64) -> Period {
    let release = 1_000_000 * (number + 1);
    Period {
        task: 0,
        number,
        release,
        deadline: release + 1_000_000,
        assigned: 100_000,
        received: 100_000,
        unused: 0,
        started: release + 3_000,
        completed: release + 200_000,
        end: JobEnd::Completed,
        ready_throughout: true,
        woken_late: false,
        miss: false,
        overrun: false,
    }
}

/// A machine that is the same everywhere.
pub fn machine() -> Machine {
    Machine {
        kernel: Some("6.18.15".into()),
        build: None,
        preempt_rt: false,
        preemption: None,
        hz: Some(250),
        distribution: None,
        arch: "x86_64".into(),
        cpu_model: None,
        cpu_khz: None,
        cpus: vec![0, 1],
        allowed_cpus: vec![0, 1],
        isolated_cpus: Vec::new(),
        clock_source: Some("tsc".into()),
        rt_runtime_us: None,
        rt_period_us: None,
        virtual_machine: Some(true),
    }
}

/// A collector for the task of [`period`].
pub fn collector() -> Collector {
    let run = Run { machine: machine().into(), ..Run::new(HostKind::User, "edf", &[1]) };
    Collector::new(run, vec![TaskInfo::new("servo", 1_000_000, 100_000, 1_000_000)])
}

/// Results of three tasks with everything in them; `tilt` shifts the shares, ppm.
pub fn rich(host: HostKind, tilt: u64) -> Results {
    let run = Run { machine: machine().into(), ..Run::new(host, "rm", &[1]) };
    let mut player = TaskInfo::new("player", 20_000_000, 3_000_000, 20_000_000);
    player.kind = TaskKind::Command;
    let mut wild = TaskInfo::new("wild", 4_000_000, 1_000_000, 4_000_000);
    wild.kind = TaskKind::Forever;
    let servo = TaskInfo::new("servo", 1_000_000, 250_000, 800_000);
    let mut collector = Collector::new(run, vec![servo, wild, player]);
    for ms in 0..2_000u64 {
        let noise = (ms * 7_919) % 101;
        let release = (ms + 5) * 1_000_000;
        let mut p = Period {
            release,
            deadline: release + 800_000,
            assigned: 250_000,
            received: 249_000 + noise * 20 + tilt / 4,
            started: release + 2_000 + noise * 150,
            completed: release + 300_000 + noise * 1_000,
            woken_late: ms % 300 == 7,
            ..period(ms)
        };
        collector.record(&p);
        if ms % 4 == 0 {
            (p.task, p.assigned, p.overrun) = (1, 1_000_000, true);
            (p.received, p.started, p.completed) = (999_000 + noise * 20 - tilt, NEVER, NEVER);
            p.miss = tilt > 0 && ms % 16 == 0;
            collector.record(&p);
        }
        if ms % 20 == 0 {
            (p.task, p.assigned, p.overrun, p.miss) = (2, 3_000_000, false, false);
            (p.received, p.ready_throughout) = (2_000_000 + noise * 100, false);
            collector.record(&p);
        }
    }
    collector.finish(2_005_000_000);
    collector.snapshot()
}
