//! Where our own cgroup is, in files.

use super::finding::Reading;
use super::probe::{Probe, Unread};
use std::io;

/// Our place in one cgroup hierarchy.
#[derive(Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted.
    pub mount: String,
    /// Our own cgroup's directory.
    pub dir: String,
    /// Our line of /proc/self/cgroup.
    pub line: String,
}

impl Hierarchy {
    /// The unified hierarchy.
    pub fn v2(probe: &Probe) -> Result<Self, Unread> {
        find(probe, |kind, _| kind == "cgroup2", |controllers| controllers.is_empty())
    }

    /// The v1 hierarchy of one controller.
    pub fn v1(probe: &Probe, controller: &str) -> Result<Self, Unread> {
        let has = |list: &str| list.split(',').any(|c| c == controller);
        find(probe, |kind, options| kind == "cgroup" && has(options), has)
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

    /// What was read, to be shown.
    pub fn reading(&self) -> Reading {
        Reading::new("/proc/self/cgroup", self.line.clone())
    }
}

fn find(
    probe: &Probe,
    is_mount: impl Fn(&str, &str) -> bool,
    is_line: impl Fn(&str) -> bool,
) -> Result<Hierarchy, Unread> {
    let missing = |path: &str, what: &str| Unread::new(path, &io::Error::new(io::ErrorKind::NotFound, what));
    let mounts = probe.read("/proc/self/mountinfo")?;
    let (root, mount) = mounts
        .read
        .lines()
        .find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let mut after = after.split(' ');
            let (kind, options) = (after.next()?, after.nth(1).unwrap_or(""));
            if !is_mount(kind, options) {
                return None;
            }
            let mut before = before.split(' ').skip(3);
            Some((unescape(before.next()?), unescape(before.next()?)))
        })
        .ok_or_else(|| missing("/proc/self/mountinfo", "no such hierarchy is mounted"))?;
    let ours = probe.read("/proc/self/cgroup")?;
    let line = ours
        .read
        .lines()
        .find(|l| l.split(':').nth(1).is_some_and(&is_line))
        .ok_or_else(|| missing("/proc/self/cgroup", "no line about this hierarchy"))?;
    let path = line.splitn(3, ':').nth(2).unwrap_or("/");
    let inside = match root.as_str() {
        "/" => path,
        root => path.strip_prefix(root).unwrap_or(path),
    };
    if inside.starts_with("/..") {
        return Err(missing("/proc/self/cgroup", "our cgroup is outside of what is mounted"));
    }
    Ok(Hierarchy { dir: format!("{mount}{}", inside.trim_end_matches('/')), mount, line: line.into() })
}

/// mountinfo writes a blank as `\040`.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.as_bytes();
    while let [first, rest @ ..] = bytes {
        let octal = (*first == b'\\').then(|| rest.get(..3)).flatten();
        let byte = octal.and_then(|o| u8::from_str_radix(std::str::from_utf8(o).ok()?, 8).ok());
        match byte {
            Some(byte) => {
                out.push(byte);
                bytes = &rest[3..];
            }
            None => {
                out.push(*first);
                bytes = rest;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_mount_points() {
        assert_eq!(unescape(r"/a\040b"), "/a b");
        assert_eq!(unescape(r"/a\04"), r"/a\04");
    }

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
        let cpu = Hierarchy::v1(&probe, "cpu").unwrap();
        assert_eq!(cpu.dir, "/sys/fs/cgroup/cpu,cpuacct/y");
        let v2 = Hierarchy::v2(&probe).unwrap();
        assert_eq!(v2.lineage(), ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/a", "/sys/fs/cgroup/unified/a/b"]);
        assert!(Hierarchy::v1(&probe, "freezer").unwrap_err().absent());
    }
}
