//! The dispatcher's rings in the kernel: its events and records stand in an arena that is mapped
//! here.

use punctual_dispatcher::{raw, Event, Limits};
use punctual_trace::Record;

use crate::abi::Poll;
use crate::programs::Programs;

/// One domain's, from the reader's end.
pub(crate) struct Rings<'a> {
    programs: &'a Programs,
    domain: u32,
    limits: Limits,
    /// As of the last poll.
    poll: Poll,
    /// Events that were taken since.
    taken: u32,
    /// Records that were read.
    read: u64,
}

/// Records, oldest first.
pub(crate) struct Records {
    /// So many before it were overwritten before they were read.
    pub lost: u64,
    pub records: Vec<Record>,
}

impl<'a> Rings<'a> {
    pub fn new(programs: &'a Programs, domain: u32, limits: Limits) -> Rings<'a> {
        Rings { programs, domain, limits, poll: Poll::default(), taken: 0, read: 0 }
    }

    /// Gives back the room of events that were taken, and sees what is new. The calling thread is
    /// pinned to the domain's CPU.
    ///
    /// # Errors
    /// The kernel's.
    pub fn poll(&mut self) -> Result<(), String> {
        let mut poll = Poll { domain: self.domain, pop: self.taken, ..Poll::default() };
        if self.programs.run(&mut poll)? != 0 {
            return Err(format!(
                "the rings of domain {} cannot be read from another CPU",
                self.domain
            ));
        }
        self.poll = poll;
        self.taken = 0;
        Ok(())
    }

    /// Times that jobs were held back to leave others their share.
    pub fn throttled(&self) -> u64 {
        self.poll.throttles
    }

    /// Times that the timer could not be armed.
    pub fn arm_failures(&self) -> u64 {
        self.poll.arm_failures
    }

    /// The oldest event not yet taken, without asking the kernel. After the first poll.
    pub fn event(&mut self) -> Option<Event> {
        loop {
            let number = self.poll.event_tail + u64::from(self.taken);
            // SAFETY: the arena is mapped there as long as the object is loaded. Where the
            // dispatcher is called nothing else runs, so that this thread, on the same CPU, sees
            // whole events.
            if number >= unsafe { std::ptr::read_volatile(self.poll.head as *const u64) } {
                return None;
            }
            self.taken += 1;
            let at = self.poll.events
                + number % u64::from(self.limits.events) * size_of::<raw::Event>() as u64;
            // SAFETY: as above, and the ring has that many entries; one between tail and head is
            // not written again before it is given back.
            let raw = unsafe { std::ptr::read_volatile(at as *const raw::Event) };
            if let Some(event) = raw.decode() {
                return Some(event);
            }
        }
    }

    /// Whether so many events were taken that their room should be given back, by a poll.
    pub fn is_filling(&self) -> bool {
        self.taken > self.limits.events / 4
    }

    /// All records that are new as of the last poll.
    pub fn records(&mut self) -> Records {
        let count = self.poll.record_count;
        let size = u64::from(self.limits.records);
        let start = self.read.max(count.saturating_sub(size));
        let records: Vec<Record> = (start..count).map(|n| self.record(n)).collect();
        // What was written meanwhile may stand where the oldest of them stood.
        let mut now = self.poll;
        now.pop = 0;
        let written = match self.programs.run(&mut now) {
            Ok(0) => now.record_count,
            _ => count,
        };
        let first = start.max(written.saturating_sub(size)).min(count);
        let lost = first - self.read;
        let records = records.into_iter().skip((first - start) as usize).collect();
        self.read = count;
        Records { lost, records }
    }

    fn record(&self, number: u64) -> Record {
        let at = self.poll.records
            + number % u64::from(self.limits.records) * size_of::<Record>() as u64;
        // SAFETY: as above; a record (`struct pd_record`) that is written over meanwhile is plain
        // numbers still.
        unsafe { std::ptr::read_volatile(at as *const Record) }
    }
}
