//! From a path or a text to a task set.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::Deserialize;

use crate::duration::quote;
use crate::explain::Explained;
use crate::recording::Recordings;
use crate::value::Whole;
use crate::{cpus, error, explain, format, policy, rt_app, set, syntax, RoleFolders, TaskSet};
use punctual_diagnostic::Diagnostic;

/// The largest file that is read, in bytes (4 MiB): some 40,000 tasks.
pub const LARGEST_FILE: usize = 4 << 20;

/// What a caller gives for a file to be read with.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// The CPU of the whole set, tasks and groups included, instead of the file's; refused for a
    /// set of several.
    pub cpu: Option<u32>,
    /// The CPU of a set whose file names none; without it, such a file is refused.
    pub default_cpu: Option<u32>,
    /// The policy of group 0, instead of the file's.
    pub policy: Option<String>,
    /// Where the roles are that tasks name.
    pub roles: RoleFolders,
    /// The set is that of a run: several of its tasks may be threads of one process.
    pub recorded: bool,
}

/// A task set, and what of its file is not in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The set.
    pub set: TaskSet,
    /// What of rt-app's file has no counterpart here, one line each, with its path in the file:
    /// `tasks.decoder.lock: a job cannot wait for another task`. Empty for TOML, of which nothing
    /// is left out.
    pub unrepresented: Vec<String>,
}

impl Loaded {
    /// Reads a task-set file: rt-app's JSON if its name ends with `.json`, else TOML.
    ///
    /// # Errors
    /// As [`TaskSet::load`]; and `options` that do not suit the set.
    pub fn load(path: impl AsRef<Path>, options: &Overrides) -> Result<Loaded, Diagnostic> {
        let path = path.as_ref();
        Loaded::parse(&text_of(path, "task-set file")?, &path.display().to_string(), options)
    }

    /// Reads the text of a task-set file.
    ///
    /// # Errors
    /// As [`TaskSet::parse`]; and `options` that do not suit the set.
    pub fn parse(text: &str, file_name: &str, options: &Overrides) -> Result<Loaded, Diagnostic> {
        if text.len() > LARGEST_FILE {
            return Err(too_large(file_name, "task-set file"));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if let Some(policy) = &options.policy {
            policy::alone(policy).map_err(|(cause, help)| Diagnostic::usage(cause, help))?;
        }
        let mut loaded =
            if Path::new(file_name).extension().is_some_and(|ext| ext.eq_ignore_ascii_case("json"))
            {
                rt_app::read(text, file_name, options.policy.as_deref())?
            } else {
                let set = read(text, file_name, Recordings::beside(file_name), options).map_err(
                    |Explained { at, whose, cause, help }| {
                        error::at(file_name, text, &at, whose + &cause, help)
                    },
                )?;
                Loaded { set, unrepresented: Vec::new() }
            };
        if let Some(cpu) = options.cpu {
            cpus::move_set(&mut loaded.set, cpu)
                .map_err(|(cause, help)| error::whole(file_name, cause, help))?;
        }
        Ok(loaded)
    }
}

impl TaskSet {
    /// Reads a task-set file: rt-app's JSON if its name ends with `.json`, else TOML.
    /// [`Loaded::load`] tells what of rt-app's is not in the set.
    ///
    /// # Errors
    /// The file cannot be read, is larger than [`LARGEST_FILE`] or is not UTF-8; and all of
    /// [`TaskSet::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<TaskSet, Diagnostic> {
        Loaded::load(path, &Overrides::default()).map(|loaded| loaded.set)
    }

    /// Reads the text of a task-set file. `file_name` is what errors call it; recorded execution
    /// times are looked for in its folder.
    ///
    /// # Errors
    /// The first thing that is wrong with it: not TOML (JSON); else, in file order, an unknown key
    /// or a value of the wrong type; else, in file order, a value out of its range, values that
    /// contradict each other, a recording that cannot be read.
    pub fn parse(text: &str, file_name: &str) -> Result<TaskSet, Diagnostic> {
        Loaded::parse(text, file_name, &Overrides::default()).map(|loaded| loaded.set)
    }

    /// Reads the set of a trace ([`TaskSet::to_toml`]), which may be that of a program whose
    /// threads are the tasks. `name` is what errors call it.
    ///
    /// # Errors
    /// As [`TaskSet::parse`].
    pub fn parse_recorded(text: &str, name: &str) -> Result<TaskSet, Diagnostic> {
        let options = Overrides { recorded: true, ..Overrides::default() };
        Loaded::parse(text, name, &options).map(|loaded| loaded.set)
    }
}

/// Reads TOML: its syntax, then the form of each value, then what must hold between values.
pub(crate) fn read(
    text: &str,
    file_name: &str,
    recordings: Recordings,
    options: &Overrides,
) -> Result<TaskSet, Explained> {
    let tree = toml::Deserializer::parse(text).map_err(|error| syntax::explain(text, &error))?;
    let mut file = format::Set::deserialize(tree).map_err(|error| explain::form(text, &error))?;
    if let Some(policy) = &options.policy {
        file.policy = Some(format::Policy::Name(format::PolicyName(policy.clone())).into());
    }
    if let (None, None, Some(cpu)) = (&file.cpu, &file.cpus, options.cpu.or(options.default_cpu)) {
        file.cpu = Some(Whole(cpu.into()).into());
    }
    set::check(file, file_name, text, recordings, options)
        .map_err(|problem| explain::problem(text, problem))
}

/// The text of a file; errors name its `kind` (`task-set file`).
///
/// # Errors
/// It cannot be read, is larger than [`LARGEST_FILE`] or is not UTF-8.
pub(crate) fn text_of(path: &Path, kind: &str) -> Result<String, Diagnostic> {
    let file = path.display().to_string();
    let mut bytes = Vec::new();
    // One byte more than is allowed tells "too large" without trusting the length a file claims.
    File::open(path)
        .and_then(|open| open.take(LARGEST_FILE as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(&file, kind, &error))?;
    if bytes.len() > LARGEST_FILE {
        return Err(too_large(&file, kind));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let cause = format!("the file is not UTF-8 text: byte {:#04x}", bytes[good]);
        let text = String::from_utf8_lossy(bytes);
        error::at(&file, &text, &(good..good), cause, "save it as UTF-8")
    })
}

fn unreadable(file: &str, kind: &str, error: &std::io::Error) -> Diagnostic {
    let (cause, help) = match error.kind() {
        ErrorKind::NotFound => ("there is no such file", "check the path".to_owned()),
        ErrorKind::PermissionDenied => {
            ("the file may not be read", "give yourself the permission to read it".to_owned())
        }
        ErrorKind::IsADirectory => ("it is a directory", format!("name a {kind} in it")),
        _ => {
            let cause = format!("the file cannot be read: {error}");
            return error::whole(file, cause, "name a readable file");
        }
    };
    error::whole(file, cause, help)
}

fn too_large(file: &str, kind: &str) -> Diagnostic {
    error::whole(
        file,
        format!("the file is larger than {} MiB", LARGEST_FILE >> 20),
        format!("check that {} is a {kind}, or split it", quote(file)),
    )
}
