//! `punctual fifo create`, `list` and `remove`.

use punctual_diagnostic::Diagnostic;
use punctual_ipc::{Content, Fifo, FifoAttr, Lifetime, Name, Namespace};
use punctual_report::grid::{grid, Column};
use serde::Serialize;

use crate::args_fifo::{Create, ListFifos, Remove};
use crate::output::{view, Outcome};

/// The result of `punctual fifo create --json`, `list --json` and `remove --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FifoResult {
    /// The folder in which they are.
    folder: String,
    /// All, or those that were made or removed, by name.
    fifos: Vec<FifoInfo>,
}

/// One FIFO.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FifoInfo {
    /// Its name, or its number.
    name: String,
    /// What it has in it.
    content: ContentInfo,
    /// How many bytes it can have in it.
    capacity: usize,
    /// How many bytes are in it.
    used: usize,
    /// Whether a program has it open.
    in_use: bool,
    /// Whether it lives until it is removed, and not just while it is in use.
    persistent: bool,
    /// The process that has the only writer, if one has.
    sole_writer: Option<u32>,
    /// The process that has the only reader, if one has.
    sole_reader: Option<u32>,
}

/// What a FIFO has in it.
#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum ContentInfo {
    /// Bytes.
    Bytes,
    /// Messages.
    Messages,
}

impl FifoInfo {
    fn of(name: &Name, fifo: &Fifo) -> Self {
        let (attr, state) = (fifo.attr(), fifo.state());
        Self {
            name: name.to_string(),
            content: match attr.content {
                Content::Bytes => ContentInfo::Bytes,
                Content::Messages => ContentInfo::Messages,
            },
            capacity: attr.capacity,
            used: state.used,
            in_use: state.in_use,
            persistent: state.lifetime == Lifetime::Persistent,
            sole_writer: state.sole_writer,
            sole_reader: state.sole_reader,
        }
    }

    fn content(&self) -> &'static str {
        match self.content {
            ContentInfo::Bytes => "bytes",
            ContentInfo::Messages => "messages",
        }
    }
}

fn outcome(
    namespace: &Namespace,
    fifos: Vec<FifoInfo>,
    verdict: String,
    more: &str,
) -> Outcome<FifoResult> {
    let text = format!("{verdict}\n{more}");
    let folder = namespace.path().display().to_string();
    let result = FifoResult { folder, fifos };
    Outcome { verdict, ok: true, code: 0, result, text, error: None }
}

/// `punctual fifo create`.
pub fn create(args: &Create) -> Result<Outcome<FifoResult>, Diagnostic> {
    let namespace = Namespace::of_user()?;
    let content = if args.messages { Content::Messages } else { Content::Bytes };
    let attr = FifoAttr { capacity: args.capacity, limit: None, content };
    let fifo = Fifo::create(&namespace, &args.name, attr, Lifetime::Persistent)?;
    let info = FifoInfo::of(&args.name, &fifo);
    let (size, content) = (bytes(info.capacity), info.content());
    let verdict = format!("FIFO {}: {size} of {content}, until it is removed.", args.name);
    Ok(outcome(&namespace, vec![info], verdict, ""))
}

/// `punctual fifo list`.
pub fn list(_: &ListFifos) -> Result<Outcome<FifoResult>, Diagnostic> {
    let namespace = Namespace::of_user()?;
    let mut fifos = Vec::new();
    let mut damaged = Vec::new();
    for name in Fifo::names(&namespace)? {
        match Fifo::open(&namespace, &name) {
            Ok(fifo) => fifos.push(FifoInfo::of(&name, &fifo)),
            // Removed meanwhile.
            Err(error) if error.errno == Some(libc::ENOENT) => {}
            Err(error) => damaged.push(format!("{error}\n")),
        }
    }
    let verdict = match (fifos.len(), damaged.len()) {
        (0, 0) => "No FIFOs of this user.".to_owned(),
        (1, 0) => "1 FIFO of this user.".to_owned(),
        (n, 0) => format!("{n} FIFOs of this user."),
        (n, bad) => format!("{n} FIFOs of this user, and {bad} that cannot be opened."),
    };
    let table = if fifos.is_empty() { String::new() } else { format!("\n{}", table(&fifos)) };
    Ok(outcome(&namespace, fifos, verdict, &format!("{table}{}", damaged.concat())))
}

/// `punctual fifo remove`.
pub fn remove(args: &Remove) -> Result<Outcome<FifoResult>, Diagnostic> {
    let namespace = Namespace::of_user()?;
    let mut removed = Vec::new();
    for name in &args.names {
        match Fifo::open(&namespace, name) {
            Err(error) if error.errno == Some(libc::ENOENT) => return Err(error),
            // One that is damaged is removed all the same.
            opened => removed.extend(opened.ok().map(|fifo| FifoInfo::of(name, &fifo))),
        }
    }
    for name in &args.names {
        Fifo::remove(&namespace, name)?;
    }
    let names: Vec<&str> = args.names.iter().map(Name::as_str).collect();
    let used: Vec<&str> = removed.iter().filter(|f| f.in_use).map(|f| f.name.as_str()).collect();
    let mut verdict = format!("Removed: {}.", names.join(", "));
    if !used.is_empty() {
        verdict += &format!(" Programs that have {} open keep it.", used.join(", "));
    }
    Ok(outcome(&namespace, removed, verdict, ""))
}

fn table(fifos: &[FifoInfo]) -> String {
    let column = |head: &str, expendable, cell: fn(&FifoInfo) -> String| {
        Column::new("", head, expendable).cells(fifos.iter().map(cell))
    };
    let owner = |pid: Option<u32>| pid.map_or("-".to_owned(), |pid| pid.to_string());
    let columns = vec![
        column("name", 0, |f| f.name.clone()),
        column("content", 0, |f| f.content().to_owned()),
        column("capacity", 0, |f| bytes(f.capacity)),
        column("used", 0, |f| bytes(f.used)),
        column("in use", 0, |f| if f.in_use { "yes" } else { "no" }.to_owned()),
        column("lives until", 1, |f| if f.persistent { "removed" } else { "unused" }.to_owned()),
        Column::new("", "sole writer", 2).cells(fifos.iter().map(|f| owner(f.sole_writer))),
        Column::new("", "sole reader", 2).cells(fifos.iter().map(|f| owner(f.sole_reader))),
    ];
    let view = view(false);
    grid(columns, view.width, view.color)
}

/// A size, exactly where it is one of whole KiB.
fn bytes(n: usize) -> String {
    match n {
        n if n > 0 && n % (1 << 30) == 0 => format!("{} GiB", n >> 30),
        n if n > 0 && n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n if n > 0 && n % (1 << 10) == 0 => format!("{} KiB", n >> 10),
        n => format!("{n} B"),
    }
}
