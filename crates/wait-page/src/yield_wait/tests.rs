use std::cell::Cell;

use super::*;
use crate::{DispatcherPage, NewPage};

const PERIOD: u64 = 10;

/// Releases at 100, 110, ...; `lost` is as the dispatcher counts.
fn schedule(skips: bool, lost: u32) -> Schedule {
    let first = PageRelease { number: 0, release: 100, deadline: 108, budget: 4, lost };
    Schedule { first, period: PERIOD, skips }
}

/// A thread whose waits are answered by a dispatcher that is inside the kernel.
struct Thread {
    waits: YieldWaits,
    schedule: Schedule,
}

impl Thread {
    fn new(skips: bool) -> Thread {
        Thread { waits: YieldWaits::default(), schedule: schedule(skips, 0) }
    }

    /// A wait at `now`, whose yields return at these times: what it returns, and how often it
    /// yielded. `None`: it sleeps.
    fn wait(&self, now: u64, yields: &[u64]) -> (Option<PageRelease>, usize) {
        let mut now = now;
        for count in 0.. {
            match self.waits.step(&self.schedule, now, count as u32) {
                NextStep::Return(latest) => {
                    return (Some(self.waits.take(&self.schedule, latest)), count)
                }
                NextStep::Sleep(_) => return (None, count),
                NextStep::Yield => {
                    self.waits.is_counted.set(true);
                    now = *yields.get(count).expect("a yield too many");
                }
            }
        }
        unreachable!()
    }
}

fn release(number: u64, lost: u32) -> Option<PageRelease> {
    let release = 100 + PERIOD * number;
    Some(PageRelease { number, release, deadline: release + 8, budget: 4, lost })
}

#[test]
fn the_first_wait_is_for_the_first_release_and_later_ones_yield_until_the_next() {
    let thread = Thread::new(false);
    assert_eq!(thread.waits.step(&thread.schedule, 99, 0), NextStep::Sleep(100));
    assert_eq!(thread.wait(101, &[]), (release(0, 0), 0));
    assert_eq!(thread.wait(103, &[111]), (release(1, 0), 1));
    assert_eq!(thread.wait(112, &[121]), (release(2, 0), 1));
}

#[test]
fn late_waits_return_at_once_one_for_each_release() {
    let thread = Thread::new(false);
    assert_eq!(thread.wait(101, &[]), (release(0, 0), 0));
    // Before its first yield the dispatcher does not count them, and the client does.
    assert_eq!(thread.wait(121, &[]), (release(2, 0), 0));
    assert_eq!(thread.wait(122, &[]), (release(2, 0), 0));
    assert_eq!(thread.wait(123, &[131]), (release(3, 0), 1));
    // From then on the dispatcher ignores the yields that are late.
    assert_eq!(thread.wait(151, &[151]), (release(5, 0), 1));
    assert_eq!(thread.wait(152, &[152]), (release(5, 0), 1));
    assert_eq!(thread.wait(153, &[161]), (release(6, 0), 1));
}

#[test]
fn a_thread_that_skips_loses_the_releases_between_two_waits() {
    let thread = Thread::new(true);
    assert_eq!(thread.wait(101, &[]), (release(0, 0), 0));
    assert_eq!(thread.waits.current(&thread.schedule, 121).lost, 1);
    assert_eq!(thread.wait(121, &[131]), (release(3, 2), 1));
    assert_eq!(thread.wait(132, &[141]), (release(4, 0), 1));
}

#[test]
fn releases_that_the_dispatcher_could_not_make_are_returned_as_lost_and_not_waited_for() {
    let mut thread = Thread::new(false);
    assert_eq!(thread.wait(101, &[]), (release(0, 0), 0));
    assert_eq!(thread.wait(102, &[141]), (release(4, 0), 1));
    // The dispatcher reports 1, 2 and 3 after that.
    thread.schedule = schedule(false, 3);
    assert_eq!(thread.waits.current(&thread.schedule, 142).lost, 3);
    assert_eq!(thread.wait(142, &[151]), (release(5, 3), 1));
    assert_eq!(thread.wait(152, &[161]), (release(6, 0), 1));
    assert_eq!(thread.wait(162, &[162, 162]), (None, 2));
}

#[test]
fn a_wait_whose_yields_return_without_a_release_sleeps_until_that() {
    for skips in [false, true] {
        let thread = Thread::new(skips);
        assert_eq!(thread.wait(101, &[]), (release(0, 0), 0));
        assert_eq!(thread.wait(102, &[102, 102]), (None, MOST_YIELDS as usize));
        assert_eq!(thread.waits.step(&thread.schedule, 102, MOST_YIELDS), NextStep::Sleep(110));
        assert_eq!(thread.waits.step(&thread.schedule, 110, MOST_YIELDS), NextStep::Return(1));
        // Or the second one has waited.
        assert_eq!(thread.wait(102, &[102, 111]), (release(1, 0), 2));
    }
}

#[test]
fn the_remaining_budget_is_what_is_left_at_least() {
    let waits = YieldWaits::default();
    let schedule = schedule(false, 0);
    let left = |now, clock| waits.remaining_budget(&schedule, now, clock);
    assert_eq!(left(99, 0), 0);
    waits.begun.set(1_000);
    assert_eq!((left(103, 1_000), left(103, 1_001), left(103, 1_003)), (4, 3, 1));
    assert_eq!(left(109, 1_004), 0);
    // The release after that: others may have executed since.
    assert_eq!((left(111, 1_005), left(112, 1_005)), (3, 2));
}

/// The first release of a page.
fn first_at(first: u64) -> PageRelease {
    PageRelease { release: first, deadline: first + 5, budget: 3, ..schedule(false, 0).first }
}

