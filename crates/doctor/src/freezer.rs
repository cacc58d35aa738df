//! cgroups, by which unmodified programs are parked.

use crate::finding::{Evidence, Finding, NO_HELP};
use crate::own_cgroup::OwnCgroup;
use crate::scene::Scene;

pub fn findings(scene: &Scene) -> Vec<Finding> {
    vec![cgroup_version(scene), freezer(scene), cgroup_kill(scene)]
}

const INSTEAD: &str = "programs that do not know Punctual are parked by SIGSTOP instead: their \
                       parents see it, and a program with many threads stops later";

/// Where systemd and the other crates look for it: at the top, or beside the controllers of version
/// 1.
fn mount_v2(scene: &Scene) -> Vec<String> {
    if scene.config.no("CGROUPS") {
        return vec![
            "# a kernel with CONFIG_CGROUPS is needed: apt-get install linux-image-amd64".into()
        ];
    }
    let mounts = scene.probe.read("/proc/self/mountinfo").map(|r| r.read).unwrap_or_default();
    if mounts.contains(" - cgroup ") {
        return vec![
            "mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified"
                .into(),
        ];
    }
    vec!["mount -t cgroup2 none /sys/fs/cgroup".into()]
}

fn cgroup_version(scene: &Scene) -> Finding {
    let about = Finding::about("cgroup-version", "cgroup version 2");
    match OwnCgroup::v2(scene.probe) {
        Ok(v2) => {
            let beside = OwnCgroup::v1(scene.probe, "cpu").is_ok();
            about
                .saw(&Evidence::new("/proc/self/mountinfo", format!("cgroup2 on {}", v2.mount)))
                .good(if beside {
                    "mounted beside version 1 controllers, which is enough for the freezer"
                } else {
                    "mounted"
                })
        }
        Err(e) if e.absent() => about
            .saw(&Evidence::new("/proc/self/mountinfo", "no cgroup2"))
            .warning("cgroup version 2 is not mounted", INSTEAD, mount_v2(scene)),
        Err(e) => about.unknown(e.to_string(), INSTEAD, NO_HELP),
    }
}

/// A cgroup in which the file `name` exists: that of this process, or, as the root has none, a
/// child of it.
fn seen(scene: &Scene, v2: &OwnCgroup, name: &str) -> Option<String> {
    let children = scene.probe.list(&v2.dir).unwrap_or_default();
    let dirs =
        std::iter::once(v2.dir.clone()).chain(children.iter().map(|c| format!("{}/{c}", v2.dir)));
    dirs.map(|d| format!("{d}/{name}")).find(|f| scene.probe.exists(f))
}

fn freezer(scene: &Scene) -> Finding {
    let about = Finding::about("freezer", "cgroup freezer");
    let v2 = match OwnCgroup::v2(scene.probe) {
        Ok(v2) => v2,
        Err(e) => return about.warning(e.to_string(), INSTEAD, mount_v2(scene)),
    };
    let about = match (seen(scene, &v2, "cgroup.freeze"), &scene.release) {
        (Some(file), _) => about.saw(&Evidence::new(file, "present")),
        (None, Ok(release)) if scene.since(5, 2) == Some(true) => about.saw(release),
        (None, Ok(release)) if scene.since(5, 2) == Some(false) => {
            return about.saw(release).warning(
                "Linux has cgroup.freeze from 5.2",
                INSTEAD,
                ["apt-get update && apt-get install linux-image-amd64 && reboot"],
            );
        }
        _ => {
            return about.unknown(
                "neither cgroup.freeze nor the kernel version can be read",
                INSTEAD,
                NO_HELP,
            )
        }
    };
    match scene.probe.writable(&v2.dir) {
        Ok(()) => about
            .saw(&Evidence::new(&v2.dir, "writable by us"))
            .good("unmodified programs of any number of processes and threads are parked at once"),
        Err(e) => about.saw(&Evidence::new(&v2.dir, "not writable by us")).warning(
            format!("no cgroup can be made ({e})"),
            INSTEAD,
            delegate(scene, &v2),
        ),
    }
}

/// A process moves only between cgroups whose common ancestor the mover may write to: so the shell
/// itself has to be moved into the subtree.
fn delegate(scene: &Scene, v2: &OwnCgroup) -> Vec<String> {
    let user = scene.user();
    let shell = scene.parent().map_or("PID".into(), |pid| pid.to_string());
    let dir = format!("{}/punctual-{user}", v2.mount.trim_end_matches('/'));
    vec![
        format!("mkdir -p {dir}/shell && chown -R {user} {dir}"),
        "# the shell in which punctual is to run; here the one that started this doctor:".into(),
        format!("echo {shell} > {dir}/shell/cgroup.procs"),
        "# or, under systemd, as the user: systemd-run --user --scope -p Delegate=yes punctual run \
         ...".into(),
    ]
}

fn cgroup_kill(scene: &Scene) -> Finding {
    let about = Finding::about("cgroup-kill", "cgroup.kill");
    let without = "a program's processes are ended one by one, and one that forks at that moment \
                   may be missed once";
    let v2 = match OwnCgroup::v2(scene.probe) {
        Ok(v2) => v2,
        Err(e) => return about.note(e.to_string(), without, mount_v2(scene)),
    };
    let good = "all processes of a program can be ended at once";
    if let Some(file) = seen(scene, &v2, "cgroup.kill") {
        return about.saw(&Evidence::new(file, "present")).good(good);
    }
    match (&scene.release, scene.since(5, 14)) {
        (Ok(release), Some(true)) => about.saw(release).good(good),
        (Ok(release), Some(false)) => about.saw(release).note(
            "Linux has cgroup.kill from 5.14",
            without,
            ["apt-get update && apt-get install linux-image-amd64 && reboot"],
        ),
        _ => about.unknown(
            "neither cgroup.kill nor the kernel version can be read",
            without,
            NO_HELP,
        ),
    }
}
