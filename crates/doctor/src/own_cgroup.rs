//! Where our own cgroup is, in files.

use crate::finding::Evidence;
use crate::probe::{Probe, Unread};
use punctual_sys::cgroup::Hierarchy;
use std::io;

/// Our place in one cgroup hierarchy.
#[derive(Debug, PartialEq, Eq)]
pub struct OwnCgroup {
    /// Where it is mounted.
    pub mount: String,
    /// Our own cgroup's directory.
    pub dir: String,
    /// Our line of /proc/self/cgroup.
    pub line: String,
}

impl OwnCgroup {
    /// The unified hierarchy.
    pub fn v2(probe: &Probe) -> Result<Self, Unread> {
        Self::find(probe, Hierarchy::V2)
    }

    /// The v1 hierarchy of one controller.
    pub fn v1(probe: &Probe, controller: &'static str) -> Result<Self, Unread> {
        Self::find(probe, Hierarchy::V1(controller))
    }

    fn find(probe: &Probe, wanted: Hierarchy) -> Result<Self, Unread> {
        let missing = |path: &str, what: &str| {
            Unread::new(path, &io::Error::new(io::ErrorKind::NotFound, what))
        };
        let mounts = probe.read("/proc/self/mountinfo")?;
        let mount = wanted.mount_in(&mounts.read);
        let mount =
            mount.ok_or_else(|| missing("/proc/self/mountinfo", "no such hierarchy is mounted"))?;
        let ours = probe.read("/proc/self/cgroup")?;
        let line = wanted.line_in(&ours.read);
        let line =
            line.ok_or_else(|| missing("/proc/self/cgroup", "no line about this hierarchy"))?;
        let dir = mount.directory(line.splitn(3, ':').nth(2).unwrap_or("/"));
        let dir = dir.ok_or_else(|| {
            missing("/proc/self/cgroup", "our cgroup is outside of what is mounted")
        })?;
        Ok(OwnCgroup {
            dir: dir.display().to_string(),
            mount: mount.point.display().to_string(),
            line: line.into(),
        })
    }

    /// Our cgroup and those above it, the mount point first.
    pub fn lineage(&self) -> Vec<String> {
        let mut dirs = vec![self.mount.clone()];
        let rest = self.dir.strip_prefix(&self.mount).unwrap_or("");
        for name in rest.split('/').filter(|n| !n.is_empty()) {
            let parent = dirs.last().cloned().unwrap_or_default();
            dirs.push(format!("{parent}/{name}"));
        }
        dirs
    }

    /// The readings, for the finding.
    pub fn reading(&self) -> Evidence {
        Evidence::new("/proc/self/cgroup", self.line.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_directory_below_a_bind_mount() {
        let tree = tempfile::tempdir().unwrap();
        let proc = tree.path().join("proc/self");
        std::fs::create_dir_all(&proc).unwrap();
        std::fs::write(
            proc.join("mountinfo"),
            "1 0 0:1 /docker/x /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
             2 0 0:2 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        )
        .unwrap();
        std::fs::write(proc.join("cgroup"), "4:cpu,cpuacct:/docker/x/y\n0::/a/b\n").unwrap();
        let probe = Probe::tree(tree.path(), None);
        let cpu = OwnCgroup::v1(&probe, "cpu").unwrap();
        assert_eq!(cpu.dir, "/sys/fs/cgroup/cpu,cpuacct/y");
        let v2 = OwnCgroup::v2(&probe).unwrap();
        assert_eq!(
            v2.lineage(),
            ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/a", "/sys/fs/cgroup/unified/a/b"]
        );
        assert!(OwnCgroup::v1(&probe, "freezer").unwrap_err().absent());
    }
}
