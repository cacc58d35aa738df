//! Where the cgroup hierarchies are mounted: v2 may be /sys/fs/cgroup itself or a "unified" mount beside v1.

use std::path::{Path, PathBuf};

/// A mounted cgroup hierarchy.
#[derive(Debug, Clone)]
pub(crate) struct Mount {
    point: PathBuf,
    /// What part of the hierarchy is mounted: `/`, or a subtree in some containers.
    root: String,
}

impl Mount {
    /// The v2 hierarchy, if one is mounted.
    pub fn v2() -> Option<Self> {
        Self::find(|kind, _| kind == "cgroup2")
    }

    /// The v1 hierarchy that has this controller.
    pub fn v1(controller: &str) -> Option<Self> {
        Self::find(|kind, options| kind == "cgroup" && options.split(',').any(|o| o == controller))
    }

    fn find(wanted: impl Fn(&str, &str) -> bool) -> Option<Self> {
        let text = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        text.lines().find_map(|l| parse(l, &wanted))
    }

    /// Directory of a group that /proc/PID/cgroup names `path`; `None` when it lies outside of what is mounted.
    pub fn directory(&self, path: &str) -> Option<PathBuf> {
        if path.contains("/..") {
            return None;
        }
        let inside = if self.root == "/" { path } else { path.strip_prefix(&self.root)? };
        Some(self.point.join(inside.trim_start_matches('/')))
    }

    /// Directory of the topmost group.
    pub fn point(&self) -> &Path {
        &self.point
    }
}

/// One line: `id parent major:minor root point options [tags] - kind source superoptions`.
fn parse(line: &str, wanted: &impl Fn(&str, &str) -> bool) -> Option<Mount> {
    let (front, back) = line.split_once(" - ")?;
    let (mut front, mut back) = (front.split(' '), back.split(' '));
    let (kind, _source, options) = (back.next()?, back.next()?, back.next()?);
    let (root, point) = (front.nth(3)?, front.next()?);
    wanted(kind, options).then(|| Mount { point: PathBuf::from(unescape(point)), root: unescape(root) })
}

/// Blanks and the like are written \040.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(i) = rest.find('\\') {
        out.push_str(&rest[..i]);
        match rest.get(i + 1..i + 4).and_then(|o| u8::from_str_radix(o, 8).ok()) {
            Some(byte) => {
                out.push(byte as char);
                rest = &rest[i + 4..];
            }
            None => {
                out.push('\\');
                rest = &rest[i + 1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_of_cgroup_mounts_are_found() {
        let v2 = |kind: &str, _: &str| kind == "cgroup2";
        let plain = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        let inside = "35 24 0:30 /docker/a /mnt/a\\040b rw - cgroup2 none rw";
        assert_eq!(parse(plain, &v2).unwrap().directory("/x/y").unwrap(), Path::new("/sys/fs/cgroup/x/y"));
        let m = parse(inside, &v2).unwrap();
        assert_eq!(m.directory("/docker/a/x").unwrap(), Path::new("/mnt/a b/x"));
        assert_eq!(m.directory("/elsewhere"), None);
    }
}
