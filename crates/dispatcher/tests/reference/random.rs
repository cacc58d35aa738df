//! A small random generator: the same seed, the same run, on every machine.

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn below32(&mut self, limit: u32) -> u32 {
        self.below(limit.into()) as u32
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Now and then the limit itself.
    pub fn below_or_at(&mut self, limit: u64) -> u64 {
        let beyond = u64::from(self.one_in(32));
        self.below(limit + beyond)
    }
}
