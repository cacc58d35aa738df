//! The structures of the header and those of `abi` are the same.

use std::io::Write;
use std::mem::{offset_of, size_of};
use std::process::{Command, Stdio};

use punctual_plugin::abi::{
    PluginAttributes, PluginCalls, PluginContext, PluginEvent, PluginJob, PluginMember,
    PluginPolicy, PluginRelease, PluginSetup,
};

/// Assertions in C of a structure's size, and of where each member is.
macro_rules! structure {
    ($name:literal, $type:ident: $($member:ident),*) => {{
        let mut lines = vec![format!(
            "_Static_assert(sizeof(struct {0}) == {1}, \"{0}\");\n", $name, size_of::<$type>()
        )];
        $(lines.push(format!(
            "_Static_assert(offsetof(struct {0}, {1}) == {2}, \"{0}.{1}\");\n",
            $name, stringify!($member), offset_of!($type, $member)
        ));)*
        lines.concat()
    }};
}

#[test]
fn the_header_has_the_same_structures() {
    let lines = [
        "#include \"punctual_policy.h\"\n".to_owned(),
        structure!("punctual_attributes", PluginAttributes: offset, period, deadline, budget,
            priority),
        structure!("punctual_member", PluginMember: of, index, group),
        structure!("punctual_release", PluginRelease: number, at, deadline, left, part),
        structure!("punctual_job", PluginJob: start, finish, budget, priority),
        structure!("punctual_event", PluginEvent: kind, end, used, remaining),
        structure!("punctual_context", PluginContext: calls),
        structure!("punctual_calls", PluginCalls: size, now, member, release, add_job, replace_job,
            cancel_job, remaining, used, executed, set_timer, cancel_timer,
            extend),
        structure!("punctual_setup", PluginSetup: size, group, members, tasks, of_set),
        structure!("punctual_policy", PluginPolicy: version, size, name, title, source, order,
            admission, priority, make, drop, handle),
    ];
    for language in ["c", "c++"] {
        let source = match language {
            "c" => lines.concat(),
            _ => lines.concat().replace("_Static_assert", "static_assert"),
        };
        let mut compiler = Command::new("cc")
            .args(["-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
            .args(["-I", concat!(env!("CARGO_MANIFEST_DIR"), "/include"), "-"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("a C compiler is there");
        let stdin = compiler.stdin.take();
        stdin.expect("a pipe").write_all(source.as_bytes()).expect("it reads");
        assert!(compiler.wait().expect("it ends").success(), "{language}");
    }
}
