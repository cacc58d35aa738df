//! `punctual lock`: locks between programs that were started separately.

use std::process::{Command, Output, Stdio};

use punctual_ipc::{
    Lifetime, Name, Namespace, SharedBarrier, SharedCondvar, SharedMutex, SharedSemaphore,
};
use serde_json::Value;

/// Locks that nothing else uses.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").expect("there is shared memory"))
    }

    fn namespace(&self) -> Namespace {
        Namespace::at(&self.0.path().join("objects")).expect("it can be made")
    }

    fn lock(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.arg("lock").args(args).env("PUNCTUAL_SHM_DIR", self.0.path().join("objects"));
        command.stdin(Stdio::null()).output().expect("it starts")
    }

    /// What it prints; it does well.
    fn done(&self, args: &[&str]) -> String {
        let output = self.lock(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    }

    /// The locks of a result, which is as its schema says.
    fn locks(&self, args: &[&str]) -> Vec<Value> {
        let document: Value = serde_json::from_str(&self.done(args)).expect("it is JSON");
        let schema = serde_json::from_str(include_str!("../../../docs/lock.schema.json"));
        let schema = jsonschema::validator_for(&schema.expect("JSON")).expect("a schema");
        let errors: Vec<String> = schema.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} in {document:#}");
        document["result"]["locks"].as_array().expect("a list").clone()
    }
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

#[test]
fn the_list_shows_who_holds_what_and_is_as_its_schema_says() {
    let folder = Folder::new();
    let namespace = folder.namespace();
    assert_eq!(folder.done(&["list"]), "No locks of this user.\n");
    let mutex = SharedMutex::create(&namespace, &name("bus"), Lifetime::Used).unwrap();
    let _condvar = SharedCondvar::create(&namespace, &name("filled"), Lifetime::Used).unwrap();
    drop(SharedSemaphore::create(&namespace, &name("slots"), 2, 5, Lifetime::Persistent).unwrap());
    let _barrier = SharedBarrier::create(&namespace, &name("start"), 3, Lifetime::Used).unwrap();
    let guard = mutex.lock().unwrap().into_guard();
    let locks = folder.locks(&["list", "--json"]);
    let of = |key: &str| locks.iter().map(|lock| lock[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("name"), ["bus", "filled", "slots", "start"]);
    assert_eq!(of("kind"), ["mutex", "condition_variable", "semaphore", "barrier"]);
    assert_eq!(of("in_use"), [true, true, false, true]);
    assert_eq!(of("persistent"), [false, false, true, false]);
    assert_eq!(of("waiters"), [0, 0, 0, 0]);
    assert_eq!(locks[0]["owner"]["process"], std::process::id());
    assert_eq!(locks[0]["owner"]["thread"], punctual_sys::sched::thread_id());
    assert_eq!(locks[0]["owner"]["alive"], true);
    assert_eq!((&locks[2]["units"], &locks[2]["maximum"]), (&2.into(), &5.into()));
    assert_eq!((&locks[3]["came"], &locks[3]["parties"]), (&0.into(), &3.into()));
    let text = folder.done(&["list"]);
    assert!(text.starts_with("4 locks of this user.\n\n"), "{text}");
    assert!(text.contains(&format!("held by process {}", std::process::id())), "{text}");
    assert!(text.contains("2 of 5 units") && text.contains("0 of 3 have come"), "{text}");
    drop(guard);
    assert_eq!(folder.locks(&["list", "--json"])[0]["owner"], Value::Null);
    assert!(folder.done(&["list"]).contains("free"));
}

#[test]
fn locks_are_removed_by_name_whatever_they_are_and_damaged_ones_too() {
    let folder = Folder::new();
    let namespace = folder.namespace();
    let _open = SharedMutex::create(&namespace, &name("bus"), Lifetime::Used).unwrap();
    drop(SharedBarrier::create(&namespace, &name("start"), 3, Lifetime::Persistent).unwrap());
    drop(SharedBarrier::create(&namespace, &name("damaged"), 3, Lifetime::Persistent).unwrap());
    std::fs::write(namespace.path().join("lock/damaged/memory"), b"").unwrap();
    let text = folder.done(&["list"]);
    assert!(text.starts_with("2 locks of this user, and 1 that cannot be opened.\n"), "{text}");
    assert!(text.contains("the lock damaged is damaged"), "{text}");
    assert_eq!(
        folder.done(&["remove", "bus", "damaged"]),
        "Removed: bus, damaged. Programs that have bus open keep it.\n"
    );
    let removed = folder.locks(&["remove", "start", "--json"]);
    assert_eq!(removed[0]["kind"], "barrier");
    assert_eq!(folder.done(&["list"]), "No locks of this user.\n");
    let output = folder.lock(&["remove", "bus"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("there is no lock bus"), "{error}");
}
