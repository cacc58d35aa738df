//! Names of six characters as numbers, and back (RTAI, rtai_nam2num.h).

use std::ffi::{c_char, c_ulong};

/// Of no text.
const NO_NAME: u64 = 0xFFFF_FFFF;
/// Numbers from here on are no names: nam2num("$$$$$$") + 2.
pub const NAMES_END: u64 = 4_096_000_003;
const LONGEST: usize = 6;

/// The value of a character: letters of both cases and digits count as 36, then `_`, `@` and `.`;
/// every other character is `$`.
fn value(byte: u8) -> u64 {
    u64::from(match byte {
        b'a'..=b'z' => byte - b'a' + 10,
        b'A'..=b'Z' => byte - b'A' + 10,
        b'0'..=b'9' => byte - b'0',
        b'_' => 36,
        b'@' => 37,
        b'.' => 38,
        _ => 39,
    })
}

/// The number of a name, of which the first six characters count.
pub fn number_of(name: &[u8]) -> u64 {
    let name = &name[..name.len().min(LONGEST)];
    match name.is_empty() {
        true => NO_NAME,
        false => name.iter().fold(0, |number, &byte| number * 40 + value(byte)) + 2,
    }
}

/// The name of a number. Zeros at its beginning are lost, as in RTAI: they count nothing.
pub fn name_of(number: u64) -> Vec<u8> {
    if !(2..NAMES_END).contains(&number) {
        return b"|null|".to_vec();
    }
    let mut rest = number - 2;
    let mut name = Vec::with_capacity(LONGEST);
    while rest > 0 {
        let digit = (rest % 40) as usize;
        name.push(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_@.$"[digit]);
        rest /= 40;
    }
    name.reverse();
    name
}

/// The number of a text of C.
///
/// # Safety
/// It is NULL, or a text.
pub unsafe fn number_of_text(name: *const c_char) -> u64 {
    if name.is_null() {
        return NO_NAME;
    }
    let mut bytes = [0; LONGEST];
    let mut length = 0;
    // SAFETY: the caller's text; its end is not passed.
    while length < LONGEST && unsafe { *name.add(length) } != 0 {
        // SAFETY: as above.
        bytes[length] = unsafe { *name.add(length) } as u8;
        length += 1;
    }
    number_of(&bytes[..length])
}

#[no_mangle]
unsafe extern "C" fn nam2num(name: *const c_char) -> c_ulong {
    // SAFETY: the caller's.
    unsafe { number_of_text(name) }
}

#[no_mangle]
unsafe extern "C" fn num2nam(number: c_ulong, name: *mut c_char) {
    if name.is_null() {
        return;
    }
    let text = name_of(number);
    // SAFETY: the caller's buffer, of seven bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, text.len());
        name.add(text.len()).write(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers_to_the_base_40() {
        assert_eq!(number_of(b"a"), 10 + 2);
        assert_eq!(number_of(b"LATCAL"), number_of(b"latcalibration"));
        assert_eq!(number_of(b"$$$$$$") + 2, NAMES_END);
        assert_eq!(number_of(b""), NO_NAME);
        assert_eq!(number_of(b"z_"), 35 * 40 + 36 + 2);
        assert_eq!(number_of(b"9@.#"), ((9 * 40 + 37) * 40 + 38) * 40 + 39 + 2);
    }

    #[test]
    fn a_name_comes_back_in_upper_case() {
        for (name, back) in [("latmbx", "LATMBX"), ("a_@.", "A_@."), ("x y", "X$Y"), ("Z9", "Z9")] {
            assert_eq!(name_of(number_of(name.as_bytes())), back.as_bytes());
        }
        assert_eq!(name_of(NO_NAME), b"|null|");
        assert_eq!(name_of(0), b"|null|");
    }
}
