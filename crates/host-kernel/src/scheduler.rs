//! The scheduler object, loaded and attached. The kernel takes it back when this is dropped or its process dies.

use libbpf_rs::{Link, MapCore, Object, ObjectBuilder, ProgramInput};
use punctual_dispatcher::Limits;
use punctual_trace::Record;

use crate::orders::{Order, OrderCall, RawEvent, RawLimits, ReserveCall};
use crate::run_error::{RunError, OTHERS};

#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/scheduler.bpf.o")));

/// What a look found.
pub(crate) struct Look {
    pub call: OrderCall,
    pub events: Vec<RawEvent>,
}

pub(crate) struct Scheduler {
    // Dropped first: who is released goes back to the normal class.
    link: Option<Link>,
    object: Object,
    limits: Limits,
}

fn bytes<T: Copy>(value: &mut T) -> &mut [u8] {
    // SAFETY: the call structures have no padding, and any bytes are a value of theirs.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(value).cast(), size_of::<T>()) }
}

impl Scheduler {
    /// Loads it, makes its dispatcher, and attaches it: from here on it schedules this machine.
    pub fn start(limits: Limits) -> Result<Scheduler, RunError> {
        let refused = |what: &str, e: &dyn std::fmt::Display| {
            RunError::machine(format!("the kernel refused the scheduler ({what}: {e})"), OTHERS)
        };
        let object = ObjectBuilder::default().open_memory(&OBJECT.0).and_then(|o| o.load());
        let object = object.map_err(|e| refused("load", &e))?;
        let mut scheduler = Scheduler { link: None, object, limits };
        let mut raw = RawLimits::of(&limits);
        if scheduler.run("punctual_create", bytes(&mut raw))? != 0 {
            return Err(RunError::set(
                "the set is larger than the kernel host's arena (256 tasks, 63 groups, 64 budget groups)",
            ));
        }
        let map = scheduler.object.maps_mut().find(|m| m.name() == "punctual");
        let mut map = map.ok_or_else(|| RunError::machine("the BPF object has no scheduler", "build it again"))?;
        scheduler.link = Some(map.attach_struct_ops().map_err(|e| refused("attach", &e))?);
        Ok(scheduler)
    }

    fn run(&mut self, name: &str, context: &mut [u8]) -> Result<i32, RunError> {
        let failed = |e: &dyn std::fmt::Display| RunError::machine(format!("BPF program {name}: {e}"), OTHERS);
        let program = self.object.progs_mut().find(|p| p.name() == name).ok_or_else(|| failed(&"it is not there"))?;
        let input = ProgramInput { context_in: Some(context), ..ProgramInput::default() };
        Ok(program.test_run(input).map_err(|e| failed(&e))?.return_value as i32)
    }

    fn order(&mut self, name: &str, call: &mut OrderCall) -> Result<(), RunError> {
        self.run(name, bytes(call)).map(drop)
    }

    /// The calling thread becomes a task; its number.
    pub fn join(&mut self) -> Result<i64, RunError> {
        let mut call = OrderCall::default();
        self.order("punctual_join", &mut call)?;
        Ok(call.value)
    }

    /// Carries out what the allocators asked for.
    pub fn carry_out(&mut self, orders: &[Order]) -> Result<(), RunError> {
        let mut expected = 0;
        for order in orders {
            match order {
                Order::Group(group, order) => {
                    let mut call = OrderCall { value: i64::from(*group), order: *order, ..OrderCall::default() };
                    self.order("punctual_order", &mut call)?;
                    if call.value != 0 {
                        return Err(RunError::set(format!(
                            "group {group}: refused by the dispatcher ({})",
                            call.value
                        )));
                    }
                }
                Order::Reserve(reservation) => {
                    let mut call = ReserveCall::of(reservation);
                    self.run("punctual_reserve", bytes(&mut call))?;
                    if call.result != expected {
                        return Err(RunError::set(format!(
                            "a reservation: refused by the dispatcher ({})",
                            call.result
                        )));
                    }
                    expected += 1;
                }
            }
        }
        Ok(())
    }

    /// Takes `done` events away and gets the rest.
    pub fn look(&mut self, done: u64) -> Result<Look, RunError> {
        let mut call = OrderCall { value: done as i64, ..OrderCall::default() };
        self.order("punctual_look", &mut call)?;
        let mask = u64::from(self.limits.events) - 1;
        let events = (call.event_tail..call.event_head)
            .map(|n| {
                let at = call.events + (n & mask) * size_of::<RawEvent>() as u64;
                // SAFETY: the arena is mapped there as long as the object lives, and the ring has `mask + 1` entries;
                // those between tail and head are not written again before they are taken away.
                unsafe { std::ptr::read_volatile(at as *const RawEvent) }
            })
            .collect();
        Ok(Look { call, events })
    }

    /// Records `from .. look.record_count`; fewer if some were overwritten.
    pub fn records(&self, from: u64, look: &Look) -> Vec<Record> {
        let count = look.call.record_count;
        let size = u64::from(self.limits.records);
        (from.max(count.saturating_sub(size))..count)
            .map(|n| {
                let at = look.call.records + (n & (size - 1)) * size_of::<Record>() as u64;
                // SAFETY: as above; a record (`struct pd_record`) that is written over meanwhile is plain numbers still.
                unsafe { std::ptr::read_volatile(at as *const Record) }
            })
            .collect()
    }

    /// Every task goes back to the normal class.
    pub fn detach(&mut self) {
        self.link = None;
    }
}
