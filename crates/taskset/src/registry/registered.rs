//! Policies of the program, beside those of Punctual. They are registered before the first set is
//! read, and remain for the life of the process.

use std::sync::{PoisonError, RwLock};

use punctual_diagnostic::Diagnostic;

use super::{PolicyInfo, POLICIES, SERVERS};
use crate::duration::quote;

/// Characters of the longest name.
const LONGEST_NAME: usize = 32;

static ALL: RwLock<&'static [&'static PolicyInfo]> = RwLock::new(&POLICIES);

/// All policies that a set may name: those of Punctual, then those of the program, in the order in
/// which it registered them.
#[must_use]
pub fn policies() -> &'static [&'static PolicyInfo] {
    *ALL.read().unwrap_or_else(PoisonError::into_inner)
}

/// Adds policies of the program. `punctual-policies` does this, with their implementations.
///
/// # Errors
/// An invalid name, or that of another policy or a kind of server; a policy that takes an order.
/// Nothing is registered then.
pub fn register(policies: &[&'static PolicyInfo]) -> Result<(), Diagnostic> {
    let mut all = ALL.write().unwrap_or_else(PoisonError::into_inner);
    let mut longer = all.to_vec();
    for info in policies {
        check(info, &longer)?;
        longer.push(info);
    }
    // Sets, errors and listings refer to entries for any length of time.
    *all = longer.leak();
    Ok(())
}

/// Whether a policy of the program could have this name.
///
/// # Errors
/// It is invalid, or that of another policy or a kind of server.
pub fn check_name(name: &str) -> Result<(), Diagnostic> {
    is_available(name, policies())
}

fn check(info: &PolicyInfo, all: &[&PolicyInfo]) -> Result<(), Diagnostic> {
    is_available(info.name, all)?;
    if info.takes_order {
        return refuse(info.name, "only \"objective\" takes an order", "leave out takes_order");
    }
    Ok(())
}

fn is_available(name: &str, all: &[&PolicyInfo]) -> Result<(), Diagnostic> {
    let another = "give the policy of this program another name";
    if !is_name(name) {
        return refuse(
            name,
            "this is not a name for a policy",
            "use a lower-case letter, then up to 31 lower-case letters, digits, - and _",
        );
    }
    if POLICIES.iter().any(|own| own.name == name) {
        return refuse(name, "Punctual has a policy of this name", another);
    }
    if SERVERS.iter().any(|server| server.name == name) {
        return refuse(name, "Punctual has a kind of server of this name", another);
    }
    if all.iter().any(|registered| registered.name == name) {
        return refuse(name, "this program has two policies of this name", another);
    }
    Ok(())
}

fn refuse(name: &str, cause: &str, help: &str) -> Result<(), Diagnostic> {
    Err(Diagnostic::usage(format!("the policy {}: {cause}", quote(name)), help))
}

fn is_name(name: &str) -> bool {
    let part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(part)
}
