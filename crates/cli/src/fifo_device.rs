//! `punctual fifo device`: a FIFO as a device of RT-Linux.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use punctual_diagnostic::Diagnostic;
use punctual_ipc::{Fifo, Name, Namespace};
use punctual_rtf_device::RtfDevice;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::args_fifo::Device;
use crate::output::{print_message, Outcome};

/// Serves until a signal ends it.
pub fn serve(args: &Device) -> Result<Outcome<()>, Diagnostic> {
    let fifo = Fifo::open(&Namespace::of_user()?, &Name::from(args.number))?;
    let stop = signals().map_err(|error| {
        Diagnostic::refused("cannot wait for signals", error, "raise the limit of open files")
    })?;
    let device = RtfDevice::create(fifo, args.number)?;
    let path = device.path().display().to_string();
    print_message(&format!("{path} is served, until Ctrl-C"));
    device.serve(stop.as_fd())?;
    let (verdict, text) = (format!("{path} is removed."), String::new());
    Ok(Outcome { verdict, ok: true, code: 0, result: (), text, error: None })
}

/// Readable after one of the signals that end a program.
fn signals() -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read)
}
