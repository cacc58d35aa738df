use super::*;

const SET: &str = r#"
cpu = 0
policy = "edf"
[[group]]
name = "media"
policy = "edf"
period = "10ms"
budget = "4ms"
server = "deferrable"
[[task]]
name = "control"
period = "5ms"
budget = "1ms"
work = { spin = "1ms" }
[[task]]
name = "video"
period = "40ms"
budget = "4ms"
group = "media"
work = { spin = "4ms" }
"#;

fn set(text: &str) -> TaskSet {
    TaskSet::parse(text, "set.toml").expect("it is in order")
}

/// The running set with what `replaced` makes of its file.
fn changed(before: &str, after: &str) -> Result<Option<ChangedPolicies>, Diagnostic> {
    assert!(SET.contains(before), "{before}");
    let (file, read) = (set(SET), set(&SET.replacen(before, after, 1)));
    with_policies(&file, &file, &read, HostKind::Sim, false)
}

#[test]
fn policies_of_the_top_and_of_groups_are_changed_and_the_budgets_of_the_run_stay() {
    let file = set(SET);
    let text = SET.replace("\"edf\"", "\"rm\"").replace("cpu = 0\n", "# a comment\n\ncpu = 0\n");
    let mut running = file.clone();
    running.tasks[0].budget = 2_000_000;
    let to = with_policies(&running, &file, &set(&text), HostKind::Sim, false);
    let to = to.expect("it fits").expect("it differs").set;
    assert_eq!(to.tasks[0].budget, 2_000_000);
    let all: Vec<String> = changes(&file, &to, 7).iter().map(PolicyChange::to_string).collect();
    assert_eq!(all, ["policy edf -> rm", "group \"media\" edf -> rm"]);
}

#[test]
fn without_another_policy_nothing_is_to_be_done() {
    assert!(changed("cpu = 0", "# a comment moves all lines\ncpu = 0").expect("same").is_none());
}

#[test]
fn of_shares_the_weight_or_the_quantum_that_differs_is_named() {
    let shares = |policy: &str, weights: [u32; 2]| {
        let task = |n: usize, weight| {
            format!(
                "[[task]]\nname = \"t{n}\"\nweight = {weight}\nwork = {{ spin = \"forever\" }}\n"
            )
        };
        set(&format!("cpu = 0\npolicy = {policy}\n{}{}", task(0, weights[0]), task(1, weights[1])))
    };
    let file = shares("\"wfq\"", [1, 3]);
    let read = |read: &TaskSet| with_policies(&file, &file, read, HostKind::Sim, false);
    let refused = |to: &TaskSet| read(to).expect_err("it differs").cause;
    // The periods of both tasks follow from both weights.
    assert!(refused(&shares("\"wfq\"", [1, 5])).starts_with("task \"t1\", line 7: its weight"));
    let quantum = shares("{ name = \"sfq\", quantum = \"5ms\" }", [1, 3]);
    assert!(refused(&quantum).starts_with("the policy: its quantum"), "{}", refused(&quantum));
    let changed = read(&shares("\"sfq\"", [1, 3])).expect("it fits").expect("it differs");
    assert_eq!(changed.set.policy.name, "sfq");
}

#[test]
fn another_order_of_an_objective_is_another_policy() {
    let order = |order| format!("policy = {{ name = \"objective\", order = \"{order}\" }}");
    let top = |order_of| set(&SET.replacen("policy = \"edf\"", &order(order_of), 1));
    let (from, to) = (top("period"), top("deadline"));
    let all = changes(&from, &to, 0);
    assert_eq!(all[0].to_string(), "policy objective (period) -> objective (deadline)");
    assert!(with_policies(&from, &from, &to, HostKind::Sim, false).expect("it fits").is_some());
}

#[test]
fn anything_else_is_refused_with_its_place() {
    for (before, after, place, what) in [
        ("budget = \"1ms\"", "budget = \"2ms\"", "task \"control\", line 10", "its budget"),
        ("spin = \"4ms\"", "spin = \"3ms\"", "task \"video\", line 15", "its work"),
        ("group = \"media\"", "", "task \"video\", line 15", "its group"),
        ("period = \"40ms\"", "period = \"40ms\"\njitter = \"1ms\"", "\"video\"", "description"),
        ("name = \"video\"", "name = \"audio\"", "the set", "tasks and groups"),
        ("cpu = 0", "cpu = 1", "the set", "its CPUs"),
        ("cpu = 0", "cpu = 0\nduration = \"9s\"", "the set", "its duration"),
        ("budget = \"4ms\"\nserver", "budget = \"3ms\"\nserver", "group \"media\"", "its server"),
    ] {
        let error = changed(before, after).expect_err(after);
        assert!(error.cause.contains(place) && error.cause.contains(what), "{after}: {error}");
        assert!(error.help.contains("start the set again"), "{error}");
    }
}

#[test]
fn a_default_server_that_follows_the_policy_above_is_refused_with_what_helps() {
    let text = SET.replace("server = \"deferrable\"\n", "");
    let read = text.replacen("policy = \"edf\"", "policy = \"rm\"", 1);
    let (file, read) = (set(&text), set(&read));
    let error = with_policies(&file, &file, &read, HostKind::Sim, false).expect_err("a server");
    assert!(error.help.contains("write it with the value"), "{error}");
}

#[test]
fn a_set_that_does_not_fit_the_new_policy_is_not_admitted_unless_it_is_insisted_on() {
    let task = |name: &str, period: &str, budget: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period}\"\nbudget = \"{budget}\"\n\
             work = {{ spin = \"forever\" }}\n"
        )
    };
    let of = |policy: &str| {
        let tasks = task("a", "4ms", "2ms") + &task("b", "6ms", "3ms");
        set(&format!("cpu = 0\npolicy = \"{policy}\"\n{tasks}"))
    };
    let (file, read) = (of("edf"), of("rm"));
    let error = with_policies(&file, &file, &read, HostKind::Sim, false).expect_err("100 %");
    assert_eq!(error.exit_code(), 3, "{error}");
    let to = with_policies(&file, &file, &read, HostKind::Sim, true).expect("insisted on");
    assert!(to.expect("it differs").overload);
}
