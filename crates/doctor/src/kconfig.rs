//! The configuration of the kernel's build, where it can be read.

use crate::finding::Evidence;
use crate::probe::{Probe, Unread};
use std::io::Read;

/// How one option was built.
#[derive(Debug, PartialEq, Eq)]
pub enum Built {
    /// `CONFIG_X=value`
    Set(String),
    /// `# CONFIG_X is not set`, or nowhere in a configuration that was read whole.
    Off,
    /// There is no configuration to read.
    Untold,
}

/// The whole configuration, or why there is none.
pub struct Config {
    text: Result<Evidence, Unread>,
}

impl Config {
    pub fn read(probe: &Probe, release: Option<&str>) -> Self {
        let mut text = unzip(probe);
        if let (Err(_), Some(release)) = (&text, release) {
            let elsewhere =
                [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
            if let Some(found) = elsewhere.iter().find_map(|p| probe.read(p).ok()) {
                text = Ok(found);
            }
        }
        Config {
            text: text.and_then(|t| match t.read.contains("CONFIG_") {
                true => Ok(t),
                false => Err(Unread::garbled(&t, "a kernel configuration")),
            }),
        }
    }

    fn line(&self, name: &str) -> Option<&str> {
        let text = &self.text.as_ref().ok()?.read;
        let set = format!("CONFIG_{name}=");
        let off = format!("# CONFIG_{name} is not set");
        text.lines().find(|l| l.starts_with(&set) || *l == off)
    }

    /// How `CONFIG_<name>` was built.
    pub fn option(&self, name: &str) -> Built {
        match (&self.text, self.line(name)) {
            (Err(_), _) => Built::Untold,
            (Ok(_), Some(line)) => match line.split_once('=') {
                Some((_, value)) => Built::Set(value.into()),
                None => Built::Off,
            },
            (Ok(_), None) => Built::Off,
        }
    }

    /// Built in.
    pub fn yes(&self, name: &str) -> bool {
        self.option(name) == Built::Set("y".into())
    }

    /// The configuration is known and says no.
    pub fn no(&self, name: &str) -> bool {
        self.option(name) == Built::Off
    }

    /// Whether this kernel's sources know the option at all.
    pub fn knows(&self, name: &str) -> bool {
        self.line(name).is_some()
    }

    /// The line about `name`, to be shown.
    pub fn reading(&self, name: &str) -> Evidence {
        match &self.text {
            Ok(text) => Evidence::new(
                text.from.clone(),
                match self.line(name) {
                    Some(line) => line.to_string(),
                    None => format!("(no CONFIG_{name})"),
                },
            ),
            Err(unread) => Evidence::new("kernel configuration", format!("({unread})")),
        }
    }
}

fn unzip(probe: &Probe) -> Result<Evidence, Unread> {
    const PATH: &str = "/proc/config.gz";
    let bytes = probe.bytes(PATH)?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .take(4 << 20)
        .read_to_string(&mut text)
        .map_err(|e| Unread::new(PATH, &e))?;
    Ok(Evidence::new(PATH, text))
}
