//! A fuzzer's input, read as a stream of small numbers; zeros follow its end.

/// Input that has not been read yet.
pub struct Stream<'a>(pub &'a [u8]);

impl<'a> Stream<'a> {
    /// Whether it has all been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// The next bytes, at most as many as the next one says.
    pub fn text(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        text
    }

    /// A number near one of `usual`, or any.
    pub fn number(&mut self, usual: &[i64]) -> i64 {
        let choice = usize::from(self.byte());
        match usual.get(choice % (usual.len() + 2)) {
            Some(number) if choice < 200 => *number,
            Some(number) => number.wrapping_add(i64::from(self.byte() as i8)),
            None => self.text().iter().fold(0, |n, byte| n << 8 | i64::from(*byte)),
        }
    }
}
