//! The tutorial's commands whose output does not depend on the machine, and that output.
//!
//! `toml` blocks are files, named in their first line. In `console` blocks, commands follow `$`,
//! perhaps with `# exit code N`; their output follows. `text` blocks were seen on a machine.

use std::path::Path;
use std::process::Command;

const TUTORIAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tutorial.md");

/// Standard output of a line of shell, in which `punctual` is the command under test.
fn output_of(line: &str, folder: &Path) -> String {
    let (command, code) = match line.split_once("   # exit code ") {
        Some((command, code)) => (command, code.parse().expect("an exit code")),
        None => (line, 0),
    };
    let programs = Path::new(env!("CARGO_BIN_EXE_punctual")).parent().unwrap().to_str().unwrap();
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()))
        .output()
        .expect("sh");
    assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The tutorial with the output that its commands have now.
fn repeated(text: &str, folder: &Path) -> String {
    let (mut result, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        result += &format!("{line}\n");
        let block = line.strip_prefix("```").filter(|kind| ["toml", "console"].contains(kind));
        let Some(kind) = block else { continue };
        let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if kind == "toml" {
            let name = inside[0].strip_prefix("# ").expect("a file name in the first line");
            let file = inside.join("\n") + "\n";
            std::fs::write(folder.join(name), &file).expect(name);
            result += &file;
        }
        for line in inside.iter().filter(|line| kind == "console" && line.starts_with("$ ")) {
            result += &format!("{line}\n{}", output_of(&line[2..], folder));
        }
        result += "```\n";
    }
    result
}

#[test]
fn the_tutorials_output_is_that_of_its_commands() {
    let text = std::fs::read_to_string(TUTORIAL).expect("the tutorial");
    let folder = tempfile::tempdir().expect("a folder");
    let now = repeated(&text, folder.path());
    if std::env::var_os("PUNCTUAL_WRITE_TUTORIAL").is_some() {
        std::fs::write(TUTORIAL, now).expect("the tutorial is written");
        return;
    }
    let update = "PUNCTUAL_WRITE_TUTORIAL=1 cargo test -p punctual-cli --test tutorial";
    assert!(now == text, "docs/tutorial.md is out of date: {update}; with it:\n{now}");
}
