//! From a task set to the text of a file.

use crate::format::{
    self, Arrival, Bin, Distribution, Forever, Name, Policy, PolicyName, PolicyTable, Random,
    Recorded, Seed,
};
use crate::value::{At, Table, Time, Whole, Word};
use crate::{
    Body, BudgetGroupSpec, DomainId, GroupSpec, PolicySpec, ServerSpec, Spin, Step, TaskSet,
};
use crate::{TaskSpec, Window};

impl TaskSet {
    /// The text of a TOML file that reads as this set: equal but for the lines, which are those of
    /// the new text. Recorded execution times stand in it, so that it needs no other file.
    ///
    /// That holds of every set that was read, unless its recordings make the text larger than
    /// [`LARGEST_FILE`](crate::LARGEST_FILE). A set made by a program may have what no file can: a
    /// period below 100 us, a seed of 2^63 or more, several domains of several CPUs.
    #[must_use]
    pub fn to_toml(&self) -> String {
        // Every form of the format is one of TOML's.
        toml::to_string(&self.format()).unwrap_or_default()
    }

    fn format(&self) -> format::Set {
        let groups: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
        let nodes: Vec<&str> = self.budget_groups.iter().map(|node| node.name.as_str()).collect();
        let cpus = self.cpus();
        let several = cpus.len() != 1;
        let domain = if self.domains.len() == 1 { "global" } else { "partitioned" };
        format::Set {
            cpu: cpus.first().filter(|_| !several).map(|&cpu| number(cpu)),
            cpus: several.then(|| cpus.into_iter().map(number).collect::<Vec<_>>().into()),
            domain: several.then(|| domain.to_owned().into()),
            policy: Some(policy(&self.policy)),
            duration: self.duration.map(time),
            task: Some(tables(&self.tasks, |spec| {
                task(spec, self.cpu_key(spec.domain), &groups, &nodes)
            })),
            group: Some(tables(&self.groups, |spec| {
                group(spec, self.cpu_key(spec.domain), &groups, &nodes)
            }))
            .filter(|list| !list.is_empty()),
            budget_group: Some(tables(&self.budget_groups, |spec| {
                budget_group(spec, self.cpu_key(spec.domain), &nodes)
            }))
            .filter(|list| !list.is_empty()),
        }
    }

    /// The CPU by which a task or a group names its domain: none where several share it.
    fn cpu_key(&self, domain: DomainId) -> CpuKey {
        match self.domain(domain).cpus[..] {
            [cpu] => Some(number(cpu)),
            _ => None,
        }
    }
}

type CpuKey = Option<At<format::Cpu>>;

fn number<const LEAST: i64, const MOST: i64>(number: u32) -> At<Whole<LEAST, MOST>> {
    Whole(number.into()).into()
}

fn time<const ZERO: bool>(ns: u64) -> At<Time<ZERO>> {
    Time(ns).into()
}

/// A time that a file may leave out when it is 0.
fn unless_zero<const ZERO: bool>(ns: u64) -> Option<At<Time<ZERO>>> {
    Some(ns).filter(|&ns| ns > 0).map(time)
}

fn times<const ZERO: bool>(times: &[u64]) -> Vec<At<Time<ZERO>>> {
    times.iter().map(|&ns| time(ns)).collect()
}

fn seed(seed: u64) -> Option<At<Seed>> {
    Some(Whole(i64::try_from(seed).unwrap_or(i64::MAX)).into())
}

fn tables<T, F>(list: &[T], table: impl Fn(&T) -> F) -> format::Tables<F> {
    list.iter().map(|item| At::from(Table(table(item)))).collect::<Vec<_>>().into()
}

fn name(name: &str) -> Option<At<Name>> {
    Some(Name(name.to_owned()).into())
}

fn reference(index: Option<usize>, names: &[&str]) -> Option<At<String>> {
    index.and_then(|index| names.get(index)).map(|name| (*name).to_owned().into())
}

fn policy(policy: &PolicySpec) -> At<Policy> {
    if let Some(file) = &policy.plugin {
        let plugin = Some(file.to_string_lossy().into_owned().into());
        let (name, order, quantum, reclaim) = (None, None, None, None);
        return Policy::Table(PolicyTable { name, plugin, order, quantum, reclaim }).into();
    }
    let name = PolicyName(policy.name.clone());
    match (&policy.order, policy.quantum, policy.reclaim) {
        (None, None, false) => Policy::Name(name).into(),
        (order, quantum, reclaim) => {
            let order = order.as_ref().map(|order| order.text().to_owned().into());
            let quantum = quantum.map(time);
            let (name, plugin) = (Some(name.into()), None);
            let reclaim = reclaim.then(|| true.into());
            Policy::Table(PolicyTable { name, plugin, order, quantum, reclaim }).into()
        }
    }
}

fn windows(windows: &[Window]) -> Option<format::Tables<format::Window>> {
    let window = |window: &Window| format::Window {
        start: Some(time(window.start)),
        length: Some(time(window.length)),
    };
    Some(tables(windows, window)).filter(|list| !list.is_empty())
}

