//! What became of each release, from the dispatcher's events and records.

use std::collections::{HashMap, VecDeque};

use punctual_dispatcher::{End, Event};
use punctual_policies::{Allocators, Told};
use punctual_taskset::{Body, TaskSet};
use punctual_trace::{JobEnd, Period, Record, NEVER};

use crate::orders::Recorder;

/// Kinds of record (`dispatcher/record.h`).
const CHARGE_TASK: u32 = 8;
const SELECTED: u32 = 64;
const RELEASED: u32 = 128 + 13;

/// The latest release of one task, and what it executed.
#[derive(Default)]
struct Open {
    job: u64,
    release: u64,
    deadline: u64,
    /// It is over; told with the next one, for it is charged what it executes until it is stopped.
    period: Option<Period>,
    charged: u64,
    /// What each release before executed.
    received: VecDeque<u64>,
}

pub(crate) struct Follow<'a> {
    set: &'a TaskSet,
    open: Vec<Open>,
    /// Places in the set, by number in the dispatcher.
    places: Vec<usize>,
    /// When a job was first selected.
    started: HashMap<u64, u64>,
    pub events: u64,
}

impl Follow<'_> {
    /// Tasks with these numbers in the dispatcher, in the order of the set.
    pub fn new<'a>(set: &'a TaskSet, numbers: &[u32]) -> Follow<'a> {
        let mut places = vec![usize::MAX; numbers.iter().max().map_or(0, |&n| n as usize + 1)];
        numbers.iter().enumerate().for_each(|(index, &n)| places[n as usize] = index);
        let open = set.tasks.iter().map(|_| Open::default()).collect();
        Follow { set, open, places, started: HashMap::new(), events: 0 }
    }

    /// Before the events of the same look.
    pub fn records(&mut self, records: &[Record]) {
        for r in records {
            let place = self.places.get(r.small as usize).copied().unwrap_or(usize::MAX);
            match (r.kind, self.open.get_mut(place)) {
                (SELECTED, _) if r.a != 0 => drop(self.started.entry(r.a).or_insert(r.time)),
                (CHARGE_TASK, Some(open)) => open.charged += r.a,
                (RELEASED, Some(open)) => open.received.push_back(std::mem::take(&mut open.charged)),
                _ => {}
            }
        }
    }

    pub fn event(&mut self, allocators: &mut Allocators, event: &Event, sink: &mut dyn FnMut(Period)) {
        self.events += 1;
        let (Event::Released { job, .. } | Event::JobEnded { job, .. }) = *event else {
            return self.tell(allocators, event, 0, sink);
        };
        self.tell(allocators, event, job.as_u64(), sink);
        if matches!(event, Event::JobEnded { .. }) {
            self.started.remove(&job.as_u64());
        }
    }

    fn tell(&mut self, allocators: &mut Allocators, event: &Event, job: u64, sink: &mut dyn FnMut(Period)) {
        let (set, open, started) = (self.set, &mut self.open, &self.started);
        // Reservations are the dispatcher's own: what is told of them needs no answer.
        allocators.handle(&mut Recorder::new(0), event, &mut |told| match told {
            Told::Released { index, release, deadline, .. } => {
                let o = &mut open[index as usize];
                let received = o.received.pop_front();
                if let Some(period) = o.period.take() {
                    sink(Period { received: received.unwrap_or(period.received), ..period });
                }
                (o.job, o.release, o.deadline) = (job, release, deadline);
            }
            Told::Ended { at, index, number, end, used, .. } => {
                let (o, spec) = (&mut open[index as usize], &set.tasks[index as usize]);
                let waits = !matches!(punctual_workload::Work::of(&spec.body), Some(w) if w.is_forever());
                let (exhausted, expired) = (end == End::Exhausted, end == End::Expired);
                let never_sleeps = matches!(spec.body, Body::Spin(_));
                o.period = Some(Period {
                    task: index,
                    number,
                    release: o.release,
                    deadline: o.deadline,
                    assigned: spec.budget,
                    received: used,
                    started: started.get(&job).or_else(|| started.get(&o.job)).copied().unwrap_or(NEVER),
                    completed: if end == End::Completed { at } else { NEVER },
                    end: match end {
                        End::Completed => JobEnd::Completed,
                        End::Exhausted => JobEnd::Exhausted,
                        End::Expired => JobEnd::Expired,
                        End::Cancelled => JobEnd::Cancelled,
                        End::TaskGone => JobEnd::TaskGone,
                    },
                    ready_throughout: exhausted || expired && never_sleeps,
                    woken_late: false,
                    miss: if waits { exhausted || expired } else { expired && never_sleeps },
                    overrun: exhausted || waits && expired,
                });
            }
            Told::Lost { index, first, count, .. } => {
                let spec = &set.tasks[index as usize];
                for number in first..first + count {
                    sink(Period {
                        task: index,
                        number,
                        release: 0,
                        deadline: 0,
                        assigned: spec.budget,
                        received: 0,
                        started: NEVER,
                        completed: NEVER,
                        end: JobEnd::Expired,
                        ready_throughout: true,
                        woken_late: true,
                        miss: true,
                        overrun: true,
                    });
                }
            }
            _ => {}
        });
    }
}
