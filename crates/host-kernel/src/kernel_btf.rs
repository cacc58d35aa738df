//! What this kernel's BTF says when something has failed: to read it takes as long as a fifth of
//! loading the scheduler.

use libbpf_rs::btf::types::{Enum, Func};
use libbpf_rs::btf::Btf;

use crate::diagnostics::OTHERS;
use crate::verifier_log::listening;
use punctual_diagnostic::Diagnostic;

/// Functions of which `bpf/scx.h` calls the newer kernels' form, or else the older one. A kernel
/// that lacks another function is refused by libbpf, which names it.
const FORMS: [[&str; 2]; 3] = [
    ["scx_bpf_dsq_insert___v2", "scx_bpf_dsq_insert"],
    ["__scx_bpf_dsq_insert_vtime", "scx_bpf_dsq_insert_vtime"],
    ["scx_bpf_dsq_move_to_local___v2", "scx_bpf_dsq_move_to_local"],
];

fn read() -> Option<Btf<'static>> {
    listening(Btf::from_vmlinux).0.ok()
}

/// Why this kernel cannot load the scheduler, if it has neither form of a function.
pub(crate) fn missing_function() -> Option<Diagnostic> {
    let btf = read()?;
    let missing =
        |forms: &&[&str; 2]| !forms.iter().any(|name| btf.type_by_name::<Func<'_>>(name).is_some());
    FORMS.iter().find(missing).map(|[_, name]| {
        let cause = format!("this kernel has no {name}, which the kernel host needs");
        Diagnostic::machine(cause, OTHERS)
    })
}

/// The name in `enum scx_exit_kind` of why a scheduler ended.
pub(crate) fn exit_kind(kind: u32) -> Option<String> {
    let btf = read()?;
    let kinds = btf.type_by_name::<Enum<'_>>("scx_exit_kind")?;
    let found = kinds.iter().find(|member| member.value == i64::from(kind))?;
    found.name.map(|name| name.to_string_lossy().into_owned())
}
