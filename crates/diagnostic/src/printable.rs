//! Which characters a terminal shows.

/// Whether a terminal shows the character and leaves the line as it is: no control character, no
/// direction override, none that is unassigned.
#[must_use]
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    // After a base letter, str::escape_debug keeps combining marks and escapes what cannot be
    // shown.
    let pair: String = ['a', c].into_iter().collect();
    pair.escape_debug().nth(1) == Some(c)
}
