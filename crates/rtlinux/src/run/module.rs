//! A shared object with `init_module`, loaded into this process.

use std::ffi::{c_int, c_void, CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use super::elf::Elf;
use super::parameters::Parameter;
use super::signals::EndSignals;
use super::{Refusal, NOT_EXECUTABLE, USAGE};
use crate::{fifo, thread};

/// Functions of RT-Linux that no program in user space can have, and why.
const OF_THE_KERNEL: [(&str, &str); 4] = [
    ("irq", "interrupts of devices are the kernel's: use UIO or VFIO"),
    ("kmalloc", "use malloc before the threads begin"),
    ("chrdev", "a driver's device is the kernel's: use CUSE, or FIFOs"),
    ("ioremap", "map the memory of the device by /dev/mem or UIO"),
];

/// The beginning of `struct link_map` (link.h).
#[repr(C)]
struct LinkMap {
    /// The difference between the addresses in the file and those in memory.
    address: usize,
}

/// A loaded object. It stays loaded: threads execute it.
struct Object(*mut c_void);

/// Executes it until its threads have ended, unless it `stays`, or a signal comes.
pub fn run(
    path: &Path,
    elf: &Elf<'_>,
    parameters: &[OsString],
    stays: bool,
) -> Result<c_int, Refusal> {
    let signals = EndSignals::block();
    let object = Object::load(path, elf)?;
    object.set_parameters(elf, parameters)?;
    let name = path.display();
    let Some(init) = object.function(c"init_module") else {
        return Err(Refusal::new(NOT_EXECUTABLE, format!("{name} has no init_module")));
    };
    // SAFETY: its type, by its name.
    let init = unsafe { std::mem::transmute::<*mut c_void, extern "C-unwind" fn() -> c_int>(init) };
    let result = init();
    if result != 0 {
        let error = std::io::Error::from_raw_os_error(result.saturating_abs());
        let text = match result {
            -4095..=-1 => format!("{name}: init_module returned {result}: {error}"),
            _ => format!("{name}: init_module returned {result}"),
        };
        return Err(Refusal::new(1, text));
    }
    signals.watch(thread::end_program);
    thread::wait_for_end(|| !stays && !fifo::is_any_installed());
    if let Some(cleanup) = object.function(c"cleanup_module") {
        // SAFETY: its type, by its name.
        let cleanup =
            unsafe { std::mem::transmute::<*mut c_void, extern "C-unwind" fn()>(cleanup) };
        cleanup();
    }
    Ok(0)
}

impl Object {
    fn load(path: &Path, elf: &Elf<'_>) -> Result<Object, Refusal> {
        let refused = |text: String| {
            Refusal::new(NOT_EXECUTABLE, format!("{} cannot be loaded: {text}", path.display()))
        };
        // With a slash, so that it is no name to be searched for.
        let whole = std::path::absolute(path).map_err(|error| refused(error.to_string()))?;
        let file =
            CString::new(whole.as_os_str().as_bytes()).map_err(|e| refused(e.to_string()))?;
        // SAFETY: a text. The object's constructors are the user's, who asked for it.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if !handle.is_null() {
            return Ok(Object(handle));
        }
        let error = last_error();
        let missing = missing_symbols(elf);
        Err(refused(match missing.is_empty() {
            true => error,
            false => explain(&missing),
        }))
    }

    fn function(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: a loaded object, and a text.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// Where the object is in memory.
    fn address(&self) -> Option<usize> {
        let mut map: *const LinkMap = ptr::null();
        // SAFETY: writes a pointer to the object's map, which is there as long as the object.
        unsafe {
            let to = (&raw mut map).cast();
            let done = libc::dlinfo(self.0, libc::RTLD_DI_LINKMAP, to) == 0;
            done.then(|| map.as_ref().map(|map| map.address)).flatten()
        }
    }

    fn set_parameters(&self, elf: &Elf<'_>, values: &[OsString]) -> Result<(), Refusal> {
        let declared = elf.texts("rtl_parameters");
        let declared: Vec<Parameter> =
            declared.into_iter().filter_map(Parameter::declared).collect();
        for value in values {
            self.set_parameter(elf, &declared, value).map_err(|text| {
                Refusal::new(USAGE, format!("{}: {text}", value.to_string_lossy()))
            })?;
        }
        Ok(())
    }

    fn set_parameter(
        &self,
        elf: &Elf<'_>,
        declared: &[Parameter],
        value: &OsStr,
    ) -> Result<(), String> {
        let text = value.to_str().ok_or("it is no text")?;
        let (name, value) = text.split_once('=').ok_or("use PARAMETER=VALUE")?;
        let is_it = |parameter: &&Parameter| parameter.name == name.as_bytes();
        let parameter = declared.iter().find(is_it).ok_or_else(|| {
            let known: Vec<_> =
                declared.iter().map(|p| String::from_utf8_lossy(&p.name).into_owned()).collect();
            match known.is_empty() {
                true => "the module has no parameters".to_owned(),
                false => format!("the parameters of the module are {}", known.join(", ")),
            }
        })?;
        let variable = elf.variable(&parameter.name).ok_or(
            "the file's table of symbols lacks it: do not strip the file, or make it global",
        )?;
        let bytes = parameter.bytes(value, variable.size)?;
        let address = self.address().ok_or("the object's place in memory is unknown")?;
        let offset = usize::try_from(variable.address).map_err(|e| e.to_string())?;
        let to = address.wrapping_add(offset) as *mut u8;
        // SAFETY: a variable of the loaded object, of at least as many bytes, which nothing
        // executes yet but its constructors.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }
}

fn last_error() -> String {
    // SAFETY: the text of the last error of this thread, until the next one.
    unsafe {
        let text = libc::dlerror();
        match text.is_null() {
            true => "it is unknown why".to_owned(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        }
    }
}

/// The symbols that neither this process nor the libraries that the object needs have.
fn missing_symbols(elf: &Elf<'_>) -> Vec<String> {
    for library in elf.needed() {
        if let Ok(library) = CString::new(library) {
            // SAFETY: a text; what cannot be loaded has no symbols.
            unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
        }
    }
    let is_missing = |name: &&[u8]| {
        // SAFETY: a text.
        CString::new(*name)
            .is_ok_and(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()).is_null() })
    };
    let missing = elf.undefined().into_iter().filter(is_missing);
    missing.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn explain(missing: &[String]) -> String {
    let mut text = format!("it needs what librtlinux does not have: {}", missing.join(", "));
    for (part, why) in OF_THE_KERNEL {
        if missing.iter().any(|name| name.contains(part)) {
            text.push_str("; ");
            text.push_str(why);
        }
    }
    text
}
