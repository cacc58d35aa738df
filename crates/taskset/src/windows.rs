//! Windows in a cycle: `[{ start = "0ms", length = "5ms" }]`.

use toml::de::DeValue;

use crate::duration::fmt_ns;
use crate::keys::Scope;
use crate::reader::{kind, Problems, Span, Table};
use crate::Window;

const EXAMPLE: &str = "write a list such as windows = [{ start = \"0ms\", length = \"5ms\" }]";

/// Reads the key `windows` of a table, whose windows come again after `cycle` ns (`of` says what that is in
/// a message; `None` when it is at fault already). In order of start; `None` when absent or at fault.
pub(crate) fn read(
    owner: &Table<'_, '_>,
    cycle: Option<u64>,
    of: &str,
    problems: &mut Problems<'_>,
) -> Option<Vec<Window>> {
    let found = owner.get("windows")?;
    let DeValue::Array(list) = found.value else {
        owner.wrong_type(problems, "windows", &found, "a list of tables", EXAMPLE);
        return None;
    };
    if list.is_empty() {
        let help = "give at least one, or leave the key out";
        owner.fault(problems, &found.at, "the list of windows is empty", help);
        return None;
    }
    let before = problems.count();
    let mut windows = Vec::with_capacity(list.len());
    for (number, element) in list.iter().enumerate() {
        let DeValue::Table(entries) = element.get_ref() else {
            let cause = format!("window {} is {}, not a table", number + 1, kind(element.get_ref()));
            owner.fault(problems, &element.span(), cause, EXAMPLE);
            continue;
        };
        let table = Table { entries, at: element.span(), scope: Scope::Window, whose: owner.whose.clone() };
        windows.extend(window(&table, cycle, of, problems).map(|window| (window, table.at)));
    }
    windows.sort_by_key(|(window, _)| window.start);
    for pair in windows.windows(2) {
        let ((first, _), (second, at)) = (&pair[0], &pair[1]);
        if second.start < end(first) {
            overlap(owner, first, second, at, problems);
        }
    }
    let windows = windows.into_iter().map(|(window, _)| window).collect();
    (problems.count() == before).then_some(windows)
}

fn window(table: &Table<'_, '_>, cycle: Option<u64>, of: &str, problems: &mut Problems<'_>) -> Option<Window> {
    let before = problems.count();
    table.check_keys(problems);
    let start = table.duration(problems, "start");
    let length = table.duration(problems, "length");
    if let (Some(0), Some(found)) = (length, table.get("length")) {
        table.fault(problems, &found.at, "the window's length is 0", "make it at least 1ns");
    }
    if problems.count() != before {
        return None;
    }
    let (Some(start), Some(length)) = (start, length) else {
        let lacks = if start.is_none() { "start" } else { "length" };
        table.fault(problems, &table.at, format!("a window lacks its {lacks}"), EXAMPLE);
        return None;
    };
    let window = Window { start, length };
    if let Some(cycle) = cycle.filter(|&cycle| end(&window) > cycle) {
        let cause = format!("the window ends at {}, after its {of} of {}", fmt_ns(end(&window)), fmt_ns(cycle));
        table.fault(problems, &table.at, cause, format!("make it end within the {of}"));
        return None;
    }
    Some(window)
}

fn overlap(owner: &Table<'_, '_>, first: &Window, second: &Window, at: &Span, problems: &mut Problems<'_>) {
    let cause = format!(
        "the window from {} overlaps the one from {} to {}",
        fmt_ns(second.start),
        fmt_ns(first.start),
        fmt_ns(end(first))
    );
    owner.fault(problems, at, cause, format!("begin it at {} or later", fmt_ns(end(first))));
}

/// Both are below 2^62.
fn end(window: &Window) -> u64 {
    window.start + window.length
}
