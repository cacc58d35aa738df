//! Perfetto's format: messages `TracePacket` on one sequence, with names that are sent once.
//!
//! Fields and numbers are those of protos/perfetto/trace in Perfetto's repository, which
//! `crates/cli/tests/trace/perfetto.proto` has a part of; a test decodes the result with it.

use std::io::{self, Write};

use super::drawing::{is_new, Drawing, Label, Names, Track};
use super::protobuf::Message;

/// `Trace.packet`.
const PACKET: u32 = 1;

/// Fields of `TracePacket`.
mod packet {
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    /// `SequenceFlags`.
    pub const STATE_CLEARED: u64 = 1;
    pub const NEEDS_STATE: u64 = 2;
}

/// Fields of `TrackEvent`.
mod track_event {
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const COUNTER_VALUE: u32 = 30;
    pub const FLOW_IDS: u32 = 47;
    pub const TERMINATING_FLOW_IDS: u32 = 48;
    /// `Type`.
    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}

/// Fields of `TrackDescriptor`.
mod descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;
    /// `CounterDescriptor.unit` and its `UNIT_TIME_NS`.
    pub const UNIT: u32 = 3;
    pub const UNIT_TIME_NS: u64 = 1;
}

/// Fields of `InternedData`, `EventName`, `DebugAnnotationName` and `DebugAnnotation`.
mod interned {
    pub const EVENT_NAMES: u32 = 2;
    pub const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub const IID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const ANNOTATION_NAME_IID: u32 = 1;
    pub const ANNOTATION_UINT: u32 = 3;
}

/// The one sequence of packets.
const SEQUENCE: u64 = 1;
/// `DebugAnnotationName.iid` of "number", the number of a release.
const NUMBER: u64 = 1;

/// A trace for Perfetto.
#[derive(Debug)]
pub(super) struct Perfetto<W: Write> {
    out: W,
    names: Names,
    /// Tracks that have been described, and names that have been sent, by their numbers.
    tracks: Vec<bool>,
    labels: Vec<bool>,
    packet: Message,
    event: Message,
    /// `Trace` around a packet.
    frame: Message,
}

impl<W: Write> Perfetto<W> {
    pub fn new(out: W, names: Names) -> io::Result<Perfetto<W>> {
        let (packet, event, frame) = Default::default();
        let mut perfetto =
            Perfetto { out, names, tracks: Vec::new(), labels: Vec::new(), packet, event, frame };
        perfetto.packet.number(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
        perfetto.packet.with(packet::INTERNED_DATA, |data| {
            data.with(interned::DEBUG_ANNOTATION_NAMES, |name| {
                name.number(interned::IID, NUMBER);
                name.text(interned::NAME, "number");
            });
        });
        perfetto.send()?;
        Ok(perfetto)
    }

    /// Writes the packet.
    fn send(&mut self) -> io::Result<()> {
        self.packet.number(packet::SEQUENCE, SEQUENCE);
        self.frame.clear();
        self.frame.message(PACKET, &self.packet);
        self.packet.clear();
        self.out.write_all(self.frame.bytes())
    }

    /// Begins an event of the type on the track.
    fn begin(&mut self, event_type: u64, track: Track) -> io::Result<()> {
        self.describe(track)?;
        self.event.clear();
        self.event.number(track_event::TYPE, event_type);
        self.event.number(track_event::TRACK_UUID, uuid(track));
        Ok(())
    }

    fn name(&mut self, label: Label, number: Option<u64>) -> io::Result<()> {
        let iid = iid(label);
        if is_new(&mut self.labels, iid) {
            let text = self.names.label(label);
            self.packet.number(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
            self.packet.with(packet::INTERNED_DATA, |data| {
                data.with(interned::EVENT_NAMES, |name| {
                    name.number(interned::IID, iid);
                    name.text(interned::NAME, &text);
                });
            });
            self.send()?;
        }
        self.event.number(track_event::NAME_IID, iid);
        if let Some(number) = number {
            self.event.with(track_event::DEBUG_ANNOTATIONS, |annotation| {
                annotation.number(interned::ANNOTATION_NAME_IID, NUMBER);
                annotation.number(interned::ANNOTATION_UINT, number);
            });
        }
        Ok(())
    }

    fn send_event(&mut self, at: u64) -> io::Result<()> {
        self.packet.number(packet::TIMESTAMP, at);
        self.packet.message(packet::TRACK_EVENT, &self.event);
        self.packet.number(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
        self.send()
    }

    fn describe(&mut self, track: Track) -> io::Result<()> {
        if !is_new(&mut self.tracks, uuid(track)) {
            return Ok(());
        }
        let parent = track.parent();
        if let Some(parent) = parent {
            self.describe(parent)?;
        }
        let text = self.names.track(track);
        self.packet.with(packet::TRACK_DESCRIPTOR, |descriptor| {
            descriptor.number(descriptor::UUID, uuid(track));
            descriptor.text(descriptor::NAME, &text);
            if let Some(parent) = parent {
                descriptor.number(descriptor::PARENT_UUID, uuid(parent));
            }
            if matches!(track, Track::Remaining(_)) {
                descriptor.with(descriptor::COUNTER, |counter| {
                    counter.number(descriptor::UNIT, descriptor::UNIT_TIME_NS);
                });
            }
        });
        self.send()
    }
}

impl<W: Write> Drawing for Perfetto<W> {
    fn slice(
        &mut self,
        track: Track,
        label: Label,
        (from, to): (u64, u64),
        number: Option<u64>,
        flow: Option<u64>,
    ) -> io::Result<()> {
        self.begin(track_event::SLICE_BEGIN, track)?;
        self.name(label, number)?;
        if let Some(flow) = flow {
            self.event.fixed64(track_event::TERMINATING_FLOW_IDS, flow);
        }
        self.send_event(from)?;
        self.begin(track_event::SLICE_END, track)?;
        self.send_event(to)
    }

    fn instant(
        &mut self,
        track: Track,
        label: Label,
        at: u64,
        number: Option<u64>,
        flow: Option<u64>,
    ) -> io::Result<()> {
        self.begin(track_event::INSTANT, track)?;
        self.name(label, number)?;
        if let Some(flow) = flow {
            self.event.fixed64(track_event::FLOW_IDS, flow);
        }
        self.send_event(at)
    }

    fn counter(&mut self, task: u32, at: u64, value: u64) -> io::Result<()> {
        self.begin(track_event::COUNTER, Track::Remaining(task))?;
        self.event.number(track_event::COUNTER_VALUE, value.min(i64::MAX as u64));
        self.send_event(at)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// 0 would be the default track.
fn uuid(track: Track) -> u64 {
    let (kind, number) = match track {
        Track::Cpu(cpu) => (4, cpu),
        Track::Jobs(task) => (5, task),
        Track::Execution(task) => (6, task),
        Track::Remaining(task) => (7, task),
    };
    kind + 4 * u64::from(number)
}

/// 0 would be no name.
fn iid(label: Label) -> u64 {
    match label {
        Label::Task(task) => Label::FIXED.len() as u64 + 1 + u64::from(task),
        fixed => {
            Label::FIXED.iter().position(|&(label, _)| label == fixed).map_or(0, |at| at as u64 + 1)
        }
    }
}
