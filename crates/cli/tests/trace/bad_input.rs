//! Files that are damaged, cut off, foreign or of another version, disks that are full, and runs
//! that are interrupted: the same for every subcommand that reads a trace.

use std::io::{BufWriter, Write};
use std::process::{Command, Output, Stdio};

use punctual_trace::{Header, Limits, Record, TraceWriter};

use crate::{json, punctual, records_at, simulated, text, trace, Scratch, FITS};

/// The records of `FITS` before the damage.
const WHOLE: u64 = 60;

/// How a subcommand reads a file: its arguments, where `F` is the file, `G` a trace that is whole
/// and `O` a file to write; and its exit code for a trace that is damaged in its middle. `report`
/// makes a page with a banner, and a replay ends where the file does.
const READERS: [(&[&str], [i32; 2]); 8] = [
    (&["trace", "export", "F", "-o", "O"], [2, 2]),
    (&["trace", "stats", "F"], [2, 2]),
    (&["trace", "why", "F"], [2, 2]),
    (&["trace", "diff", "F", "G"], [2, 2]),
    (&["trace", "diff", "G", "F"], [2, 2]),
    (&["trace", "cut", "F", "--to", "1s", "-o", "O"], [2, 2]),
    (&["report", "F", "-o", "O"], [1, 1]),
    (&["sim", "--replay", "F"], [0, 2]),
];

struct Files {
    scratch: Scratch,
    whole: Vec<u8>,
}

impl Files {
    fn new() -> Files {
        let scratch = Scratch::new();
        let (file, _) = simulated(&scratch, FITS);
        let whole = std::fs::read(file).expect("it was written");
        Files { scratch, whole }
    }

