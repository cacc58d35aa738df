//! Who may reserve how much: the configuration file.
//!
//! ```toml
//! cpus = [2, 3]            # where reservations are made; all CPUs, if it is missing
//!
//! [[allow]]                # the first entry that matches a user holds
//! group = "audio"          # or: user = "ann"; also numbers, as texts
//! share = "40%"            # of each CPU, all reservations of the user together
//! cpus = [3]               # of those above; all of them, if it is missing
//! roles = ["audio-render"] # by these roles alone; any period and budget, if it is missing
//!
//! [polkit]                 # users without an entry, if polkit permits io.punctual.reserve
//! share = "20%"            # and cpus and roles, as of an entry
//!
//! [realtime_kit]           # threads that ask RealtimeKit on D-Bus; not served, if it is missing
//! period = "10ms"
//! budget = "1ms"
//!
//! [[scheduling_group]]     # in which the reservations by roles with group = "media" compete
//! name = "media"
//! cpu = 3
//! period = "10ms"
//! budget = "4ms"
//! policy = "edf"
//! ```
//!
//! Without an entry, and polkit's permission, a user may reserve nothing. Root may reserve all that
//! the dispatchers admit.

use std::path::Path;

use punctual_diagnostic::{Diagnostic, Place, Position};
use punctual_service::ServiceError;
use punctual_taskset::RoleFolders;
use serde::Deserialize;

use crate::allowance::{Allowance, AllowanceKeys};
use crate::config_value::WrongKey;
use crate::scheduling_groups::{self, GroupKeys, ServiceGroup};
use crate::share::ALL_PPM;
use crate::thread_budget::{ThreadBudget, ThreadBudgetKeys};
use crate::user::User;

/// Where the configuration is.
pub const CONFIG: &str = "/etc/punctual/service.toml";

/// Who may reserve how much.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// `None`: every CPU.
    cpus: Option<Vec<u32>>,
    allowed: Vec<Allowed>,
    /// Of users without an entry, if polkit permits it; `None`: it is not asked.
    polkit: Option<Allowance>,
    thread_budget: Option<ThreadBudget>,
    groups: Vec<ServiceGroup>,
    folders: RoleFolders,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Allowed {
    who: Who,
    allowance: Allowance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    User(u32),
    Group(u32),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cpus: Option<Vec<u32>>,
    #[serde(default)]
    allow: Vec<toml::Spanned<Entry>>,
    polkit: Option<AllowanceKeys>,
    realtime_kit: Option<toml::Spanned<ThreadBudgetKeys>>,
    #[serde(default)]
    scheduling_group: Vec<GroupKeys>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    user: Option<String>,
    group: Option<String>,
    share: toml::Spanned<String>,
    cpus: Option<Vec<u32>>,
    roles: Option<toml::Spanned<Vec<String>>>,
}

impl Entry {
    /// # Errors
    /// It has no user or group of this machine, or both: cause and help.
    fn who(&self) -> Result<Who, (String, &'static str)> {
        match (&self.user, &self.group) {
            (Some(user), None) => {
                let unknown = || (format!("there is no user {user:?}"), "add it");
                user_number(user).map(Who::User).ok_or_else(unknown)
            }
            (None, Some(group)) => {
                let unknown = || (format!("there is no group {group:?}"), "add it");
                group_number(group).map(Who::Group).ok_or_else(unknown)
            }
            _ => {
                let cause = "an entry is of a user or of a group".to_owned();
                Err((cause, "give it one of the keys user and group"))
            }
        }
    }
}

