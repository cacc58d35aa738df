//! `punctual doctor`.

use punctual_doctor::{self as doctor, Document, Evidence, Finding, FindingsView, Probe, Severity};

use crate::args::Doctor;
use crate::output::Outcome;
use punctual_diagnostic::{Diagnostic, Kind};

pub fn run(args: &Doctor) -> Result<Outcome<Document>, Diagnostic> {
    let probe = Probe::machine();
    let mut findings = doctor::examine(&probe);
    findings.extend(leftovers());
    findings.push(kernel_host());
    let code = doctor::exit_code(&findings);
    let verdict = doctor::headline(&findings);
    let text = doctor::render(&findings, &FindingsView { color: true, verbose: args.verbose });
    let result = Document::new(&probe, findings);
    let code = u8::try_from(code).unwrap_or(Kind::Machine.exit_code());
    Ok(Outcome { verdict, ok: code == 0, code, result, text, error: None })
}

/// Whether the dispatcher can execute inside this kernel. Where it cannot, the user host still
/// works, so the finding is informational.
fn kernel_host() -> Finding {
    let missing = punctual_host_kernel::machine::missing();
    let state =
        std::fs::read_to_string("/sys/kernel/sched_ext/state").unwrap_or_else(|e| format!("({e})"));
    let finding = Finding::about("kernel-host", "The kernel host (run --host kernel)")
        .saw(&Evidence::new("/sys/kernel/sched_ext/state", state.trim()));
    if missing.is_empty() {
        return finding.good("the dispatcher can work inside this kernel");
    }
    let cause: Vec<String> = missing.into_iter().map(|e| e.cause).collect();
    finding.note(
        cause.join("; "),
        "run --host kernel is refused; the user host works all the same",
        ["# use --host user"],
    )
}

/// Changes of a killed Punctual.
fn leftovers() -> Vec<Finding> {
    let found = punctual_process::leftovers();
    if found.is_empty() {
        return vec![Finding {
            id: "leftovers".to_owned(),
            title: "Changes of a killed Punctual".to_owned(),
            verdict: Severity::Good,
            value: vec![Evidence::new("journals and cgroups of Punctual", "none")],
            cause: String::new(),
            effect: String::new(),
            help: Vec::new(),
        }];
    }
    vec![Finding {
        id: "leftovers".to_owned(),
        title: "Changes of a killed Punctual".to_owned(),
        verdict: Severity::Warning,
        value: found
            .iter()
            .map(|l| Evidence::new(l.path.display().to_string(), l.cause.clone()))
            .collect(),
        cause: "Punctual and its guardian were killed at one instant".to_owned(),
        effect: "processes may be frozen, stopped or at a real-time priority".to_owned(),
        help: vec!["punctual clean".to_owned()],
    }]
}
