//! Tests that policies of a program bring.

use punctual_analysis::{analyse, Analysis, Fit, Test};
use punctual_taskset::registry::register;
use punctual_taskset::{AdmissionTest, GroupDemand, PolicyInfo, ReleaseAttributes, TaskSet};

static RANKED: PolicyInfo = PolicyInfo {
    name: "ranked",
    admission: AdmissionTest::ByPriority(&|of: &ReleaseAttributes| -(of.deadline as i64)),
    ..PolicyInfo::POLICY
};
static DEADLINES: PolicyInfo =
    PolicyInfo { name: "deadlines", admission: AdmissionTest::ByDeadline, ..PolicyInfo::POLICY };
/// Selects in any order, but executes whenever it can.
static ANY: PolicyInfo =
    PolicyInfo { name: "any", admission: AdmissionTest::Own(in_any_order), ..PolicyInfo::POLICY };
static UNTESTED: PolicyInfo = PolicyInfo { name: "untested", ..PolicyInfo::POLICY };

/// Once each member has one release, as those of a set whose deadlines are at most its least period
/// do: all budgets may come first.
fn in_any_order(group: &GroupDemand<'_>) -> Vec<Option<u64>> {
    let all = group.members.iter().map(|m| m.budget).sum();
    let least = group.members.iter().filter_map(|m| m.period).min();
    let response = group.time_for(all).filter(|&time| Some(time) <= least);
    vec![response; group.members.len()]
}

/// All tests of this file may run at one time.
fn registered() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| register(&[&RANKED, &DEADLINES, &ANY, &UNTESTED]).expect("new names"));
}

fn analysed(policy: &str, tasks: &[(u64, u64, u64)]) -> Analysis {
    registered();
    let tasks = tasks.iter().enumerate().map(|(n, (period, deadline, budget))| {
        format!(
            "[[task]]\nname = \"t{n}\"\nperiod = \"{period}ms\"\ndeadline = \"{deadline}ms\"\n\
             budget = \"{budget}ms\"\nwork = {{ spin = \"forever\" }}\n"
        )
    });
    let text = format!("cpu = 0\npolicy = {policy:?}\n{}", tasks.collect::<String>());
    analyse(&TaskSet::parse(&text, "set.toml").expect("it is right"))
}

fn fits(analysis: &Analysis) -> Vec<(Fit, Test, Option<u64>)> {
    let tasks = analysis.domains[0].tasks.iter();
    tasks.map(|t| (t.fit, t.test, t.response)).collect()
}

const SETS: [&[(u64, u64, u64)]; 3] = [
    &[(10, 10, 3), (20, 8, 4), (40, 40, 6)],
    &[(10, 10, 4), (20, 8, 5), (40, 38, 8)],
    &[(10, 4, 4), (20, 5, 5), (40, 38, 8)],
];

#[test]
fn by_priority_as_those_priorities() {
    for set in SETS {
        assert_eq!(fits(&analysed("ranked", set)), fits(&analysed("dm", set)), "{set:?}");
    }
}

#[test]
fn by_deadline_as_edf() {
    let admitted = |policy, set| fits(&analysed(policy, set)).into_iter().map(|t| (t.0, t.1));
    for set in SETS {
        assert!(admitted("deadlines", set).eq(admitted("edf", set)), "{set:?}");
    }
}

#[test]
fn by_a_test_of_its_own_on_what_a_group_is_sure_to_execute() {
    const MS: u64 = 1_000_000;
    let any = |tasks: &[_]| fits(&analysed("any", tasks));
    let expected = |fit, ms: u64| (fit, Test::Own, Some(ms * MS));
    assert_eq!(any(&[(10, 6, 2), (12, 8, 4)]), [6, 6].map(|ms| expected(Fit::Fits, ms)));
    // The test bounds the response, and one deadline is before that.
    let late = [expected(Fit::Late, 6), expected(Fit::Fits, 6)];
    assert_eq!(any(&[(10, 5, 2), (12, 8, 4)]), late);
    assert_eq!(any(&[(5, 5, 2), (12, 8, 4)]), [(Fit::Late, Test::Own, None); 2]);

    registered();
    // In a group: the longest time without any budget, then one budget.
    let text = "cpu = 0\npolicy = \"edf\"\n[[group]]\nname = \"g\"\npolicy = \"any\"\n\
                server = \"polling\"\nperiod = \"10ms\"\nbudget = \"4ms\"\n[[task]]\nname = \"t\"\n\
                group = \"g\"\nperiod = \"40ms\"\nbudget = \"4ms\"\nwork = { spin = \"4ms\" }\n";
    let set = TaskSet::parse(text, "set.toml").expect("it is right");
    let domain = &analyse(&set).domains[0];
    let blackout = domain.groups[0].blackout.expect("it is served");
    assert_eq!(domain.tasks[0].response, Some(blackout + 4 * MS));
    assert_eq!((domain.tasks[0].fit, domain.tasks[0].test), (Fit::Fits, Test::Own));
}

#[test]
fn without_a_test_nothing_fits() {
    assert_eq!(fits(&analysed("untested", SETS[0])), [(Fit::Late, Test::None, None); 3]);
}
