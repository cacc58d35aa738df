//! Where the cgroup hierarchies are mounted, and where a process is in each: v2 may be
//! /sys/fs/cgroup itself or a "unified" mount beside those of v1.

use std::path::PathBuf;

/// A hierarchy of cgroups.
#[derive(Debug, Clone, Copy)]
pub enum Hierarchy {
    /// The one of version 2.
    V2,
    /// The one of version 1 that has this controller.
    V1(&'static str),
}

/// A mounted hierarchy.
#[derive(Debug, Clone)]
pub struct Mount {
    /// Directory of the topmost group.
    pub point: PathBuf,
    /// What part of the hierarchy is mounted: `/`, or a subtree in some containers.
    root: String,
}

impl Hierarchy {
    /// Its mount in this mount namespace.
    pub fn mount(self) -> Option<Mount> {
        self.mount_in(&std::fs::read_to_string("/proc/self/mountinfo").ok()?)
    }

    /// Its mount by the text of a mountinfo file.
    pub fn mount_in(self, mountinfo: &str) -> Option<Mount> {
        mountinfo.lines().find_map(|line| {
            // `id parent major:minor root point options [tags] - kind source superoptions`
            let (front, back) = line.split_once(" - ")?;
            let (mut front, mut back) = (front.split(' '), back.split(' '));
            let (kind, _source, options) = (back.next()?, back.next()?, back.next()?);
            let (root, point) = (front.nth(3)?, front.next()?);
            let wanted = match self {
                Hierarchy::V2 => kind == "cgroup2",
                Hierarchy::V1(controller) => kind == "cgroup" && is_listed(controller, options),
            };
            wanted.then(|| Mount { point: PathBuf::from(unescape(point)), root: unescape(root) })
        })
    }

    /// The group of a process, as /proc/PID/cgroup names it (`/` is the root of our cgroup
    /// namespace).
    pub fn path_of(self, pid: i32) -> Option<String> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let path = self.line_in(&text)?.splitn(3, ':').nth(2)?;
        Some(path.trim_end_matches(" (deleted)").to_owned())
    }

    /// The directory of the group of a process.
    pub fn directory_of(self, pid: i32) -> Option<PathBuf> {
        self.mount()?.directory(&self.path_of(pid)?)
    }

    /// Its line in the text of a file such as /proc/PID/cgroup: `number:controllers:path`.
    pub fn line_in(self, text: &str) -> Option<&str> {
        text.lines().find(|line| {
            line.split(':').nth(1).is_some_and(|controllers| match self {
                Hierarchy::V2 => controllers.is_empty(),
                Hierarchy::V1(controller) => is_listed(controller, controllers),
            })
        })
    }
}

impl Mount {
    /// Directory of the group that /proc/PID/cgroup names `path`; `None` when it lies outside of
    /// what is mounted.
    pub fn directory(&self, path: &str) -> Option<PathBuf> {
        if path.contains("/..") {
            return None;
        }
        let inside = if self.root == "/" { path } else { path.strip_prefix(&self.root)? };
        // Without a slash at its end where it is the topmost group.
        Some(self.point.join(inside.trim_matches('/')).components().collect())
    }
}

fn is_listed(name: &str, list: &str) -> bool {
    list.split(',').any(|other| other == name)
}

/// mountinfo writes a blank as `\040`.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            Some(byte) => out.extend([char::from(byte)].into_iter().chain(part[3..].chars())),
            None => out.extend(['\\'].into_iter().chain(part.chars())),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn both_layouts_of_cgroup_mounts_are_found() {
        let plain =
            "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        let inside = "35 24 0:30 /docker/a /mnt/a\\040b rw - cgroup2 none rw";
        let plain = Hierarchy::V2.mount_in(plain).unwrap();
        assert_eq!(plain.directory("/x/y").unwrap(), Path::new("/sys/fs/cgroup/x/y"));
        assert_eq!(plain.directory("/").unwrap().to_str(), Some("/sys/fs/cgroup"));
        let m = Hierarchy::V2.mount_in(inside).unwrap();
        assert_eq!(m.directory("/docker/a/x").unwrap(), Path::new("/mnt/a b/x"));
        assert_eq!(m.directory("/elsewhere"), None);
        assert_eq!(m.directory("/docker/a/../b"), None);
    }

    #[test]
    fn a_controller_has_a_hierarchy_of_its_own() {
        let mounts = "1 0 0:1 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n";
        let lines = "4:cpu,cpuacct:/docker/x/y\n0::/a/b\n";
        assert_eq!(
            Hierarchy::V1("cpu").mount_in(mounts).unwrap().point,
            Path::new("/sys/fs/cgroup/cpu")
        );
        assert!(
            Hierarchy::V1("freezer").mount_in(mounts).is_none()
                && Hierarchy::V2.mount_in(mounts).is_none()
        );
        assert_eq!(Hierarchy::V1("cpu").line_in(lines), Some("4:cpu,cpuacct:/docker/x/y"));
        assert_eq!(Hierarchy::V2.line_in(lines), Some("0::/a/b"));
    }

    #[test]
    fn only_whole_octal_numbers_are_unescaped() {
        assert_eq!(unescape(r"/a\040b\134"), r"/a b\");
        assert_eq!(unescape(r"/a\04"), r"/a\04");
    }
}
