//! Debian's jackd asks no RealtimeKit, also with `-R`; it gets a reservation as a whole, and its
//! clients are served beside a CPU-bound process.

use crate::audio_session::{service_on_bus, AudioSession};
use crate::privileges::UNPRIVILEGED;
use crate::process::{eventually, kill};
use crate::punctual::new_mark;

#[test]
fn jackd_asks_for_nothing_and_serves_its_clients_in_a_reservation_of_its_own() {
    let Some((cpu, bus, service)) =
        service_on_bus(&["jackd", "jack_lsp", "jack_rec"], "[realtime_kit]\n")
    else {
        return;
    };
    let reserved = || {
        let reservations = service.client().status().expect("it serves").reservations;
        reservations.iter().map(|r| (r.pid, r.budget_ns)).collect::<Vec<_>>()
    };

    let mut session = AudioSession::new(&bus);
    session.start_load(cpu.0);
    let name = format!("punctual-{}", new_mark());
    let device = ["-d", "dummy", "--rate", "48000", "--period", "1024"];
    let server = session.start(&[&["jackd", "--name", &name, "-R"][..], &device].concat());
    eventually("jackd serves clients", || {
        session.start(&["jack_lsp", "-s", &name]);
        session.end_of_last().is_some_and(|status| status.success())
    });
    // Its threads run, and what it does for a real-time priority is done.
    assert!(reserved().is_empty(), "jackd asks RealtimeKit: docs/realtime-kit.md says it does not");

    let pid = server.to_string();
    let values = ["--period", "20ms", "--budget", "4ms", "--overrun", "background"];
    let run = [&["run", "--host", "service", "-q", "--pid", &pid][..], &values].concat();
    let mut run = service.as_user(UNPRIVILEGED, &run);
    run.wait_for("its reservation", |_| reserved() == [(server, 4_000_000)]);
    let (file, server_name) = (session.path("recorded.wav"), format!("JACK_DEFAULT_SERVER={name}"));
    let second = ["jack_rec", "-f", &file, "-d", "1", "-b", "16", "system:capture_1"];
    session.start(&[&["env", &server_name][..], &second].concat());
    let recorded = session.end_of_last();
    assert!(recorded.is_some_and(|status| status.success()), "it does not record: {recorded:?}");
    // 48,000 frames of two bytes, behind a head.
    assert!(std::fs::metadata(&file).is_ok_and(|file| file.len() > 96_000), "not all of it");

    // By itself, so that it removes what it has in shared memory.
    kill(server, libc::SIGTERM);
    run.reap();
    eventually("nothing is reserved", || reserved().is_empty());
    drop(session);
    service.end(cpu.0);
}
