//! Where findings are read from: the machine, or a tree of files that looks like one.

use crate::calls::Calls;
use crate::finding::Evidence;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// No file that is read whole is longer; what is beyond is not looked at.
const LONGEST: u64 = 4 << 20;

/// The file tree that is examined.
#[derive(Debug)]
pub struct Probe {
    root: PathBuf,
    source: Source,
    window: Duration,
}

#[derive(Debug)]
enum Source {
    Machine,
    Given(Option<Calls>),
}

/// A file that could not be read, and why.
#[derive(Debug, Clone)]
pub(crate) struct Unread {
    pub path: String,
    pub kind: io::ErrorKind,
    why: String,
}

impl Unread {
    pub fn new(path: &str, error: &io::Error) -> Self {
        Unread { path: path.into(), kind: error.kind(), why: error.to_string() }
    }

    pub fn garbled(reading: &Evidence, wanted: &str) -> Self {
        let shown: String = reading.read.chars().take(60).collect();
        Unread {
            path: reading.from.clone(),
            kind: io::ErrorKind::InvalidData,
            why: format!("expected {wanted}, read {shown:?}"),
        }
    }

    /// There is no such thing, as opposed to: it may not be read.
    pub fn absent(&self) -> bool {
        self.kind == io::ErrorKind::NotFound
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

impl Probe {
    /// The machine we run on.
    pub fn machine() -> Self {
        Probe {
            root: PathBuf::from("/"),
            source: Source::Machine,
            window: Duration::from_millis(200),
        }
    }

    /// A tree of files that stands for a machine. No system call is made; `calls` has what they
    /// would have returned; without it, what only they show is unknown.
    pub fn tree(root: impl Into<PathBuf>, calls: Option<Calls>) -> Self {
        Probe { root: root.into(), source: Source::Given(calls), window: Duration::ZERO }
    }

    pub(crate) fn calls(&self) -> Option<Calls> {
        match &self.source {
            Source::Machine => Some(Calls::make()),
            Source::Given(calls) => calls.clone(),
        }
    }

    pub(crate) fn window(&self) -> Duration {
        self.window
    }

    /// Where `path`, as the machine names it, really is.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The trimmed text of a file.
    pub(crate) fn read(&self, path: &str) -> Result<Evidence, Unread> {
        let bytes = self.bytes(path)?;
        Ok(Evidence::new(path, String::from_utf8_lossy(&bytes).trim()))
    }

    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>, Unread> {
        let mut bytes = Vec::new();
        fs::File::open(self.at(path))
            .and_then(|file| file.take(LONGEST).read_to_end(&mut bytes))
            .map_err(|e| Unread::new(path, &e))?;
        Ok(bytes)
    }

    /// A file that holds one integer.
    pub(crate) fn number(&self, path: &str) -> Result<(i64, Evidence), Unread> {
        let reading = self.read(path)?;
        match reading.read.parse() {
            Ok(n) => Ok((n, reading)),
            Err(_) => Err(Unread::garbled(&reading, "a number")),
        }
    }

    /// Names in a directory, sorted; numbers by value.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<String>, Unread> {
        let entries = fs::read_dir(self.at(path)).map_err(|e| Unread::new(path, &e))?;
        let mut names: Vec<String> =
            entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
        names.sort_by_key(|n| (n.parse::<u64>().unwrap_or(u64::MAX), n.clone()));
        Ok(names)
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// Whether we may write there, by the kernel's own answer.
    pub(crate) fn writable(&self, path: &str) -> Result<(), Unread> {
        access(&self.at(path)).map_err(|e| Unread::new(path, &e))
    }
}

fn access(path: &Path) -> io::Result<()> {
    use rustix::fs::{accessat, Access, AtFlags, CWD};
    Ok(accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?)
}
