//! One record of a dispatcher's trace ring, as `dispatcher/record.h` lays it out.

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

/// Records from this kind on are decisions; those below are inputs.
const FIRST_DECISION: u32 = 64;
const GRANULARITY: u32 = 1;
const ORDER: u32 = 2;
const TAKE_LOST: u32 = 13;
const JOB_ADD: u32 = 20;
const JOB_ADD_2: u32 = 21;
const JOB_ADD_3: u32 = 22;
const RESERVATION_ADD: u32 = 23;
const RESERVATION_ADD_2: u32 = 24;
const RESERVATION_ADD_4: u32 = 26;
const SELECTED: u32 = 64;
/// The kernel host's own: a thread of a task began to run, or stopped. Kinds 96 to 127 are hosts'.
const RUNNING: u32 = 96;
const STOPPED: u32 = 97;
const OF_A_HOST: std::ops::Range<u32> = 96..128;
const EVENT: u32 = 128;

impl Record {
    /// Bytes of one record in a file: little-endian, in the order of the fields.
    pub const BYTES: usize = 32;

    /// Whether the dispatcher decided it; else somebody told it to the dispatcher.
    pub fn is_decision(&self) -> bool {
        self.kind >= FIRST_DECISION && !self.is_of_a_host()
    }

    /// Whether a host recorded it for itself: neither an input nor a decision, and no matter of a replay.
    pub fn is_of_a_host(&self) -> bool {
        OF_A_HOST.contains(&self.kind)
    }

    /// The kind in a word; `None` for one that this version does not know.
    pub fn what(&self) -> Option<&'static str> {
        Some(match self.kind {
            1 => "granularity",
            2 => "order",
            3 => "task added",
            4 => "task ready",
            5 => "task blocked",
            6 => "task gone",
            7 => "task done",
            8 => "charge task",
            9 => "charge job",
            10 => "cancel job",
            11 => "complete job",
            12 => "advance",
            13 => "take lost",
            14 => "reservation removed",
            15 => "timer asked for",
            16 => "timer taken back",
            17 => "window drafted",
            18 => "windows taken back",
            20..=22 => "job added",
            23..=26 => "reservation added",
            27 => "reservation changed",
            SELECTED => "selected",
            RUNNING => "running",
            STOPPED => "stopped",
            k if k > EVENT => match k - EVENT {
                1 => "completed",
                2 => "exhausted",
                3 => "expired",
                4 => "cancelled",
                5 => "ended with its task",
                6 => "task is ready",
                7 => "task is blocked",
                8 => "group active",
                9 => "group idle",
                10 => "segment exhausted",
                11 => "timer",
                12 => "events lost",
                13 => "released",
                14 => "releases lost",
                15 => "overrun",
                16 => "background",
                17 => "delayed waits saturated",
                18 => "segment expired",
                19 => "window exhausted",
                20 => "window expired",
                _ => return None,
            },
            _ => return None,
        })
    }

    /// When it was, ns; `None` for a kind whose `time` is something else.
    pub fn at(&self) -> Option<u64> {
        match self.kind {
            GRANULARITY | ORDER | TAKE_LOST | JOB_ADD_2..=JOB_ADD_3 | RESERVATION_ADD_2..=RESERVATION_ADD_4 => None,
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
        Record { time: word(0), a: word(8), b: word(16), small: word(24) as u32, kind: (word(24) >> 32) as u32 }
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
            2 => write!(f, ", group {}", self.small)?,
            3..=7 => write!(f, ", task {}", self.small)?,
            8 => write!(f, ", task {}, {} ns", self.small, self.a)?,
            9 => write!(f, ", job {:#x}, {} ns", self.a, self.b)?,
            17 => write!(f, ", {} ns after the release, {} ns long", self.a, self.b)?,
            10 | 11 => write!(f, ", job {:#x}", self.a)?,
            JOB_ADD | RESERVATION_ADD if self.small != u32::MAX => write!(f, ", task {}", self.small)?,
            13 | 14 | 27 => write!(f, ", reservation {}", self.small)?,
            SELECTED if self.a == 0 => f.write_str(": nobody")?,
            SELECTED => write!(f, ": job {:#x}", self.a)?,
            RUNNING => write!(f, ": task {}, thread {}", self.small, self.a)?,
            STOPPED => write!(f, ": task {}, thread {}, {} ns executed", self.small, self.b, self.a)?,
            k if k > EVENT => match k - EVENT {
                1..=5 | 10 | 18..=20 => write!(f, ", job {:#x}, {} ns used", self.a, self.b)?,
                8 | 9 => write!(f, ", group {}", self.small)?,
                13 => write!(f, ", release {} of task {}", self.a, self.small as i32)?,
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
