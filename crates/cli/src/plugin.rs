//! Policies on the command line, by name or by the file of a plugin.

use std::path::Path;

use punctual_diagnostic::Diagnostic;

/// The name of the policy that is meant: of a plugin, which is loaded, that of its policy.
///
/// # Errors
/// The plugin cannot be loaded.
pub fn policy_named(word: &str) -> Result<&str, Diagnostic> {
    // No name of a policy has either.
    match word.contains('/') || word.ends_with(".so") {
        true => punctual_plugin::load(Path::new(word)).map(|info| info.name),
        false => Ok(word),
    }
}
