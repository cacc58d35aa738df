//! docs/rtlinux.md lists what the headers declare, each name with what it does and its test.
//!
//! `PUNCTUAL_WRITE_RTLINUX=1 cargo test -p punctual-rtlinux --test docs` writes it again.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::read_to_string;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// What follows is made of the headers.
const MARK: &str = "<!-- The rest is made of the headers: crates/rtlinux/tests/docs.rs -->\n";
/// In the order in which they are listed.
const HEADERS: &[&str] = &[
    "rtlinux.h",
    "rtl_sched.h",
    "rtl_time.h",
    "rtl_fifo.h",
    "mbuff.h",
    "rtl_printf.h",
    "rtl_sync.h",
    "rtl_module.h",
];

/// One declaration of a header.
struct Entry {
    declaration: String,
    name: String,
    /// Macros that call it.
    macros: Vec<String>,
    text: String,
    test: String,
}

fn header(name: &str) -> String {
    read_to_string(format!("{HERE}/include/rtlinux/{name}")).expect("it is there")
}

/// The declarations, each with the comment before it.
fn entries(header: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut rest = header;
    while let Some((_, after)) = rest.split_once("\n/*\n") {
        let Some((comment, after)) = after.split_once("\n */\n") else { break };
        let lines: Vec<&str> =
            comment.lines().map(|line| line.trim_start_matches(" *").trim()).collect();
        rest = after;
        let Some(test) = lines.last().and_then(|line| line.strip_prefix("Test: ")) else {
            continue;
        };
        let declaration = after.split(';').next().expect("a declaration");
        let declaration = declaration.split_whitespace().collect::<Vec<_>>().join(" ");
        let declaration = declaration.trim_start_matches("RTL_PRINTF_LIKE ").to_owned();
        let before = declaration.split('(').next().expect("a function");
        let name = before.rsplit([' ', '*']).next().expect("a name").to_owned();
        let macros = header.lines().filter_map(|line| line.strip_prefix("#define "));
        let macros = macros.filter(|line| calls(line, &name));
        let name_of = |line: &str| line.split(['(', ' ']).next().map(str::to_owned);
        entries.push(Entry {
            macros: macros.filter_map(name_of).collect(),
            text: lines[..lines.len() - 1].join(" "),
            test: test.to_owned(),
            declaration,
            name,
        });
    }
    entries
}

/// Whether a macro is another name of the function, or calls it.
fn calls(line: &str, name: &str) -> bool {
    let body = match line.split_once(')') {
        Some((before, body)) if before.contains('(') && !before.contains(' ') => body,
        _ => line.split_once(' ').map_or("", |(_, body)| body),
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    body.split(|c: char| !is_part(c)).any(|word| word == name)
}

fn page() -> String {
    let mut page = String::new();
    for name in HEADERS {
        writeln!(page, "\n## {name}\n\n| name | what it does | test |\n|---|---|---|")
            .expect("text");
        for entry in entries(&header(name)) {
            let macros: String = entry.macros.iter().map(|name| format!(", `{name}`")).collect();
            let Entry { declaration, text, test, .. } = entry;
            writeln!(page, "| `{declaration}`{macros} | {} | {test} |", text.replace('|', "\\|"))
                .expect("text");
        }
    }
    page
}

#[test]
fn the_page_is_what_the_headers_say() {
    let path = format!("{HERE}/../../docs/rtlinux.md");
    let text = read_to_string(&path).expect("it is there");
    let (prose, listed) = text.split_once(MARK).expect("the page has its mark");
    let page = page();
    if std::env::var_os("PUNCTUAL_WRITE_RTLINUX").is_some() {
        std::fs::write(&path, format!("{prose}{MARK}{page}")).expect("it is written");
        return;
    }
    assert!(
        listed == page,
        "docs/rtlinux.md is out of date; \
         PUNCTUAL_WRITE_RTLINUX=1 cargo test -p punctual-rtlinux --test docs"
    );
}

#[test]
fn every_function_is_described_and_used_in_its_test() {
    let map = read_to_string(format!("{HERE}/librtlinux.map")).expect("it is there");
    let exported = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let exported: BTreeSet<String> =
        exported.filter(|name| !name.contains(['*', '}'])).map(str::to_owned).collect();
    let entries: Vec<Entry> = HEADERS.iter().flat_map(|name| entries(&header(name))).collect();
    let described: BTreeSet<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    assert_eq!(described, exported);
    for Entry { name, macros, test, .. } in &entries {
        let folder = if test.ends_with(".c") { "tests/c" } else { "tests" };
        let program = read_to_string(format!("{HERE}/{folder}/{test}")).expect("a test");
        let is_used = |name: &String| program.contains(name.as_str());
        assert!(is_used(name) || macros.iter().any(is_used), "{test} does not use {name}");
    }
}
