//! Aligned columns under group headings. Table crates draw boxes or cannot span a heading, and none
//! drops a column that does not fit.

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

/// How a cell stands out, where colour is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ink {
    /// Not at all.
    #[default]
    Plain,
    /// A heading, or what may be skipped.
    Faint,
    /// A good verdict.
    Good,
    /// A bad verdict, or the figure that is the reason.
    Bad,
}

/// `text` in colour, if that is wanted.
pub fn paint(text: &str, ink: Ink, color: bool) -> String {
    let style = match ink {
        _ if !color => return text.to_owned(),
        Ink::Plain => return text.to_owned(),
        Ink::Faint => Style::new().dimmed(),
        Ink::Good => AnsiColor::Green.on_default().bold(),
        Ink::Bad => AnsiColor::Red.on_default().bold(),
    };
    format!("{style}{text}{style:#}")
}

/// One column. The first of a grid is aligned left, the others right.
pub struct Column {
    group: &'static str,
    head: String,
    /// Columns with the greatest number go first when the terminal is narrow; 0 stays.
    expendable: u8,
    cells: Vec<(String, Ink)>,
}

impl Column {
    /// An empty column; neighbours with the same non-empty group share a heading.
    pub fn new(group: &'static str, head: &str, expendable: u8) -> Column {
        Column { group, head: head.to_owned(), expendable, cells: Vec::new() }
    }

    /// With these cells.
    pub fn cells(mut self, cells: impl IntoIterator<Item = String>) -> Column {
        self.cells.extend(cells.into_iter().map(|cell| (cell, Ink::Plain)));
        self
    }

    /// With these cells, those of which `bad` holds in red.
    pub fn marked(mut self, cells: impl IntoIterator<Item = (String, bool)>) -> Column {
        self.cells.extend(
            cells.into_iter().map(|(cell, bad)| (cell, if bad { Ink::Bad } else { Ink::Plain })),
        );
        self
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|(cell, _)| cell.width()).max().unwrap_or(0).max(self.head.width())
    }
}

/// Space between columns, and between groups.
const GAP: usize = 2;
const GROUP_GAP: usize = 4;

fn gap(before: Option<&Column>, column: &Column) -> usize {
    match before {
        None => 0,
        Some(left) if left.group != column.group => GROUP_GAP,
        Some(_) => GAP,
    }
}

/// Neighbouring columns of one group: (first, one past the last).
fn groups(columns: &[Column]) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (i, column) in columns.iter().enumerate() {
        match spans.last_mut() {
            Some((first, end)) if columns[*first].group == column.group => *end = i + 1,
            _ => spans.push((i, i + 1)),
        }
    }
    spans
}

/// Widths of the columns, wide enough for the headings of their groups too.
fn widths(columns: &[Column]) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(Column::width).collect();
    for (first, end) in groups(columns) {
        let span = widths[first..end].iter().sum::<usize>() + GAP * (end - first - 1);
        widths[first] += columns[first].group.width().saturating_sub(span);
    }
    widths
}

fn total(columns: &[Column]) -> usize {
    let gaps: usize =
        (0..columns.len()).map(|i| gap(i.checked_sub(1).map(|j| &columns[j]), &columns[i])).sum();
    widths(columns).iter().sum::<usize>() + gaps
}

/// Formats the grid as lines, each with its line break and without trailing spaces. Drops optional
/// columns until it fits `width`.
pub fn grid(mut columns: Vec<Column>, width: usize, color: bool) -> String {
    while total(&columns) > width {
        // Of equally expendable ones the rightmost goes.
        let Some((at, _)) = columns
            .iter()
            .enumerate()
            .filter(|(_, c)| c.expendable > 0)
            .max_by_key(|(_, c)| c.expendable)
        else {
            break;
        };
        columns.remove(at);
    }
    let widths = widths(&columns);
    let mut out = String::new();
    if columns.iter().any(|c| !c.group.is_empty()) {
        out.push_str(&paint(&group_line(&columns, &widths), Ink::Faint, color));
        out.push('\n');
    }
    let heads: Vec<(String, Ink)> = columns.iter().map(|c| (c.head.clone(), Ink::Faint)).collect();
    push_line(&mut out, &columns, &widths, &heads, color);
    for row in 0..columns.iter().map(|c| c.cells.len()).max().unwrap_or(0) {
        let cells: Vec<(String, Ink)> =
            columns.iter().map(|c| c.cells.get(row).cloned().unwrap_or_default()).collect();
        push_line(&mut out, &columns, &widths, &cells, color);
    }
    out
}

