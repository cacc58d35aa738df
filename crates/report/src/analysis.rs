//! An analysis as text: a table for each CPU, the reasons, and what would help.

use std::collections::HashMap;

use punctual_analysis::{
    Advice, Analysis, Capacity, Change, ChangeTarget, DomainAnalysis, Fit, GroupAnalysis, Help,
    TaskAnalysis, Test,
};
use punctual_taskset::fmt_ns;

/// Rows of a table at most. Of more tasks, those that do not simply fit are shown, and how many
/// there are.
const MOST_ROWS: usize = 200;

/// Tasks that are listed for the same reason.
const MOST_ALIKE: usize = 3;

/// The verdict in one sentence.
#[must_use]
pub fn summary(analysis: &Analysis) -> String {
    let cpus = analysis.domains.iter().map(|d| format!("{} {}", d.load.name(), d.load.utilization));
    let cpus = cpus.collect::<Vec<_>>().join(", ");
    let tasks = || analysis.domains.iter().flat_map(|cpu| &cpu.tasks);
    if !analysis.fits() {
        let host = host(analysis);
        let late = tasks().filter(|t| !t.fit.admitted()).count();
        let unserved = analysis
            .domains
            .iter()
            .flat_map(|cpu| &cpu.groups)
            .filter(|g| !g.fit.admitted())
            .count();
        return match (late, unserved) {
            (0, 0) => {
                let over = analysis.domains.iter().find_map(|cpu| Some((cpu, cpu.excess?)));
                let limit = over.map_or(String::new(), |(cpu, _)| {
                    let Capacity { limit, total, .. } = cpu.capacity;
                    format!(
                        ", more than {}",
                        if cpu.load.utilization > limit { limit } else { total }
                    )
                });
                format!("It does not fit: {cpus} promised{host}{limit}.")
            }
            (0, 1) => format!(
                "It does not fit: 1 group is not sure to get its budget; {cpus} promised{host}."
            ),
            (0, n) => format!(
                "It does not fit: {n} groups are not sure to get their budgets; {cpus} \
                 promised{host}."
            ),
            (1, _) => format!(
                "It does not fit: 1 task is not sure to meet its deadline; {cpus} promised{host}."
            ),
            (n, _) => {
                format!(
                    "It does not fit: {n} tasks are not sure to meet their deadlines; {cpus} \
                     promised{host}."
                )
            }
        };
    }
    let tightest =
        tasks().filter_map(|t| Some((t.slack?, t))).filter(|(_, t)| t.reached).min_by_key(|s| s.0);
    let tightest = tightest.map_or(String::new(), |(slack, t)| {
        format!(
            "; the tightest, {:?}, is done {} before its deadline at the latest",
            t.name,
            fmt_ns(slack)
        )
    });
    format!("It fits: {cpus} promised{}{tightest}.", host(analysis))
}

/// The most that the host takes of a CPU.
fn host(analysis: &Analysis) -> String {
    let most = analysis.domains.iter().map(|cpu| cpu.host).max().filter(|host| host.0 > 0);
    most.map_or(String::new(), |host| format!(" and up to {host} taken by the host"))
}

/// The whole analysis. `advice`: for CPUs that do not fit.
#[must_use]
pub fn report(analysis: &Analysis, advice: &[Advice]) -> String {
    let mut text = String::new();
    for domain in &analysis.domains {
        let advice = advice.iter().find(|a| a.domain == domain.load.domain);
        text.push_str(&report_domain(domain, advice));
    }
    text
}

