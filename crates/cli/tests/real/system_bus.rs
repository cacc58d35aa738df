//! A system bus of a test's own, with the policy that `make install` installs.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use punctual_test_support::LIVENESS;

use crate::bounded::{end_all, end_within, output};
use crate::process::eventually;
use crate::punctual::Scratch;

/// What RealtimeKit's name, object and interface are called.
const NAME: &str = "org.freedesktop.RealtimeKit1";
const PATH: &str = "/org/freedesktop/RealtimeKit1";

/// As the system bus of a distribution: a name and its methods need a policy. It is the bus of the
/// session, too, on which PulseAudio has to have names of its own.
const CONFIG: &str = r#"
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
	"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
	<type>system</type>
	<listen>unix:path=FOLDER/bus</listen>
	<auth>EXTERNAL</auth>
	<policy context="default">
		<allow user="*"/>
		<deny own="*"/>
		<allow own="org.PulseAudio1"/>
		<allow own="org.pulseaudio.Server"/>
		<deny send_type="method_call"/>
		<allow send_type="signal"/>
		<allow send_requested_reply="true" send_type="method_return"/>
		<allow send_requested_reply="true" send_type="error"/>
		<allow receive_type="method_call"/>
		<allow receive_type="method_return"/>
		<allow receive_type="error"/>
		<allow receive_type="signal"/>
		<allow send_destination="org.freedesktop.DBus"/>
	</policy>
	<include>FOLDER/punctuald.conf</include>
	<include ignore_missing="yes">POLKIT</include>
</busconfig>
"#;

/// Of the package polkitd, which need not be here.
const POLKIT: &str = "/usr/share/dbus-1/system.d/org.freedesktop.PolicyKit1.conf";

/// A running bus; it ends with this.
pub struct SystemBus {
    daemon: Child,
    scratch: Scratch,
}

impl SystemBus {
    pub fn start() -> SystemBus {
        let scratch = Scratch::new();
        crate::privileges::open_folder(scratch.folder());
        let folder = scratch.folder().display().to_string();
        scratch.file("punctuald.conf", include_str!("../../../../dbus/punctuald.conf"));
        let config = scratch.file(
            "bus.conf",
            &CONFIG.trim_start().replace("FOLDER", &folder).replace("POLKIT", POLKIT),
        );
        let config = format!("--config-file={config}");
        // It reports each call that its policy refuses.
        let mut daemon = Command::new("dbus-daemon");
        daemon.args([&config, "--nofork"]).stderr(Stdio::null());
        let daemon = daemon.spawn().unwrap();
        let bus = SystemBus { daemon, scratch };
        let socket = bus.scratch.path("bus");
        eventually("the bus is there", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        bus
    }

    /// As DBUS_SYSTEM_BUS_ADDRESS has it.
    pub fn address(&self) -> String {
        format!("unix:path={}", self.scratch.path("bus"))
    }

    /// Calls a method of RealtimeKit as a user: nothing, or the error.
    pub fn call(&self, uid: u32, method: &str, args: &[String]) -> Result<(), String> {
        self.send(uid, NAME, PATH, &format!("{NAME}.{method}"), args).map(drop)
    }

    /// A property of RealtimeKit, as dbus-send prints it.
    pub fn property(&self, name: &str) -> String {
        let get = "org.freedesktop.DBus.Properties.Get";
        let args = [format!("string:{NAME}"), format!("string:{name}")];
        self.send(65_534, NAME, PATH, get, &args).expect("it is there")
    }

    /// The process that has RealtimeKit's name.
    pub fn owner(&self) -> Option<i32> {
        self.owner_of(NAME)
    }

    /// The process that has a name.
    pub fn owner_of(&self, name: &str) -> Option<i32> {
        let said = self.ask("GetConnectionUnixProcessID", name).ok()?;
        said.split_whitespace().last()?.parse().ok()
    }

    /// The connections that have or wait for RealtimeKit's name.
    pub fn owners(&self) -> usize {
        self.ask("ListQueuedOwners", NAME).map_or(0, |said| said.matches("string \":").count())
    }

    fn ask(&self, method: &str, name: &str) -> Result<String, String> {
        let bus = "org.freedesktop.DBus";
        let args = [format!("string:{name}")];
        self.send(65_534, bus, "/org/freedesktop/DBus", &format!("{bus}.{method}"), &args)
    }

    fn send(
        &self,
        uid: u32,
        to: &str,
        path: &str,
        method: &str,
        args: &[String],
    ) -> Result<String, String> {
        let mut c = Command::new("dbus-send");
        c.args([&format!("--bus={}", self.address()), "--print-reply", &format!("--dest={to}")]);
        c.args([path, method]).args(args).uid(uid).gid(uid.min(65_534));
        let said = output(&mut c);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        said.status.success().then(|| text(&said.stdout)).ok_or_else(|| text(&said.stderr))
    }
}

impl Drop for SystemBus {
    fn drop(&mut self) {
        end_all([self.daemon.id() as i32]);
        let _ = end_within(&mut self.daemon, LIVENESS);
    }
}
