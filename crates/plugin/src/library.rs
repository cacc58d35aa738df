//! Shared objects: whether one has a policy for us, and its entry in the table of policies.

use std::ffi::{c_char, CStr};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use object::{Object, ObjectSymbol, SymbolKind};
use punctual_diagnostic::Diagnostic;
use punctual_policies::{register, Attribute, PolicyEntry};
use punctual_taskset::registry::PriorityFn;
use punctual_taskset::{AdmissionTest, PolicyInfo, ReleaseAttributes};

use crate::abi;
use crate::policy;

/// The symbol that a shared object exports.
const SYMBOL: &str = "punctual_policy";

/// The function of a policy whose members have fixed priorities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Priority(unsafe extern "C" fn(*const abi::PluginAttributes) -> i64);

impl Priority {
    pub(crate) fn of(policy: &abi::PluginPolicy) -> Option<Priority> {
        policy.priority.map(Priority)
    }

    pub(crate) fn value(self, of: &abi::PluginAttributes) -> i64 {
        // SAFETY: the attributes outlive the call.
        unsafe { (self.0)(of) }
    }
}

/// A policy that was loaded, for the life of the process.
struct Loaded {
    file: PathBuf,
    abi: &'static abi::PluginPolicy,
    entry: &'static PolicyEntry,
}

static ALL: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

/// The policy of an entry, if a shared object has it.
pub(crate) fn of_entry(entry: &PolicyEntry) -> Option<&'static abi::PluginPolicy> {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|loaded| std::ptr::eq(loaded.entry, entry)).map(|loaded| loaded.abi)
}

/// Loads the policy in a shared object and registers it; the same file again is the same policy.
///
/// # Errors
/// The file cannot be read, is no shared object for this machine, or has no policy of this version
/// of the interface; what it says of its policy is not valid. Nothing is registered then.
pub fn load(file: &Path) -> Result<&'static PolicyInfo, Diagnostic> {
    let path = file.canonicalize().map_err(|e| {
        let cause = match e.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => e.to_string(),
        };
        fault(file, &cause, "check its path, which begins at the folder of the task-set file")
    })?;
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(loaded) = all.iter().find(|loaded| loaded.file == path) {
        return Ok(loaded.entry.info);
    }
    check_symbol(&path).map_err(|(cause, help)| fault(file, &cause, help))?;
    let abi = open(&path)
        .map_err(|cause| fault(file, &cause, "link it with all that it needs, for this machine"))?;
    let entry = entry(abi).map_err(|(cause, help)| fault(file, &cause, help))?;
    register(&[entry])?;
    all.push(Loaded { file: path, abi, entry });
    Ok(entry.info)
}

fn fault(file: &Path, cause: &str, help: &str) -> Diagnostic {
    Diagnostic::usage(format!("the plugin {file:?}: {cause}"), help)
}

const HEADER: &str = "build it with the punctual_policy.h of this version (punctual policy header)";

/// Looks at a file before anything of it is executed.
fn check_symbol(path: &Path) -> Result<(), (String, &'static str)> {
    const BUILD: &str = "build it with cc -shared -fPIC";
    // Reading from a pipe or a device may never end.
    if !path.is_file() {
        return Err(("this is no regular file".to_owned(), "name a shared object"));
    }
    let bytes = std::fs::read(path).map_err(|e| (e.to_string(), "name a readable file"))?;
    let no_object = |_| ("this is no shared object".to_owned(), BUILD);
    let object = object::File::parse(&*bytes).map_err(no_object)?;
    if object.kind() != object::ObjectKind::Dynamic {
        return Err(("this is no shared object".to_owned(), BUILD));
    }
    let symbol = object
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok(SYMBOL) && symbol.is_definition())
        .ok_or_else(|| {
            (
                format!("it exports no symbol {SYMBOL}"),
                "define it as in punctual_policy.h (punctual policy header), and not as static",
            )
        })?;
    let wanted = size_of::<abi::PluginPolicy>() as u64;
    match (symbol.kind(), symbol.size()) {
        (SymbolKind::Data, size) if size >= 8 => Ok(()),
        (SymbolKind::Data, size) => {
            let cause = format!("its symbol {SYMBOL} has {size} bytes, a policy {wanted}");
            Err((cause, HEADER))
        }
        _ => Err((format!("its symbol {SYMBOL} is no data: a policy is a structure"), HEADER)),
    }
}

