//! Numbers as the page carries them: columns, delta-coded, deflated, in base64.
//!
//! A column is the difference of each number to the one before it (the first to 0), as a zigzag
//! number in LEB128. `assets/data.js` reads it.

use std::io::Write;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use flate2::write::DeflateEncoder;
use flate2::Compression;

/// The largest number: a double, which is what JavaScript has, is exact to twice as much.
pub(crate) const LARGEST: u64 = 1 << 52;

/// Columns, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Columns(Vec<u8>);

impl Columns {
    /// Adds a column. Numbers beyond [`LARGEST`] become that.
    pub fn push(&mut self, numbers: impl Iterator<Item = u64>) {
        let mut last = 0;
        for number in numbers {
            let number = number.min(LARGEST) as i64;
            let delta = number - last;
            last = number;
            let mut zigzag = ((delta << 1) ^ (delta >> 63)) as u64;
            while zigzag >= 0x80 {
                self.0.push(zigzag as u8 | 0x80);
                zigzag >>= 7;
            }
            self.0.push(zigzag as u8);
        }
    }

    /// All of them, deflated (RFC 1951) and in base64.
    pub fn packed(&self) -> String {
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::default());
        // A vector takes everything.
        let _ = deflate.write_all(&self.0);
        STANDARD.encode(deflate.finish().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_coded_by_differences() {
        let mut columns = Columns::default();
        columns.push([5, 5, 3, 1000].into_iter());
        assert_eq!(columns.0, [10, 0, 3, 0xca, 0x0f]);
    }

    #[test]
    fn a_number_that_is_too_large_stays_exact_in_a_double() {
        let mut columns = Columns::default();
        columns.push([u64::MAX].into_iter());
        let zigzag = columns.0.iter().rev().fold(0_u64, |n, byte| n << 7 | u64::from(byte & 0x7f));
        assert_eq!(zigzag / 2, LARGEST);
    }
}