    /// Runs a subcommand on this file.
    fn read(&self, arguments: &[&str], file: &str) -> Output {
        let _ = std::fs::remove_file(self.scratch.path("out"));
        let (good, out) = (self.scratch.path("t"), self.scratch.path("out"));
        let named = |&word: &&str| match word {
            "F" => file.to_owned(),
            "G" => good.clone(),
            "O" => out.clone(),
            word => word.to_owned(),
        };
        let arguments: Vec<String> = arguments.iter().map(named).collect();
        punctual(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn wrote(&self) -> bool {
        std::path::Path::new(&self.scratch.path("out")).exists()
    }
}

/// One error with its help, which names the file and says this.
fn one_error(output: &Output, file: &str, cause: &str, case: &str) {
    let error = text(&output.stderr);
    assert_eq!(error.matches("punctual: ").count(), 1, "{case}: {error}");
    assert_eq!(error.matches("help: ").count(), 1, "{case}: {error}");
    assert!(error.contains(cause) && error.contains(file), "{case}: {error}");
    assert!(!error.contains("panicked"), "{case}: {error}");
}

#[test]
fn of_a_damaged_trace_each_subcommand_uses_what_stands_before() {
    let files = Files::new();
    let middle = records_at(&files.whole) + 36 * WHOLE as usize;
    let mut changed = files.whole.clone();
    changed[middle + 5] ^= 1;
    let more = [&files.whole[..], b"more"].concat();
    let damages: [(&str, &[u8], usize, &str); 4] = [
        ("cut", &files.whole[..middle + 20], 0, "cut short at record 60"),
        ("without its end", &files.whole[..middle], 0, "cut short at record 60"),
        ("changed", &changed, 1, "record 60 was changed since it was written"),
        ("longer", &more, 1, "something follows its end"),
    ];
    for (arguments, codes) in READERS {
        for (damage, bytes, which, cause) in damages {
            let case = format!("{damage}: {arguments:?}");
            let file = files.scratch.file("damaged", bytes);
            let output = files.read(arguments, &file);
            assert_eq!(output.status.code(), Some(codes[which]), "{case}: {output:?}");
            match codes[which] {
                2 => one_error(&output, &file, cause, &case),
                _ => assert!(output.stderr.is_empty(), "{case}: {output:?}"),
            }
            // A replay of what was changed is no result.
            if arguments[0] != "sim" {
                assert!(!output.stdout.is_empty(), "{case}: what was readable is used");
            }
            assert_eq!(files.wrote(), arguments.contains(&"O"), "{case}");
        }
    }
}

#[test]
fn figures_of_a_damaged_trace_are_those_of_its_whole_part() {
    let files = Files::new();
    let middle = records_at(&files.whole) + 36 * WHOLE as usize;
    let cut = files.scratch.file("cut", &files.whole[..middle + 20]);
    let part = files.scratch.path("part");
    let output = trace(&["cut", &cut, "--to", "1s", "-o", &part, "--json"]);
    let document = json(&output);
    assert_eq!(document["result"]["cut"]["records"], WHOLE, "{document}");
    assert_eq!(
        (&document["ok"], &document["result"]["cut"]["whole"]),
        (&false.into(), &false.into())
    );
    // What was kept is a whole trace, with the same figures.
    let tasks =
        |file: &str| json(&trace(&["stats", file, "--json"]))["result"]["stats"]["tasks"].take();
    assert_eq!(trace(&["stats", &part]).status.code(), Some(0));
    assert_eq!(tasks(&cut), tasks(&part));
    assert_eq!(trace(&["diff", &part, &part]).status.code(), Some(0));
    let document = json(&trace(&["diff", &cut, &part, "--json"]));
    assert_eq!(
        (&document["exit_code"], &document["result"]["diff"]["same"]),
        (&2.into(), &true.into())
    );
    assert_eq!(document["result"]["diff"]["a"]["whole"], false, "{document}");
}

#[test]
fn what_is_no_trace_of_this_version_is_one_error_and_nothing_is_written() {
    let files = Files::new();
    let end = records_at(&files.whole) - 4;
    let versioned = |version: &str| {
        let header = text(&files.whole[..end]).replace("\"version\":3", version);
        let check = crc32fast::hash(header.as_bytes()).to_le_bytes();
        [header.as_bytes(), &check, &files.whole[end + 4..]].concat()
    };
    let (later, before) = (versioned("\"version\":4"), versioned("\"version\":2"));
    let mut changed = files.whole.clone();
    let host = text(&files.whole[..end]).find("\"sim\"").expect("the host") + 1;
    changed[host] ^= 1;
    let result = punctual(&["sim", &files.scratch.path("set.toml"), "--json"]).stdout;
    let foreign: [(&str, &[u8], &str); 10] = [
        ("empty", b"", ""),
        ("of Chrome", b"{\"traceEvents\":[]}\n", ""),
        ("binary", b"\x0a\x05\xff\xfe\n", ""),
        ("a program", b"\x7fELF\x02\x01\x01\n\0\0", ""),
        ("a set", FITS.as_bytes(), ""),
        ("a header alone", &files.whole[..end], "cut short at record 0"),
        ("half a header", &files.whole[..end / 2], "header"),
        ("a changed header", &changed, "header"),
        ("of a later version", &later, "it is of version 4, this is version 3"),
        ("of an older version", &before, "it is of version 2, this is version 3"),
    ];
    for (arguments, _) in READERS {
        for (what, bytes, cause) in foreign {
            let case = format!("{what}: {arguments:?}");
            let file = files.scratch.file("foreign", bytes);
            let output = files.read(arguments, &file);
            assert_eq!(output.status.code(), Some(2), "{case}: {output:?}");
            one_error(&output, &file, cause, &case);
            assert!(output.stdout.is_empty() && !files.wrote(), "{case}: {output:?}");
        }
        let output = files.read(arguments, &files.scratch.path("missing"));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        one_error(&output, "missing", "No such file", "missing");
        let folder = files.scratch.path("");
        let output = files.read(arguments, &folder);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        one_error(&output, &folder, "Is a directory", "a folder");
    }
    // A result is no trace, and a damaged one no result.
    for (arguments, _) in READERS.iter().filter(|(arguments, _)| arguments[0] != "report") {
        let file = files.scratch.file("result", &result);
        let output = files.read(arguments, &file);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        one_error(&output, &file, "not a trace", "a result");
    }
}

#[test]
fn a_full_disk_is_one_error() {
    let files = Files::new();
    let (file, set) = (files.scratch.path("t"), files.scratch.path("set.toml"));
    let to_full: [&[&str]; 4] = [
        &["trace", "export", &file, "-o", "/dev/full"],
        &["trace", "cut", &file, "--to", "1s", "-o", "/dev/full"],
        &["report", &file, "-o", "/dev/full"],
        &["sim", &set, "--trace", "/dev/full"],
    ];
    for arguments in to_full {
        let output = punctual(arguments);
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {output:?}");
        let said = text(&output.stderr) + &text(&output.stdout);
        assert_eq!(said.matches("No space left").count(), 1, "{arguments:?}: {said}");
    }
    let printed: [&[&str]; 4] = [
        &["trace", "stats", &file],
        &["trace", "why", &file],
        &["trace", "diff", &file, &file],
        &["sim", "--replay", &file],
    ];
    for arguments in printed {
        for json in [&[][..], &["--json"]] {
            let full = std::fs::File::options().write(true).open("/dev/full").expect("it is there");
            let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
            let command = command.args(arguments).args(json).stdin(Stdio::null()).stdout(full);
            let output = command.output().expect("it starts");
            assert_eq!(output.status.code(), Some(4), "{arguments:?}: {output:?}");
            one_error(&output, "", "No space left", "printed");
        }
    }
}

/// A trace that never ends, in a pipe.
fn endless(mut pipe: impl Write) {
    let header = Header::new("sim", 0, "edf", vec!["a".to_owned()], Limits::default());
    let Ok(mut writer) = TraceWriter::new(BufWriter::new(&mut pipe), &header) else { return };
    let place = Record::task_place(0, 0);
    let mut next = Some(place);
    for time in 0.. {
        let record = next.take().unwrap_or(Record::running(2 * time, 0, 0, false));
        let pair = [record, Record::stopped(2 * time + 1, 0, 0, 1)];
        if pair.iter().try_for_each(|record| writer.record(record)).is_err() {
            return;
        }
    }
}

#[test]
fn an_interrupted_command_keeps_what_it_read() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let readers: [&[&str]; 2] =
        [&["trace", "export", "/dev/stdin", "-o", &out], &["trace", "stats", "/dev/stdin"]];
    for arguments in readers {
        let mut child = Command::new(env!("CARGO_BIN_EXE_punctual"))
            .args(arguments)
            .arg("--json")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let pipe = Counted { pipe: child.stdin.take().expect("a pipe"), bytes: 0, pid: child.id() };
        endless(pipe);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{arguments:?}: {output:?}");
        let document = json(&output);
        let result = &document["result"];
        let records = [&result["export"]["traces"][0]["records"], &result["stats"]["records"]];
        assert!(records.iter().any(|records| records.as_u64() > Some(1000)), "{document}");
    }
    assert!(std::fs::metadata(&out).expect("it was written").len() > 1000);
}

/// Interrupts the reader when it has read a MiB, and so handles signals.
struct Counted<Pipe> {
    pipe: Pipe,
    bytes: usize,
    pid: u32,
}

impl<Pipe: Write> Write for Counted<Pipe> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let before = self.bytes;
        let written = self.pipe.write(bytes)?;
        self.bytes += written;
        if before < 1 << 20 && self.bytes >= 1 << 20 {
            // SAFETY: kill only sends a signal, and the child is not waited for yet.
            unsafe { libc::kill(self.pid as i32, libc::SIGINT) };
        }
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.pipe.flush()
    }
}