impl AccessRules {
    /// Reads a configuration file. A file that is not there allows root alone.
    ///
    /// # Errors
    /// The file cannot be read, or is no configuration: place, cause and help.
    pub fn read(path: &Path) -> Result<AccessRules, Diagnostic> {
        match std::fs::read_to_string(path) {
            Ok(text) => AccessRules::parse(&text, &path.to_string_lossy()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(AccessRules::default()),
            Err(e) => Err(Diagnostic::usage(
                format!("{} cannot be read: {e}", path.display()),
                "make it readable, or give another one by --config",
            )),
        }
    }

    /// Parses the text of a configuration file. The roles are those of the machine.
    ///
    /// # Errors
    /// It is none: place, cause and help.
    pub fn parse(text: &str, name: &str) -> Result<AccessRules, Diagnostic> {
        AccessRules::with_roles(text, name, RoleFolders::default())
    }

    fn with_roles(text: &str, name: &str, folders: RoleFolders) -> Result<AccessRules, Diagnostic> {
        let wrong = |(span, cause, help): WrongKey| {
            let place = Place { name: name.to_owned(), position: Some(Position::of(text, &span)) };
            Diagnostic::usage(cause, help).in_text(place, text)
        };
        let file: File = toml::from_str(text).map_err(|e| {
            let help = "see docs/service.md for the keys".to_owned();
            wrong((e.span().unwrap_or(0..0), e.message().to_owned(), help))
        })?;
        let allow = |entry: toml::Spanned<Entry>| {
            let (span, entry) = (entry.span(), entry.into_inner());
            let who = entry.who().map_err(|(cause, help)| (span, cause, help.to_owned()))?;
            let Entry { share, cpus, roles, .. } = entry;
            let allowance = Allowance::of(AllowanceKeys { share, cpus, roles }, &folders)?;
            Ok(Allowed { who, allowance })
        };
        let allowed = file.allow.into_iter().map(allow).collect::<Result<_, WrongKey>>();
        let polkit = file.polkit.map(|keys| Allowance::of(keys, &folders)).transpose();
        let thread_budget = |keys: toml::Spanned<ThreadBudgetKeys>| {
            let help = "write, for example, period = \"10ms\" and budget = \"1ms\"";
            let span = keys.span();
            ThreadBudget::of(&keys.into_inner()).map_err(|cause| (span, cause, help.to_owned()))
        };
        let groups = scheduling_groups::read(&file.scheduling_group, file.cpus.as_deref());
        Ok(AccessRules {
            cpus: file.cpus,
            allowed: allowed.map_err(wrong)?,
            polkit: polkit.map_err(wrong)?,
            thread_budget: file.realtime_kit.map(thread_budget).transpose().map_err(wrong)?,
            groups: groups.map_err(wrong)?,
            folders,
        })
    }

    /// Whether reservations are made on this CPU.
    #[must_use]
    pub fn has_cpu(&self, cpu: u32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// What a thread gets that asks by the interface of RealtimeKit; `None`: nothing.
    #[must_use]
    pub fn thread_budget(&self) -> Option<ThreadBudget> {
        self.thread_budget
    }

    /// The scheduling groups that roles may name.
    pub(crate) fn groups(&self) -> &[ServiceGroup] {
        &self.groups
    }

    /// What all reservations of a user may take of a CPU together, parts per million.
    #[must_use]
    pub fn limit_ppm(&self, caller: &User, cpu: u32) -> u64 {
        if !self.has_cpu(cpu) {
            return 0;
        }
        if caller.is_root() {
            return ALL_PPM;
        }
        self.allowance(caller).map_or(0, |allowance| allowance.limit_ppm(cpu))
    }

    /// Where the roles are.
    #[must_use]
    pub fn folders(&self) -> &RoleFolders {
        &self.folders
    }

    /// Refuses a user a role, or values of its own (`None`). Reservations of a user without an
    /// entry are refused by [`limit_ppm`](AccessRules::limit_ppm).
    ///
    /// # Errors
    /// The user's entry names roles, and not this one.
    pub fn check_role(&self, caller: &User, role: Option<&str>) -> Result<(), ServiceError> {
        match self.allowance(caller) {
            Some(allowance) => allowance.check(caller.uid, role),
            None => Ok(()),
        }
    }

    /// Whether the user's entry names this role.
    #[must_use]
    pub fn names_role(&self, caller: &User, role: &str) -> bool {
        self.allowance(caller).is_some_and(|allowance| allowance.names(role))
    }

    /// Whether polkit has to be asked about a user: the configuration has a section for that, and
    /// no entry for the user.
    #[must_use]
    pub fn needs_polkit(&self, caller: &User) -> bool {
        self.polkit.is_some() && !caller.is_root() && self.entry(caller).is_none()
    }

    /// Of the first entry that matches, else what polkit permits; `None` for root.
    fn allowance(&self, caller: &User) -> Option<&Allowance> {
        if caller.is_root() {
            return None;
        }
        let polkit = self.polkit.as_ref().filter(|_| caller.is_authorized);
        self.entry(caller).map(|entry| &entry.allowance).or(polkit)
    }

    fn entry(&self, caller: &User) -> Option<&Allowed> {
        self.allowed.iter().find(|entry| match entry.who {
            Who::User(uid) => uid == caller.uid,
            Who::Group(gid) => caller.groups.contains(&gid),
        })
    }
}

fn user_number(name: &str) -> Option<u32> {
    name.parse().ok().or_else(|| Some(uzers::get_user_by_name(name)?.uid()))
}

fn group_number(name: &str) -> Option<u32> {
    name.parse().ok().or_else(|| Some(uzers::get_group_by_name(name)?.gid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(uid: u32, groups: &[u32]) -> User {
        User::new(uid, groups.to_vec())
    }

    #[test]
    fn unknown_users_may_reserve_nothing_and_root_everything() {
        let access = AccessRules::default();
        assert_eq!(access.limit_ppm(&caller(1000, &[1000]), 0), 0);
        assert_eq!(access.limit_ppm(&caller(0, &[0]), 7), 1_000_000);
    }

    #[test]
    fn the_first_entry_that_matches_holds_on_its_cpus() {
        let text = "cpus = [2, 3]\n[[allow]]\nuser = \"daemon\"\nshare = \"12.5%\"\ncpus = [3]\n\
                    [[allow]]\ngroup = \"daemon\"\nshare = \"40%\"\n";
        let access = AccessRules::parse(text, "service.toml").expect("it is right");
        let user = uzers::get_user_by_name("daemon").expect("every Linux has it");
        let (uid, gid) = (user.uid(), user.primary_group_id());
        let limits = |c: &User| [1, 2, 3].map(|cpu| access.limit_ppm(c, cpu));
        assert_eq!(limits(&caller(uid, &[gid])), [0, 0, 125_000]);
        assert_eq!(limits(&caller(5000, &[5000, gid])), [0, 400_000, 400_000]);
        assert_eq!(limits(&caller(5000, &[5000])), [0, 0, 0]);
        assert_eq!(limits(&caller(0, &[0])), [0, 1_000_000, 1_000_000]);
    }

    #[test]
    fn an_entry_with_roles_is_for_these_alone_and_others_are_for_all() {
        let folder = tempfile::tempdir().expect("a folder");
        for role in ["audio", "video"] {
            let file = folder.path().join(format!("{role}.toml"));
            std::fs::write(file, "period = \"10ms\"\nbudget = \"1ms\"\n").expect("it is ours");
        }
        let parse = |text: &str| {
            let folders = RoleFolders::new([folder.path()]);
            AccessRules::with_roles(text, "service.toml", folders).map_err(|e| e.to_string())
        };
        let text = "[[allow]]\nuser = \"5000\"\nshare = \"40%\"\nroles = [\"audio\"]\n\
                    [[allow]]\ngroup = \"6000\"\nshare = \"20%\"\n";
        let access = parse(text).expect("it is right");
        let may = |uid| {
            let caller = caller(uid, &[6000]);
            [Some("audio"), Some("video"), None].map(|r| access.check_role(&caller, r).is_ok())
        };
        assert_eq!(may(5000), [true, false, false]);
        assert_eq!((may(7000), may(0)), ([true; 3], [true; 3]));
        let named = |uid| access.names_role(&caller(uid, &[6000]), "audio");
        assert_eq!([5000, 7000, 0].map(named), [true, false, false]);
        let roles = |list| parse(&text.replace("[\"audio\"]", list)).expect_err("it is wrong");
        let unknown = roles("[\"audio\", \"audoi\"]");
        assert!(unknown.contains("service.toml:4:9: there is no role \"audoi\""), "{unknown}");
        assert!(unknown.contains("did you mean \"audio\"?"), "{unknown}");
        assert!(roles("[]").contains("the list of roles is empty"));
    }

    #[test]
    fn polkit_is_asked_about_users_without_an_entry_and_its_permission_holds_for_them_alone() {
        let text = "[[allow]]\nuser = \"5000\"\nshare = \"40%\"\n[polkit]\nshare = \"20%\"\n\
                    cpus = [1]\n";
        let access = AccessRules::parse(text, "service.toml").expect("it is right");
        let asked = [0, 5000, 6000].map(|uid| access.needs_polkit(&caller(uid, &[uid])));
        assert_eq!(asked, [false, false, true]);
        let limits = |uid, is_authorized| {
            let user = User { is_authorized, ..caller(uid, &[uid]) };
            [0, 1].map(|cpu| access.limit_ppm(&user, cpu))
        };
        assert_eq!(limits(6000, false), [0, 0]);
        assert_eq!(limits(6000, true), [0, 200_000]);
        assert_eq!(limits(5000, true), [400_000, 400_000]);
        let without = AccessRules::parse("", "service.toml").expect("it is right");
        let user = User { is_authorized: true, ..caller(6000, &[]) };
        assert!(!without.needs_polkit(&user) && without.limit_ppm(&user, 1) == 0);
    }

    #[test]
    fn threads_get_what_the_section_says_and_nothing_without_it() {
        let budget = |text| {
            let access = AccessRules::parse(text, "service.toml").expect("it is right");
            access.thread_budget().map(|budget| (budget.period_ns, budget.budget_ns))
        };
        assert_eq!(budget(""), None);
        assert_eq!(budget("[realtime_kit]\n"), Some((10_000_000, 1_000_000)));
        let both = "[realtime_kit]\nperiod = \"5ms\"\nbudget = \"2ms\"\n";
        assert_eq!(budget(both), Some((5_000_000, 2_000_000)));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let cases = [
            ("[[allow]]\nshare = \"10%\"\n", "service.toml:1:1: an entry is of a user or of a"),
            ("[[allow]]\nuser = \"a\"\ngroup = \"b\"\nshare = \"1%\"\n", "an entry is of a user"),
            ("[[allow]]\nuser = \"no such\"\nshare = \"1%\"\n", "there is no user"),
            ("[[allow]]\ngroup = \"no such\"\nshare = \"1%\"\n", "there is no group"),
            ("[[allow]]\nuser = \"daemon\"\nshare = \"91%\"\n", "service.toml:3:9: \"91%\" is not"),
            ("[[allow]]\nuser = \"daemon\"\nshare = \"0%\"\n", "is not a share"),
            ("[[allow]]\nuser = \"daemon\"\nshare = \"1.234%\"\n", "is not a share"),
            ("[[allow]]\nuser = \"daemon\"\n", "missing field `share`"),
            ("cpu = [1]\n", "service.toml:1:1: unknown field `cpu`"),
            ("[polkit]\n", "service.toml:1:1: missing field `share`"),
            ("[polkit]\nshare = \"95%\"\n", "service.toml:2:9: \"95%\" is not a share"),
            ("[polkit]\nshare = \"5%\"\nuser = \"a\"\n", "unknown field `user`"),
            ("[realtime_kit]\nbudget = \"20ms\"\n", "service.toml:1:1: budget 20 ms is more than"),
            ("[realtime_kit]\nbudget = \"999us\"\n", "budget 999 us is less than 1 ms"),
            ("[realtime_kit]\nperiod = \"soon\"\n", "period: "),
            ("[realtime_kit]\ncpu = 1\n", "unknown field `cpu`"),
        ];
        for (text, expected) in cases {
            let error = AccessRules::parse(text, "service.toml").expect_err(text).to_string();
            assert!(error.contains(expected), "{error}\nnot {expected}");
        }
    }
}
