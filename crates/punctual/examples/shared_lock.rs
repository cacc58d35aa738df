//! Two programs, or more, that take turns with a mutex and tell apart whether the last one was
//! killed with it. Start it in several terminals, and end one by Ctrl-C.
//!
//!     cargo run --release -p punctual --example shared_lock
//!     punctual lock list       # meanwhile, in another terminal

use std::thread::sleep;
use std::time::Duration;

use punctual::shared::{Lifetime, LockOutcome, Namespace, SharedMutex};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (namespace, name) = (Namespace::of_user()?, "turns".parse()?);
    // The first one makes it. Another one may be faster at any time.
    let mutex = loop {
        match SharedMutex::create(&namespace, &name, Lifetime::Used) {
            Err(error) if error.errno == Some(libc::EEXIST) => {}
            made => break made?,
        }
        match SharedMutex::open(&namespace, &name) {
            Err(error) if error.errno == Some(libc::ENOENT) => {}
            opened => break opened?,
        }
    };
    for turn in 0..20 {
        let guard = match mutex.lock()? {
            LockOutcome::Locked(guard) => guard,
            LockOutcome::LockedAfterDeath(guard) => {
                println!("the last one ended in its turn");
                guard.make_consistent();
                guard
            }
        };
        println!("turn {turn} of process {}", std::process::id());
        sleep(Duration::from_millis(500));
        drop(guard);
        sleep(Duration::from_millis(100));
    }
    Ok(())
}