/// A page of releases at `first` and each `period` from there, and its client.
fn page(first: u64, period: u64) -> (DispatcherPage, ClientPage) {
    let new = NewPage::make().expect("a page");
    let client = ClientPage::open(new.memory()).expect("it is not sealed");
    let sealed = new.seal().expect("the client has not touched it");
    let first = first_at(first);
    (DispatcherPage::by_yield(&sealed, &first, period, false), client)
}

const HOUR: u64 = 3_600_000_000_000;
const NEVER: u64 = u64::MAX;

/// As after the dispatcher's end: nothing holds the thread back in sched_yield.
#[test]
fn a_thread_without_a_dispatcher_finds_that_it_is_alone_and_does_not_execute_on() {
    let (_dispatcher, client) = page(monotonic_ns(), HOUR);
    assert!(client.waits_by_yield());
    let first = client.wait_by_yield(NEVER, || unreachable!());
    assert!(matches!(first, WaitAnswer::Released(PageRelease { number: 0, .. })), "{first:?}");
    assert_eq!(client.release().number, 0);
    let asked = Cell::new(0);
    let answer = client.wait_by_yield(NEVER, || {
        asked.set(asked.get() + 1);
        true
    });
    assert_eq!((answer, asked.get()), (WaitAnswer::Over, 1));
}

#[test]
fn a_thread_that_is_always_late_finds_that_it_is_alone() {
    // Each release is a nanosecond after the one before.
    let (_dispatcher, client) = page(0, 1);
    for _ in 0..100 {
        let answer = client.wait_by_yield(NEVER, || unreachable!());
        assert!(matches!(answer, WaitAnswer::Released(_)), "{answer:?}");
    }
    assert_eq!(client.wait_by_yield(0, || true), WaitAnswer::Over);
}

#[test]
fn the_end_of_the_reservation_wakes_a_thread_that_sleeps_until_its_release() {
    let (dispatcher, client) = page(monotonic_ns(), HOUR);
    let waits = std::thread::spawn(move || {
        let first = client.wait_by_yield(NEVER, || false);
        (first, client.wait_by_yield(NEVER, || false), client.is_over())
    });
    drop(dispatcher);
    let (_, second, is_over) = waits.join().expect("it does not panic");
    assert_eq!((second, is_over), (WaitAnswer::Over, true));
}

#[test]
fn whatever_a_client_writes_its_waits_end() {
    let (dispatcher, client) = page(monotonic_ns(), HOUR);
    let words = &client.words().service;
    for garbage in [0, 1, u64::MAX / 2, u64::MAX] {
        for word in [&words.number, &words.release, &words.deadline, &words.budget, &words.period] {
            word.store(garbage, Ordering::SeqCst);
            for waits_by in [0, 1, 2, 3, u32::MAX] {
                words.waits_by.store(waits_by, Ordering::SeqCst);
                for lost in [0, 1, u32::MAX] {
                    words.lost.store(lost, Ordering::SeqCst);
                    words.suspensions.store(lost, Ordering::SeqCst);
                    let _ = client.wait_by_yield(0, || true);
                    let _ = (client.release(), client.remaining_budget(), client.next_resumption());
                }
            }
        }
    }
    drop(dispatcher);
    assert_eq!(client.wait_by_yield(NEVER, || false), WaitAnswer::Over);
}

const MS: u64 = 1_000_000;

/// What a wait of a thread returned that had so many lost releases while it was suspended.
fn released(answer: WaitAnswer, lost: u32) -> PageRelease {
    let WaitAnswer::Released(release) = answer else { panic!("{answer:?}") };
    assert_eq!(release.lost, lost, "{release:?}");
    release
}

#[test]
fn a_suspended_thread_sleeps_until_the_release_after_those_that_it_lost() {
    let begin = monotonic_ns();
    let (mut dispatcher, client) = page(begin, MS);
    let first = released(client.wait_by_yield(NEVER, || false), 0);
    dispatcher.toggle_suspension();
    let waits = std::thread::spawn(move || client.wait_by_yield(NEVER, || false));
    std::thread::sleep(std::time::Duration::from_millis(3));
    assert!(!waits.is_finished());
    dispatcher.publish(&PageRelease { lost: 7, ..first_at(begin) }, 0);
    dispatcher.toggle_suspension();
    let next = released(waits.join().expect("it does not panic"), 7);
    assert!(next.number >= first.number + 8, "{next:?}");
}

#[test]
fn one_that_was_resumed_before_it_waited_had_a_release_without_a_wait() {
    let (mut dispatcher, client) = page(0, MS);
    let first = released(client.wait_by_yield(NEVER, || false), 0);
    dispatcher.toggle_suspension();
    dispatcher.toggle_suspension();
    let next = released(client.wait_by_yield(NEVER, || false), 1);
    assert!(next.number >= first.number + 2, "{next:?}");
    released(client.wait_by_yield(NEVER, || false), 0);
}

#[test]
fn one_that_suspends_itself_returns_no_sooner_than_it_is_resumed() {
    let (mut dispatcher, client) = page(0, MS);
    released(client.wait_by_yield(NEVER, || false), 0);
    client.wait_for_resumption(client.next_resumption());
    let waits = std::thread::spawn(move || client.wait_by_yield(NEVER, || false));
    // It is asked for, in effect, and over.
    for _ in 0..2 {
        std::thread::sleep(std::time::Duration::from_millis(3));
        assert!(!waits.is_finished());
        dispatcher.toggle_suspension();
    }
    assert!(matches!(waits.join().expect("it does not panic"), WaitAnswer::Released(_)));
}
