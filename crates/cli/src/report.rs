//! `punctual report`: results and traces as one HTML page, and its pictures as SVG.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_diagnostic::{is_printable, Diagnostic};
use punctual_page::Page;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::args_report::ReportArgs;
use crate::drive::stop_on_signals;
use crate::output::{Outcome, INTERRUPTED, MISSED};
use crate::progress::Progress;

/// The result of `punctual report --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReportResult {
    /// The page; `null` where only pictures were asked for.
    page: Option<String>,
    /// The pictures, in the order of the files.
    pictures: Vec<String>,
    /// The runs on the page: those of each file, in order.
    runs: Vec<ReportedRun>,
    /// The results of `punctual measure` on the page, in the order of the files.
    measurements: Vec<ReportedMeasurement>,
    /// Files that could not be read, and why.
    unread: Vec<String>,
}

/// One run on the page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ReportedRun {
    /// Its file, and its host where the file has several.
    title: String,
    /// In one sentence.
    verdict: String,
    /// Whether all its deadlines were met and its budgets kept.
    met: bool,
    /// What of its file is missing or wrong; `null` if it is whole.
    damage: Option<String>,
}

/// One measurement on the page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ReportedMeasurement {
    /// Its file.
    title: String,
    /// In one sentence.
    verdict: String,
    /// Whether all was measured, and all that was required is kept.
    ok: bool,
    /// Why it was ended early; `null` if it was not.
    damage: Option<String>,
}

pub fn run(args: &ReportArgs) -> Result<Outcome<ReportResult>, Diagnostic> {
    let stop = stop_on_signals()?;
    let page = read_all(args, &stop)?;
    let interrupted = || stop.load(Ordering::Relaxed);
    let mut result = ReportResult {
        page: None,
        pictures: Vec::new(),
        runs: page.runs.iter().map(ReportedRun::of).collect(),
        measurements: page.measurements.iter().map(ReportedMeasurement::of).collect(),
        unread: page.unread.clone(),
    };
    if let Some(directory) = &args.svg {
        std::fs::create_dir_all(directory).map_err(|e| not_written(directory, &e))?;
        for picture in page.pictures()? {
            let path = directory.join(format!("{}.svg", picture.name));
            write_whole(&path, picture.svg.as_bytes())?;
            result.pictures.push(path.display().to_string());
        }
    }
    if let Some(path) = &args.output {
        write_whole(path, page.html().as_bytes())?;
        result.page = Some(path.display().to_string());
    }
    let ok = page.is_whole() && !interrupted();
    let code = match ok {
        true => 0,
        false if interrupted() => INTERRUPTED,
        false => MISSED,
    };
    let verdict = page.verdict();
    let text = text(&verdict, &page, &result);
    Ok(Outcome { verdict, ok, code, result, text, error: None })
}

/// All files that can be read; after an interruption, what was read by then.
fn read_all(args: &ReportArgs, stop: &AtomicBool) -> Result<Page, Diagnostic> {
    let mut progress = Progress::new(args.quiet, None);
    let mut page = Page::default();
    let mut first = None;
    for path in &args.files {
        let name = printable(&path.display().to_string());
        let read = punctual_page::read(path, &mut |records| {
            progress.tick(0, &format_args!("{name}: {records} records read"));
            !stop.load(Ordering::Relaxed)
        });
        match read {
            Ok(contents) => page.append(contents),
            Err(error) => {
                page.unread.push(format!("{name} is left out: {}.", error.cause));
                first.get_or_insert(error);
            }
        }
    }
    progress.clear();
    match first {
        Some(error) if page.is_empty() => Err(error),
        _ => Ok(page),
    }
}

/// Replaces a file in one step, so that there is never half a page. What is no regular file, such
/// as a pipe, is written to.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    let in_one_step = |target: &Path| -> io::Result<()> {
        let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        // As any new file: the umask takes away from this.
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let mut file: NamedTempFile = tempfile::Builder::new()
            .prefix(".punctual-report")
            .permissions(permissions)
            .tempfile_in(directory.unwrap_or(Path::new(".")))?;
        file.write_all(bytes)?;
        file.persist(target).map(drop).map_err(|e| e.error)
    };
    let written = match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => std::fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(bytes)),
        // The file behind a symbolic link.
        Ok(_) => path.canonicalize().and_then(|target| in_one_step(&target)),
        Err(_) => in_one_step(path),
    };
    written.map_err(|e| not_written(path, &e))
}

fn not_written(path: &Path, error: &io::Error) -> Diagnostic {
    let path = printable(&path.display().to_string());
    Diagnostic::machine(
        format!("{path} cannot be written: {error}"),
        "free some room, or name another place",
    )
}

/// A name from outside, without what a terminal would execute.
fn printable(name: &str) -> String {
    name.chars().map(|c| if is_printable(c) { c } else { '?' }).collect()
}

fn text(verdict: &str, page: &Page, result: &ReportResult) -> String {
    let mut text = format!("{}\n", printable(verdict));
    for line in page.unread.iter().chain(page.damage()) {
        let _ = writeln!(text, "{}", printable(line));
    }
    if let Some(path) = &result.page {
        let _ = writeln!(text, "The page is {path}");
    }
    match &result.pictures[..] {
        [] => {}
        [one] => {
            let _ = writeln!(text, "The picture is {one}");
        }
        [first, .., last] => {
            let _ = writeln!(text, "{} pictures: {first} to {last}", result.pictures.len());
        }
    }
    text
}

impl ReportedRun {
    fn of(run: &punctual_page::PageRun) -> ReportedRun {
        ReportedRun {
            title: run.title.clone(),
            verdict: run.verdict.clone(),
            met: run.results.totals.met,
            damage: run.damage.clone(),
        }
    }
}

impl ReportedMeasurement {
    fn of(measurement: &punctual_page::Measurement) -> ReportedMeasurement {
        ReportedMeasurement {
            title: measurement.title.clone(),
            verdict: measurement.verdict.clone(),
            ok: measurement.ok,
            damage: measurement.damage.clone(),
        }
    }
}
