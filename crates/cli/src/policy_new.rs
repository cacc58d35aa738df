//! `punctual policy new`: a Cargo project with a policy of a user's own.

mod source;

use std::fs;
use std::path::Path;

use punctual_diagnostic::Diagnostic;
use punctual_taskset::registry;

use crate::args_policy::New;
use crate::output::Outcome;
use source::Source;

/// The name in the files below, in whose place theirs is put.
const EXAMPLE: &str = "shortest";

/// Files of the project. `main.rs` is also a program of the tests of this workspace.
const FILES: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("policy_new/Cargo.toml.in")),
    ("src/main.rs", include_str!("policy_new/main.rs")),
    ("tests/sim.rs", include_str!("policy_new/sim.rs")),
    ("set.toml", include_str!("policy_new/set.toml")),
    ("README.md", include_str!("policy_new/README.md")),
    (".gitignore", "/target\n"),
];

/// Names that Cargo has for other purposes, and packages of Punctual.
const RESERVED: [&str; 12] = [
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "incremental",
    "proc-macro",
    "proc_macro",
    "punctual",
    "punctual-cli",
    "std",
    "test",
];

/// Rust's own words, which no package may have as its name.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

pub fn run(args: &New) -> Result<Outcome<()>, Diagnostic> {
    let name = args.name.as_str();
    check_name(name)?;
    let source = Source::find(args.source.as_deref())?;
    write(Path::new(name), name, &source)?;
    let verdict = format!("{name}/ is a Cargo project with the policy \"{name}\".");
    let text = format!(
        "{verdict}\n{source}\n\n  cd {name}\n  cargo test                          # its set in \
         the simulator\n  cargo run -- sim set.toml --gantt   # the same, drawn\n"
    );
    Ok(Outcome { verdict, ok: true, code: 0, result: (), text, error: None })
}

/// It must do as the name of a policy, of a package and of a program.
fn check_name(name: &str) -> Result<(), Diagnostic> {
    registry::check_name(name)?;
    if RESERVED.contains(&name) || KEYWORDS.contains(&name) {
        return Err(Diagnostic::usage(
            format!("{name:?} cannot be the name of a package"),
            "choose another name, such as \"my-policy\"",
        ));
    }
    Ok(())
}

fn write(folder: &Path, name: &str, source: &Source) -> Result<(), Diagnostic> {
    fs::create_dir(folder).map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "choose another name, or remove what is there",
            _ => "change to a folder in which you may create files",
        };
        Diagnostic::usage(format!("{}: {error}", folder.display()), help)
    })?;
    let written = FILES.iter().try_for_each(|(file, text)| {
        let path = folder.join(file);
        let parent = path.parent().unwrap_or(folder);
        let text = text.replace(EXAMPLE, name).replace("SOURCE", &source.dependency());
        fs::create_dir_all(parent).and_then(|()| fs::write(&path, text)).map_err(|error| {
            let help = "free some room, or change to another folder";
            Diagnostic::machine(format!("{}: {error}", path.display()), help)
        })
    });
    if written.is_err() {
        // A part of a project is of no use; the folder is new.
        let _ = fs::remove_dir_all(folder);
    }
    written
}
