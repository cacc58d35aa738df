//! Roles: their files, the folders that they are looked for in, and tasks that name one.

use std::fs;
use std::path::Path;

use punctual_taskset::{Loaded, Overrides, Overrun, Role, RoleFolders};

const AUDIO: &str = "description = \"renders sound\"\nperiod = \"10ms\"\nbudget = \"2ms\"\n\
                     deadline = \"5ms\"\noverrun = \"skip\"\ncpu = 3\npolicy = \"dm\"\n\
                     group = \"media\"\n";
const SHORT: &str = "period = \"1ms\"\nbudget = \"100us\"\n";

fn role(text: &str) -> Result<Role, String> {
    Role::parse("audio", text, "audio.toml").map_err(|error| error.to_string())
}

/// Two folders, the first of which has the first of these files, the second the others.
fn folders(files: [(&str, &str); 3]) -> (tempfile::TempDir, RoleFolders) {
    let root = tempfile::tempdir().unwrap();
    let paths = ["etc", "lib"].map(|folder| root.path().join(folder));
    for (index, (name, text)) in files.iter().enumerate() {
        let folder = &paths[index.min(1)];
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(name), text).unwrap();
    }
    let missing = root.path().join("missing");
    (root, RoleFolders::new([&missing, &paths[0], &paths[1]]))
}

#[test]
fn a_role_has_what_its_file_says_and_is_written_so() {
    let full = role(AUDIO).unwrap();
    let want = Role {
        name: "audio".to_owned(),
        description: "renders sound".to_owned(),
        period: 10_000_000,
        budget: 2_000_000,
        deadline: Some(5_000_000),
        overrun: Some(Overrun::Skip),
        cpu: Some(3),
        policy: Some("dm".to_owned()),
        group: Some("media".to_owned()),
    };
    assert_eq!(full, want);
    let short = role(SHORT).unwrap();
    let rest = (&short.description[..], short.deadline, short.overrun, short.cpu);
    assert_eq!(rest, ("", None, None, None));
    assert_eq!((&short.policy, &short.group), (&None, &None));
    for one in [full, short] {
        assert_eq!(role(&one.to_toml()).unwrap(), one);
    }
}

#[test]
fn a_wrong_file_has_one_error_with_place_cause_and_help() {
    let cases = [
        ("", "audio.toml:1:1: it lacks a period; add the time"),
        ("period = \"1ms\"\n", "audio.toml:1:1: it lacks a budget; add"),
        ("period = 1\n", "audio.toml:1:10: period is a bare number, not a duration"),
        ("perod = \"1ms\"\n", "audio.toml:1:1: unknown key \"perod\"; did you mean \"period\"?"),
        ("name = \"a\"\n", "unknown key \"name\"; remove it: the name of a role is that of its"),
        ("work = 1\n", "unknown key \"work\"; remove it; a role has description, period, budget"),
        (
            "period = \"1ms\"\nbudget = \"2ms\"\n",
            "audio.toml:2:10: budget 2 ms is more than its period 1 ms; make the budget at most",
        ),
        ("period = \"10us\"\nbudget = \"1us\"\n", "1:10: period 10 us is less than 100 us"),
        (
            "period = \"9ms\"\nbudget = \"1ms\"\ndeadline = \"10ms\"\n",
            "audio.toml:3:12: deadline 10 ms is more than its period 9 ms",
        ),
        ("overrun = \"skp\"\n", "unknown overrun policy \"skp\"; did you mean \"skip\"?"),
        ("cpu = 9999\n", "cpu 9999 is out of range; write a whole number from 0 to 8191"),
        ("policy = 1\n", "policy is a bare number, not a string; write it in quotes, such as pol"),
        ("policy = \"edv\"\n", "audio.toml:1:10: unknown policy \"edv\"; did you mean \"edf\"?"),
        (
            "period = \"1ms\"\nbudget = \"1us\"\npolicy = \"wfq\"\n",
            "audio.toml:3:10: a role cannot have the policy \"wfq\"",
        ),
        ("group = \"\"\n", "audio.toml:1:9: the name of a group is empty"),
        ("group = 1\n", "audio.toml:1:9: group is a bare number, not a string"),
        ("description = \"a\\nb\"\n", "the description has unprintable characters"),
        ("[role]\n", "unknown key \"role\""),
        ("period = 1ms\n", "not valid TOML"),
    ];
    for (text, want) in cases {
        let error = role(text).expect_err(text);
        assert!(error.contains(want), "{error}\nnot {want}");
    }
}

