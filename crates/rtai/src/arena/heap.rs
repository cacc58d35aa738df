//! Memory of the arena for messages: blocks in a row, the first ones that are free.

use super::layout::{Buffer, Word, BLOCK, BLOCKS};
use super::Transaction;

impl<'a> Transaction<'a> {
    /// Makes room for `bytes` in a buffer; what is in it is lost where it has to grow. False: there
    /// is no room, and the buffer is as it was.
    pub fn reserve(&mut self, buffer: &Buffer, bytes: usize) -> bool {
        if bytes as u64 <= buffer.room.get() {
            return true;
        }
        let count = bytes.div_ceil(BLOCK);
        // What it has already is free for it.
        self.release(buffer);
        match self.find_free(count) {
            Some(first) => {
                self.mark(first, count, true);
                self.set(&buffer.first, first as u64 + 1);
                self.set(&buffer.room, (count * BLOCK) as u64);
                true
            }
            None => false,
        }
    }

    /// Gives back what a buffer has.
    pub fn release(&mut self, buffer: &Buffer) {
        if let Some(first) = buffer.first.get().checked_sub(1) {
            self.mark(first as usize, buffer.room.get() as usize / BLOCK, false);
        }
        for word in [&buffer.first, &buffer.room, &buffer.length] {
            self.set(word, 0);
        }
    }

    /// Blocks in a row for so many bytes: the number of the first; `None`: there is no room.
    pub fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let count = bytes.div_ceil(BLOCK).max(1);
        let first = self.find_free(count)?;
        self.mark(first, count, true);
        Some(first)
    }

    /// Gives back what [`allocate`](Self::allocate) gave for so many bytes.
    pub fn free(&mut self, first: usize, bytes: usize) {
        self.mark(first, bytes.div_ceil(BLOCK).max(1), false);
    }

    /// A word at the beginning of a block.
    pub fn word_of_block(&self, block: usize, number: usize) -> Option<&'a Word> {
        let layout = self.layout();
        let begin = layout.offset(&layout.heap.blocks);
        let offset = block * BLOCK + number * size_of::<Word>();
        (block < BLOCKS).then(|| layout.word(begin + offset as u64)).flatten()
    }

    /// Memory at `at` of blocks of so many bytes, and how much there is.
    pub fn memory_of_blocks(&self, first: usize, at: usize, bytes: usize) -> (*mut u8, usize) {
        let start = first.min(BLOCKS) * BLOCK + at;
        let room = bytes.saturating_sub(at).min((BLOCK * BLOCKS).saturating_sub(start));
        let start = start.min(BLOCK * BLOCKS);
        (self.layout().heap.blocks.get().cast::<u8>().wrapping_add(start), room)
    }

    fn find_free(&self, count: usize) -> Option<usize> {
        let used = &self.layout().heap.used;
        let (mut begin, mut at) = (0, 0);
        while at < BLOCKS {
            let word = used[at / 64].get();
            if at % 64 == 0 && word == u64::MAX {
                at += 64;
                begin = at;
                continue;
            }
            let is_used = word >> (at % 64) & 1 != 0;
            at += 1;
            if is_used {
                begin = at;
            } else if at - begin == count {
                return Some(begin);
            }
        }
        None
    }

    fn mark(&mut self, first: usize, count: usize, is_used: bool) {
        let used = &self.layout().heap.used;
        let end = (first + count).min(BLOCKS);
        let mut at = first.min(end);
        while at < end {
            let stop = (at / 64 * 64 + 64).min(end);
            let bits = (u64::MAX >> (64 - (stop - at))) << (at % 64);
            let word = &used[at / 64];
            let marked = if is_used { word.get() | bits } else { word.get() & !bits };
            self.set(word, marked);
            at = stop;
        }
    }

    /// The memory of a buffer, and its size; as large as it says, if nothing has damaged it.
    pub fn memory(&self, buffer: &Buffer) -> (*mut u8, usize) {
        let first = buffer.first.get().wrapping_sub(1) as usize;
        let start = if first < BLOCKS { first * BLOCK } else { 0 };
        let most = if first < BLOCKS { BLOCK * BLOCKS - start } else { 0 };
        let memory = self.layout().heap.blocks.get().cast::<u8>().wrapping_add(start);
        (memory, (buffer.room.get() as usize).min(most))
    }

    /// Writes `length` bytes at `at` into a buffer, as far as there is room; how many. The change
    /// is not withdrawn: write what no program reads yet.
    ///
    /// # Safety
    /// `from` has `length` bytes.
    pub unsafe fn fill(
        &mut self,
        buffer: &Buffer,
        at: usize,
        from: *const u8,
        length: usize,
    ) -> usize {
        let (memory, room) = self.memory(buffer);
        let length = length.min(room.saturating_sub(at));
        // SAFETY: within the buffer, and the lock of the arena excludes others; the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from, memory.wrapping_add(at), length) };
        length
    }

    /// Reads `length` bytes at `at` of a buffer, as far as it has them; how many.
    ///
    /// # Safety
    /// `to` has room for `length` bytes.
    pub unsafe fn read(&self, buffer: &Buffer, at: usize, to: *mut u8, length: usize) -> usize {
        let (memory, room) = self.memory(buffer);
        let length = length.min(room.saturating_sub(at));
        // SAFETY: as in `fill`.
        unsafe { std::ptr::copy_nonoverlapping(memory.wrapping_add(at), to, length) };
        length
    }
}
