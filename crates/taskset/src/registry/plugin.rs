//! Policies in shared objects, which are loaded when a set names their files. `punctual-plugin`
//! loads them.

use std::path::Path;
use std::sync::OnceLock;

use punctual_diagnostic::Diagnostic;

use super::PolicyInfo;

/// Loads the policy in a shared object, and registers it; the same file again is the same policy.
pub type PluginLoader = fn(&Path) -> Result<&'static PolicyInfo, Diagnostic>;

static LOADER: OnceLock<PluginLoader> = OnceLock::new();

/// Sets what loads plugins, for the life of the process. The first call decides.
pub fn load_plugins_by(loader: PluginLoader) {
    let _ = LOADER.set(loader);
}

/// Loads the policy in a shared object.
///
/// # Errors
/// This program loads none; all of the loader's.
pub fn load_plugin(file: &Path) -> Result<&'static PolicyInfo, Diagnostic> {
    let Some(load) = LOADER.get() else {
        return Err(Diagnostic::usage(
            "this program loads no plugins",
            "use the command punctual, or register the policy in the program",
        ));
    };
    load(file)
}
