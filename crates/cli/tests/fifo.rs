//! `punctual fifo`: FIFOs between programs that were started separately.

use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// FIFOs that nothing else uses.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").expect("there is shared memory"))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.arg("fifo").args(args).env("PUNCTUAL_SHM_DIR", self.0.path().join("objects"));
        command
    }

    fn fifo(&self, args: &[&str]) -> Output {
        self.command(args).stdin(Stdio::null()).output().expect("it starts")
    }

    /// What it prints; it does well.
    fn done(&self, args: &[&str]) -> String {
        let output = self.fifo(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    }

    /// Its exit code and what it says of it.
    fn refused(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.fifo(args);
        (output.status.code(), String::from_utf8(output.stderr).expect("it is text"))
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts")
    }

    fn list(&self) -> Value {
        let document: Value =
            serde_json::from_str(&self.done(&["list", "--json"])).expect("it is JSON");
        let schema = serde_json::from_str(include_str!("../../../docs/fifo.schema.json"));
        let schema = jsonschema::validator_for(&schema.expect("JSON")).expect("a schema");
        let errors: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} in {document:#}");
        document["result"]["fifos"].clone()
    }
}

#[test]
fn programs_that_were_started_separately_exchange_messages_by_name() {
    let folder = Folder::new();
    let made = folder.done(&["create", "servo", "--messages"]);
    assert_eq!(made, "FIFO servo: 64 KiB of messages, until it is removed.\n");
    let reader = folder.start(&["cat", "servo", "--lines", "--count", "4"]);
    folder.done(&["put", "servo", "one"]);
    let mut writer = folder.start(&["put", "servo", "--lines"]);
    writer.stdin.take().expect("a pipe").write_all(b"two\n\nlast, without a break").unwrap();
    assert!(writer.wait().expect("it ends").success());
    let output = reader.wait_with_output().expect("it ends");
    assert_eq!(output.stdout, b"one\ntwo\n\nlast, without a break\n");
    assert_eq!(folder.done(&["cat", "servo", "--no-wait"]), "");
    assert_eq!(folder.done(&["remove", "servo"]), "Removed: servo.\n");
    assert_eq!(folder.done(&["list"]), "No FIFOs of this user.\n");
}

#[test]
fn a_stream_of_bytes_comes_out_as_it_went_in() {
    let folder = Folder::new();
    folder.done(&["create", "0", "--capacity", "4k"]);
    let data: Vec<u8> =
        (0..1_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let count = data.len().to_string();
    let mut reader = folder.start(&["cat", "0", "--count", &count]);
    let mut writer = folder.start(&["put", "0"]);
    let mut input = writer.stdin.take().expect("a pipe");
    let sent = data.clone();
    let sender = std::thread::spawn(move || input.write_all(&sent));
    let mut received = Vec::new();
    reader.stdout.take().expect("a pipe").read_to_end(&mut received).expect("it can be read");
    sender.join().expect("no panic").expect("it can be written");
    assert!(writer.wait().expect("it ends").success() && reader.wait().expect("it ends").success());
    assert!(received == data);
}

#[test]
fn a_text_for_which_there_is_no_room_is_not_put_in_part() {
    let folder = Folder::new();
    folder.done(&["create", "b", "--capacity", "4k"]);
    folder.done(&["put", "b", &"x".repeat(3000)]);
    let (code, text) = folder.refused(&["put", "b", &"y".repeat(2000), "--no-wait"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("the FIFO b is full"), "{text}");
    assert_eq!(folder.list()[0]["used"], 3000);
}

#[test]
fn the_list_shows_what_is_in_a_fifo_and_is_as_its_schema_says() {
    let folder = Folder::new();
    folder.done(&["create", "b", "--capacity", "5000"]);
    folder.done(&["create", "a", "--messages"]);
    folder.done(&["put", "b", "hello"]);
    let fifos = folder.list();
    let of = |key: &str| [fifos[0][key].clone(), fifos[1][key].clone()];
    assert_eq!(of("name"), ["a", "b"]);
    assert_eq!(of("content"), ["messages", "bytes"]);
    assert_eq!(of("capacity"), [65536, 8192]);
    assert_eq!(of("used"), [0, 5]);
    assert_eq!(of("in_use"), [false, false]);
    assert_eq!(of("persistent"), [true, true]);
    let text = folder.done(&["list"]);
    assert!(text.starts_with("2 FIFOs of this user.\n\n"), "{text}");
    assert!(text.contains("8 KiB"), "{text}");
}

#[test]
fn bad_requests_are_one_error_with_what_helps() {
    let folder = Folder::new();
    folder.done(&["create", "small", "--capacity", "4k", "--messages"]);
    folder.done(&["create", "bytes", "--capacity", "4k"]);
    folder.done(&["put", "bytes", &"x".repeat(4000)]);
    let long = "x".repeat(5000);
    let cases: [(&[&str], i32, &str); 9] = [
        (&["create", "small"], 2, "there is a fifo small already"),
        (&["create", "a/b"], 2, "\"a/b\" is no name of an object"),
        (&["create", "big", "--capacity", "2G"], 2, "use 1 to 1073741824"),
        (&["create", "big", "--capacity", "much"], 2, "use a number of bytes"),
        (&["cat", "none"], 2, "there is no fifo none"),
        (&["remove", "small", "none"], 2, "there is no fifo none"),
        (&["cat", "bytes", "--lines"], 2, "leave --lines out"),
        (&["put", "small", &long], 2, "more than the FIFO can hold"),
        (&["put", "bytes", &long, "--timeout", "20ms"], 1, "the FIFO bytes is full for 20ms"),
    ];
    for (args, code, words) in cases {
        let (got, text) = folder.refused(args);
        assert_eq!(got, Some(code), "{args:?}: {text}");
        assert!(text.contains(words), "{args:?}: {text}");
    }
}
