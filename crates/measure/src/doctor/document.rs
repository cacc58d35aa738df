//! The findings for programs.

use super::finding::Finding;
use super::probe::Probe;
use super::scene::Scene;
use serde::{Deserialize, Serialize};

/// The result of `punctual doctor --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// What was examined.
    pub machine: Machine,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// The machine in a few words; null where it could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// As `uname -r`.
    pub kernel: Option<String>,
    /// As `uname -v`.
    pub build: Option<String>,
    /// As Rust names it.
    pub architecture: String,
    /// PRETTY_NAME of os-release.
    pub distribution: Option<String>,
    /// CPUs that are online.
    pub cpus: Vec<usize>,
    /// CPUs that this process may use.
    pub allowed_cpus: Vec<usize>,
    /// Whether the kernel is a guest.
    pub virtual_machine: Option<bool>,
}

impl Document {
    /// `findings` may have been extended by those of others.
    pub fn new(root: &Probe, findings: Vec<Finding>) -> Self {
        let scene = Scene::observe(root);
        let text = |r: &Result<super::Reading, _>| r.as_ref().ok().map(|r| r.read.clone());
        let distribution = root.read("/etc/os-release").ok().and_then(|os| {
            let name = os.read.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="))?;
            Some(name.trim_matches('"').to_string())
        });
        Document {
            machine: Machine {
                kernel: text(&scene.release),
                build: text(&scene.version),
                architecture: std::env::consts::ARCH.into(),
                distribution,
                cpus: scene.online_cpus().unwrap_or_default(),
                allowed_cpus: scene.allowed_cpus().unwrap_or_default(),
                virtual_machine: scene.virtual_machine().map(|(vm, _)| vm),
            },
            findings,
        }
    }
}
