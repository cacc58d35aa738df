//! `punctual role`, `punctual run --role` and tasks with a role, in virtual time; and what
//! `punctual profile --write-role` refuses. What it writes needs root: tests/real.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const AUDIO: &str = "description = \"renders sound\"\nperiod = \"10ms\"\nbudget = \"2ms\"\n\
                     deadline = \"5ms\"\noverrun = \"skip\"\ncpu = 0\npolicy = \"dm\"\n";

/// Two folders with roles, of which the first holds.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine { root: tempfile::tempdir().unwrap() };
        machine.write("lib", "audio.toml", AUDIO);
        machine.write("lib", "video.toml", "period = \"20ms\"\nbudget = \"5ms\"\n");
        machine.write("etc", "video.toml", "period = \"40ms\"\nbudget = \"4ms\"\n");
        machine
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, folder: &str, name: &str, text: &str) -> PathBuf {
        fs::create_dir_all(self.folder(folder)).unwrap();
        let path = self.folder(folder).join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn punctual(&self, args: &[&str]) -> Output {
        let folders = std::env::join_paths([self.folder("etc"), self.folder("lib")]).unwrap();
        let binary = env!("CARGO_BIN_EXE_punctual");
        Command::new(binary).args(args).env("PUNCTUAL_ROLES", folders).output().unwrap()
    }

    /// The document of `--json`, and the exit code.
    fn document(&self, args: &[&str]) -> (Value, Option<i32>) {
        let output = self.punctual(args);
        let document = serde_json::from_slice(&output.stdout);
        let document = document.unwrap_or_else(|e| panic!("no JSON ({e}): {output:?}"));
        (document, output.status.code())
    }

    /// The same of `punctual role`, which conforms to its schema.
    fn role(&self, args: &[&str]) -> (Value, Option<i32>) {
        let schema = include_str!("../../../docs/role.schema.json");
        let schema = serde_json::from_str(schema).unwrap();
        let (document, code) = self.document(&[&["role"], args, &["--json"]].concat());
        let schema = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} in {document:#}");
        (document, code)
    }

    /// What `punctual run --host sim --role` gives its one task: period, budget, deadline, ns;
    /// CPUs and policy.
    fn run(&self, options: &str) -> (u64, u64, u64, String) {
        let options: Vec<&str> = options.split_whitespace().collect();
        let head = ["run", "--host", "sim", "--json", "--duration", "200ms"];
        let (document, code) = self.document(&[&head[..], &options, &["--", "true"]].concat());
        assert_eq!(code, Some(0), "{document:#}");
        let run = &document["result"];
        let task = &run["tasks"][0];
        let of = |key: &str| task[key].as_u64().unwrap_or_else(|| panic!("{key}: {document:#}"));
        let words = format!("{} {}", run["cpus"], run["policy"]);
        (of("period_ns"), of("budget_ns"), of("deadline_ns"), words)
    }
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn the_list_has_each_role_once_with_the_files_that_it_replaces() {
    let machine = Machine::new();
    let (document, code) = machine.role(&["list"]);
    assert_eq!((code, &document["ok"]), (Some(0), &true.into()), "{document:#}");
    assert_eq!(document["verdict"], "2 roles.");
    let result = &document["result"];
    let [audio, video] = &result["roles"].as_array().unwrap()[..] else { panic!("{result:#}") };
    assert_eq!((&audio["name"], &audio["share_ppm"]), (&"audio".into(), &200_000.into()));
    assert_eq!((&video["name"], &video["period_ns"]), (&"video".into(), &40_000_000.into()));
    assert_eq!(video["replaces"][0], path(&machine.folder("lib").join("video.toml")));

    machine.write("etc", "audio.toml", "period = \"10ms\"\n");
    let (document, code) = machine.role(&["list"]);
    assert_eq!((code, &document["ok"]), (Some(2), &false.into()), "{document:#}");
    let wrong = &document["result"]["wrong"][0];
    assert_eq!((&wrong["name"], &wrong["error"]["place"]["line"]), (&"audio".into(), &1.into()));
    let text = machine.punctual(&["role", "list"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("1 role; 1 file of a role cannot be used."), "{text}");
    assert!(text.contains("audio.toml:1:1: it lacks a budget"), "{text}");
}

#[test]
fn a_role_is_shown_with_its_file() {
    let machine = Machine::new();
    let (document, code) = machine.role(&["show", "audio"]);
    assert_eq!(code, Some(0), "{document:#}");
    assert_eq!(document["verdict"], "audio: 2 ms in every 10 ms, 20.00 % of a CPU.");
    let role = &document["result"]["roles"][0];
    let file = path(&machine.folder("lib").join("audio.toml"));
    let want = [
        ("description", "renders sound".into()),
        ("deadline_ns", 5_000_000.into()),
        ("overrun", "skip".into()),
        ("cpu", 0.into()),
        ("policy", "dm".into()),
        ("file", Value::from(file)),
    ];
    want.iter().for_each(|(key, value)| assert_eq!(&role[key], value, "{role:#}"));
    let (document, code) = machine.role(&["show", "vidio"]);
    assert_eq!((code, &document["error"]["kind"]), (Some(2), &"usage".into()));
    assert_eq!(document["error"]["help"], "did you mean \"video\"? punctual role list has all");
}

#[test]
fn a_command_has_what_its_role_gives_where_no_option_gives_another() {
    let machine = Machine::new();
    let full = (10_000_000, 2_000_000, 5_000_000, "[0] \"dm\"".to_owned());
    assert_eq!(machine.run("--role audio"), full);
    let options = "--role audio --period 20ms --budget 1ms --deadline 8ms --policy rm";
    let other = (20_000_000, 1_000_000, 8_000_000, "[0] \"rm\"".to_owned());
    assert_eq!(machine.run(options), other);
    let (period, budget, deadline, _) = machine.run("--role video");
    assert_eq!((period, budget, deadline), (40_000_000, 4_000_000, 40_000_000));
}

#[test]
fn a_run_that_names_its_role_wrongly_is_refused() {
    let machine = Machine::new();
    machine.write("lib", "wrong.toml", "period = \"10ms\"\nbudget = \"20ms\"\n");
    let set = machine.write("sets", "set.toml", "");
    let set = path(&set);
    let cases: [(&[&str], i32, &str); 8] = [
        (&["--role", "audoi", "--", "true"], 125, "did you mean \"audio\"?"),
        (&["--role", "../lib/audio", "--", "true"], 125, "is not the name of a role"),
        (&["--role", "wrong", "--", "true"], 125, "wrong.toml:2:10"),
        (&["--role", "audio", "--budget", "9ms", "--", "true"], 125, "more than its deadline"),
        (&["--role", "audio"], 2, "-- COMMAND"),
        (&["--role", "audio", &set], 2, "cannot be used with"),
        (&["--period", "1ms", "--", "true"], 125, "--role"),
        (&["--budget", "1ms", "--", "true"], 125, "--role"),
    ];
    for (options, code, text) in cases {
        let ended = machine.punctual(&[&["run", "--host", "sim"], options].concat());
        let error = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(code), "{options:?}: {error}");
        assert!(error.contains(text), "{text}: {error}");
    }
}

#[test]
fn a_task_of_a_set_may_have_a_role() {
    let machine = Machine::new();
    let text = "cpu = 0\npolicy = \"edf\"\n[[task]]\nname = \"t\"\nrole = \"video\"\n\
                budget = \"3ms\"\nwork = { spin = \"1ms\" }\n";
    let set = path(&machine.write("sets", "set.toml", text));
    let (document, code) = machine.document(&["sim", "--json", "--duration", "200ms", &set]);
    assert_eq!(code, Some(0), "{document:#}");
    let task = &document["result"]["tasks"][0];
    assert_eq!((&task["period_ns"], &task["budget_ns"]), (&40_000_000.into(), &3_000_000.into()));
}

#[test]
fn a_profile_refuses_a_role_that_it_could_not_write_before_it_starts_the_program() {
    let machine = Machine::new();
    let started = machine.folder("started");
    let file = path(&machine.write("sets", "file", ""));
    let below_a_file = format!("{file}/roles.d");
    let cases: [(&[&str], &str); 4] = [
        (&["--write-role", "video"], "there is a role"),
        (&["--write-role", "a/b"], "is not the name of a role"),
        (&["--write-role", "new", "--role-folder", &below_a_file], "cannot be written"),
        (&["--role-folder", &file], "--write-role"),
    ];
    for (options, text) in cases {
        let command = ["--", "touch", started.to_str().unwrap()];
        let ended = machine.punctual(&[&["profile"], options, &command].concat());
        let error = String::from_utf8(ended.stderr).unwrap();
        assert!(matches!(ended.status.code(), Some(2 | 125)), "{options:?}: {error}");
        assert!(error.contains(text), "{text}: {error}");
        assert!(!started.exists(), "{options:?}");
    }
    assert_eq!(fs::read_dir(machine.folder("etc")).unwrap().count(), 1, "only video.toml");
}
