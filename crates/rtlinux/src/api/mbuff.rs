//! Shared memory by name (mbuff).

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::fmt::Write;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual_ipc::{Name, Namespace, Region};

use crate::cancellation::NoCancellation;

/// Bytes of a name that count (MBUFF_NAME_LEN).
const LONGEST: usize = 32;

/// A buffer that this program has mapped.
struct Buffer {
    region: Region,
    /// How often it was allocated and not freed.
    users: u32,
}

/// By the names of their regions.
static BUFFERS: Mutex<BTreeMap<Name, Buffer>> = Mutex::new(BTreeMap::new());

fn buffers() -> MutexGuard<'static, BTreeMap<Name, Buffer>> {
    BUFFERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The region of a buffer: letters and digits as they are, others by their numbers. `None`: NULL,
/// empty, or with too many other characters.
unsafe fn name_of(text: *const c_char) -> Option<Name> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    let mut name = String::from("mbuff-");
    for &byte in text.iter().take(LONGEST) {
        match byte.is_ascii_alphanumeric() {
            true => name.push(byte.into()),
            false => write!(name, "_{byte:02x}").ok()?,
        }
    }
    name.parse().ok().filter(|_| !text.is_empty())
}

/// Maps a buffer once more, which `open` opens for the first time here.
unsafe fn map(
    name: *const c_char,
    size: usize,
    open: impl FnOnce(&Namespace, &Name) -> Option<Region>,
) -> *mut c_void {
    let _not_here = NoCancellation::begin();
    let map = || {
        // SAFETY: the caller's.
        let name = unsafe { name_of(name) }?;
        let mut buffers = buffers();
        if let Some(buffer) = buffers.get_mut(&name) {
            buffer.users =
                (buffer.region.size() >= size).then(|| buffer.users.checked_add(1))??;
            return Some(buffer.region.base().as_ptr());
        }
        let region = open(&Namespace::of_user().ok()?, &name)?;
        let base = region.base().as_ptr();
        buffers.insert(name, Buffer { region, users: 1 });
        Some(base)
    };
    map().map_or(ptr::null_mut(), <*mut u8>::cast)
}

#[no_mangle]
unsafe extern "C" fn mbuff_alloc(name: *const c_char, size: c_int) -> *mut c_void {
    let Some(size) = usize::try_from(size).ok().filter(|&size| size > 0) else {
        return ptr::null_mut();
    };
    let open = |namespace: &Namespace, name: &Name| {
        Region::open_or_create_at_least(namespace, name, size).ok()
    };
    // SAFETY: the caller's.
    unsafe { map(name, size, open) }
}

#[no_mangle]
unsafe extern "C" fn mbuff_mmap(name: *const c_char, size: c_int) -> *mut c_void {
    let Some(size) = usize::try_from(size).ok() else { return ptr::null_mut() };
    let open = |namespace: &Namespace, name: &Name| {
        Region::open(namespace, name).ok().filter(|region| region.size() >= size)
    };
    // SAFETY: the caller's.
    unsafe { map(name, size, open) }
}

#[no_mangle]
unsafe extern "C" fn mbuff_free(name: *const c_char, buffer: *mut c_void) {
    let _not_here = NoCancellation::begin();
    // SAFETY: the caller's.
    let Some(name) = (unsafe { name_of(name) }) else { return };
    let mut buffers = buffers();
    let Some(found) = buffers.get_mut(&name) else { return };
    if found.region.base().as_ptr() == buffer.cast() {
        found.users -= 1;
        if found.users == 0 {
            buffers.remove(&name);
        }
    }
}

#[no_mangle]
unsafe extern "C" fn mbuff_size(name: *const c_char) -> c_int {
    let _not_here = NoCancellation::begin();
    let size = || {
        // SAFETY: the caller's.
        let name = unsafe { name_of(name) }?;
        if let Some(buffer) = buffers().get(&name) {
            return Some(buffer.region.size());
        }
        Some(Region::open(&Namespace::of_user().ok()?, &name).ok()?.size())
    };
    size().and_then(|size| c_int::try_from(size).ok()).unwrap_or(-libc::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_characters_are_names_of_regions_and_differ() {
        let name = |text: &CStr| {
            // SAFETY: a text.
            unsafe { name_of(text.as_ptr()) }.map(|name| name.as_str().to_owned())
        };
        assert_eq!(name(c"hello_shm").as_deref(), Some("mbuff-hello_5fshm"));
        assert_eq!(name(c"a/b c").as_deref(), Some("mbuff-a_2fb_20c"));
        assert_eq!(name(c""), None);
        // SAFETY: NULL is none.
        assert_eq!(unsafe { name_of(ptr::null()) }, None);
        let long = c"0123456789012345678901234567890123456789";
        assert_eq!(name(long), name(c"01234567890123456789012345678901"), "32 characters count");
        assert_eq!(name(c"________________________________"), None);
    }
}
