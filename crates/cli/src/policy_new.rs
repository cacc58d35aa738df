//! `punctual policy new`: a project with a policy of a user's own, a program or a plugin.

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

/// Files of a plugin.
const C_FILES: [(&str, &str); 6] = [
    ("shortest.c", include_str!("policy_new/c/shortest.c")),
    ("punctual_policy.h", punctual_plugin::HEADER),
    ("Makefile", include_str!("policy_new/c/Makefile")),
    ("set.toml", include_str!("policy_new/set.toml")),
    ("README.md", include_str!("policy_new/c/README.md")),
    (".gitignore", "*.so\n"),
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
    if args.c {
        return plugin(name);
    }
    check_name(name)?;
    let source = Source::find(args.source.as_deref())?;
    write(Path::new(name), &FILES, |_, text| {
        text.replace(EXAMPLE, name).replace("SOURCE", &source.dependency())
    })?;
    let verdict = format!("{name}/ is a Cargo project with the policy \"{name}\".");
    let text = format!(
        "{verdict}\n{source}\n\n  cd {name}\n  cargo test                          # its set in \
         the simulator\n  cargo run -- sim set.toml --gantt   # the same, drawn\n"
    );
    Ok(Outcome { verdict, ok: true, code: 0, result: (), text, error: None })
}

/// Writes a project of a plugin in C.
fn plugin(name: &str) -> Result<Outcome<()>, Diagnostic> {
    registry::check_name(name)?;
    write(Path::new(name), &C_FILES, |file, text| match file {
        "punctual_policy.h" => text.to_owned(),
        "set.toml" => {
            let by_name = format!("policy = \"{EXAMPLE}\"");
            text.replace(&by_name, &format!("policy = {{ plugin = \"./{name}.so\" }}"))
        }
        _ => text.replace(EXAMPLE, name),
    })?;
    let verdict = format!("{name}/ is a plugin in C with the policy \"{name}\".");
    let text = format!(
        "{verdict}\n\n  cd {name}\n  make                                # {name}.so\n  \
         punctual sim set.toml --gantt       # its set in the simulator, drawn\n"
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

/// Writes the files of a project into a new folder, each as `adapted` returns it; a file of the
/// example's name has the folder's.
fn write(
    folder: &Path,
    files: &[(&str, &str)],
    adapted: impl Fn(&str, &str) -> String,
) -> Result<(), Diagnostic> {
    fs::create_dir(folder).map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "choose another name, or remove what is there",
            _ => "change to a folder in which you may create files",
        };
        Diagnostic::usage(format!("{}: {error}", folder.display()), help)
    })?;
    let name = folder.to_string_lossy();
    let written = files.iter().try_for_each(|(file, text)| {
        let path = folder.join(file.replace(EXAMPLE, &name));
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).and_then(|()| fs::write(&path, adapted(file, text))).map_err(
            |error| {
                let help = "free some room, or change to another folder";
                Diagnostic::machine(format!("{}: {error}", path.display()), help)
            },
        )
    });
    if written.is_err() {
        // A part of a project is of no use; the folder is new.
        let _ = fs::remove_dir_all(folder);
    }
    written
}
