//! The structures and numbers of this side against `bpf/commands.h`, through `bpf/abi.c`.

use std::collections::BTreeMap;
use std::ffi::{c_char, CStr};
use std::mem::{offset_of, MaybeUninit};

use punctual_trace::kind;

use super::*;
use crate::exit_reason::{CORE_SCHEDULING, CPU_GONE, TIMER_GONE, TIMER_STORM, UNARMED};

#[repr(C)]
struct Number {
    name: *const c_char,
    value: u64,
}

extern "C" {
    static punctual_numbers: [Number; 1];
    fn punctual_sample(call: *mut Call, kind: u32) -> i32;
}

fn numbers() -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    // SAFETY: the table's names are C strings; one that is null ends it.
    unsafe {
        let mut at = (&raw const punctual_numbers).cast::<Number>();
        while !(*at).name.is_null() {
            let name = CStr::from_ptr((*at).name).to_str().expect("plain").to_owned();
            all.insert(name, (*at).value);
            at = at.add(1);
        }
    }
    all
}

#[test]
fn numbers_sizes_and_offsets_are_those_of_the_header() {
    macro_rules! structure {
        ($c:literal, $ty:ident, $($field:ident)*) => {
            vec![
                ($c, size_of::<$ty>() as u64),
                $((concat!($c, ".", stringify!($field)), offset_of!($ty, $field) as u64)),*
            ]
        };
    }
    let mut here = vec![
        ("PUNCTUAL_COOPERATES", COOPERATES.into()),
        ("PUNCTUAL_ALLOCATOR", ALLOCATOR.into()),
        ("PUNCTUAL_ALONE", ALONE.into()),
        ("PUNCTUAL_LATE", LATE.into()),
        ("PUNCTUAL_IN_BACKGROUND", IN_BACKGROUND.into()),
        ("PUNCTUAL_EXIT_CPU_GONE", CPU_GONE as u64),
        ("PUNCTUAL_EXIT_TIMER_GONE", TIMER_GONE as u64),
        ("PUNCTUAL_EXIT_TIMER_STORM", TIMER_STORM as u64),
        ("PUNCTUAL_EXIT_UNARMED", UNARMED as u64),
        ("PUNCTUAL_EXIT_CORE_SCHEDULING", CORE_SCHEDULING as u64),
        ("PUNCTUAL_REC_RUNNING", kind::RUNNING.into()),
        ("PUNCTUAL_REC_STOPPED", kind::STOPPED.into()),
        ("punctual_command.kind", offset_of!(Call, command) as u64),
    ];
    here.extend(structure!("punctual_create", Create,
        domain cpu asks_policies limits granularity
    ));
    here.extend(structure!("punctual_command", Call, domain result now));
    here.extend(structure!("punctual_poll", Poll,
        domain pop records events record_count event_tail throttles arm_failures head
    ));
    here.extend(structure!("punctual_exit", Exit, code kind reason message));
    let there = numbers();
    for (name, value) in here {
        assert_eq!(there.get(name), Some(&value), "{name}");
    }
}

fn job() -> JobAttr {
    JobAttr {
        start: 1,
        finish: 2,
        budget: 3,
        priority: 4,
        cookie: 5,
        task: 6,
        group: 7,
        server: 8,
        budget_group: 9,
        budget_server: 10,
        reserved: 11,
    }
}

fn reservation() -> ReservationAttr {
    ReservationAttr {
        start: 1,
        period: 2,
        budget: 3,
        deadline: 4,
        priority: 5,
        cookie: 6,
        task: 7,
        group: 8,
        overrun: 9,
        wakeup_rule: 10,
        server: 11,
        budget_group: 12,
        budget_server: 13,
        own_cookie: 14,
    }
}

/// Kinds from 0 to 63; what C makes of each is the same value here, arguments included.
#[test]
fn commands_are_laid_out_as_the_tagged_union() {
    let changed = ReservationAttr { start: 1, ..ReservationAttr::default() };
    let here = [
        Command::JobAdd(job()),
        Command::JobCancel { job: 1 },
        Command::ReservationAdd(reservation()),
        Command::ReservationChange { to: changed, reservation: 2 },
        Command::ReservationRemove { reservation: 1 },
        Command::WindowAdd { start: 1, length: 2, begins: 3 },
        Command::WindowDrop,
        Command::JobState { used: 1, remaining: 2, job: 3 },
        Command::ReservationJob { reservation: 1 },
        Command::ReservationDelayed { reservation: 1 },
        Command::ReservationError { error: 1, reservation: 2 },
        Command::TaskAdd,
        Command::TaskRetire { task: 1 },
        Command::TaskJoin { task: 1, thread: 2, flags: 3 },
        Command::GroupOrder { group: 1, order: 2 },
        Command::TimerAdd { at: 1, cookie: 2 },
        Command::TimerCancel { timer: 1 },
        Command::ReleaseEnd { task: 1, flags: 2 },
        Command::TaskLend { task: 1, to: 2 },
        Command::TaskSuspend { task: 1, on: 2 },
        Command::TimerCreate,
        Command::TimerProcess,
    ];
    let mut there = Vec::new();
    for kind in 0..64 {
        let mut call = MaybeUninit::<Call>::zeroed();
        // SAFETY: it writes a call, whose kind is one of the header's if it says so.
        unsafe {
            if punctual_sample(call.as_mut_ptr(), kind) != 0 {
                there.push(call.assume_init().command);
            }
        }
    }
    assert_eq!(here[..], there[..]);
}
