//! `punctual serve`: punctuald.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use punctual_analysis::Ppm;
use punctual_daemon::{serve, HostKind, ServeOptions, ServiceEnd, CONFIG};
use punctual_diagnostic::Diagnostic;
use punctual_realtime_kit as realtime_kit;
use punctual_service::{socket, ServiceClient, StatusReply};
use punctual_sys::sched;
use punctual_taskset::fmt_ns;
use serde::Serialize;

use crate::output::{print_message, Outcome};

#[derive(Args)]
#[command(after_help = "Programs reserve CPU time by it, without privileges of their own:
  punctual run --host service --period 20ms --budget 5ms -- COMMAND
or by its Varlink interface: varlinkctl introspect /run/punctuald/io.punctual.Service. Root may \
reserve everything, other users what the configuration or polkit allows them (docs/service.md). \
With the section [realtime_kit] it takes the place of RealtimeKit on D-Bus, for PipeWire and \
others (docs/realtime-kit.md).

Exit codes: 0 done; 2 bad usage or a bad configuration; 4 the machine does not permit it, or \
another service runs.")]
pub struct Serve {
    /// Where it listens, if systemd does not pass a socket [default: $PUNCTUAL_SOCKET, else
    /// /run/punctuald/io.punctual.Service]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Who may reserve how much
    #[arg(long, value_name = "FILE", default_value = CONFIG)]
    pub config: PathBuf,
    /// What schedules the reservations: kernel (sched_ext, Linux 6.18 or later), user (a dispatcher
    /// thread for each CPU), or auto: kernel where this machine permits it
    #[arg(long, value_name = "HOST", default_value = "auto")]
    pub host: HostOfService,
    /// Take the place of the service that runs, with all its clients and reservations, perhaps by
    /// another build; it ends. The same host, if none is given
    #[arg(long, conflicts_with = "status")]
    pub replace: bool,
    /// Print what the service that runs has promised, and end
    #[arg(long)]
    pub status: bool,
    /// The status as JSON
    #[arg(long, requires = "status")]
    pub json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum HostOfService {
    Auto,
    User,
    Kernel,
}

/// The result of `punctual serve --status --json`; without `--status` there is none.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServiceStatus {
    /// Version of the service.
    version: String,
    /// What schedules the reservations: `user` or `kernel`.
    host: String,
    /// The CPUs on which reservations may be made.
    cpus: Vec<CpuShare>,
    /// The reservations of the user who asks; of all users if root asks.
    reservations: Vec<Reserved>,
}

/// What one CPU has promised.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CpuShare {
    /// Its number.
    cpu: u32,
    /// Sum of budget / period over all reservations, parts per million.
    reserved_ppm: u64,
    /// The same of the user who asks.
    own_ppm: u64,
    /// What this user may reserve at most, parts per million.
    limit_ppm: u64,
}

/// One reservation.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Reserved {
    /// Its number.
    id: u64,
    /// Its task's name.
    name: String,
    /// Its user.
    uid: u32,
    /// Its process.
    pid: i32,
    /// The thread of it, if it is for that alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<i32>,
    /// Its CPU.
    cpu: u32,
    /// The role whose values it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// Time between releases, ns.
    period_ns: u64,
    /// Execution time in each period, ns.
    budget_ns: u64,
    /// Relative deadline, ns.
    deadline_ns: u64,
}

pub fn run(args: &Serve) -> Result<Outcome<Option<ServiceStatus>>, Diagnostic> {
    let socket = args.socket.clone().unwrap_or_else(socket);
    if args.status {
        return ServiceClient::require(&socket)?.status().map(status);
    }
    let mask = sched::affinity(0).map_err(|e| {
        Diagnostic::refused("the CPUs of this process are not known", e, "report it")
    })?;
    let host = match args.host {
        HostOfService::Auto => None,
        HostOfService::User => Some(HostKind::User),
        HostOfService::Kernel => Some(HostKind::Kernel),
    };
    let (config, cpus) = (args.config.clone(), sched::cpus(&mask).collect());
    let options = ServeOptions { socket, config, cpus, host, replace: args.replace };
    let end = serve(&options, |own, reservations, why| {
        let place = own.map_or("the socket of systemd".into(), |path| path.to_string_lossy());
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        let host = reservations.host();
        print_message(&format!(
            "punctuald serves at {place}, on the {host} host{why}, until Ctrl-C"
        ));
        if reservations.thread_budget().is_some() {
            realtime_kit::start(reservations.clone());
        }
    })?;
    let verdict = match end {
        ServiceEnd::Stopped => "The service has ended, and all reservations with it.".to_owned(),
        ServiceEnd::Replaced(pid) => {
            let verdict = format!("process {pid} has taken the place of this service");
            print_message(&verdict);
            verdict
        }
    };
    let text = String::new();
    Ok(Outcome { verdict, ok: true, code: 0, result: None, text, error: None })
}

fn status(reply: StatusReply) -> Outcome<Option<ServiceStatus>> {
    let StatusReply { version, host, cpus, reservations } = reply;
    let count = reservations.len();
    let verdict = match count {
        0 => "There are no reservations of yours.".to_owned(),
        1 => "There is one reservation.".to_owned(),
        _ => format!("There are {count} reservations."),
    };
    let mut text = format!(
        "{verdict} The service is on the {host} host.\n\n  CPU   reserved      yours   you may\n"
    );
    for cpu in &cpus {
        text += &format!(
            "{:>5} {:>10} {:>10} {:>9}\n",
            cpu.cpu,
            Ppm(cpu.reserved_ppm).to_string(),
            Ppm(cpu.own_ppm).to_string(),
            Ppm(cpu.limit_ppm).to_string()
        );
    }
    if count > 0 {
        text += "\n   id  CPU    user process[/thread]      budget      period  name (role)\n";
    }
    for r in &reservations {
        let process = r.tid.map_or(r.pid.to_string(), |tid| format!("{}/{tid}", r.pid));
        text += &format!(
            "{:>5} {:>4} {:>7} {:>16} {:>11} {:>11}  {}\n",
            r.id,
            r.cpu,
            r.uid,
            process,
            fmt_ns(r.budget_ns),
            fmt_ns(r.period_ns),
            r.role.as_ref().map_or(r.name.clone(), |role| format!("{} ({role})", r.name))
        );
    }
    let cpus = cpus.into_iter().map(|c| CpuShare {
        cpu: c.cpu,
        reserved_ppm: c.reserved_ppm,
        own_ppm: c.own_ppm,
        limit_ppm: c.limit_ppm,
    });
    let reservations = reservations.into_iter().map(|r| Reserved {
        id: r.id,
        name: r.name,
        uid: r.uid,
        pid: r.pid,
        tid: r.tid,
        cpu: r.cpu,
        role: r.role,
        period_ns: r.period_ns,
        budget_ns: r.budget_ns,
        deadline_ns: r.deadline_ns,
    });
    let (cpus, reservations) = (cpus.collect(), reservations.collect());
    let result = ServiceStatus { version, host, cpus, reservations };
    Outcome { verdict, ok: true, code: 0, result: Some(result), text, error: None }
}
