//! What libbpf and the verifier say while an object is loaded. libbpf's print function is global,
//! hence one at a time.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::PrintLevel;

static SAID: Mutex<String> = Mutex::new(String::new());
static LOADING: Mutex<()> = Mutex::new(());
/// A verifier's log tells at its end what is wrong.
const LINES: usize = 20;

fn listen(_: PrintLevel, text: String) {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
}

/// Does `load`; and the last lines of what was said meanwhile.
pub(crate) fn listening<T>(load: impl FnOnce() -> T) -> (T, String) {
    let _one = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    let before = libbpf_rs::set_print(Some((PrintLevel::Warn, listen)));
    let loaded = load();
    libbpf_rs::set_print(before);
    let said = std::mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner));
    let lines: Vec<_> = said.lines().collect();
    (loaded, lines[lines.len().saturating_sub(LINES)..].join("\n"))
}
