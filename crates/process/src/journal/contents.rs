//! What a journal says.

use std::path::PathBuf;

use rustix::fd::BorrowedFd;
use rustix::fs::SeekFrom;
use rustix::io::retry_on_intr;

use super::{AdoptedThreadRecord, Entry, ProcessRecord, Purpose};
use crate::proc::Identity;

/// Everything that a journal says, with what was undone in good order already taken out.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Identity, boot, pid namespace, command line, since.
    pub owner: Option<(Identity, String, u64, String, String)>,
    /// See [`Journal::mark`].
    pub mark: String,
    pub guardian: Option<Identity>,
    pub groups: Vec<(PathBuf, Purpose)>,
    pub adopted: Vec<ProcessRecord>,
    pub joined: Vec<(Identity, i32)>,
    pub adopted_threads: Vec<AdoptedThreadRecord>,
    pub children: Vec<Identity>,
    /// A command was started, whether it has ended or not: its descendants may still run.
    pub started: bool,
    pub stopping: Vec<Identity>,
    /// Another process may adopt the children.
    pub parked_elsewhere: bool,
}

impl Contents {
    /// What the journal in this file says.
    pub fn of(file: BorrowedFd<'_>) -> Self {
        Self::up_to_now(file).0
    }

    /// The same, and the place in the file, bytes, up to which it is that: the end of the last
    /// whole line, after which another thread may be writing.
    pub(super) fn up_to_now(file: BorrowedFd<'_>) -> (Self, u64) {
        // No one uses the place in the file: lines are appended, and read from places.
        let start = rustix::fs::seek(file, SeekFrom::Data(0)).unwrap_or(0);
        let mut bytes = Vec::new();
        let mut chunk = [0u8; 8192];
        while let Ok(n @ 1..) =
            retry_on_intr(|| rustix::io::pread(file, &mut chunk, start + bytes.len() as u64))
        {
            bytes.extend_from_slice(&chunk[..n]);
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        (Self::parse(&bytes[..whole], start), start + whole as u64)
    }

    /// What lines say that are in the file from this place on.
    fn parse(bytes: &[u8], start: u64) -> Self {
        let mut lines: Vec<(u64, Entry)> = Vec::new();
        // What is left of a hole in its last page.
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let mut at = start + zeros as u64;
        for line in bytes[zeros..].split(|byte| *byte == b'\n') {
            // Blank and torn lines do not parse, and their changes were not made.
            if let Ok(entry) = serde_json::from_slice(line) {
                lines.push((at, entry));
            }
            at += line.len() as u64 + 1;
        }
        // The memory of what it covers may have been given back.
        let covered_by = |(_, entry): &(u64, Entry)| match entry {
            Entry::Snapshot { covers, .. } => Some(*covers),
            _ => None,
        };
        let covered = lines.iter().filter_map(covered_by).max();
        let mut contents = Self::default();
        if let Some(covered) = covered {
            let place = lines.iter().position(|line| covered_by(line) == Some(covered));
            let snapshot = place.map(|place| lines.remove(place).1);
            if let Some(Entry::Snapshot { started, entries, .. }) = snapshot {
                entries.into_iter().for_each(|entry| contents.take(entry));
                contents.started = started;
            }
        }
        let later = lines.into_iter().filter(|(at, _)| *at >= covered.unwrap_or(0));
        later.for_each(|(_, entry)| contents.take(entry));
        contents
    }

    /// A line that says the same, of a file up to this place.
    pub(super) fn snapshot(self, covers: u64) -> Entry {
        let Contents { owner, mark, guardian, groups, adopted, joined, .. } = self;
        let Contents { adopted_threads, children, started, stopping, parked_elsewhere, .. } = self;
        let owner = owner.map(|(id, boot, pidns, command, since)| Entry::Owner {
            id,
            boot,
            pidns,
            command,
            since,
            mark,
        });
        let mut entries: Vec<Entry> = owner.into_iter().collect();
        entries.extend(guardian.map(|id| Entry::Guardian { id }));
        entries.extend(groups.into_iter().map(|(path, purpose)| Entry::Group { path, purpose }));
        entries.extend(adopted.into_iter().map(|process| Entry::Adopted { process }));
        entries.extend(joined.into_iter().map(|(id, like)| Entry::Joined { id, like }));
        entries.extend(adopted_threads.into_iter().map(|thread| Entry::AdoptedThread { thread }));
        entries.extend(children.into_iter().map(|id| Entry::Child { id }));
        entries.extend(stopping.into_iter().map(|id| Entry::Stopping { id }));
        entries.extend(parked_elsewhere.then_some(Entry::ParkedElsewhere));
        Entry::Snapshot { covers, started, entries }
    }

    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Owner { id, boot, pidns, command, since, mark } => {
                self.owner = Some((id, boot, pidns, command, since));
                self.mark = mark;
            }
            Entry::Guardian { id } => self.guardian = Some(id),
            Entry::Group { path, purpose } => self.groups.push((path, purpose)),
            Entry::GroupGone { path } => self.groups.retain(|g| g.0 != path),
            Entry::Adopted { process } => self.adopted.push(process),
            Entry::Joined { id, like } => self.joined.push((id, like)),
            Entry::GivenBack { id } => {
                self.adopted.retain(|p| p.id != id);
                self.joined.retain(|j| j.0 != id);
                self.stopping.retain(|s| *s != id);
            }
            Entry::AdoptedThread { thread } => self.adopted_threads.push(thread),
            Entry::ThreadGivenBack { id } => self.adopted_threads.retain(|t| t.id() != id),
            Entry::Child { id } => {
                self.started = true;
                self.children.push(id);
            }
            Entry::ChildGone { id } => {
                self.children.retain(|c| *c != id);
                self.stopping.retain(|s| *s != id);
            }
            Entry::Stopping { id } => self.stopping.push(id),
            Entry::ParkedElsewhere => self.parked_elsewhere = true,
            // What a greater one covers is in that.
            Entry::Snapshot { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// No process.
    fn id(n: i32) -> Identity {
        Identity { pid: n, start: 9 }
    }

    fn process(n: i32) -> ProcessRecord {
        ProcessRecord {
            id: id(n),
            cgroup: PathBuf::new(),
            group: PathBuf::new(),
            at: 0,
            stopped: false,
            threads: Vec::new(),
        }
    }

    fn lines(entries: &[Entry]) -> Vec<u8> {
        let line = |e| [serde_json::to_vec(e).expect("plain data"), b"\n".to_vec()].concat();
        entries.iter().flat_map(line).collect()
    }

    fn said_from(bytes: &[u8], start: u64) -> (Vec<Identity>, Vec<Identity>) {
        let contents = Contents::parse(bytes, start);
        (contents.adopted.iter().map(|p| p.id).collect(), contents.children)
    }

    #[test]
    fn a_torn_last_line_is_skipped_and_the_rest_kept() {
        let mut bytes = lines(&[Entry::Child { id: id(7) }]);
        bytes.extend_from_slice(b"\n{\"what\":\"child\",\"id\":{\"pid\":8,\"st");
        assert_eq!(Contents::parse(&bytes, 0).children, [id(7)]);
    }

    #[test]
    fn what_was_given_back_is_not_given_back_twice() {
        let bytes = lines(&[
            Entry::Adopted { process: process(7) },
            Entry::Stopping { id: id(7) },
            Entry::GivenBack { id: id(7) },
        ]);
        let contents = Contents::parse(&bytes, 0);
        assert!(contents.adopted.is_empty() && contents.stopping.is_empty());
    }

    #[test]
    fn a_snapshot_says_what_its_lines_said() {
        let all = [
            Entry::Owner {
                id: id(1),
                boot: "boot".into(),
                pidns: 2,
                command: "command".into(),
                since: "now".into(),
                mark: "mark".into(),
            },
            Entry::Guardian { id: id(2) },
            Entry::Group { path: "/base".into(), purpose: Purpose::Base },
            Entry::Group { path: "/gone".into(), purpose: Purpose::Adopted },
            Entry::GroupGone { path: "/gone".into() },
            Entry::Adopted { process: process(3) },
            Entry::Joined { id: id(4), like: 3 },
            Entry::Child { id: id(5) },
            Entry::ChildGone { id: id(5) },
            Entry::Stopping { id: id(4) },
            Entry::ParkedElsewhere,
        ];
        let bytes = lines(&all);
        let covers = bytes.len() as u64;
        let before = Contents::parse(&bytes, 0);
        let wanted = format!("{before:?}");
        let snapshot = lines(&[before.snapshot(covers)]);
        // With and without what it covers.
        let both = [bytes, snapshot.clone()].concat();
        assert_eq!(format!("{:?}", Contents::parse(&both, 0)), wanted);
        assert_eq!(format!("{:?}", Contents::parse(&snapshot, covers)), wanted);
    }

    #[test]
    fn lines_between_the_reading_and_the_snapshot_count() {
        let covered = lines(&[
            Entry::Adopted { process: process(1) },
            Entry::Adopted { process: process(2) },
        ]);
        let covers = covered.len() as u64;
        let between = lines(&[Entry::GivenBack { id: id(1) }, Entry::Child { id: id(3) }]);
        let snapshot = Contents::parse(&covered, 0).snapshot(covers);
        // One that has read less, and comes later.
        let older = Contents::default().snapshot(0);
        let after = lines(&[snapshot, older, Entry::Child { id: id(4) }]);
        let wanted = (vec![id(2)], vec![id(3), id(4)]);
        let all = [covered.clone(), between.clone(), after.clone()].concat();
        assert_eq!(said_from(&all, 0), wanted);
        let hole = vec![0; covered.len()];
        assert_eq!(said_from(&[hole, between.clone(), after.clone()].concat(), 0), wanted);
        assert_eq!(said_from(&[between, after].concat(), covers), wanted);
    }

    #[test]
    fn a_journal_stays_short_whatever_comes_and_goes() {
        let journal = Journal::create().expect("a journal");
        let over = AtomicBool::new(false);
        let stays = [process(1), process(2)];
        for process in &stays {
            let process = process.clone();
            journal.write(&Entry::Adopted { process }).expect("there is room");
        }
        std::thread::scope(|scope| {
            // Others write meanwhile, and read.
            let another = journal.clone();
            let children = scope.spawn(move || {
                for n in 100..200 {
                    another.write(&Entry::Child { id: id(n) }).expect("there is room");
                    std::thread::yield_now();
                }
            });
            let reads = scope.spawn(|| {
                while !over.load(Relaxed) {
                    let (_, contents) = Journal::read(journal.path()).expect("it is there");
                    assert_eq!(contents.owner.as_ref().map(|o| o.0), Some(journal.owner()));
                    assert!(stays.iter().all(|p| contents.adopted.contains(p)));
                }
            });
            for n in 1000..11_000 {
                let process = process(n);
                journal.write(&Entry::Adopted { process }).expect("there is room");
                journal.write(&Entry::GivenBack { id: id(n) }).expect("there is room");
            }
            children.join().expect("none panics");
            over.store(true, Relaxed);
            reads.join().expect("none panics");
        });
        let (_, contents) = Journal::read(journal.path()).expect("it is there");
        assert_eq!(contents.adopted, stays);
        assert_eq!(contents.children, (100..200).map(id).collect::<Vec<_>>());
        assert!(contents.started && contents.mark == journal.mark());
        let file = std::fs::metadata(journal.path()).expect("it is there");
        let memory = file.blocks() * 512;
        assert!(file.len() > 1_000_000 && memory < 200_000, "{memory} bytes of {}", file.len());
        std::fs::remove_file(journal.path()).expect("it is there");
    }
}
