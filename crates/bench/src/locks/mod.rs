//! `punctual::Mutex` and that of libpunctual beside the mutexes of POSIX threads.

mod calls;
mod hand_over;
mod pthread;
mod uncontended;

use crate::side_by_side::{figure, print, print_heading, ratio_of, verdict};
use crate::{Bench, Failure, Part};
use serde_json::Map;

/// Lock and unlock take at most so many times what pthread's do.
const LIMIT: f64 = 1.3;
/// From unlocking to the waiter's running, of a mutex with priority inheritance.
const LIMIT_OF_HAND_OVER: f64 = 1.5;

pub fn measure(bench: &Bench) -> Result<Part, Failure> {
    let mut figures = Map::new();
    let mut verdicts = Vec::new();
    print_heading("Mutexes");
    let all = uncontended::windows(bench)?;
    let (ratio, found) = print("lock and unlock, not contended", &all);
    figures.insert("uncontended".into(), found);
    verdicts.push(verdict("lock and unlock against pthread's", LIMIT, &ratio));
    let ratio = ratio_of(&all, "libpunctual");
    verdicts.push(verdict("the same by libpunctual", LIMIT, &ratio));
    let all = hand_over::windows(bench)?;
    let (ratio, found) = print("unlock to the waiter's running, median", &figure(&all, 0));
    figures.insert("hand_over".into(), found);
    let promise = "hand-over against priority inheritance, median";
    verdicts.push(verdict(promise, LIMIT_OF_HAND_OVER, &ratio));
    let (_, found) = print("the same, p99", &figure(&all, 1));
    figures.insert("hand_over_p99".into(), found);
    println!();
    Ok(Part { figures: figures.into(), verdicts })
}
