//! The memory of an object: a header, and data that is mapped twice in a row, so that what wraps
//! around its end is contiguous.

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{mmap, mmap_anonymous, munmap, MapFlags, ProtFlags};

/// A mapping that is shared with other processes, and resident.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    header: usize,
    data: usize,
}

// SAFETY: memory that belongs to no thread; those who access it say how.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `file`, which has `header` bytes and then `data` bytes, both of whole pages.
    ///
    /// # Errors
    /// ENOMEM, EAGAIN: beyond RLIMIT_MEMLOCK where the process locks new mappings.
    pub fn of(file: &File, header: usize, data: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, which overlaps nothing.
        let base = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                header + 2 * data,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self { base, header, data };
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::POPULATE;
        let at = |offset| base.as_ptr().wrapping_add(offset).cast();
        // SAFETY: both lie within the mapping that was made above and that nothing uses yet.
        unsafe {
            mmap(at(0), header + data, access, flags, file, 0)?;
            mmap(at(header + data), data, access, flags, file, header as u64)?;
        }
        Ok(mapping)
    }

    /// The header.
    pub fn header(&self) -> NonNull<u8> {
        self.base
    }

    /// The first byte of the data; twice as many as they are can be accessed from there.
    pub fn data(&self) -> *mut u8 {
        self.base.as_ptr().wrapping_add(self.header)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `of`, and nothing refers to it any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.header + 2 * self.data) };
    }
}

/// Bytes of a page.
pub fn page_size() -> usize {
    rustix::param::page_size()
}
