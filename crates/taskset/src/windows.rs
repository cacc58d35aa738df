//! Windows in a cycle: `[{ start = "0ms", length = "5ms" }]`.

use crate::duration::fmt_ns;
use crate::explain::WINDOWS;
use crate::format::{self, Tables};
use crate::problems::Problems;
use crate::value::{ns, Span};
use crate::Window;

/// Checks windows that come again after `cycle` ns (`of` is what an error calls that; `None` when
/// it is at fault already). In order of start; `None` when absent or at fault.
pub(crate) fn check(
    windows: &Option<Tables<format::Window>>,
    cycle: Option<u64>,
    of: &str,
    problems: &mut Problems<'_>,
) -> Option<Vec<Window>> {
    let list = windows.as_ref()?;
    let before = problems.count();
    if list.is_empty() {
        problems.fault(
            &list.span,
            "the list of windows is empty",
            "give at least one, or leave the key out",
        );
    }
    let mut windows: Vec<(Window, &Span)> = Vec::with_capacity(list.len());
    for found in list.iter() {
        windows.extend(
            window(found, &found.span, cycle, of, problems).map(|window| (window, &found.span)),
        );
    }
    windows.sort_by_key(|(window, _)| window.start);
    for pair in windows.windows(2) {
        let ((first, _), (second, at)) = (&pair[0], &pair[1]);
        if second.start < end(first) {
            let (begin, first_start, first_end) =
                (fmt_ns(second.start), fmt_ns(first.start), fmt_ns(end(first)));
            let cause = format!(
                "the window from {begin} overlaps the one from {first_start} to {first_end}"
            );
            problems.fault(at, cause, format!("begin it at {first_end} or later"));
        }
    }
    let windows = windows.into_iter().map(|(window, _)| window).collect();
    (problems.count() == before).then_some(windows)
}

fn window(
    window: &format::Window,
    at: &Span,
    cycle: Option<u64>,
    of: &str,
    problems: &mut Problems<'_>,
) -> Option<Window> {
    let (Some(start), Some(length)) = (ns(&window.start), ns(&window.length)) else {
        let lacks = if window.start.is_none() { "start" } else { "length" };
        problems.fault(at, format!("a window lacks its {lacks}"), WINDOWS);
        return None;
    };
    if let (0, Some(length)) = (length, &window.length) {
        problems.fault(&length.span, "the window's length is 0", "make it at least 1ns");
        return None;
    }
    let window = Window { start, length };
    if let Some(cycle) = cycle.filter(|&cycle| end(&window) > cycle) {
        let cause = format!(
            "the window ends at {}, after its {of} of {}",
            fmt_ns(end(&window)),
            fmt_ns(cycle)
        );
        problems.fault(at, cause, format!("make it end within the {of}"));
        return None;
    }
    Some(window)
}

/// Both are below 2^62.
fn end(window: &Window) -> u64 {
    window.start + window.length
}
