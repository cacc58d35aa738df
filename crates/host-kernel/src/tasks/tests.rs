//! The processes of tasks: started, released and ended.

use super::*;
use punctual_diagnostic::Kind;
use punctual_taskset::{Body, TaskSet};

fn set(body: Body) -> TaskSet {
    TaskSet::single(10_000_000, 1_000_000, body).build().expect("it is in order")
}

fn until_ended(tasks: &mut Tasks) -> TaskEnd {
    let limit = Instant::now() + Duration::from_secs(20);
    while tasks.ended(0).is_none() {
        assert!(Instant::now() < limit, "it does not end");
        assert_eq!(tasks.look(), None, "its guardian lives");
        std::thread::sleep(Duration::from_millis(2));
    }
    tasks.ended(0).expect("it has ended")
}

#[test]
fn a_command_executes_nothing_before_its_release() {
    let name = std::env::temp_dir().join(format!("punctual-barrier-{}", std::process::id()));
    drop(std::fs::remove_file(&name));
    let argv = ["/bin/sh", "-c", "echo > \"$0\"; exit 3", name.to_str().expect("plain")]
        .map(str::to_owned);
    let mut tasks = Tasks::start(&set(Body::Command(argv.to_vec())), &[], false, Output::Nowhere)
        .expect("a shell");
    std::thread::sleep(Duration::from_millis(50));
    tasks.look();
    assert!(tasks.ended(0).is_none() && !name.exists());
    tasks.open();
    assert_eq!(until_ended(&mut tasks), TaskEnd::Exited(3));
    assert!(name.exists());
    drop(std::fs::remove_file(&name));
}

#[test]
fn a_command_that_cannot_be_executed_is_an_error_of_the_start() {
    let missing = set(Body::Command(vec!["/no/such/program".to_owned()]));
    let e = Tasks::start(&missing, &[], false, Output::Nowhere).err().expect("it is not there");
    assert!(e.cause.contains("there is no program /no/such/program") && e.exit_code() == 2, "{e}");
    assert_eq!((e.kind, e.errno), (Kind::Command, Some(libc::ENOENT)));
    let folder = set(Body::Command(vec!["/tmp".to_owned()]));
    let e = Tasks::start(&folder, &[], false, Output::Nowhere).err().expect("it is no program");
    assert_eq!((e.kind, e.errno), (Kind::Command, Some(libc::EACCES)));
    let name = std::env::temp_dir().join(format!("punctual-broken-{}", std::process::id()));
    std::fs::write(&name, "#!/no/such/interpreter\n").expect("room");
    let allow = std::process::Command::new("chmod").arg("+x").arg(&name).status();
    assert!(allow.is_ok_and(|s| s.success()));
    let broken = set(Body::Command(vec![name.to_str().expect("plain").to_owned()]));
    let failure =
        Tasks::start(&broken, &[], false, Output::Nowhere).err().expect("it cannot be executed");
    assert!(failure.cause.contains("cannot start") && failure.exit_code() == 2, "{failure}");
    assert_eq!((failure.kind, failure.errno), (Kind::Command, Some(libc::ENOENT)));
    drop(std::fs::remove_file(&name));
}

#[test]
fn the_end_of_a_run_ends_what_its_commands_have_started() {
    let name = std::env::temp_dir().join(format!("punctual-family-{}", std::process::id()));
    drop(std::fs::remove_file(&name));
    let script = "setsid sleep 1000 & echo $! > \"$0\"; wait";
    let argv = ["/bin/sh", "-c", script, name.to_str().expect("plain")].map(str::to_owned);
    let tasks = Tasks::start(&set(Body::Command(argv.to_vec())), &[], false, Output::Nowhere)
        .expect("a shell");
    tasks.open();
    let limit = Instant::now() + Duration::from_secs(20);
    let child: i32 = loop {
        assert!(Instant::now() < limit, "the shell starts no child");
        match std::fs::read_to_string(&name).unwrap_or_default().trim().parse() {
            Ok(pid) => break pid,
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    drop(tasks);
    let alive = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ") && !stat.contains(") X ")
    };
    let limit = Instant::now() + Duration::from_secs(20);
    while alive() {
        assert!(Instant::now() < limit, "process {child} has not ended");
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(std::fs::remove_file(&name));
}

#[test]
fn synthetic_tasks_end_with_the_run() {
    let spin = Body::Spin(punctual_taskset::Spin::Forever);
    let tasks = Tasks::start(&set(spin), &[], false, Output::Nowhere).expect("a process");
    let pid = tasks.all[&0].pid;
    tasks.open();
    drop(tasks);
    // SAFETY: signal 0 only asks.
    assert_ne!(unsafe { libc::kill(pid, 0) }, 0, "process {pid} is still there");
}