fn budget_group(spec: &BudgetGroupSpec, cpu: CpuKey, nodes: &[&str]) -> format::BudgetGroup {
    format::BudgetGroup {
        name: name(&spec.name),
        parent: reference(spec.parent, nodes),
        period: Some(time(spec.period)),
        budget: Some(time(spec.budget)),
        cpu,
    }
}

fn group(spec: &GroupSpec, cpu: CpuKey, groups: &[&str], nodes: &[&str]) -> format::Group {
    let mut group = format::Group {
        name: name(&spec.name),
        parent: reference(spec.parent, groups),
        policy: Some(policy(&spec.policy)),
        priority: Some(Whole(spec.priority).into()),
        budget_group: reference(spec.budget_group, nodes),
        cpu,
        ..format::Group::default()
    };
    match &spec.server {
        ServerSpec::Periodic { period, budget, deadline, offset, kind } => {
            group.period = Some(time(*period));
            group.budget = Some(time(*budget));
            group.deadline = Some(time(*deadline));
            group.offset = unless_zero(*offset);
            group.server = Some(Word(*kind).into());
        }
        ServerSpec::Windows { cycle, windows } => {
            group.cycle = Some(time(*cycle));
            group.windows = self::windows(windows);
        }
    }
    group
}

fn task(spec: &TaskSpec, cpu: CpuKey, groups: &[&str], nodes: &[&str]) -> format::Task {
    let mut task = format::Task {
        name: name(&spec.name),
        period: Some(time(spec.period)),
        budget: Some(time(spec.budget)),
        deadline: Some(time(spec.deadline)),
        offset: unless_zero(spec.offset),
        priority: Some(Whole(spec.priority).into()),
        arrival: arrival(&spec.arrival),
        cpu,
        overrun: Some(Word(spec.overrun).into()),
        group: reference(spec.group, groups),
        budget_group: reference(spec.budget_group, nodes),
        server: spec.server.map(|kind| Word(kind).into()),
        min_budget: spec.min_budget.map(time),
        windows: windows(&spec.windows),
        mandatory: spec.mandatory.map(time),
        promotion: spec.promotion.map(time),
        jitter: unless_zero(spec.jitter),
        blocking: unless_zero(spec.blocking),
        ..format::Task::default()
    };
    if let Some(weight) = spec.weight {
        // The rest follows from it.
        task = format::Task {
            weight: Some(Whole(weight.into()).into()),
            period: None,
            budget: None,
            deadline: None,
            overrun: None,
            ..task
        };
    }
    let work = match &spec.body {
        Body::Command(words) => {
            task.command = Some(words.iter().cloned().map(At::from).collect::<Vec<_>>().into());
            return task;
        }
        Body::Pid(pid) => {
            task.pid = Some(Whole((*pid).into()).into());
            return task;
        }
        Body::Spin(spin) => {
            format::Work { spin: Some(self::spin(spin).into()), ..format::Work::default() }
        }
        Body::Steps(steps) => {
            format::Work { steps: Some(tables(steps, step)), ..format::Work::default() }
        }
    };
    task.work = Some(Table(work).into());
    task
}

fn arrival(arrival: &crate::Arrival) -> Option<At<Arrival>> {
    use crate::Arrival::{Aperiodic, List, Periodic, Sporadic};
    let arrival = match arrival {
        Periodic => return None,
        Sporadic { longest, seed } => Arrival::Random(Random {
            sporadic: Some(time(*longest)),
            seed: self::seed(*seed),
            ..Random::default()
        }),
        Aperiodic { mean, seed } => Arrival::Random(Random {
            aperiodic: Some(time(*mean)),
            seed: self::seed(*seed),
            ..Random::default()
        }),
        List(list) => Arrival::List(times(list)),
    };
    Some(arrival.into())
}

fn step(step: &Step) -> format::Step {
    match step {
        Step::Spin(spin) => format::Step { spin: Some(self::spin(spin).into()), sleep: None },
        Step::Sleep(ns) => format::Step { spin: None, sleep: Some(time(*ns)) },
    }
}

fn spin(spin: &Spin) -> format::Spin {
    let mut drawn = Distribution::default();
    match spin {
        Spin::Forever => return format::Spin::Word(Forever::Forever),
        Spin::For(ns) => return format::Spin::For(Time(*ns)),
        Spin::Uniform { min, max, seed } => {
            drawn.uniform = Some(times(&[*min, *max]).into());
            drawn.seed = self::seed(*seed);
        }
        Spin::Histogram { bins, seed } => {
            let bin = |&(ns, weight): &(u64, u64)| {
                At::from(Bin(time(ns), Whole(i64::try_from(weight).unwrap_or(i64::MAX))))
            };
            drawn.histogram = Some(bins.iter().map(bin).collect::<Vec<_>>().into());
            drawn.seed = self::seed(*seed);
        }
        Spin::Recorded(list) => drawn.recorded = Some(Recorded::Times(times(list)).into()),
    }
    format::Spin::Drawn(drawn)
}
