//! `punctual serve`: punctuald.

mod status;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use punctual_daemon::{serve, HostKind, ServeOptions, ServiceEnd, CONFIG};
use punctual_diagnostic::Diagnostic;
use punctual_realtime_kit as realtime_kit;
use punctual_service::{socket, ServiceClient};
use punctual_sys::sched;

use crate::output::{print_message, Outcome};
pub use status::ServiceStatus;

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

pub fn run(args: &Serve) -> Result<Outcome<Option<ServiceStatus>>, Diagnostic> {
    let socket = args.socket.clone().unwrap_or_else(socket);
    if args.status {
        return ServiceClient::require(&socket)?.status().map(status::outcome);
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