fn report_domain(domain: &DomainAnalysis, advice: Option<&Advice>) -> String {
    let verdict = if domain.fits() { "fits" } else { "DOES NOT FIT" };
    let load = &domain.load;
    let promised = match domain.excess {
        None if domain.host.0 > 0 => {
            format!("{} promised, up to {} taken by the host", load.utilization, domain.host)
        }
        None => format!("{} promised", load.utilization),
        Some(excess) if load.utilization > domain.capacity.limit => {
            let limit = domain.capacity.limit;
            format!(
                "{} promised, {excess} more than the {limit} that can be promised",
                load.utilization
            )
        }
        Some(excess) => format!(
            "{} promised and up to {} taken by the host, {excess} more than {}",
            load.utilization, domain.host, domain.capacity.total
        ),
    };
    let mut text = format!("{}: {verdict}; {promised}\n\n", load.name());
    let mut rows = vec![["task", "fits", "response", "deadline", "slack", "test", "change"]
        .map(str::to_owned)
        .to_vec()];
    let own = |t: &TaskAnalysis| {
        advice.and_then(|a| {
            a.own.iter().find(|c| c.target == ChangeTarget::Task && c.index == t.task)
        })
    };
    let many = domain.tasks.len() > MOST_ROWS;
    let shown = domain.tasks.iter().filter(|t| !many || t.fit != Fit::Fits).take(MOST_ROWS);
    rows.extend(shown.map(|t| task_row(t, own(t))));
    if !domain.groups.is_empty() {
        rows.push(Vec::new());
        rows.push(
            ["group", "fits", "received", "deadline", "blackout", "test", ""]
                .map(str::to_owned)
                .to_vec(),
        );
        rows.extend(domain.groups.iter().take(MOST_ROWS).map(group_row));
    }
    if !domain.budget_groups.is_empty() {
        rows.push(Vec::new());
        rows.push(
            ["budget group", "exhausted", "demand", "budget", "period", "", ""]
                .map(str::to_owned)
                .to_vec(),
        );
        rows.extend(domain.budget_groups.iter().take(MOST_ROWS).map(|b| {
            let exhaustible = if b.exhaustible { "may" } else { "never" };
            let times = [b.demand, b.budget, b.period].map(fmt_ns);
            [b.name.as_str(), exhaustible, &times[0], &times[1], &times[2]]
                .map(str::to_owned)
                .to_vec()
        }));
    }
    text.push_str(&columns(&rows));
    if many {
        text.push_str(&format!(
            "({} tasks; only those that do not simply fit are shown)\n",
            domain.tasks.len()
        ));
    }
    text.push('\n');
    let notes = notes(domain);
    for line in &notes {
        text.push_str(&format!("{line}\n"));
    }
    if let Some(advice) = advice {
        let change = match &advice.help {
            Help::Change(_) if advice.complete => "smallest change that makes it fit",
            Help::Change(_) => {
                "a change that makes it fit (the search for a smaller one was ended)"
            }
            _ => "to make it fit",
        };
        text.push_str(&format!("{change}: {}\n", advice.help));
        if let Some(help) = domain.cap.and_then(|cap| cap.help()) {
            text.push_str(&format!("{help}\n"));
        }
    }
    if advice.is_some() || !notes.is_empty() {
        text.push('\n');
    }
    text
}

fn word(fit: Fit) -> &'static str {
    match fit {
        Fit::Fits => "yes",
        Fit::Late => "NO",
        Fit::BestEffort => "no promise",
        Fit::NotComputed => "NOT KNOWN",
    }
}

fn time(ns: Option<u64>) -> String {
    ns.map_or("-".to_owned(), fmt_ns)
}

fn task_row(t: &TaskAnalysis, own: Option<&Change>) -> Vec<String> {
    let response = match t.response {
        Some(r) if t.reached => fmt_ns(r),
        Some(r) => format!("<= {}", fmt_ns(r)),
        None => "-".to_owned(),
    };
    let test = match t.test {
        Test::None => "-".to_owned(),
        test => format!("{}, {}", test.name(), if t.exact { "exact" } else { "sufficient" }),
    };
    let change = own.map_or(String::new(), |c| {
        format!(
            "{} {} to {}",
            if c.to < c.from { "lower" } else { "raise" },
            c.quantity.name(),
            fmt_ns(c.to)
        )
    });
    vec![
        t.name.clone(),
        word(t.fit).to_owned(),
        response,
        fmt_ns(t.deadline),
        time(t.slack),
        test,
        change,
    ]
}

fn group_row(g: &GroupAnalysis) -> Vec<String> {
    let received = g.response.map_or("-".to_owned(), |r| format!("<= {}", fmt_ns(r)));
    let test = match g.test {
        Test::None => "-".to_owned(),
        test => format!("{}, {}", test.name(), if g.exact { "exact" } else { "sufficient" }),
    };
    vec![
        g.name.clone(),
        word(g.fit).to_owned(),
        received,
        fmt_ns(g.deadline),
        time(g.blackout),
        test,
    ]
}

/// The reasons for all tasks and groups that do not simply fit.
fn notes(domain: &DomainAnalysis) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    notes.extend(domain.groups.iter().filter(|g| g.fit != Fit::Fits).map(GroupAnalysis::cause));
    let mut listed: HashMap<&str, usize> = HashMap::new();
    for task in domain.tasks.iter().filter(|t| t.fit != Fit::Fits) {
        let times = task.why.as_deref().map_or(0, |why| {
            let times = listed.entry(why).or_default();
            *times += 1;
            *times
        });
        if times <= MOST_ALIKE {
            notes.push(task.cause());
        }
    }
    let alike: usize = listed.values().map(|times| times.saturating_sub(MOST_ALIKE)).sum();
    let more = notes.len().saturating_sub(12);
    notes.truncate(12);
    if more > 0 {
        notes.push(format!("and {more} more"));
    }
    if alike > 0 {
        notes.push(format!("and {alike} more tasks, for the reasons above"));
    }
    notes.extend(domain.cap.and_then(|cap| cap.note()));
    if domain.tasks.iter().any(|t| t.test != Test::None && !t.exact && t.fit == Fit::Late) {
        notes.push(
            "A sufficient test refuses some that would always be in time; docs/check.md lists \
             which."
                .to_owned(),
        );
    }
    notes
}

/// Left-justified columns, two spaces apart.
fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |n: usize| {
        rows.iter().filter_map(|r| r.get(n)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let pad = width - cell.chars().count() + 2;
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', pad));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
