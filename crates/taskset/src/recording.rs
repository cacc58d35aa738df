//! Recorded execution times: a text file with one duration on each line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::duration::{parse_duration, quote};

/// The largest recording that is read, in bytes (4 MiB).
pub const LARGEST_RECORDING: usize = 4 << 20;

/// The most recorded execution times that the tasks of one set have together.
pub const MOST_RECORDED: usize = 1 << 22;

/// The recordings of one set: each file is read once, whatever number of tasks follow it.
pub(crate) struct Recordings {
    folder: PathBuf,
    read: HashMap<String, Result<Vec<u64>, (String, String)>>,
    room: usize,
}

impl Recordings {
    /// Of a task-set file, in whose folder they are looked for.
    pub(crate) fn beside(file: &str) -> Self {
        let folder = Path::new(file).parent().unwrap_or(Path::new("")).to_owned();
        Recordings { folder, read: HashMap::new(), room: MOST_RECORDED }
    }

    /// The folder of the task-set file.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The execution times in a file, ns; else cause and help.
    pub(crate) fn read(&mut self, name: &str) -> Result<Vec<u64>, (String, String)> {
        let folder = &self.folder;
        let times =
            self.read.entry(name.to_owned()).or_insert_with(|| read(folder, name)).clone()?;
        self.count(times)
    }

    /// Takes the room of the execution times of one task; else cause and help.
    pub(crate) fn count(&mut self, times: Vec<u64>) -> Result<Vec<u64>, (String, String)> {
        if times.is_empty() {
            let help = "give at least one, such as recorded = [\"250us\"]";
            return Err(("the recording has no execution times".to_owned(), help.to_owned()));
        }
        let Some(room) = self.room.checked_sub(times.len()) else {
            return Err((
                format!(
                    "the recordings of the set have more than {MOST_RECORDED} execution times \
                     together"
                ),
                "shorten them: a recording is repeated from its beginning".to_owned(),
            ));
        };
        self.room = room;
        Ok(times)
    }
}

const EMPTY: &str = "write one duration on each line, such as 250us";

fn read(folder: &Path, name: &str) -> Result<Vec<u64>, (String, String)> {
    let fail = |cause: &str, help: &str| {
        Err((format!("the recording {} {cause}", quote(name)), help.to_owned()))
    };
    let path = folder.join(name);
    // Opening a pipe would wait for its writer.
    match std::fs::metadata(&path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => {
            return fail("is no regular file", "name a text file with one duration on each line")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return fail(
                "does not exist",
                "check its path, which begins at the folder of the task-set file",
            );
        }
        Err(error) => return fail(&format!("cannot be read: {error}"), "name a readable file"),
    }
    let mut bytes = Vec::new();
    let read = File::open(&path)
        .and_then(|open| open.take(LARGEST_RECORDING as u64 + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return fail(&format!("cannot be read: {error}"), "name a readable file");
    }
    if bytes.len() > LARGEST_RECORDING {
        let cause = format!("is larger than {} MiB", LARGEST_RECORDING >> 20);
        return fail(&cause, "shorten it: a recording is repeated from its beginning");
    }
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return fail("is not UTF-8 text", EMPTY);
    };
    parse(text).map_err(|(cause, help)| (format!("the recording {}{cause}", quote(name)), help))
}

/// One duration on each line; empty lines and what follows a `#` do not count.
fn parse(text: &str) -> Result<Vec<u64>, (String, String)> {
    let mut times = Vec::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let word = line.split('#').next().unwrap_or("").trim();
        if word.is_empty() {
            continue;
        }
        match parse_duration(word) {
            Ok(0) => {
                let cause = format!(", line {}: the execution time is 0", number + 1);
                return Err((cause, "make it at least 1ns".to_owned()));
            }
            Ok(ns) => times.push(ns),
            Err(error) => {
                return Err((format!(", line {}: {}", number + 1, error.cause), error.help))
            }
        }
    }
    if times.is_empty() {
        return Err((" has no execution times".to_owned(), EMPTY.to_owned()));
    }
    Ok(times)
}
