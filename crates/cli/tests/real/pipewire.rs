//! PipeWire, unmodified and unprivileged, asks the service in RealtimeKit's place, and plays beside
//! a CPU-bound process.

use crate::audio_session::{await_reservation, service_on_bus, AudioSession};
use crate::process::{attributes, eventually};

const SINK: &str = r#"context.objects = [ {
	factory = adapter
	args = {
		factory.name = support.null-audio-sink
		node.name = null-sink
		media.class = Audio/Sink
		audio.position = "FL,FR"
	}
} ]
"#;

#[test]
fn pipewire_gets_reservations_and_plays_beside_a_cpu_bound_process() {
    // A twentieth of the CPU for each of six threads: the user's share is 30 %.
    let Some((cpu, bus, service)) = service_on_bus(
        &["pipewire", "wireplumber", "pw-cat"],
        "[realtime_kit]\nperiod = \"20ms\"\n",
    ) else {
        return;
    };

    let mut session = AudioSession::new(&bus);
    session.configure("pipewire/pipewire.conf.d/sink.conf", SINK);
    session.start_load(cpu.0);
    let server = session.start(&["pipewire"]);
    session.start(&["wireplumber"]);
    let long = session.silence(600);
    let player = session.start(&["pw-cat", "--playback", &long]);
    await_reservation(&service, server, cpu.0);
    await_reservation(&service, player, cpu.0);
    let nice = |pid| attributes(pid).map(|a| a.nice);
    eventually("the server has its nice level", || nice(server) == Some(-11));

    // A second player, with a reservation of its own, plays to its end.
    let short = session.silence(1);
    session.start(&["pw-cat", "--playback", &short]);
    let played = session.end_of_last();
    assert!(played.is_some_and(|status| status.success()), "it does not play: {played:?}");

    drop(session);
    eventually("nothing is reserved", || {
        service.client().status().expect("it serves").reservations.is_empty()
    });
    service.end(cpu.0);
}
