//! What a user may reserve: how much, where, and by which roles.

use punctual_service::ServiceError;
use punctual_taskset::RoleFolders;
use serde::Deserialize;

use crate::config_value::{share_ppm, WrongKey};

/// What a part of the configuration allows each of its users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowance {
    share_ppm: u64,
    /// `None`: every CPU of the service.
    cpus: Option<Vec<u32>>,
    /// The roles by which alone its users reserve; `None`: any period and budget, and any role.
    roles: Option<Vec<String>>,
}

/// The keys of an allowance, wherever the configuration has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllowanceKeys {
    pub(crate) share: toml::Spanned<String>,
    pub(crate) cpus: Option<Vec<u32>>,
    pub(crate) roles: Option<toml::Spanned<Vec<String>>>,
}

impl Allowance {
    /// # Errors
    /// No share; a role that is in none of the folders.
    pub(crate) fn of(keys: AllowanceKeys, folders: &RoleFolders) -> Result<Allowance, WrongKey> {
        let AllowanceKeys { share, cpus, roles } = keys;
        let Some(share_ppm) = share_ppm(share.get_ref()) else {
            let cause = format!("{:?} is not a share of a CPU", share.get_ref());
            return Err((
                share.span(),
                cause,
                "write, for example, \"40%\"; at most \"90%\"".into(),
            ));
        };
        if let Some(roles) = &roles {
            let wrong = |cause, help| Err((roles.span(), cause, help));
            if roles.get_ref().is_empty() {
                let help = "name a role, or leave the key out to permit any period and budget";
                return wrong("the list of roles is empty".to_owned(), help.to_owned());
            }
            for name in roles.get_ref() {
                if let Err(error) = folders.look_up(name) {
                    return wrong(error.cause, error.help);
                }
            }
        }
        Ok(Allowance { share_ppm, cpus, roles: roles.map(toml::Spanned::into_inner) })
    }

    /// What all reservations of a user may take of a CPU together, parts per million.
    pub(crate) fn limit_ppm(&self, cpu: u32) -> u64 {
        match &self.cpus {
            Some(cpus) if !cpus.contains(&cpu) => 0,
            _ => self.share_ppm,
        }
    }

    /// Whether it names this role.
    pub(crate) fn names(&self, role: &str) -> bool {
        self.roles.iter().flatten().any(|name| name == role)
    }

    /// Refuses a user what it may not have: this role, or values of its own.
    ///
    /// # Errors
    /// The allowance names roles, and not this one.
    pub(crate) fn check(&self, uid: u32, role: Option<&str>) -> Result<(), ServiceError> {
        let Some(roles) = &self.roles else { return Ok(()) };
        let cause = match role {
            Some(role) if self.names(role) => return Ok(()),
            Some(role) => format!("user {uid} may not have the role {role:?}"),
            None => format!("user {uid} may reserve by roles alone, not by period and budget"),
        };
        let help = format!(
            "use one of {}, or ask the administrator for more (docs/service.md)",
            roles.join(", ")
        );
        Err(ServiceError::NotPermitted { cause, help })
    }
}
