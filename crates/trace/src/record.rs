//! One record of a dispatcher's trace ring, as `dispatcher/record.h` lays it out.

use crate::kind::{self, event};

/// An input (a command, a charge, a time) or a decision. What the fields mean depends on the
/// kind; [`Record::what`] and `dispatcher/record.h` say.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Record {
    /// The call's time, ns, unless the kind says otherwise.
    pub time: u64,
    /// First argument.
    pub a: u64,
    /// Second argument.
    pub b: u64,
    /// A small argument: a task, a group, a CPU.
    pub small: u32,
    /// What it is.
    pub kind: u32,
}

impl Record {
    /// Bytes of one record in a file: little-endian, in the order of the fields.
    pub const BYTES: usize = 32;

    /// Whether it is a decision of the dispatcher; else it is an input or a host's own record.
    pub fn is_decision(&self) -> bool {
        self.kind >= kind::SELECTED && !self.is_of_a_host()
    }

    /// Whether a host recorded it for itself: neither an input nor a decision, and no matter of a
    /// replay.
    pub fn is_of_a_host(&self) -> bool {
        kind::OF_A_HOST.contains(&self.kind)
    }

    /// The kind in a word; `None` for one that this version does not know.
    pub fn what(&self) -> Option<&'static str> {
        Some(match self.kind {
            kind::GRANULARITY => "granularity",
            kind::ORDER => "order",
            kind::TASK_ADD => "task added",
            kind::TASK_READY => "task ready",
            kind::TASK_BLOCKED => "task blocked",
            kind::TASK_GONE => "task gone",
            kind::TASK_DONE => "task done",
            kind::CHARGE_TASK => "charge task",
            kind::CHARGE => "charge job",
            kind::JOB_CANCEL => "cancel job",
            kind::JOB_COMPLETE => "complete job",
            kind::ADVANCE => "advance",
            kind::TAKE_LOST => "take lost",
            kind::RESERVATION_REMOVE => "reservation removed",
            kind::TIMER_ASK => "timer asked for",
            kind::TIMER_CANCEL => "timer taken back",
            kind::WINDOW_ADD => "window drafted",
            kind::WINDOW_DROP => "windows taken back",
            kind::TASK_LEND => "task lends",
            kind::JOB_ADD..=kind::JOB_ADD_3 => "job added",
            kind::RESERVATION_ADD..=kind::RESERVATION_ADD_4 => "reservation added",
            kind::RESERVATION_CHANGE => "reservation changed",
            kind::TASK_RAISE if self.b == 0 => "task no longer raised",
            kind::TASK_RAISE => "task raised",
            kind::SELECTED => "selected",
            kind::RUNNING => "running",
            kind::STOPPED => "stopped",
            kind::TASK_PLACE => "place of a task",
            kind::LOST_RECORDS => "records lost",
            kind::POLICY => "another policy",
            kind::PERIOD..=kind::PERIOD_3 => "period",
            k if k > kind::EVENT => match k - kind::EVENT {
                event::COMPLETED => "completed",
                event::EXHAUSTED => "exhausted",
                event::EXPIRED => "expired",
                event::CANCELLED => "cancelled",
                event::TASK_GONE => "ended with its task",
                event::TASK_READY => "task is ready",
                event::TASK_BLOCKED => "task is blocked",
                event::GROUP_ACTIVE => "group active",
                event::GROUP_IDLE => "group idle",
                event::SEGMENT_EXHAUSTED => "segment exhausted",
                event::TIMER => "timer",
                event::LOST => "events lost",
                event::RELEASED => "released",
                event::RELEASES_LOST => "releases lost",
                event::OVERRUN => "overrun",
                event::BACKGROUND => "background",
                event::DELAYED_SATURATED => "delayed waits saturated",
                event::SEGMENT_EXPIRED => "segment expired",
                event::WINDOW_EXHAUSTED => "window exhausted",
                event::WINDOW_EXPIRED => "window expired",
                _ => return None,
            },
            _ => return None,
        })
    }

    /// When it was, ns; `None` for a kind whose `time` is something else.
    pub fn at(&self) -> Option<u64> {
        match self.kind {
            kind::GRANULARITY | kind::ORDER | kind::TAKE_LOST => None,
            kind::TASK_PLACE..=kind::POLICY => None,
            kind::JOB_ADD_2..=kind::JOB_ADD_3
            | kind::RESERVATION_ADD_2..=kind::RESERVATION_ADD_4 => None,
            _ => Some(self.time),
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; Record::BYTES] {
        let mut bytes = [0; Record::BYTES];
        bytes[0..8].copy_from_slice(&self.time.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.a.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.b.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.small.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.kind.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; Record::BYTES]) -> Record {
        let word = |at: usize| {
            let mut w = [0; 8];
            w.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(w)
        };
        Record {
            time: word(0),
            a: word(8),
            b: word(16),
            small: word(24) as u32,
            kind: (word(24) >> 32) as u32,
        }
    }
}

impl std::fmt::Display for Record {
    /// The kind in a word, when it was, and what it is about, for messages.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.what() {
            Some(what) => f.write_str(what)?,
            None => write!(f, "kind {}, which is unknown", self.kind)?,
        }
        match self.kind {
            kind::ORDER => write!(f, ", group {}", self.small)?,
            kind::TASK_ADD..=kind::TASK_DONE | kind::TASK_RAISE => {
                write!(f, ", task {}", self.small)?
            }
            kind::CHARGE_TASK => write!(f, ", task {}, {} ns", self.small, self.a)?,
            kind::CHARGE => write!(f, ", job {:#x}, {} ns", self.a, self.b)?,
            kind::WINDOW_ADD => write!(f, ", {} ns after the release, {} ns long", self.a, self.b)?,
            kind::JOB_CANCEL | kind::JOB_COMPLETE => write!(f, ", job {:#x}", self.a)?,
            kind::JOB_ADD | kind::RESERVATION_ADD if self.small != u32::MAX => {
                write!(f, ", task {}", self.small)?
            }
            kind::TAKE_LOST | kind::RESERVATION_REMOVE | kind::RESERVATION_CHANGE => {
                write!(f, ", reservation {}", self.small)?
            }
            kind::SELECTED if self.a == 0 => f.write_str(": nobody")?,
            kind::SELECTED => write!(f, ": job {:#x}", self.a)?,
            kind::RUNNING => write!(f, ": task {}, thread {}", self.small, self.a)?,
            kind::STOPPED => {
                write!(f, ": task {}, thread {}, {} ns executed", self.small, self.b, self.a)?
            }
            kind::TASK_PLACE => write!(f, ": task {} is the set's {}", self.small, self.a)?,
            kind::LOST_RECORDS => write!(f, ": {}", self.a)?,
            kind::POLICY => {
                let name = self.policy_name().unwrap_or_default();
                write!(f, ": {name:?} for group {}, since {} ns", self.small, self.time)?
            }
            k if k > kind::EVENT => match k - kind::EVENT {
                event::COMPLETED..=event::TASK_GONE
                | event::SEGMENT_EXHAUSTED
                | event::SEGMENT_EXPIRED..=event::WINDOW_EXPIRED => {
                    write!(f, ", job {:#x}, {} ns used", self.a, self.b)?
                }
                event::GROUP_ACTIVE | event::GROUP_IDLE => write!(f, ", group {}", self.small)?,
                event::RELEASED => write!(f, ", release {} of task {}", self.a, self.small as i32)?,
                _ => write!(f, ", task {}", self.small as i32)?,
            },
            _ => {}
        }
        match self.at() {
            Some(at) => write!(f, ", at {at} ns"),
            None => Ok(()),
        }
    }
}
