//! The findings for programs.

use crate::finding::Finding;
use crate::machine::Machine;
use crate::probe::Probe;
use serde::{Deserialize, Serialize};

/// The result of `punctual doctor --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// The examined machine.
    pub machine: Machine,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Document {
    /// `findings` may have been extended by those of others.
    pub fn new(root: &Probe, findings: Vec<Finding>) -> Self {
        Document { machine: Machine::describe(root), findings }
    }
}
