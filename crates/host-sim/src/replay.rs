//! Replay: the recorded inputs of any host, applied to a new dispatcher, must lead to the same
//! decisions (design, invariant 6).
//!
//! A dispatcher records its inputs and its decisions in one stream. So each input of the trace is
//! applied to the new one, and whatever the new one records then must be what stands next in the
//! trace, word by word. Selecting is no input, and is recorded only when its answer changes: so it
//! is asked where the trace has an answer, and whenever time advances, since a host selects at the
//! end of each instant. What hosts record for themselves is passed over.

use std::collections::VecDeque;
use std::io::BufRead;

use punctual_dispatcher::{Dispatcher, Refusal};
use punctual_trace::{kind, Header, Record, TraceError, TraceReader};

use crate::inputs::{apply, length, whole_length, InputError, MOST};

/// Inputs between two tellings of progress.
const BETWEEN: u64 = 65_536;

/// What a replay came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Whose trace it was.
    pub header: Header,
    /// Inputs that were applied.
    pub inputs: u64,
    /// Decisions that were the same.
    pub decisions: u64,
    /// The time of the last record, ns.
    pub until: u64,
    /// The first difference; later records are not examined.
    pub difference: Option<Difference>,
    /// The watcher ended it early.
    pub interrupted: bool,
    /// The number of the first record that is not there whole: the file ends there, or has a gap.
    /// What stands before was replayed.
    pub cut: Option<u64>,
    /// Records that are missing there; 0 where the file ends.
    pub lost: u64,
}

/// The first record at which a replay is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Number of the record in the trace, from 0.
    pub number: u64,
    /// The time, ns.
    pub at: u64,
    /// What the trace has.
    pub recorded: String,
    /// What the dispatcher does now.
    pub replayed: String,
}

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It is none, or damaged.
    #[error("{0}")]
    Trace(#[from] TraceError),
    /// No dispatcher can have its limits.
    #[error("its header has limits that no dispatcher can have: {0}")]
    Limits(Refusal),
    /// It is a part that does not begin with the run, or has not all tasks.
    #[error(
        "it is cut out of a longer run: nothing says in which state the dispatcher was before"
    )]
    Cut,
    /// An input that makes no sense.
    #[error("record {number} is no input of a dispatcher: {what}")]
    Input {
        /// Number of the record, from 0.
        number: u64,
        /// What stands there.
        what: String,
    },
}

/// Replays a trace. `proceeds` receives the virtual time, ns, now and then, and ends the replay
/// with false.
///
/// # Errors
/// See [`ReplayError`]. A difference is no error but a result.
pub fn replay(
    input: impl BufRead,
    proceeds: &mut dyn FnMut(u64) -> bool,
) -> Result<Replayed, ReplayError> {
    let reader = TraceReader::new(input)?;
    let header = reader.header().clone();
    if header.cut.as_ref().is_some_and(|cut| !cut.is_from_the_start()) {
        return Err(ReplayError::Cut);
    }
    let mut limits = header.limits;
    // What one input leads to; it is read at once.
    limits.records = limits.records_at_once();
    let mut replay = Replay {
        reader,
        ahead: VecDeque::with_capacity(MOST),
        numbers: VecDeque::with_capacity(MOST),
        read: 0,
        dispatcher: Dispatcher::new(limits).map_err(ReplayError::Limits)?,
        compared: 0,
        now: 0,
        decisions: 0,
        cut: None,
        lost: 0,
    };
    let (mut inputs, mut begun, mut interrupted) = (0, false, false);
    let mut difference = None;
    while difference.is_none() {
        let Some(record) = replay.peek()? else { break };
        difference = replay.until(&record, begun)?;
        if difference.is_some() {
            break;
        }
        if record.is_decision() {
            difference = replay.decision(&record)?;
        } else if replay.is_cut_short(&record)? {
            break;
        } else {
            // Hosts begin with it, and select after it.
            begun |= record.kind == kind::ADVANCE;
            difference = replay.input()?;
            inputs += 1;
            if inputs % BETWEEN == 0 && !proceeds(replay.now) {
                interrupted = true;
                break;
            }
        }
    }
    let Replay { decisions, now, cut, lost, .. } = replay;
    Ok(Replayed { header, inputs, decisions, until: now, difference, interrupted, cut, lost })
}

struct Replay<R: BufRead> {
    reader: TraceReader<R>,
    /// The next records of the trace, as far as they were looked at.
    ahead: VecDeque<Record>,
    /// Their numbers in the trace.
    numbers: VecDeque<u64>,
    /// How many were read.
    read: u64,
    dispatcher: Dispatcher,
    /// How many records of the dispatcher were compared.
    compared: u64,
    now: u64,
    decisions: u64,
    cut: Option<u64>,
    lost: u64,
}

type Found = Result<Option<Difference>, ReplayError>;

