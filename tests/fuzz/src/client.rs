//! What a client sends: calls with values that are right, near that, and wrong; and other bytes.

use serde_json::{json, Map, Value};

use crate::stream::Stream;

/// Of a nanosecond's neighbours, a usual task's, and those of the types.
const TIMES: [i64; 10] =
    [0, 1, -1, 100_000, 1_000_000, 10_000_000, 20_000_000_000, i64::MAX, i64::MIN, 1 << 53];
const METHODS: [&str; 10] = [
    "io.punctual.Service.MakePage",
    "io.punctual.Service.GetStatus",
    "io.punctual.Service.TakeEvents",
    "io.punctual.Service.Unknown",
    "org.varlink.service.GetInfo",
    "org.varlink.service.GetInterfaceDescription",
    "org.varlink.service.Unknown",
    "other.Interface.Method",
    "",
    ".",
];

/// Appends one message, which need not be one. `pid` is a process of the client's user.
pub fn append_message(stream: &mut Stream, pid: i64, to: &mut Vec<u8>) {
    match stream.byte() % 8 {
        0 => to.extend(stream.text()),
        1..=3 => {
            let tasks: Vec<Value> = (0..stream.byte() % 3).map(|_| task(stream, pid)).collect();
            append_call(to, "io.punctual.Service.Reserve", &json!({ "tasks": tasks }));
        }
        4 => {
            let mut change = json!({ "id": id(stream) });
            for value in ["period_ns", "budget_ns", "deadline_ns"] {
                if stream.byte() % 2 == 0 {
                    change[value] = stream.number(&TIMES).into();
                }
            }
            append_call(to, "io.punctual.Service.Change", &change);
        }
        5 => {
            let method = ["Release", "Suspend", "Resume"][usize::from(stream.byte()) % 3];
            let method = format!("io.punctual.Service.{method}");
            append_call(to, &method, &json!({ "id": id(stream) }));
        }
        6 => {
            let method = METHODS[usize::from(stream.byte()) % METHODS.len()];
            let interface = String::from_utf8_lossy(stream.text());
            append_call(to, method, &json!({ "interface": interface }));
        }
        _ => {
            // A call with a byte of the input in place of one of its own.
            let begin = to.len();
            let tasks = json!({ "tasks": [task(stream, pid)] });
            append_call(to, "io.punctual.Service.Reserve", &tasks);
            let at = usize::from(stream.byte()) % (to.len() - begin);
            to[begin + at] = stream.byte();
        }
    }
}

fn append_call(to: &mut Vec<u8>, method: &str, parameters: &Value) {
    to.extend(json!({ "method": method, "parameters": parameters }).to_string().bytes());
    to.push(0);
}

/// Reservations are numbered from 1 on.
fn id(stream: &mut Stream) -> i64 {
    stream.number(&[0, 1, 2, 3, i64::MAX])
}

fn task(stream: &mut Stream, pid: i64) -> Value {
    let mut task = Map::new();
    let name = match stream.byte() % 4 {
        0 => String::from_utf8_lossy(stream.text()).into_owned(),
        _ => "task".to_owned(),
    };
    task.insert("name".to_owned(), json!(name));
    task.insert("pid".to_owned(), json!(stream.number(&[pid, pid, pid, pid, 0, -1])));
    match stream.byte() % 8 {
        1 => _ = task.insert("role".to_owned(), json!("control-1khz")),
        2 => _ = task.insert("role".to_owned(), json!(String::from_utf8_lossy(stream.text()))),
        _ => {}
    }
    // 10 ms and 1 ms, or what the input chooses; a role has them itself.
    let by_role = task.contains_key("role") && stream.byte() % 8 != 0;
    let usual = stream.byte() % 2 == 0;
    for (key, value) in [("period_ns", 10_000_000), ("budget_ns", 1_000_000)] {
        if by_role {
            continue;
        }
        task.insert(key.to_owned(), json!(if usual { value } else { stream.number(&TIMES) }));
    }
    for key in ["cpu", "deadline_ns", "offset_ns"] {
        if stream.byte() % 4 == 1 {
            task.insert(key.to_owned(), json!(stream.number(&TIMES)));
        }
    }
    if stream.byte() % 4 == 1 {
        task.insert("tid".to_owned(), json!(pid));
        task.insert("page".to_owned(), json!(stream.byte() % 2 == 1));
    }
    match stream.byte() % 8 {
        1 => _ = task.insert("overrun".to_owned(), json!("background")),
        2 => _ = task.insert("overrun".to_owned(), json!(String::from_utf8_lossy(stream.text()))),
        3 => _ = task.insert("other".to_owned(), json!(0)),
        _ => {}
    }
    Value::Object(task)
}
