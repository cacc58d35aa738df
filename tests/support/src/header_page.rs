//! A page of docs/ whose tables list what the headers of a library declare: each function with
//! what it does and the test that uses it, as the comment before its declaration says.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::read_to_string;

use crate::c_library::CLibrary;

/// docs/*.md, named like the crate's folder, with tables of the headers after a mark.
#[derive(Debug)]
pub struct HeaderPage {
    /// The library.
    pub library: &'static CLibrary,
    /// Its headers, in the order in which they are listed.
    pub headers: &'static [&'static str],
    /// A macro for an attribute, which is no part of a listed declaration.
    pub attribute: &'static str,
}

/// One declaration of a header.
struct Entry {
    declaration: String,
    name: String,
    /// Macros that call it.
    macros: Vec<String>,
    text: String,
    /// The file of its test.
    test: String,
}

/// Whether a macro, without its `#define`, is another name of the function, or calls it first.
fn calls(line: &str, name: &str) -> bool {
    let body = match line.split_once(')') {
        Some((before, body)) if before.contains('(') && !before.contains(' ') => body,
        _ => line.split_once(' ').map_or("", |(_, body)| body),
    };
    let before_parentheses = body.split('(').filter_map(|text| {
        let from = text.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        Some(&text[from.map_or(0, |at| at + 1)..]).filter(|word| !word.is_empty())
    });
    before_parentheses.take(1).any(|word| word == name)
}

impl HeaderPage {
    /// The declarations of a header, each with the comment before it.
    fn entries(&self, header: &str) -> Vec<Entry> {
        let header = self.library.path(self.library.headers).join(header);
        let header = read_to_string(header).expect("it is there").replace("\\\n", "");
        let mut entries: Vec<Entry> = Vec::new();
        let mut rest = header.as_str();
        while let Some((_, after)) = rest.split_once("\n/*\n") {
            let Some((comment, after)) = after.split_once("\n */\n") else { break };
            let lines: Vec<&str> =
                comment.lines().map(|line| line.trim_start_matches(" *").trim()).collect();
            rest = after;
            let Some(test) = lines.last().and_then(|line| line.strip_prefix("Test: ")) else {
                continue;
            };
            let declaration = after.split(';').next().expect("a declaration");
            let words = declaration.split_whitespace().filter(|word| *word != self.attribute);
            let declaration = words.collect::<Vec<_>>().join(" ");
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

    /// The tables.
    fn tables(&self) -> String {
        let mut page = String::new();
        for header in self.headers {
            writeln!(page, "\n## {header}\n\n| name | what it does | test |\n|---|---|---|")
                .expect("text");
            for Entry { declaration, macros, text, test, .. } in self.entries(header) {
                let macros: String = macros.iter().map(|name| format!(", `{name}`")).collect();
                let text = text.replace('|', "\\|");
                writeln!(page, "| `{declaration}`{macros} | {text} | {test} |").expect("text");
            }
        }
        page
    }

    /// Checks that the page has the headers' tables, or writes them if PUNCTUAL_WRITE_RTAI (for
    /// docs/rtai.md) is set.
    pub fn is_current(&self) {
        let interface = self.library.interface();
        let variable = format!("PUNCTUAL_WRITE_{}", interface.to_uppercase());
        let mark =
            format!("<!-- The rest is made of the headers: crates/{interface}/tests/docs.rs -->\n");
        let path = self.library.path(format!("../../docs/{interface}.md"));
        let text = read_to_string(&path).expect("it is there");
        let (prose, listed) = text.split_once(&mark).expect("the page has its mark");
        let tables = self.tables();
        if std::env::var_os(&variable).is_some() {
            std::fs::write(&path, format!("{prose}{mark}{tables}")).expect("it is written");
            return;
        }
        assert!(
            listed == tables,
            "docs/{interface}.md is out of date; \
             {variable}=1 cargo test -p punctual-{interface} --test docs"
        );
    }

    /// Checks that the page has every function of the library and no other one, and that the named
    /// test uses it.
    pub fn is_complete(&self) {
        let exported: BTreeSet<String> = self.library.functions().into_iter().collect();
        let entries: Vec<Entry> = self.headers.iter().flat_map(|name| self.entries(name)).collect();
        let described: BTreeSet<String> = entries.iter().map(|entry| entry.name.clone()).collect();
        assert_eq!(described, exported);
        for Entry { name, macros, test, .. } in &entries {
            let folder = if test.ends_with(".rs") { "tests" } else { "tests/c" };
            let program = self.library.path(folder).join(test);
            let program = read_to_string(program).expect("a test");
            let is_used = |name: &String| program.contains(name.as_str());
            assert!(is_used(name) || macros.iter().any(is_used), "{test} does not use {name}");
        }
    }
}
