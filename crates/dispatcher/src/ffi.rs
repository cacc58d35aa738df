//! The C interface, as `dispatcher/punctual_dispatcher.h` and `record.h` declare it.

use punctual_trace::Record;

use crate::raw::{Event, JobAttr, Limits, ReservationAttr};

#[repr(C)]
pub struct Pd {
    _opaque: [u8; 0],
}

extern "C" {
    pub fn pd_size(limits: *const Limits) -> u64;
    pub fn pd_init(memory: *mut u8, limits: *const Limits) -> *mut Pd;
    pub fn pd_job_draft(d: *mut Pd) -> *mut JobAttr;
    pub fn pd_reservation_draft(d: *mut Pd) -> *mut ReservationAttr;
    pub fn pd_event_peek(d: *mut Pd) -> *const Event;
    pub fn pd_event_pop(d: *mut Pd) -> i32;
    pub fn pd_set_granularity(d: *mut Pd, ns: u64) -> i32;
    pub fn pd_group_set_order(d: *mut Pd, group: u32, order: u32) -> i32;
    pub fn pd_task_add(d: *mut Pd, now: u64) -> i64;
    pub fn pd_task_ready(d: *mut Pd, task: u32, now: u64) -> i32;
    pub fn pd_task_blocked(d: *mut Pd, task: u32, now: u64) -> i32;
    pub fn pd_task_lender(d: *mut Pd, task: u32) -> u32;
    pub fn pd_task_lend(d: *mut Pd, task: u32, to: u32, now: u64) -> i32;
    pub fn pd_task_raise(d: *mut Pd, task: u32, attribute: u32, ceiling: u64, now: u64) -> i32;
    pub fn pd_task_gone(d: *mut Pd, task: u32, now: u64) -> i32;
    pub fn pd_task_done(d: *mut Pd, task: u32, now: u64) -> i32;
    pub fn pd_job_add(d: *mut Pd, now: u64) -> i64;
    pub fn pd_job_cancel(d: *mut Pd, job: u64, now: u64) -> i32;
    pub fn pd_job_complete(d: *mut Pd, job: u64, now: u64) -> i32;
    pub fn pd_job_remaining(d: *mut Pd, job: u64) -> u64;
    pub fn pd_job_used(d: *mut Pd, job: u64) -> u64;
    pub fn pd_job_standing(d: *mut Pd, job: u64) -> i32;
    pub fn pd_job_allowance(d: *mut Pd, job: u64) -> u64;
    pub fn pd_task_job(d: *mut Pd, task: u32) -> u64;
    pub fn pd_timer_ask(d: *mut Pd, at: u64, cookie: u64, now: u64) -> i64;
    pub fn pd_timer_cancel(d: *mut Pd, timer: u64, now: u64) -> i32;
    pub fn pd_reservation_change(d: *mut Pd, reservation: u32, now: u64) -> i32;
    pub fn pd_job_task(d: *mut Pd, job: u64) -> u32;
    pub fn pd_job_owner(d: *mut Pd, job: u64) -> u32;
    pub fn pd_charge_task(d: *mut Pd, task: u32, ran: u64, now: u64) -> i32;
    pub fn pd_charge(d: *mut Pd, job: u64, ran: u64, now: u64) -> i32;
    pub fn pd_advance(d: *mut Pd, now: u64) -> i32;
    pub fn pd_select(d: *mut Pd, cpu: u32, now: u64) -> u64;
    pub fn pd_runner_up(d: *mut Pd, cpu: u32, rank: u32) -> u64;
    pub fn pd_path(d: *mut Pd, cpu: u32, depth: u32) -> u64;
    pub fn pd_timer(d: *mut Pd, cpu: u32, ranks: u32, now: u64) -> u64;
    pub fn pd_reservation_add(d: *mut Pd, now: u64) -> i64;
    pub fn pd_reservation_remove(d: *mut Pd, reservation: u32, now: u64) -> i32;
    pub fn pd_reservation_take_lost(d: *mut Pd, reservation: u32) -> u32;
    pub fn pd_reservation_job(d: *mut Pd, reservation: u32) -> u64;
    pub fn pd_reservation_delayed(d: *mut Pd, reservation: u32) -> u32;
    pub fn pd_window_add(d: *mut Pd, start: u64, length: u64, begins: u32, now: u64) -> i32;
    pub fn pd_window_drop(d: *mut Pd, now: u64) -> i32;
    pub fn pd_reservation_error(d: *mut Pd, reservation: u32) -> i64;
    pub fn pd_error_settled(budget: u64, error: i64) -> i64;
    pub fn pd_late_waits_after_release(late: u32, waits: u32) -> u32;
    pub fn pd_late_waits_own(late: u32, ended: u32) -> u32;
    pub fn pd_late_waits_is(late: u32, ended: u32) -> u32;
    pub fn pd_record_count(d: *mut Pd) -> u64;
    pub fn pd_record_at(d: *mut Pd, number: u64) -> *const Record;
}
