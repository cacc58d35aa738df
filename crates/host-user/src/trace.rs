//! An engine's records on their way to the trace, over a ring of fixed size: the engine writes, the
//! housekeeper reads. Records that find it full are dropped and counted.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::Arc;

use punctual_dispatcher::Dispatcher;
use punctual_sys::memory::touched_ring;
use punctual_trace::{Record, TraceSink};
use rtrb::{Consumer, Producer};

/// Records that go to the file at a time.
const BATCH: usize = 256;

/// The engine's end. Real-time safe.
pub struct RecordSender {
    ring: Producer<Record>,
    /// Records of the dispatcher that were read.
    read: u64,
    /// Records in the ring, ever.
    pushed: u64,
    /// As many of them may be read: all of whole instants, so that nothing is written between the
    /// records of one input.
    whole: Arc<AtomicU64>,
    /// Records dropped since the last one that was not.
    lost: Arc<AtomicU64>,
}

impl RecordSender {
    /// Sends a record that follows those before.
    pub fn send(&mut self, record: Record) {
        let lost = self.lost.load(Relaxed);
        // Where some are missing, it is reported first.
        if lost > 0 && self.ring.slots() >= 2 && self.push(Record::lost(lost)) {
            self.lost.store(0, Relaxed);
        }
        let lost = self.lost.load(Relaxed);
        if lost > 0 || !self.push(record) {
            self.lost.store(lost + 1, Relaxed);
        }
    }

    fn push(&mut self, record: Record) -> bool {
        let pushed = self.ring.push(record).is_ok();
        self.pushed += u64::from(pushed);
        pushed
    }

    /// Sends what the dispatcher recorded since this was last called. An instant ends with it.
    pub fn send_new(&mut self, dispatcher: &Dispatcher) {
        let count = dispatcher.record_count();
        while self.read < count {
            match dispatcher.record(self.read) {
                Some(record) => self.send(record),
                // More happened at one instant than the dispatcher's ring holds.
                None => self.lost.store(self.lost.load(Relaxed) + 1, Relaxed),
            }
            self.read += 1;
        }
        self.publish();
    }

    fn publish(&mut self) {
        // Pairs with the load in `forward`.
        self.whole.store(self.pushed, Release);
    }
}

/// The housekeeper's end.
pub struct RecordReceiver {
    ring: Consumer<Record>,
    popped: u64,
    whole: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
    sink: TraceSink,
}

impl RecordReceiver {
    /// Writes what the engine has sent.
    pub fn forward(&mut self) {
        let whole = self.whole.load(Acquire);
        let mut batch = [Record::default(); BATCH];
        while self.popped < whole {
            let wanted = usize::try_from(whole - self.popped).map_or(BATCH, |left| left.min(BATCH));
            let places = batch[..wanted].iter_mut();
            let count = places
                .map_while(|place| self.ring.pop().ok().map(|record| *place = record))
                .count();
            self.sink.records(&batch[..count]);
            self.popped += count as u64;
        }
    }

    /// Writes the rest, after the engine has ended.
    pub fn finish(&mut self) {
        self.forward();
        self.sink.lost(self.lost.swap(0, Relaxed));
    }
}

/// Both ends of a ring for so many records.
pub fn channel(records: usize, sink: TraceSink) -> (RecordSender, RecordReceiver) {
    let (sender, ring) = touched_ring(records, Record::default);
    let (lost, whole) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let sender =
        RecordSender { ring: sender, read: 0, pushed: 0, whole: whole.clone(), lost: lost.clone() };
    (sender, RecordReceiver { ring, popped: 0, whole, lost, sink })
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_trace::{Header, Limits, Trace, TraceBuffer};

    #[test]
    fn records_are_written_in_order_and_those_dropped_are_counted_where_they_were() {
        let buffer = TraceBuffer::default();
        let sink = TraceSink::new(
            buffer.clone(),
            Header::new("user", 0, "edf", Vec::new(), Limits::default()),
        );
        sink.begin(Limits::default());
        let (mut sender, mut receiver) = channel(4, sink.clone());
        let mut send = |times: std::ops::Range<u64>| {
            times.for_each(|time| sender.send(Record { time, kind: 12, ..Record::default() }));
            sender.publish();
        };
        send(0..3);
        receiver.forward();
        send(3..10);
        receiver.forward();
        send(10..12);
        receiver.forward();
        send(12..20);
        receiver.finish();
        assert_eq!(sink.finish().expect("memory takes it"), 3 + 4);
        let trace = Trace::read(&mut &buffer.bytes()[..]).expect("it is whole");
        let read: Vec<(u64, u64)> = trace.records.iter().map(|r| (r.time, r.a)).collect();
        let at = |times: std::ops::Range<u64>| times.map(|time| (time, 0));
        let expected = at(0..7).chain([(0, 3)]).chain(at(10..16)).chain([(0, 4)]);
        assert_eq!(read, expected.collect::<Vec<_>>());
    }
}
