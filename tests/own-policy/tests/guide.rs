//! The guide "Write your own" of docs/policies.md, followed word for word.
//!
//! A project outside of this workspace compiles all crates again, which takes minutes. So the
//! program that this workspace builds from the same files stands in for what Cargo would build, and
//! the test shows that the files are the same. PUNCTUAL_BUILD_GUIDE=1 has Cargo build the project.
//! Runs on real hosts are in `real.rs` and `kernel.rs`.

mod common;
#[path = "common/guide.rs"]
mod guide;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{program, text, SET};
use punctual_test_support::{Scratch, PUNCTUAL};

/// What a user's shell has: the folder of the command in PATH, and the current folder.
struct Shell {
    folder: PathBuf,
    builds: bool,
}

impl Shell {
    fn execute(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match (words[0], self.builds) {
            ("cd", _) => self.folder.push(words[1]),
            // Runs of real.rs and kernel.rs.
            ("sudo", _) => assert!(["punctual", "target/release/shortest"].contains(&words[1])),
            ("make", _) => self.start(Path::new("make"), &[]),
            ("punctual", _) => self.start(&PUNCTUAL, &words[1..]),
            // Cargo runs the same tests as those of this package, in tests/sim.rs.
            ("cargo", false) if ["test", "build"].contains(&words[1]) => {}
            ("cargo", false) => {
                assert_eq!(words[1..3], ["run", "--"], "{line}");
                self.start(&program(), &words[3..]);
            }
            // A release has the same code; its build takes ten minutes more.
            ("cargo", true) if words[1] == "build" => {}
            ("cargo", true) => self.start(Path::new("cargo"), &words[1..]),
            _ => panic!("not a command that this test can execute: {line}"),
        }
    }

    fn start(&self, program: &Path, args: &[&str]) {
        let target = PUNCTUAL.ancestors().nth(2).expect("it is in target/PROFILE");
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.folder).env("CARGO_NET_OFFLINE", "true");
        // Dependencies as this workspace builds them are not built again.
        command.env("CARGO_TARGET_DIR", target).env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        command.env("CARGO_PROFILE_DEV_DEBUG", "false");
        let output = command.output().expect("the program starts");
        assert!(output.status.success(), "{program:?} {args:?}: {}", text(&output));
    }
}

#[test]
fn the_guide_leads_from_nothing_to_a_program_that_runs_the_policy() {
    let scratch = Scratch::new();
    let builds = std::env::var_os("PUNCTUAL_BUILD_GUIDE").is_some();
    let mut shell = Shell { folder: scratch.folder().to_owned(), builds };
    for line in guide::commands() {
        shell.execute(line);
        if builds && line.starts_with("cd ") {
            // The versions that are here, since nothing may be downloaded.
            let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
            fs::copy(lock, shell.folder.join("Cargo.lock")).expect("room for a file");
        }
    }
    let file = |name: &str| fs::read_to_string(shell.folder.join(name)).expect(name);
    assert_eq!(file("src/main.rs"), guide::block("rs"));
    assert_eq!(file("src/main.rs"), include_str!("../../../crates/cli/src/policy_new/main.rs"));
    assert_eq!(file("tests/sim.rs"), include_str!("../../../crates/cli/src/policy_new/sim.rs"));
    assert_eq!(file("set.toml"), SET);
}

#[test]
fn the_guide_leads_from_nothing_to_a_plugin_in_c_that_is_admitted_and_meets_its_deadlines() {
    let scratch = Scratch::new();
    let mut shell = Shell { folder: scratch.folder().to_owned(), builds: false };
    let block = |language| guide::block_of("\n### In a shared object\n", language);
    for line in guide::without_comments(block("sh")) {
        shell.execute(line);
    }
    let file = |name: &str| fs::read_to_string(shell.folder.join(name)).expect(name);
    assert_eq!(file("shortest.c"), block("c"));
    let by_file = "policy = { plugin = \"./shortest.so\" }";
    assert_eq!(file("set.toml"), SET.replace("policy = \"shortest\"", by_file));
}

#[test]
fn the_guide_has_less_than_forty_lines_of_commands_and_code() {
    let lines = |language| guide::block(language).lines().count();
    assert!(lines("sh") + lines("rs") < 40, "{} {}", lines("sh"), lines("rs"));
}
