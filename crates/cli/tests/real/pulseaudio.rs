//! PulseAudio, unmodified and unprivileged, asks the service in RealtimeKit's place, and plays
//! beside a CPU-bound process.

use crate::audio_session::{await_reservation, service_on_bus, AudioSession};
use crate::process::{attributes, eventually};

/// A socket for players, then a sink that paces them as a sound card does.
const SERVER: &[&str] = &[
    "pulseaudio",
    "-n",
    "--daemonize=no",
    "--use-pid-file=no",
    "--exit-idle-time=-1",
    "--load=module-native-protocol-unix",
    "--load=module-null-sink",
];

#[test]
fn pulseaudio_gets_a_reservation_and_plays_beside_a_cpu_bound_process() {
    let Some((cpu, bus, service)) =
        service_on_bus(&["pulseaudio", "paplay"], "[realtime_kit]\nperiod = \"20ms\"\n")
    else {
        return;
    };

    let mut session = AudioSession::new(&bus);
    session.start_load(cpu.0);
    let server = session.start(SERVER);
    // The thread of the sink; of the first one, PulseAudio asks for a nice level.
    await_reservation(&service, server, cpu.0);
    let nice = |pid| attributes(pid).map(|a| a.nice);
    eventually("the server has its nice level", || nice(server) == Some(-11));

    // One program plays for ten minutes; another one, beside it, plays to its end.
    let (long, short) = (session.silence(600), session.silence(1));
    session.start(&["paplay", &long]);
    session.start(&["paplay", &short]);
    let played = session.end_of_last();
    assert!(played.is_some_and(|status| status.success()), "it does not play: {played:?}");
    await_reservation(&service, server, cpu.0);

    drop(session);
    eventually("nothing is reserved", || {
        service.client().status().expect("it serves").reservations.is_empty()
    });
    service.end(cpu.0);
}
