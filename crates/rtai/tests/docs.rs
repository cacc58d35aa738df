//! docs/rtai.md lists what the headers declare, each name with what it does and its test.
//!
//! `PUNCTUAL_WRITE_RTAI=1 cargo test -p punctual-rtai --test docs` writes it again.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::read_to_string;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// What follows is made of the headers.
const MARK: &str = "<!-- The rest is made of the headers: crates/rtai/tests/docs.rs -->\n";
/// In the order in which they are listed.
const HEADERS: &[&str] = &[
    "rtai_nam2num.h",
    "rtai_lxrt.h",
    "rtai_wd.h",
    "rtai_sem.h",
    "rtai_msg.h",
    "rtai_mbx.h",
    "rtai_bits.h",
    "rtai_tbx.h",
    "rtai_fifos.h",
    "rtai_shm.h",
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
    read_to_string(format!("{HERE}/include/rtai/{name}")).expect("it is there")
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
        let declaration = declaration.trim_start_matches("RTAI_PRINTF ").to_owned();
        let before = declaration.split('(').next().expect("a function");
        let name = before.rsplit([' ', '*']).next().expect("a name").to_owned();
        let next = after.split("\n/*").next().expect("up to the next one");
        let macros = next.lines().filter_map(|line| line.strip_prefix("#define "));
        let macros = macros.filter(|line| line.contains(&name));
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
    let path = format!("{HERE}/../../docs/rtai.md");
    let text = read_to_string(&path).expect("it is there");
    let (prose, listed) = text.split_once(MARK).expect("the page has its mark");
    let page = page();
    if std::env::var_os("PUNCTUAL_WRITE_RTAI").is_some() {
        std::fs::write(&path, format!("{prose}{MARK}{page}")).expect("it is written");
        return;
    }
    assert!(
        listed == page,
        "docs/rtai.md is out of date; PUNCTUAL_WRITE_RTAI=1 cargo test -p punctual-rtai --test docs"
    );
}

#[test]
fn every_function_is_described_and_used_in_its_test() {
    let map = read_to_string(format!("{HERE}/liblxrt.map")).expect("it is there");
    let exported = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let exported: BTreeSet<String> =
        exported.filter(|name| !name.contains(['*', '}'])).map(str::to_owned).collect();
    let entries: Vec<Entry> = HEADERS.iter().flat_map(|name| entries(&header(name))).collect();
    let described: BTreeSet<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    assert_eq!(described, exported);
    for Entry { name, macros, test, .. } in &entries {
        let program = read_to_string(format!("{HERE}/tests/c/{test}")).expect("a test");
        let is_used = |name: &String| program.contains(name.as_str());
        assert!(is_used(name) || macros.iter().any(is_used), "{test} does not use {name}");
    }
}
