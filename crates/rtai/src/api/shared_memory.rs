//! Memory that programs share by name.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_ulong, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual::fifo::{Name, Namespace};
use punctual::Error;
use punctual_ipc::Region;

/// Memory that this process has mapped, and how often it asked for it.
struct Shared {
    region: Region,
    count: u64,
}

type Mapped = BTreeMap<c_ulong, Shared>;

/// What this process has mapped, by name.
fn mapped() -> MutexGuard<'static, Mapped> {
    static MAPPED: Mutex<Mapped> = Mutex::new(BTreeMap::new());
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The memory of this name; made, if it is not there and there is a size.
fn open(name: c_ulong, size: usize) -> Result<Region, Error> {
    let namespace = Namespace::of_user()?;
    let name: Name = format!("rtai-{name}").parse()?;
    loop {
        match Region::open(&namespace, &name) {
            Err(error) if error.errno == Some(libc::ENOENT) && size > 0 => {}
            opened => return opened,
        }
        match Region::open_or_create(&namespace, &name, size, |_| Ok(())) {
            // Another program has made it meanwhile, of another size.
            Err(error) if error.errno == Some(libc::EBADMSG) => {}
            opened => return opened,
        }
    }
}

#[no_mangle]
extern "C" fn rt_shm_alloc(name: c_ulong, size: c_int, _support: c_int) -> *mut c_void {
    let size = usize::try_from(size).unwrap_or(0);
    let mut mapped = mapped();
    if let Some(shared) = mapped.get_mut(&name) {
        shared.count += 1;
        return shared.region.base().as_ptr().cast();
    }
    match open(name, size) {
        Ok(region) => {
            let base = region.base();
            mapped.insert(name, Shared { region, count: 1 });
            base.as_ptr().cast()
        }
        Err(_) => ptr::null_mut(),
    }
}

#[no_mangle]
extern "C" fn rt_shm_free(name: c_ulong) -> c_int {
    let mut mapped = mapped();
    let Some(shared) = mapped.get_mut(&name) else { return 0 };
    let size = shared.region.size();
    shared.count -= 1;
    if shared.count == 0 {
        mapped.remove(&name);
    }
    c_int::try_from(size).unwrap_or(c_int::MAX)
}
