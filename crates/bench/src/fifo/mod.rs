//! FIFOs in shared memory beside others: the crate rtrb in one process, iceoryx2 between two, and a
//! bare futex where the reader sleeps.

mod blocked_reader;
mod one_process;
mod processes;

use crate::side_by_side::{print, print_heading, verdict, Windows};
use crate::{threads, Bench, Failure, Part};
use punctual_ipc::{Content, FifoAttr};
use punctual_sys::sched;
use serde_json::Map;

pub use processes::echo;

/// What is put and got.
type Message = [u8; 64];

/// Of all FIFOs; 1,024 messages of a FIFO of bytes.
const CAPACITY: usize = 64 << 10;

/// At most so many times what the other one takes.
const LIMIT: f64 = 1.3;
const LIMIT_OF_FUTEX: f64 = 1.2;

fn attr(content: Content) -> FifoAttr {
    FifoAttr { capacity: CAPACITY, limit: None, content }
}

/// The nearest CPU that this process may use beside the one that is measured.
fn peer_of(cpu: u32) -> Result<Option<u32>, Failure> {
    threads::apart(|| Ok(sched::pin(0, cpu)?)).map_err(|e| format!("CPU {cpu}: {e}"))?;
    let mask = sched::affinity(0)?;
    let others = sched::cpus(&mask).filter(|&other| other != cpu);
    Ok(others.min_by_key(|other| other.abs_diff(cpu)))
}

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let peer = peer_of(bench.cpu)?;
    print_heading("FIFOs: put and get of 64 bytes");
    let mut figures = Map::new();
    let mut verdicts = Vec::new();
    let mut add = |key: &str, promise: Option<(&str, f64)>, what: &str, all: &Windows<f64>| {
        let (ratio, found) = print(what, all);
        figures.insert(key.into(), found);
        verdicts.extend(promise.map(|(promise, limit)| verdict(promise, limit, &ratio)));
    };
    let all = one_process::one_thread(bench)?;
    let promise = ("FIFO in one thread against rtrb", LIMIT);
    add("one_thread", Some(promise), "one thread, put and get", &all);
    let mut not_measured = None;
    if let Some(peer) = peer {
        let all = one_process::two_threads(bench, peer)?;
        let promise = ("FIFO between two threads against rtrb", LIMIT);
        add("two_threads", Some(promise), "stream between two threads", &all);
        match processes::build_iceoryx2(bench) {
            Ok(program) => {
                let all = processes::ping_pong(bench, peer, &program)?;
                let promise = ("FIFO between two processes against iceoryx2", LIMIT);
                add("two_processes", Some(promise), "two processes, one way", &all);
            }
            Err(e) => not_measured = Some(format!("iceoryx2 is not measured: {e}")),
        }
        let [median, p99] = blocked_reader::wakeups(bench, peer)?;
        let promise = ("put to a blocked reader against a futex, median", LIMIT_OF_FUTEX);
        add("blocked_reader", Some(promise), "blocked reader, put to return, median", &median);
        add("blocked_reader_p99", None, "the same, p99", &p99);
    } else {
        not_measured = Some("two threads and two processes need two CPUs: not measured".into());
    }
    println!("{}", not_measured.map_or(String::new(), |why| format!("  {why}\n")));
    Ok(Part { figures: figures.into(), verdicts })
}
