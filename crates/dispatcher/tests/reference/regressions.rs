//! Differences that were found once, cut down, with what they showed.

use punctual_dispatcher::{
    Attribute, For, Job, Limits, OverrunPolicy, Reservation, TaskId, INFINITE,
};

use crate::operation::Op;
use crate::{runner, BOTH};

fn reservation(serves: For, start: u64, period: u64, group: u32) -> Reservation {
    Reservation {
        start,
        deadline: 1,
        group,
        overrun: OverrunPolicy::Skip,
        ..Reservation::new(serves, period, 1)
    }
}

/// It joins its queue and leaves it within one call, which is not seen.
#[test]
fn a_server_job_that_gets_wet_while_its_group_goes_idle_keeps_its_arrival() {
    let server =
        |budget_group| Job { start: 166, finish: 178, budget_group, ..Job::new(For::Group(3), 4) };
    let ops = [
        Op::Pass(9),
        Op::AddTask,
        Op::AddTask,
        Op::Order(0, vec![Attribute::Finish, Attribute::Start]),
        Op::AddReservation(reservation(For::Task(TaskId(1)), 128, 1, 2)),
        Op::AddJob(Job { start: 126, group: 3, ..Job::new(For::Group(2), 6) }),
        Op::AddReservation(reservation(For::Group(3), 119, 1, 0)),
        Op::AddReservation(reservation(For::Budget(2), 152, 3, 0)),
        Op::Pass(57),
        Op::AddJob(server(2)),
        Op::AddJob(server(0)),
        Op::Advance,
        Op::Pass(1),
        Op::ChargeTask(1, 4),
        Op::Advance,
    ];
    runner::replay(&BOTH, &ops);
}

/// Its time does not wrap around, neither after a job nor after a release that found no room.
#[test]
fn a_release_beyond_the_end_of_time_never_comes() {
    let period = (1 << 62) - 1;
    let mut world = BOTH;
    world.origin = u64::MAX - (1 << 40);
    for jobs in [1, 2] {
        world.limits = Limits { jobs, ..BOTH.limits };
        let of = |serves| Reservation {
            deadline: period,
            ..reservation(serves, world.origin, period, 0)
        };
        let ops = [
            Op::AddTask,
            Op::AddJob(Job { finish: INFINITE, ..Job::new(For::Task(TaskId(0)), 5) }),
            Op::AddReservation(of(For::Task(TaskId(0)))),
            Op::Advance,
            Op::Pass(1),
            Op::Advance,
            Op::Pass(1 << 39),
            Op::Advance,
        ];
        runner::replay(&world, &ops);
    }
}
