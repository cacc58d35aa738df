//! Tags and virtual time of fair queueing, exact integers.
//!
//! A tag is a virtual time: the execution that a task of weight 1 would have received, in units of
//! 2^-32 ns. 128 bits hold it for any run. A priority is a tag in units of 2^-5 ns: its 64 bits
//! hold 18 years of a task of weight 1 alone, and one unit is 313 ns of execution at the largest
//! weight.

/// Fractional bits of a tag.
const FRACTION: u32 = 32;

/// Fractional bits of a priority.
const PRIORITY_FRACTION: u32 = 5;

/// What `ns` of execution are in virtual time, for a task of this weight.
fn tag(ns: u64, weight: u32) -> u128 {
    (u128::from(ns) << FRACTION) / u128::from(weight)
}

/// The priority of a job by its tag: the earlier, the larger.
pub(super) fn priority(tag: u128) -> i64 {
    let units = u64::try_from(tag >> (FRACTION - PRIORITY_FRACTION)).unwrap_or(u64::MAX);
    i64::try_from(i128::from(i64::MAX) - i128::from(units)).unwrap_or(i64::MIN)
}

/// What the tasks of a group execute while each of them advances by `tags`, ns, rounded up.
/// `weights`: the sum of theirs.
pub(super) fn execution(tags: u128, weights: u64) -> u128 {
    let whole = (tags >> FRACTION).saturating_mul(u128::from(weights));
    let part = (tags & ((1 << FRACTION) - 1)) * u128::from(weights);
    whole.saturating_add((part >> FRACTION) + 1)
}

/// A task as a flow of quanta.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) weight: u32,
    /// It has a quantum, and does not sleep.
    pub(super) active: bool,
    /// The start tag of the quantum with which it became active.
    base: u128,
    /// Its execution since then in quanta that have ended, and in one in which it sleeps, ns.
    served: u64,
    /// The latter alone, ns.
    counted: u64,
}

impl Flow {
    pub(super) fn new(weight: u32) -> Flow {
        Flow { weight, active: false, base: 0, served: 0, counted: 0 }
    }

    /// The start tag of its quantum; of an inactive one, the finish tag of its last quantum.
    pub(super) fn start(&self) -> u128 {
        self.base + tag(self.served, self.weight)
    }

    /// The finish tag of a quantum of `ns` that begins now.
    pub(super) fn finish(&self, ns: u64) -> u128 {
        self.base + tag(self.served.saturating_add(ns), self.weight)
    }

    /// Becomes active at the virtual time `now`: no credit for the time in which it was not.
    pub(super) fn activate(&mut self, now: u128) {
        let base = self.start().max(now);
        *self = Flow { base, served: 0, counted: 0, active: true, ..*self };
    }

    /// Its quantum has ended, and executed for `ns`.
    pub(super) fn end_quantum(&mut self, ns: u64) {
        self.served = self.served.saturating_add(ns.saturating_sub(self.counted));
        self.counted = 0;
    }

    /// Its task fell asleep in a quantum, of which it has executed `ns`. Of one that has ended at
    /// this instant, that is 0, and its end is yet to come.
    pub(super) fn sleep(&mut self, ns: u64) {
        self.end_quantum(ns);
        (self.active, self.counted) = (false, ns);
    }
}

/// The virtual time of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct VirtualTime {
    pub(super) now: u128,
}

impl VirtualTime {
    /// Start-time fair queueing: the start tag of the quantum in execution, which is the least of
    /// active flows; after an idle time, the largest finish tag.
    pub(super) fn follow_starts(&mut self, flows: &[Flow]) {
        let least = flows.iter().filter(|flow| flow.active).map(Flow::start).min();
        let next = least.or_else(|| flows.iter().map(Flow::start).max());
        self.now = self.now.max(next.unwrap_or(0));
    }

    /// Weighted fair queueing: the group has executed for `ns`, which a fluid system divides among
    /// the flows that are active, or have received more here than there. After an idle time, all
    /// have the same.
    pub(super) fn serve(&mut self, flows: &[Flow], ns: u64) {
        if !flows.iter().any(|flow| flow.active) {
            self.now = self.now.max(flows.iter().map(Flow::start).max().unwrap_or(0));
            return;
        }
        let mut left = u128::from(ns) << FRACTION;
        loop {
            let now = self.now;
            let ahead = |flow: &&Flow| !flow.active && flow.start() > now;
            let backlogged = flows.iter().filter(|flow| flow.active || ahead(flow));
            let weights: u128 = backlogged.map(|flow| u128::from(flow.weight)).sum();
            let next = flows.iter().filter(ahead).map(Flow::start).min();
            // A flow that is ahead counts until the fluid system has served it as much.
            let until = next.map(|next| (next, (next - now).saturating_mul(weights)));
            match until.filter(|(_, needed)| *needed <= left) {
                Some((next, needed)) => {
                    self.now = next;
                    left -= needed;
                }
                None => {
                    self.now += left / weights;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tag of so many ns at weight 1.
    fn at(ns: u64) -> u128 {
        u128::from(ns) << FRACTION
    }

    #[test]
    fn eighteen_years_of_one_task_and_the_largest_weight_have_distinct_priorities() {
        let eighteen_years = 18 * 365 * 24 * 3600 * 1_000_000_000;
        assert!(priority(tag(eighteen_years, 1)) > priority(tag(eighteen_years + 1, 1)));
        assert!(priority(0) > priority(tag(313, 10_000)));
        assert_eq!(priority(u128::MAX), i64::MIN);
    }

    #[test]
    fn a_chain_of_quanta_loses_nothing_to_rounding() {
        let mut flow = Flow::new(3);
        flow.activate(0);
        (0..3_000).for_each(|_| flow.end_quantum(7));
        assert_eq!(flow.start(), at(7_000));
    }

    #[test]
    fn the_fluid_system_serves_a_flow_that_is_ahead_until_it_has_received_as_much() {
        let mut flows = [Flow::new(1), Flow::new(3)];
        flows[0].activate(0);
        flows[1].activate(0);
        // The second flow executed 6, and sleeps: the fluid system has given it 4.5.
        flows[1].end_quantum(6);
        let mut time = VirtualTime::default();
        time.serve(&flows, 6);
        assert_eq!(time.now, at(6) / 4);
        flows[1].active = false;
        // 2 more until it is even at 2, then 5 for the first flow alone.
        time.serve(&flows, 7);
        assert_eq!(time.now, at(7));
    }

    #[test]
    fn after_an_idle_time_no_flow_is_ahead_of_another() {
        let mut flows = [Flow::new(1), Flow::new(2)];
        flows[1].activate(0);
        flows[1].end_quantum(8);
        flows[1].active = false;
        for follow in [VirtualTime::follow_starts, |t: &mut VirtualTime, f: &[Flow]| t.serve(f, 0)]
        {
            let mut time = VirtualTime::default();
            follow(&mut time, &flows);
            assert_eq!(time.now, at(4));
            flows[0].activate(time.now);
            assert_eq!(flows[0].start(), at(4));
            flows[0] = Flow::new(1);
        }
    }
}
