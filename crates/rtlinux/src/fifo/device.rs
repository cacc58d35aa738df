//! FIFOs of this program as the devices /dev/rtfN, for programs that open those.

use std::os::fd::AsFd;
use std::sync::{Arc, Once};
use std::thread::{self, JoinHandle};

use punctual::fifo::Fifo;
use punctual::Error;
use punctual_rtf_device::RtfDevice;
use punctual_sys::event_count::EventCount;

/// `yes`: each FIFO that the program makes is served.
const VARIABLE: &str = "PUNCTUAL_RTLINUX_DEVICES";

/// A device that is served until this is dropped.
pub struct ServedDevice {
    stop: Arc<EventCount>,
    server: Option<JoinHandle<()>>,
}

impl ServedDevice {
    /// Serves a FIFO, if the program's FIFOs are to be; why that cannot be is reported.
    pub fn begin(fifo: &Fifo, number: u32) -> Option<ServedDevice> {
        let is_wanted = std::env::var_os(VARIABLE).is_some_and(|value| value == "yes");
        let begun = is_wanted.then(|| Self::serve(fifo, number))?;
        begun
            .inspect_err(|error| eprintln!("librtlinux: FIFO {number} has no device: {error}"))
            .ok()
    }

    fn serve(fifo: &Fifo, number: u32) -> Result<ServedDevice, Error> {
        let refused = |error| {
            Error::refused("the device cannot be served", error, "raise ulimit -n, or RLIMIT_NPROC")
        };
        let stop = Arc::new(EventCount::new().map_err(refused)?);
        // It is there when this returns.
        let device = RtfDevice::create(fifo.clone(), number)?;
        let of_server = stop.clone();
        let serve = move || {
            if let Err(error) = device.serve(of_server.as_fd()) {
                eprintln!("librtlinux: {error}");
            }
        };
        let server = thread::Builder::new().name(format!("rtf-device-{number}")).spawn(serve);
        static REGISTERED: Once = Once::new();
        // SAFETY: the handler neither unwinds nor returns to code that is gone.
        REGISTERED.call_once(|| unsafe {
            libc::atexit(at_exit);
        });
        Ok(ServedDevice { stop, server: Some(server.map_err(refused)?) })
    }
}

extern "C" fn at_exit() {
    super::end_devices();
}

impl Drop for ServedDevice {
    fn drop(&mut self) {
        self.stop.add(1);
        // It removes the device, whose number is free then.
        let _ = self.server.take().map(JoinHandle::join);
    }
}
