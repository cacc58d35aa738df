//! The memory of a page, and how the service keeps it (see the crate's documentation).

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::mem::size_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};
use rustix::mm::{mlock, mmap, munmap, MapFlags, ProtFlags};
use rustix::param::page_size;
use rustix::pipe::{pipe_with, tee, vmsplice, IoSliceRaw, PipeFlags, SpliceFlags};

use crate::words::{ServiceWords, Words, VERSION};

/// One page, mapped for reading and writing.
#[derive(Debug)]
pub struct PageMapping(NonNull<Words>);

// SAFETY: a page of atomics, which belongs to no thread.
unsafe impl Send for PageMapping {}
// SAFETY: as above.
unsafe impl Sync for PageMapping {}

impl PageMapping {
    /// Maps the first page of `memory`.
    ///
    /// # Errors
    /// EPERM: it is sealed; ENOMEM.
    pub fn of(memory: BorrowedFd<'_>) -> io::Result<PageMapping> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping, which overlaps nothing.
        let at = unsafe { mmap(ptr::null_mut(), page_size(), access, flags, memory, 0) }?;
        Ok(PageMapping(NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?))
    }

    pub fn words(&self) -> &Words {
        // SAFETY: mapped as long as this lives; a page is larger, aligned, and zeroed at first.
        // Other processes write it, which atomics permit.
        unsafe { self.0.as_ref() }
    }

    fn address(&self) -> *mut std::ffi::c_void {
        self.0.as_ptr().cast()
    }
}

impl Drop for PageMapping {
    fn drop(&mut self) {
        // SAFETY: made by `of`, and nothing refers to it any more.
        let _ = unsafe { munmap(self.address(), page_size()) };
    }
}

/// A page that a client is to map.
#[derive(Debug)]
pub struct NewPage {
    memory: OwnedFd,
    page: HeldPage,
}

/// A mapping that keeps its page.
#[derive(Debug)]
struct HeldPage {
    mapping: PageMapping,
    /// A pipe that holds the page: with a reference more than mappings explain, the kernel neither
    /// collapses nor migrates it.
    holder: OwnedFd,
}

impl NewPage {
    /// Makes one.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOMEM: no descriptor or no memory; EAGAIN, EPERM: beyond RLIMIT_MEMLOCK.
    pub fn make() -> io::Result<NewPage> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("punctual-wait-page", flags)?;
        ftruncate(&memory, page_size() as u64)?;
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW)?;
        let mapping = PageMapping::of(memory.as_fd())?;
        // The first write brings it in.
        mapping.words().service.version.store(VERSION, SeqCst);
        // SAFETY: the page of the mapping.
        unsafe { mlock(mapping.address(), page_size()) }?;
        let (holder, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let page = IoSliceRaw::from_slice(
            // SAFETY: the page of the mapping: the kernel takes a reference and reads nothing.
            unsafe { std::slice::from_raw_parts(mapping.address().cast(), page_size()) },
        );
        // SAFETY: the page is not given away.
        let held = unsafe { vmsplice(&writer, &[page], SpliceFlags::NONBLOCK) }?;
        if held != page_size() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(NewPage { memory, page: HeldPage { mapping, holder } })
    }

    /// What its client maps.
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// The client has mapped it: from here on it can neither take it away nor map it again for
    /// writing.
    ///
    /// # Errors
    /// EPERM, ENOENT: the client has sealed it or taken it away. EMFILE, ENFILE.
    pub fn seal(self) -> io::Result<SealedPage> {
        fcntl_add_seals(&self.memory, SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
        let words = self.page.mapping.words();
        let ServiceWords { version, answered, over, sequence, lost, waits_by, suspensions, .. } =
            &words.service;
        let asked = &words.client.asked;
        for word in [version, answered, over, sequence, lost, waits_by, suspensions, asked] {
            word.store(0, SeqCst);
        }
        version.store(VERSION, SeqCst);
        // A page that was taken away has another one in its place, which nothing holds.
        let secret = RandomState::new().hash_one(0);
        words.service.number.store(secret, SeqCst);
        let held = self.page.held()?;
        let at = std::mem::offset_of!(Words, service) + std::mem::offset_of!(ServiceWords, number);
        let is_held = held.get(at..at + size_of::<u64>()) == Some(&secret.to_ne_bytes());
        words.service.number.store(0, SeqCst);
        match is_held {
            true => Ok(SealedPage(Arc::new(self.page))),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl HeldPage {
    /// The beginning of the page in the pipe.
    fn held(&self) -> io::Result<[u8; size_of::<Words>()]> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let mut bytes = [0; size_of::<Words>()];
        tee(&self.holder, &writer, page_size(), SpliceFlags::NONBLOCK)?;
        File::from(reader).read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// A page that its client cannot take away any more.
#[derive(Debug, Clone)]
pub struct SealedPage(Arc<HeldPage>);

impl SealedPage {
    pub(crate) fn words(&self) -> &Words {
        self.0.mapping.words()
    }
}