impl<R: BufRead> Replay<R> {
    fn peek(&mut self) -> Result<Option<Record>, TraceError> {
        self.look(1)?;
        Ok(self.ahead.front().copied())
    }

    /// Reads on until so many records are there, if there are as many.
    fn look(&mut self, records: usize) -> Result<(), TraceError> {
        while self.ahead.len() < records && self.cut.is_none() {
            let record = match self.reader.next() {
                Some(Ok(record)) => record,
                Some(Err(TraceError::Short { number })) => {
                    self.cut = Some(number);
                    break;
                }
                Some(Err(e)) => return Err(e),
                None => break,
            };
            if let Some(lost) = record.lost_before() {
                self.lost = lost;
                self.cut = Some(self.read);
                break;
            }
            if !record.is_of_a_host() {
                self.ahead.push_back(record);
                self.numbers.push_back(self.read);
            }
            self.read += 1;
        }
        Ok(())
    }

    /// The file is cut off within the input that begins with this record.
    fn is_cut_short(&mut self, first: &Record) -> Result<bool, TraceError> {
        self.look(MOST)?;
        Ok(self.cut.is_some() && self.ahead.len() < whole_length(first))
    }

    /// The number of the next record.
    fn number(&self) -> u64 {
        self.numbers.front().copied().unwrap_or(self.read)
    }

    /// Time advances to that record: the instant before it has ended.
    fn until(&mut self, record: &Record, begun: bool) -> Found {
        let at = record.at().unwrap_or(self.now);
        if at < self.now {
            let what = format!("{record}, before {} ns, where the one before it was", self.now);
            return Err(ReplayError::Input { number: self.number(), what });
        }
        if at > self.now && begun {
            self.dispatcher.select(0, self.now);
            if let Some(record) = self.dispatcher.record(self.compared) {
                let recorded = format!("no change until {at} ns");
                return Ok(Some(self.different(recorded, record.to_string())));
            }
        }
        self.now = at;
        Ok(None)
    }

    /// A decision stands in the trace where no input has led to one.
    fn decision(&mut self, record: &Record) -> Found {
        if record.kind == kind::SELECTED {
            self.dispatcher.select(record.small, self.now);
            if self.dispatcher.record_count() > self.compared {
                return self.compare();
            }
        }
        Ok(Some(self.different(record.to_string(), "nothing new".to_owned())))
    }

    fn input(&mut self) -> Found {
        self.look(MOST)?;
        self.ahead.make_contiguous();
        let (records, _) = self.ahead.as_slices();
        let length = length(records);
        match apply(&mut self.dispatcher, &records[..length], self.now) {
            Ok(()) => {}
            Err(InputError::Refused(refusal)) => {
                let recorded = records[0].to_string();
                return Ok(Some(self.different(recorded, format!("a refusal: {refusal}"))));
            }
            Err(InputError::Nonsense) => {
                return Err(ReplayError::Input {
                    number: self.number(),
                    what: records[0].to_string(),
                })
            }
        }
        if self.dispatcher.record_count() == self.compared {
            let recorded = self.ahead[0].to_string();
            return Ok(Some(self.different(recorded, "nothing happens".to_owned())));
        }
        // A replay has no reader of events; they must not fill the ring.
        while self.dispatcher.next_event().is_some() {}
        self.compare()
    }

    /// Holds all that the dispatcher recorded since the last time against the trace.
    fn compare(&mut self) -> Found {
        while self.compared < self.dispatcher.record_count() {
            let Some(mine) = self.dispatcher.record(self.compared) else {
                let mine = "more than a dispatcher can do at one instant".to_owned();
                return Ok(Some(self.different("less".to_owned(), mine)));
            };
            let Some(theirs) = self.peek()? else {
                if self.cut.is_some() {
                    break;
                }
                return Ok(Some(self.different("the end".to_owned(), mine.to_string())));
            };
            if mine != theirs {
                let (theirs, mine) = in_words(&theirs, &mine);
                return Ok(Some(self.different(theirs, mine)));
            }
            self.ahead.pop_front();
            self.numbers.pop_front();
            self.compared += 1;
            self.decisions += u64::from(mine.is_decision());
        }
        Ok(None)
    }

    fn different(&self, recorded: String, replayed: String) -> Difference {
        Difference { number: self.number(), at: self.now, recorded, replayed }
    }
}

/// Two records that are not the same, in words that are not the same either.
fn in_words(theirs: &Record, mine: &Record) -> (String, String) {
    let (a, b) = (theirs.to_string(), mine.to_string());
    if a != b {
        return (a, b);
    }
    let numbers = |r: &Record| {
        format!("{r} [time {}, a {:#x}, b {:#x}, small {}]", r.time, r.a, r.b, r.small)
    };
    (numbers(theirs), numbers(mine))
}
