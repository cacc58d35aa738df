//! Memory of one size that programs share by name.

use std::fs::File;
use std::io;
use std::ptr::NonNull;

use punctual_diagnostic::Diagnostic;
use rustix::fs::fstat;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};

use crate::mapping::page_size;
use crate::name::Name;
use crate::namespace::{Lifetime, Namespace};
use crate::object::{Object, ObjectKind};

/// Attempts, where other programs make and remove the region that this one opens.
const ATTEMPTS: u32 = 100;

/// Shared memory that this process has mapped, until it is dropped.
#[derive(Debug)]
pub struct Region {
    memory: MappedMemory,
    // Last, so that the mapping is gone when others may remove it.
    _object: Object,
}

impl Region {
    /// Opens the region of this name, or makes it: `length` bytes, rounded up to whole pages, which
    /// `fill` gets as zeros before another program can open it. It lives as long as a process has
    /// it open.
    ///
    /// # Errors
    /// The region there has another size (EBADMSG); no room in memory (ENOSPC); what `fill`
    /// returns.
    pub fn open_or_create(
        namespace: &Namespace,
        name: &Name,
        length: usize,
        fill: impl Fn(NonNull<u8>) -> io::Result<()>,
    ) -> Result<Region, Diagnostic> {
        Self::obtain(namespace, name, length, fill, |has, wanted| has == wanted)
    }

    /// The same of a region that may have more bytes, and that begins as zeros.
    ///
    /// # Errors
    /// The region there has less (EBADMSG); no room in memory (ENOSPC).
    pub fn open_or_create_at_least(
        namespace: &Namespace,
        name: &Name,
        length: usize,
    ) -> Result<Region, Diagnostic> {
        Self::obtain(namespace, name, length, |_| Ok(()), |has, wanted| has >= wanted)
    }

    /// `fits`: whether one of so many bytes does for so many.
    fn obtain(
        namespace: &Namespace,
        name: &Name,
        length: usize,
        fill: impl Fn(NonNull<u8>) -> io::Result<()>,
        fits: fn(usize, usize) -> bool,
    ) -> Result<Region, Diagnostic> {
        let length = length.max(1).next_multiple_of(page_size());
        let fill = |file: &File| {
            let memory = MappedMemory::of(file, length)?;
            fill(memory.base).map(|()| memory)
        };
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match Object::open(namespace, ObjectKind::Region, name) {
                Ok(object) => {
                    let memory = Self::map_as(&object, length, name, fits)?;
                    return Ok(Region { memory, _object: object });
                }
                Err(error) if error.errno == Some(libc::ENOENT) => {}
                Err(error) => return Err(error),
            }
            let lifetime = Lifetime::Used;
            let kind = ObjectKind::Region;
            match Object::create(namespace, kind, name, lifetime, length as u64, fill) {
                Ok((object, memory)) => return Ok(Region { memory, _object: object }),
                Err(error) if error.errno == Some(libc::EEXIST) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| {
            Diagnostic::machine(format!("the region {name} comes and goes"), "try again")
        }))
    }

    /// Opens the region of this name, whatever its size is.
    ///
    /// # Errors
    /// There is none (ENOENT); the memory cannot be mapped.
    pub fn open(namespace: &Namespace, name: &Name) -> Result<Region, Diagnostic> {
        let object = Object::open(namespace, ObjectKind::Region, name)?;
        let memory = Self::map(&object, Self::size_of(&object, name)?, name)?;
        Ok(Region { memory, _object: object })
    }

    fn map_as(
        object: &Object,
        length: usize,
        name: &Name,
        fits: fn(usize, usize) -> bool,
    ) -> Result<MappedMemory, Diagnostic> {
        let size = Self::size_of(object, name)?;
        if !fits(size, length) {
            return Err(Diagnostic::machine(
                format!("the region {name} has {size} bytes, not {length}"),
                "end the programs of another version that use it",
            )
            .with_errno(libc::EBADMSG));
        }
        Self::map(object, size, name)
    }

    fn size_of(object: &Object, name: &Name) -> Result<usize, Diagnostic> {
        let status = fstat(object.memory()).map_err(|errno| refused(name, errno.into()))?;
        Ok(usize::try_from(status.st_size).unwrap_or(0))
    }

    fn map(object: &Object, length: usize, name: &Name) -> Result<MappedMemory, Diagnostic> {
        MappedMemory::of(object.memory(), length).map_err(|error| refused(name, error))
    }

    /// Its first byte, at the beginning of a page.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.memory.base
    }

    /// Its size in bytes: whole pages.
    #[must_use]
    pub fn size(&self) -> usize {
        self.memory.length
    }
}

fn refused(name: &Name, error: io::Error) -> Diagnostic {
    let cause = format!("cannot map the region {name}");
    Diagnostic::refused(cause, error, "raise the limit of locked memory (ulimit -l)")
}

#[derive(Debug)]
struct MappedMemory {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: memory that belongs to no thread; those who access it say how.
unsafe impl Send for MappedMemory {}
// SAFETY: as above.
unsafe impl Sync for MappedMemory {}

impl MappedMemory {
    fn of(file: &File, length: usize) -> io::Result<MappedMemory> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping, which overlaps nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), length, access, flags, file, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(MappedMemory { base, length })
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        // SAFETY: made by `of`, and nothing refers to it any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}