/// Loads it, for the life of the process.
fn open(path: &Path) -> Result<&'static abi::PluginPolicy, String> {
    // SAFETY: its initialisers are executed. To name it in a set permits that, as for commands.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|e| format!("it cannot be loaded: {e}"))?;
    // SAFETY: the symbol is data of at least the first two members, which are checked before any
    // other is read. It is never unloaded.
    let symbol = unsafe { library.get::<*const abi::PluginPolicy>(SYMBOL.as_bytes()) };
    let policy = symbol.map_err(|e| format!("it cannot be loaded: {e}"))?.into_raw();
    std::mem::forget(library);
    // SAFETY: as above.
    unsafe { policy.cast::<abi::PluginPolicy>().as_ref() }
        .ok_or_else(|| "it has no policy".to_owned())
}

fn entry(
    policy: &'static abi::PluginPolicy,
) -> Result<&'static PolicyEntry, (String, &'static str)> {
    let (version, size) = (policy.version, policy.size as usize);
    if (version, size) != (abi::VERSION, size_of::<abi::PluginPolicy>()) {
        let cause = match version == abi::VERSION {
            false => format!("it has version {version} of the interface, not {}", abi::VERSION),
            true => format!("its policy has {size} bytes, not {}", size_of::<abi::PluginPolicy>()),
        };
        return Err((cause, HEADER));
    }
    let name = text(policy.name, "name")?.ok_or(("its policy has no name".to_owned(), HEADER))?;
    if policy.priority.is_none() && policy.handle.is_none() {
        let cause = format!("the policy \"{name}\" has neither priority nor handle");
        return Err((cause, "give it one of them"));
    }
    let admission = match (policy.admission, Priority::of(policy)) {
        (abi::admission::UNTESTED, Some(priority)) => by_priority(priority),
        (abi::admission::UNTESTED, None) => AdmissionTest::None,
        (abi::admission::BY_DEADLINES, _) => AdmissionTest::ByDeadline,
        (other, _) => {
            return Err((format!("the policy \"{name}\" has the admission test {other}"), HEADER))
        }
    };
    let info = PolicyInfo {
        name,
        title: text(policy.title, "title")?.unwrap_or(""),
        source: text(policy.source, "source")?.unwrap_or(""),
        admission,
        ..PolicyInfo::POLICY
    };
    let info = Box::leak(Box::new(info));
    let order = order(name, policy.order)?;
    let timers = policy.handle.is_some();
    let made = PolicyEntry { order, timers, ..PolicyEntry::new(info, policy::make) };
    Ok(Box::leak(Box::new(made)))
}

fn by_priority(priority: Priority) -> AdmissionTest {
    let test: &'static PriorityFn = Box::leak(Box::new(move |of: &ReleaseAttributes| {
        let ReleaseAttributes { offset, period, deadline, budget, priority: own, .. } = *of;
        priority.value(&abi::PluginAttributes { offset, period, deadline, budget, priority: own })
    }));
    AdmissionTest::ByPriority(test)
}

fn order(name: &str, order: [u32; 4]) -> Result<&'static [Attribute], (String, &'static str)> {
    let given = order.into_iter().take_while(|&attribute| attribute != 0);
    let attributes = given.map(|attribute| match attribute {
        abi::order::START => Ok(Attribute::Start),
        abi::order::FINISH => Ok(Attribute::Finish),
        abi::order::BUDGET => Ok(Attribute::Budget),
        abi::order::PRIORITY => Ok(Attribute::Priority),
        other => Err((format!("the policy \"{name}\" has the order {other}"), HEADER)),
    });
    let attributes = attributes.collect::<Result<Vec<_>, _>>()?;
    Ok(match attributes.is_empty() {
        true => &[Attribute::Priority],
        false => attributes.leak(),
    })
}

/// A constant text of a shared object; `None`: it has none.
fn text(of: *const c_char, what: &str) -> Result<Option<&'static str>, (String, &'static str)> {
    if of.is_null() {
        return Ok(None);
    }
    // SAFETY: a constant of a shared object that is never unloaded; it ends with 0, as in C.
    let bytes = unsafe { CStr::from_ptr(of) };
    match bytes.to_str() {
        Ok(text) if text.chars().all(punctual_diagnostic::is_printable) => Ok(Some(text)),
        _ => Err((format!("the {what} of its policy is no text"), "give it printable UTF-8")),
    }
}
