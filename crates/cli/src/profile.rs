//! `punctual profile`: watches a program, and proposes a reservation for it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use punctual_diagnostic::Diagnostic;
use punctual_process::Output;
use punctual_profile::observe::{observe, Observation, Target, Until};
use punctual_profile::{evaluate, ProfileResult, Wish};
use punctual_session::{HostKind, Session};
use punctual_taskset::{Body, TaskSet};

use crate::args::OutputArg;
use crate::args_profile::Profile;
use crate::drive::stop_on_signals;
use crate::output::{self, Caller, Outcome, INTERRUPTED};
use crate::progress::Progress;
use crate::run::command_code;
use crate::set;
use role::RoleFile;

mod role;
mod text;

pub fn run(args: &Profile) -> Result<Outcome<ProfileResult>, Diagnostic> {
    let (target, wish) = (target(args)?, wish(args)?);
    let duration = set::time(args.duration.as_deref(), "--duration")?;
    if duration == Some(0) {
        return Err(Diagnostic::usage(
            "nothing can be seen in no time",
            "choose --duration 10s or more",
        ));
    }
    // What cannot be written later is refused before the program is started.
    let file = args.write.as_deref().map(|path| Ok((path, open(path)?))).transpose()?;
    let role = RoleFile::of(args)?;
    let stop = stop_on_signals()?;
    let until = Until { duration, stop: stop.clone() };
    let mut progress = Progress::new(args.quiet, duration);
    let seen = observe(&target, &until, &mut |now, records| {
        progress.tick(now, &format_args!("{records} context switches"));
    });
    progress.clear();
    let seen = seen?;
    let mut progress = Progress::new(args.quiet, None);
    let result = evaluate(&seen, &wish, &mut |tried| {
        progress.count(tried, &"reservations replayed");
    });
    progress.clear();
    let mut result = result?;
    result.interrupted = stop.load(Ordering::Relaxed);
    let error = file.and_then(|(path, file)| write(&result, path, file).err());
    let written = role.map(|role| role.write(&result)).transpose();
    let (note, error) = match written {
        Ok(note) => (note.unwrap_or_default(), error),
        Err(role) => (String::new(), error.or(Some(role))),
    };
    let mut outcome = outcome(args, result, &seen, error);
    outcome.text += &note;
    Ok(outcome)
}

fn target(args: &Profile) -> Result<Target, Diagnostic> {
    let output = match args.output {
        Some(OutputArg::Inherit) if args.json => {
            return Err(Diagnostic::usage(
                "--output inherit: with --json standard output has the results alone",
                "use --output stderr or --output null",
            ))
        }
        Some(OutputArg::Null) => Output::Nowhere,
        Some(OutputArg::Stderr) => Output::StandardError,
        None if args.json => Output::StandardError,
        Some(OutputArg::Inherit) | None => Output::Inherit,
    };
    Ok(match args.pid {
        Some(pid) => Target::Pid(pid),
        None => Target::Command(args.argv.clone(), output),
    })
}

fn wish(args: &Profile) -> Result<Wish, Diagnostic> {
    let body = match args.pid {
        Some(pid) => Body::Pid(pid),
        None => Body::Command(args.argv.clone()),
    };
    let cpu = args.cpu.unwrap_or_else(set::last_cpu);
    let deadline = set::time(args.deadline.as_deref(), "--deadline")?;
    let one = TaskSet::single(punctual_taskset::LEAST_PERIOD, 1, body.clone())
        .policy(args.policy.name())
        .cpu(cpu)
        .build()?;
    if let Some(deadline) = deadline.filter(|&d| d < punctual_taskset::LEAST_PERIOD) {
        return Err(Diagnostic::usage(
            format!("--deadline {} is shorter than any period", punctual_taskset::fmt_ns(deadline)),
            "choose 100us or more",
        ));
    }
    Ok(Wish {
        body,
        cpu,
        deadline,
        share_ppm: args.meet,
        skip: set::time(args.skip.as_deref(), "--skip")?,
        policy: args.policy.name().to_owned(),
        capacity: Session::capacity_of(HostKind::User, &one),
    })
}

fn cannot_write(path: &Path, error: std::io::Error) -> Diagnostic {
    Diagnostic::refused(
        format!("{} cannot be written", path.display()),
        error,
        "name a file in a folder that exists and may be written",
    )
}

fn no_proposal(path: &Path) -> Diagnostic {
    Diagnostic::usage(
        format!("{}: there is no proposal to write", path.display()),
        "let the program do for longer what it is to do under a budget",
    )
}

/// Opens the file of the proposal; what it has stays until there is one.
fn open(path: &Path) -> Result<File, Diagnostic> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(false).open(path);
    opened.map_err(|e| cannot_write(path, e))
}

fn write(result: &ProfileResult, path: &Path, mut file: File) -> Result<(), Diagnostic> {
    let proposal = result.proposal.as_ref().ok_or_else(|| no_proposal(path))?;
    let comment = format!("# {}\n", text::verdict(result));
    file.set_len(0)
        .and_then(|()| file.write_all((comment + &proposal.set).as_bytes()))
        .map_err(|e| cannot_write(path, e))
}

fn outcome(
    args: &Profile,
    result: ProfileResult,
    seen: &Observation,
    error: Option<Diagnostic>,
) -> Outcome<ProfileResult> {
    let code = match (&error, args.pid) {
        (Some(error), _) => Caller::of_profile(args).code(error),
        _ if result.interrupted => INTERRUPTED,
        (None, Some(_)) => 0,
        (None, None) => command_code(seen.ended.as_ref(), 0),
    };
    let verdict = text::verdict(&result);
    let text = text::text(&result, &output::view(args.wide));
    let ok = result.proposal.is_some() && error.is_none();
    Outcome { verdict, ok, code, result, text, error }
}
