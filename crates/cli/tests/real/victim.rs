//! A running program to be adopted, and how it was before.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use punctual_test_support::{comes_true, LIVENESS};

use crate::bounded::{end_all, end_within, Said};
use crate::process::{
    attributes, cgroup_mount, cgroup_of, describe, eventually, state_of, switches, threads_of,
    Attributes,
};
use crate::punctual::{adversarial, new_mark};

pub struct Victim {
    child: Child,
    home: Option<PathBuf>,
    before: Before,
}

#[derive(Debug, Clone, PartialEq)]
struct Before {
    threads: Vec<(i32, Attributes)>,
    cgroup: String,
}

impl Before {
    fn of(pid: i32) -> Before {
        let mut tids = threads_of(pid);
        tids.sort_unstable();
        Before {
            threads: tids.into_iter().filter_map(|t| Some((t, attributes(t)?))).collect(),
            cgroup: cgroup_of(pid),
        }
    }
}

impl Victim {
    /// Five threads, all scheduled differently, in a cgroup of its own.
    pub fn start() -> Victim {
        let words = adversarial("victim");
        let mut child = Command::new(&words[0])
            .arg(&words[1])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        assert_eq!(Said::by(child.stdout.take()).line(), "READY\n");
        let pid = child.id() as i32;
        let home = cgroup_mount().map(|m| m.join(format!("victim-{}", new_mark())));
        let home = home.filter(|h| std::fs::create_dir(h).is_ok());
        if let Some(h) = &home {
            std::fs::write(h.join("cgroup.procs"), pid.to_string()).unwrap();
        }
        Victim { child, home, before: Before::of(pid) }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// It lives as it did before: policies, priorities, nice values, affinities, cgroup; neither
    /// frozen nor stopped.
    pub fn assert_as_before(&self) {
        let pid = self.pid();
        comes_true(|| Before::of(pid) == self.before);
        assert_eq!(Before::of(pid), self.before, "{}", describe(pid));
        self.assert_runs();
    }

    pub fn assert_runs(&self) {
        let pid = self.pid();
        assert!(!matches!(state_of(pid), None | Some('T' | 't')), "{}", describe(pid));
        let once = switches(pid);
        eventually("the adopted program runs", || switches(pid) > once);
    }

    pub fn is_as_before(&self) -> bool {
        Before::of(self.pid()) == self.before
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        if let Some(h) = &self.home {
            let _ = std::fs::write(h.join("cgroup.freeze"), "0");
        }
        end_all([self.pid()]);
        let _ = end_within(&mut self.child, LIVENESS);
        if let Some(h) = &self.home {
            let _ = std::fs::remove_dir(h);
        }
    }
}
