//! A task that sends its samples to ordinary programs: it never waits for them, and they find its
//! FIFO by name.
//!
//!     cargo run --release -p punctual --example fifo
//!     punctual fifo cat samples --lines       # meanwhile, in another terminal
//!
//! As root, or with the privileges that docs/library.md names.

use std::io::Write;
use std::time::Duration;

use punctual::fifo::{Access, Content, Fifo, FifoAttr, Lifetime, Namespace};
use punctual::{Error, Punctual};

fn main() -> Result<(), Error> {
    let attr = FifoAttr { content: Content::Messages, ..FifoAttr::default() };
    let fifo = Fifo::create(&Namespace::of_user()?, &"samples".parse()?, attr, Lifetime::Used)?;
    let mut samples = fifo.writer(Access::Exclusive)?;
    let mut sampler = Punctual::on_cpu(0);
    let task = sampler.add("sampler").period(Duration::from_millis(1));
    let task = task.budget(Duration::from_micros(100)).spawn(move |task| {
        let (mut put, mut lost) = (0u64, 0u64);
        for release in task.releases().take(5000) {
            // On the stack: nothing is allocated here.
            let mut text = [0; 64];
            let mut rest = &mut text[..];
            let late = release.release.elapsed().as_nanos();
            let _ = write!(rest, "{} {late}", release.number);
            let length = 64 - rest.len();
            // Full: no program reads. The sample is dropped.
            match samples.put(&text[..length]) {
                Ok(()) => put += 1,
                Err(_) => lost += 1,
            }
        }
        (put, lost)
    });
    let running = sampler.admit()?.start()?;
    if let Ok((put, lost)) = task.join() {
        println!("{put} samples put; {lost} had no room");
    }
    running.stop()?;
    Ok(())
}