#[test]
fn the_first_folder_with_a_role_holds_even_if_its_file_is_wrong() {
    let files = [("audio.toml", SHORT), ("audio.toml", AUDIO), ("video.toml", AUDIO)];
    let (root, roles) = folders(files);
    assert_eq!(roles.find("audio").unwrap().period, 1_000_000);
    assert_eq!(roles.find("video").unwrap().period, 10_000_000);
    let found = roles.look_up("audio").unwrap();
    let path = |name: &str| root.path().join(name);
    assert_eq!(
        (found.file, found.replaced),
        (path("etc/audio.toml"), vec![path("lib/audio.toml")])
    );

    fs::write(path("etc/audio.toml"), "period = \"1\"").unwrap();
    // What editors leave, and other files.
    fs::write(path("lib/.#audio.toml"), "").unwrap();
    fs::write(path("lib/README"), "").unwrap();
    let error = roles.find("audio").unwrap_err().to_string();
    assert!(error.contains("etc/audio.toml:1:10: period"), "{error}");
    let listed = roles.list().unwrap();
    let names: Vec<(&str, bool)> =
        listed.iter().map(|role| (&role.name[..], role.role.is_ok())).collect();
    assert_eq!(names, [("audio", false), ("video", true)]);
}

#[test]
fn an_unknown_role_is_refused_with_the_nearest_and_the_folders() {
    let (root, roles) = folders([("audio.toml", SHORT), ("audio.toml", AUDIO), ("b.toml", SHORT)]);
    let error = roles.find("audoi").unwrap_err();
    assert_eq!(error.help, "did you mean \"audio\"? punctual role list has all");
    for folder in ["missing", "etc", "lib"] {
        let folder = root.path().join(folder).display().to_string();
        assert!(error.cause.contains(&folder), "{error}");
    }
    assert_eq!(roles.find("robot").unwrap_err().help, "use one of audio, b");
    let none = RoleFolders::new([root.path().join("missing")]).find("audio").unwrap_err();
    assert!(none.help.contains("write NAME.toml into one of these folders"), "{none}");
    for name in ["", "../etc/audio", "/etc/audio", ".audio", "a\nb", &"n".repeat(65)] {
        let error = roles.find(name).unwrap_err();
        assert!(!error.cause.contains("there is no role"), "{name:?}: {error}");
    }
}

#[test]
fn a_task_has_of_its_role_what_it_has_not_itself() {
    let files = [("audio.toml", AUDIO), ("a.toml", SHORT), ("bad.toml", "period = 1")];
    let (root, roles) = folders(files);
    let options = Overrides { roles, ..Overrides::default() };
    let load = |task: &str| {
        let text = format!(
            "cpu = 0\npolicy = \"edf\"\n[[task]]\nname = \"t\"\n{task}work = {{ spin = \"1us\" }}\n"
        );
        let read = Loaded::parse(&text, "set.toml", &options);
        read.map(|loaded| loaded.set).map_err(|error| error.to_string())
    };
    let task = |text: &str| {
        let set = load(text).unwrap();
        let task = &set.tasks[0];
        (task.period, task.budget, task.deadline, task.overrun)
    };
    assert_eq!(task("role = \"audio\"\n"), (10_000_000, 2_000_000, 5_000_000, Overrun::Skip));
    assert_eq!(
        task("role = \"audio\"\nbudget = \"1ms\"\noverrun = \"carry\"\ndeadline = \"8ms\"\n"),
        (10_000_000, 1_000_000, 8_000_000, Overrun::Carry)
    );
    // The role's alone, all of them: then it is known which.
    let role = |text: &str| load(text).unwrap().tasks.remove(0).role;
    assert_eq!(role("role = \"audio\"\noffset = \"1ms\"\n").as_deref(), Some("audio"));
    for own in ["period = \"10ms\"", "budget = \"2ms\"", "deadline = \"5ms\"", "overrun = \"skip\""]
    {
        assert_eq!(role(&format!("role = \"audio\"\n{own}\n")), None, "{own}");
    }
    let bad = root.path().join("lib/bad.toml").display().to_string();
    let wrong_file = format!("set.toml:5:8: task \"t\": {bad}:1:10: period is a bare number");
    let cases = [
        ("role = \"audoi\"\n", "set.toml:5:8: task \"t\": there is no role \"audoi\""),
        ("role = \"bad\"\n", &wrong_file),
        ("role = \"\"\n", "set.toml:5:8: task \"t\": the name of a role is empty"),
        ("role = 1\n", "set.toml:5:8: task \"t\": role is a bare number, not a string"),
        (
            "budget = \"11ms\"\nrole = \"audio\"\n",
            "set.toml:5:10: task \"t\": budget 11 ms is more than its period 10 ms",
        ),
        (
            "role = \"audio\"\nperiod = \"4ms\"\n",
            "set.toml:5:8: task \"t\": deadline 5 ms is more than its period 4 ms",
        ),
    ];
    for (text, want) in cases {
        let error = load(text).expect_err(text);
        assert!(error.contains(want), "{error}\nnot {want}");
    }
}

#[test]
fn the_roles_of_the_repository_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../roles.d");
    let roles = RoleFolders::new([folder]).list().unwrap();
    assert!(!roles.is_empty());
    for found in roles {
        let role = found.role.unwrap_or_else(|error| panic!("{error}"));
        assert!(!role.description.is_empty(), "{}", role.name);
    }
}