/// Formats the group headings, right-aligned over their columns as the numbers are, with a rule
/// before each where there is room.
fn group_line(columns: &[Column], widths: &[usize]) -> String {
    let mut line = String::new();
    for (first, end) in groups(columns) {
        let before = first.checked_sub(1).map(|i| &columns[i]);
        line.push_str(&" ".repeat(gap(before, &columns[first])));
        let span = widths[first..end].iter().sum::<usize>() + GAP * (end - first - 1);
        let group = columns[first].group;
        let free = span.saturating_sub(group.width());
        let filler = if group.is_empty() || free < 3 {
            " ".repeat(free)
        } else {
            format!("{} ", "-".repeat(free - 1))
        };
        line.push_str(&filler);
        line.push_str(group);
    }
    line.trim_end().to_owned()
}

fn push_line(
    out: &mut String,
    columns: &[Column],
    widths: &[usize],
    cells: &[(String, Ink)],
    color: bool,
) {
    let mut line = String::new();
    for (i, (cell, ink)) in cells.iter().enumerate() {
        line.push_str(&" ".repeat(gap(i.checked_sub(1).map(|j| &columns[j]), &columns[i])));
        let pad = " ".repeat(widths[i].saturating_sub(cell.width()));
        let (left, right) = if i == 0 { ("", pad.as_str()) } else { (pad.as_str(), "") };
        line.push_str(left);
        line.push_str(&paint(cell, *ink, color));
        line.push_str(right);
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// `text` broken at spaces so that no line is wider than `width`, every line after `indent` spaces.
pub fn wrap(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.width() + 1 + word.width() > width {
            out.push_str(&format!("{}{line}\n", " ".repeat(indent)));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    out.push_str(&format!("{}{line}\n", " ".repeat(indent)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Column> {
        let cells = |list: [&str; 2]| list.map(str::to_owned);
        vec![
            Column::new("", "task", 0).cells(cells(["a", "läng"])),
            Column::new("", "n", 2).cells(cells(["1", "22"])),
            Column::new("time (us)", "p50", 0).cells(cells(["1.0", "2.5"])),
            Column::new("time (us)", "p99", 1).cells(cells(["10.0", "7.5"])),
        ]
    }

    #[test]
    fn columns_align_under_their_group() {
        let text = grid(sample(), 80, false);
        let want = [
            "            time (us)",
            "task   n    p50   p99",
            "a      1    1.0  10.0",
            "läng  22    2.5   7.5",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), want);
    }

    #[test]
    fn a_narrow_terminal_loses_the_most_expendable_first() {
        let text = grid(sample(), 18, false);
        assert!(!text.contains(" n "), "{text}");
        let text = grid(sample(), 5, false);
        assert!(text.contains("p50") && !text.contains("p99"), "{text}");
    }

    #[test]
    fn colour_changes_no_alignment() {
        let column =
            || Column::new("", "x", 0).marked([("1".to_owned(), true), ("22".to_owned(), false)]);
        let with = grid(vec![column(), column()], 80, true);
        assert!(
            with.contains(&paint("1", Ink::Bad, true))
                && paint("1", Ink::Bad, true).contains('\x1b')
        );
        let bare = anstream::adapter::strip_str(&with).to_string();
        assert_eq!(bare, grid(vec![column(), column()], 80, false));
    }

    #[test]
    fn words_wrap() {
        assert_eq!(wrap("one two three", 2, 9), "  one two\n  three\n");
    }
}
