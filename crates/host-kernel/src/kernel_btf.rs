//! What differs between kernels, by name, from this kernel's BTF.

use libbpf_rs::btf::types::{Enum, Enum64, Func};
use libbpf_rs::btf::Btf;

use crate::diagnostics::{refused, OTHERS};
use punctual_diagnostic::Diagnostic;

/// What the scheduler asks sched_ext for.
const OPS_FLAGS: [&str; 3] =
    ["SCX_OPS_ENQ_LAST", "SCX_OPS_ENQ_EXITING", "SCX_OPS_ENQ_MIGRATION_DISABLED"];
/// Functions of which `bpf/scx.h` calls the newer kernels' form, or else the older one. A kernel
/// that lacks another function is refused by libbpf, which names it.
const FORMS: [[&str; 2]; 3] = [
    ["scx_bpf_dsq_insert___v2", "scx_bpf_dsq_insert"],
    ["__scx_bpf_dsq_insert_vtime", "scx_bpf_dsq_insert_vtime"],
    ["scx_bpf_dsq_move_to_local___v2", "scx_bpf_dsq_move_to_local"],
];

pub(crate) struct KernelBtf(Btf<'static>);

impl KernelBtf {
    /// # Errors
    /// It cannot be read.
    pub fn load() -> Result<KernelBtf, Diagnostic> {
        let btf = Btf::from_vmlinux();
        btf.map(KernelBtf).map_err(|e| refused(format!("this kernel's BTF cannot be read: {e:#}")))
    }

    /// The value of `struct sched_ext_ops.flags`.
    ///
    /// # Errors
    /// A flag or a function that the scheduler needs is missing.
    pub fn ops_flags(&self) -> Result<u64, Diagnostic> {
        let flags = self.0.type_by_name::<Enum64<'_>>("scx_ops_flags");
        let flags = flags.ok_or_else(|| lacks("enum scx_ops_flags"))?;
        OPS_FLAGS.iter().try_fold(0, |all, name| {
            let flag = flags.iter().find(|member| member.name.is_some_and(|n| n == *name));
            let value = flag.and_then(|flag| u64::try_from(flag.value).ok());
            value.map(|value| all | value).ok_or_else(|| lacks(name))
        })
    }

    /// # Errors
    /// A function that the scheduler needs is missing.
    pub fn check_functions(&self) -> Result<(), Diagnostic> {
        let missing = |forms: &&[&str; 2]| {
            !forms.iter().any(|name| self.0.type_by_name::<Func<'_>>(name).is_some())
        };
        FORMS.iter().find(missing).map_or(Ok(()), |[_, name]| Err(lacks(name)))
    }

    /// The name in `enum scx_exit_kind` of why a scheduler ended.
    pub fn exit_kind(&self, kind: u32) -> Option<String> {
        let kinds = self.0.type_by_name::<Enum<'_>>("scx_exit_kind")?;
        let found = kinds.iter().find(|member| member.value == i64::from(kind))?;
        found.name.map(|name| name.to_string_lossy().into_owned())
    }
}

fn lacks(name: &str) -> Diagnostic {
    Diagnostic::machine(format!("this kernel has no {name}, which the kernel host needs"), OTHERS)
}
