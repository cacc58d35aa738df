//! Decodes what was exported by Perfetto's published definition, with a decoder of others.

use std::collections::HashMap;

use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage, Value};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub at: u64,
    /// `TrackEvent.Type`.
    pub kind: i32,
    /// The names of the track's parents and its own, with slashes between.
    pub track: String,
    pub name: String,
    pub number: Option<u64>,
    pub value: i64,
    pub begins_flow: Option<u64>,
    pub ends_flow: Option<u64>,
}

pub const BEGIN: i32 = 1;
pub const END: i32 = 2;
pub const INSTANT: i32 = 3;
pub const COUNTER: i32 = 4;

fn has_unknown_fields(message: &DynamicMessage) -> bool {
    message.unknown_fields().next().is_some()
        || message.fields().any(|(_, value)| is_unknown(value))
}

fn is_unknown(value: &Value) -> bool {
    match value {
        Value::Message(message) => has_unknown_fields(message),
        Value::List(values) => values.iter().any(is_unknown),
        _ => false,
    }
}

fn field(message: &DynamicMessage, name: &str) -> Option<Value> {
    message
        .has_field_by_name(name)
        .then(|| message.get_field_by_name(name).expect("it is there").into_owned())
}

fn number(message: &DynamicMessage, name: &str) -> Option<u64> {
    field(message, name).map(|value| match value {
        Value::U64(n) => n,
        Value::U32(n) => n.into(),
        Value::EnumNumber(n) => n as u64,
        Value::List(list) => list[0].as_u64().expect("a number"),
        other => panic!("{name}: {other:?}"),
    })
}

fn string(message: &DynamicMessage, name: &str) -> String {
    field(message, name).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn messages(message: &DynamicMessage, name: &str) -> Vec<DynamicMessage> {
    let list = field(message, name).map_or(Vec::new(), |value| match value {
        Value::List(list) => list,
        one => vec![one],
    });
    list.iter().map(|value| value.as_message().expect("a message").clone()).collect()
}

/// All events, in order of time, as Perfetto sorts them. Every name and every track must be known.
pub fn decode(bytes: &[u8]) -> Vec<Event> {
    let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trace");
    let files = protox::compile(["perfetto.proto"], [proto]).expect("the definition is one");
    let pool = DescriptorPool::from_file_descriptor_set(files).expect("the definition is whole");
    let trace = pool.get_message_by_name("perfetto.protos.Trace").expect("the definition has it");
    let trace = DynamicMessage::decode(trace, bytes).expect("it is protobuf");
    assert!(!has_unknown_fields(&trace), "a field that the definition does not have");
    assert_eq!(trace.descriptor().name(), "Trace");
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut tracks: HashMap<u64, (String, bool)> = HashMap::new();
    let mut events = Vec::new();
    for (at, packet) in messages(&trace, "packet").iter().enumerate() {
        let flags = number(packet, "sequence_flags").unwrap_or(0);
        assert_eq!(flags & 1 == 1, at == 0, "the state of names is cleared once");
        assert_eq!(number(packet, "trusted_packet_sequence_id"), Some(1));
        for data in messages(packet, "interned_data") {
            let interned = messages(&data, "event_names");
            names.extend(
                interned
                    .iter()
                    .map(|name| (number(name, "iid").expect("an iid"), string(name, "name"))),
            );
        }
        for track in messages(packet, "track_descriptor") {
            let parent =
                number(&track, "parent_uuid").map(|parent| tracks[&parent].0.clone() + "/");
            let name = parent.unwrap_or_default() + &string(&track, "name");
            let units = messages(&track, "counter");
            assert!(units.iter().all(|counter| number(counter, "unit") == Some(1)), "ns");
            tracks.insert(number(&track, "uuid").expect("a number"), (name, !units.is_empty()));
        }
        for event in messages(packet, "track_event") {
            assert_eq!(flags & 2, 2, "names need the state");
            let (track, counts) = tracks[&number(&event, "track_uuid").expect("a track")].clone();
            let kind = number(&event, "type").expect("a type") as i32;
            assert_eq!(counts, kind == COUNTER, "{track}");
            let annotations = messages(&event, "debug_annotations");
            events.push(Event {
                at: number(packet, "timestamp").expect("a time"),
                kind,
                track,
                name: number(&event, "name_iid").map_or(String::new(), |iid| names[&iid].clone()),
                number: annotations.first().and_then(|annotation| number(annotation, "uint_value")),
                value: field(&event, "counter_value").and_then(|value| value.as_i64()).unwrap_or(0),
                begins_flow: number(&event, "flow_ids"),
                ends_flow: number(&event, "terminating_flow_ids"),
            });
        }
    }
    events.sort_by_key(|event| event.at);
    events
}

/// Slices of a track: begin, end and name. They must not overlap.
pub fn slices(events: &[Event], track: &str) -> Vec<(u64, u64, String)> {
    let of_track =
        |event: &&Event| event.track == track && (event.kind == BEGIN || event.kind == END);
    let events: Vec<&Event> = events.iter().filter(of_track).collect();
    (events.chunks(2))
        .map(|pair| match pair {
            [begin, end] if begin.kind == BEGIN && end.kind == END => {
                (begin.at, end.at, begin.name.clone())
            }
            other => panic!("{track}: {other:?}"),
        })
        .collect()
}

/// Times of the instants with this name on a track.
pub fn instants(events: &[Event], track: &str, name: &str) -> Vec<u64> {
    let wanted =
        |event: &&Event| event.kind == INSTANT && event.track == track && event.name == name;
    events.iter().filter(wanted).map(|event| event.at).collect()
}
