//! `punctual clean`: the one case that no process can mend is mended by hand.

use crate::args::Clean;
use crate::output::print_line;
use punctual_diagnostic::Diagnostic;
use std::process::ExitCode;

pub fn run(args: &Clean) -> Result<ExitCode, Diagnostic> {
    let reports = punctual_process::clean()?;
    let mut out = std::io::stdout();
    if args.json {
        let all: Vec<serde_json::Value> = reports.iter().map(|r| serde_json::json!(r)).collect();
        print_line(&mut out, &format!("{:#}", serde_json::json!({ "version": 1, "restored": all })));
    } else if reports.is_empty() {
        print_line(&mut out, "nothing to clean: no killed Punctual has left anything behind");
    } else {
        for report in &reports {
            print_line(&mut out, &report.to_string());
        }
    }
    let left: Vec<&str> = reports.iter().flat_map(|r| r.problems.iter().map(String::as_str)).collect();
    if left.is_empty() {
        Ok(ExitCode::SUCCESS)
    } else {
        Err(Diagnostic::machine(left.join("; "), "run it as the user that ran Punctual, or as root"))
    }
}
