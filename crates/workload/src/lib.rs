//! What synthetic tasks execute: calibrated spinning, and an ordinary process that wants
//! everything.
//!
//! ```no_run
//! use punctual_workload::{Spinner, Work};
//! use std::sync::atomic::AtomicBool;
//!
//! let stop = AtomicBool::new(false);
//! let spinner = Spinner::calibrate(); // under 20 ms, once per process
//! let body = punctual_taskset::Body::Spin(punctual_taskset::Spin::For(200_000));
//! let mut work = Work::of(&body).expect("it is synthetic");
//! while work.run_job(&spinner, &stop) {
//!     // wait for the next release here
//! }
//! ```

mod background_load;
mod draw;
mod spinner;
mod work;

pub use background_load::{BackgroundLoad, LoadTime};
pub use draw::{Act, Demand, Draw, Script};
pub use spinner::Spinner;
pub use work::Work;
