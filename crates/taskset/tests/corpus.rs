//! The corpus of task-set files: tests/good is read, and each file of tests/bad is refused with the
//! one error that its .err sidecar holds. `UPDATE=1` rewrites the sidecars; read the difference.
//! Files that end in .json are rt-app's.
//!
//! A bad file marks its bad line by a comment `# here` (`// here` in JSON), or, where a comment
//! would hide the mistake, by `# bad line: N` at its beginning. Without a mark it is line 1.

use std::fs;
use std::path::{Path, PathBuf};

use punctual_diagnostic::{Diagnostic, Place};
use punctual_taskset::TaskSet;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml" || ext == "json"))
        .collect();
    files.sort();
    files
}

/// Loads a file, and calls it by its bare name in errors, so that snapshots hold no machine paths.
fn load(path: &Path) -> Result<TaskSet, Diagnostic> {
    TaskSet::load(path).map_err(|error| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let place = Place { name, ..error.place().unwrap().clone() };
        error.at(place)
    })
}

fn marked_line(text: &str) -> u32 {
    if let Some(rest) = text.strip_prefix("# bad line: ") {
        return rest.lines().next().unwrap().trim().parse().unwrap();
    }
    let marked = text.lines().position(|line| line.contains("# here") || line.contains("// here"));
    marked.map_or(1, |index| index as u32 + 1)
}

#[test]
fn every_good_file_is_read() {
    let files = files("tests/good");
    assert!(files.len() >= 25);
    for path in files {
        let read = load(&path);
        assert!(read.is_ok(), "{}", read.unwrap_err());
    }
}

#[test]
fn every_example_is_read() {
    let files = files("../../examples");
    assert!(files.len() >= 16);
    for path in files {
        let read = load(&path);
        assert!(read.is_ok(), "{}", read.unwrap_err());
    }
}

#[test]
fn every_bad_file_has_one_error_with_its_line_cause_and_help() {
    let update = std::env::var_os("UPDATE").is_some();
    let files = files("tests/bad");
    assert!(files.len() >= 250);
    let mut wrong = Vec::new();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Err(error) = load(&path) else {
            wrong.push(format!("{name}: was read"));
            continue;
        };
        let said = format!("{error}\n");
        if said.lines().count() != 1 || error.cause.is_empty() || error.help.is_empty() {
            wrong.push(format!("{name}: not one line with cause and help: {said:?}"));
        }
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        let marked = marked_line(&text);
        if error.line() != Some(marked) {
            wrong.push(format!("{name}: marked line {marked}, but {said}"));
        }
        let sidecar = path.with_extension("err");
        if update {
            fs::write(&sidecar, said).unwrap();
        } else if fs::read_to_string(&sidecar).unwrap_or_default() != said {
            wrong.push(format!("{name}: differs from its .err: {said}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_sidecar_has_its_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let exists = |ext| path.with_extension(ext).exists();
        assert!(exists("toml") || exists("json"), "{}", path.display());
    }
}

/// The label of the snippet covers the value itself, also behind a byte order mark and other
/// letters.
#[test]
fn the_snippet_shows_the_value() {
    let text = "\u{feff}cpu = 1 # \u{6e2c}\npolicy = \"\u{fc}\"\n";
    let error = TaskSet::parse(text, "x.toml").unwrap_err();
    let at = error.place().unwrap().position.unwrap();
    assert_eq!((at.line, at.column), (2, 10));
    let start = at.offset as usize;
    let text = &text['\u{feff}'.len_utf8()..];
    assert_eq!(&text[start..start + at.len as usize], "\"\u{fc}\"");

    use miette::Diagnostic as _;
    let help = error.help.clone();
    let snippet = error.snippet();
    assert_eq!(snippet.help().unwrap().to_string(), help);
    assert_eq!(snippet.labels().unwrap().count(), 1);
    assert!(snippet.source_code().is_some());
}

/// The reference in docs/ names every key that the schema has, and its example can be read.
#[test]
fn the_reference_names_every_key_and_its_examples_are_read() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = fs::read_to_string(docs.join("task-set.md")).unwrap();
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        let read = TaskSet::parse(example, "task-set.md");
        assert!(read.is_ok(), "{}", read.unwrap_err());
    }
    let schema = fs::read_to_string(docs.join("task-set.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    for keys in ["/properties", "/definitions/Task/properties"] {
        for key in schema.pointer(keys).unwrap().as_object().unwrap().keys() {
            let row = [format!("| `{key}` |"), format!("| `[[{key}]]` |")];
            assert!(row.iter().any(|row| text.contains(row)), "{key}");
        }
    }
}

/// The messages quoted in the reference are those of the corpus.
#[test]
fn the_reference_quotes_messages_as_they_are() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(manifest.join("../../docs/task-set.md")).unwrap();
    let said: Vec<String> = files("tests/bad")
        .iter()
        .map(|path| load(path).unwrap_err().to_string())
        .filter_map(|said| said.split_once(".toml:").map(|(_, rest)| rest.to_owned()))
        .collect();
    let quoted: Vec<&str> = text
        .split(['`', '\n'])
        .filter_map(|piece| piece.trim().strip_prefix("set.toml:"))
        .filter(|piece| !piece.starts_with(' '))
        .collect();
    assert!(quoted.len() >= 9);
    for quote in quoted {
        assert!(said.iter().any(|said| said == quote), "{quote}");
    }
}
