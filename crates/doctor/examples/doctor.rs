//! What `punctual doctor --verbose` shows; `--json` for programs.

use punctual_doctor as doctor;

fn main() {
    let machine = doctor::Probe::machine();
    let findings = doctor::examine(&machine);
    let code = doctor::exit_code(&findings);
    if std::env::args().any(|a| a == "--json") {
        println!("{}", serde_json::json!(doctor::Document::new(&machine, findings)));
    } else {
        print!(
            "{}",
            doctor::render(&findings, &doctor::FindingsView { color: false, verbose: true })
        );
    }
    std::process::exit(code);
}
