//! No content of any file upsets doctor, and an empty tree is not a good machine.

use std::fs;

use punctual_doctor::{examine, exit_code, render, Document, FindingsView, Probe, Severity};

use crate::find;
use crate::well_kept::{answers, put, tree, WELL_KEPT};

#[test]
fn no_content_upsets_it() {
    let garbage: &[&[u8]] = &[
        b"",
        b"\0\xff\xfe(",
        b"-1",
        b"99999999999999999999999999",
        b"9223372036854775807",
        b"-9223372036854775808",
        b"[] ()",
        b"cpu  18446744073709551615 18446744073709551615 1 1 1 1 1 1",
        b"0-4294967295,3-1",
        b"1 (a) b) S\n50 ( \xf0\x9f\x98\x80 ) S",
        b"1 0 0:1 /.. \\040\\9 - cgroup2 x rw\n: - cgroup\n",
        b"3:cpu\n0:\n::",
        b"CapEff:\tzz\nUid:\t\nCpus_allowed_list:\t-\nMax open files\n\
          Max locked memory \xe2\x82\xac",
    ];
    let dir = tree(&[]);
    for (path, content) in WELL_KEPT {
        for bytes in garbage {
            put(dir.path(), path, bytes);
            let findings = examine(&Probe::tree(dir.path(), Some(answers())));
            assert!(!render(&findings, &FindingsView { color: true, verbose: true }).is_empty());
        }
        fs::remove_file(dir.path().join(path)).unwrap();
        fs::create_dir(dir.path().join(path)).unwrap();
        examine(&Probe::tree(dir.path(), None));
        fs::remove_dir(dir.path().join(path)).unwrap();
        put(dir.path(), path, content);
    }
    for bytes in garbage {
        for (path, _) in WELL_KEPT {
            put(dir.path(), path, bytes);
        }
        put(dir.path(), "proc/config.gz", bytes);
        let probe = Probe::tree(dir.path(), None);
        let findings = examine(&probe);
        let document = Document::new(&probe, findings);
        let again: Document = serde_json::from_value(serde_json::json!(document)).unwrap();
        assert_eq!(again, document);
    }
}

#[test]
fn an_empty_tree_is_unknown_not_good() {
    let dir = tempfile::tempdir().unwrap();
    let findings = examine(&Probe::tree(dir.path(), None));
    for id in [
        "realtime-permitted",
        "preempt-rt",
        "rt-throttling",
        "capabilities",
        "clock-source",
        "high-resolution-timers",
        "steal",
    ] {
        let f = find(&findings, id);
        assert_eq!(f.verdict, Severity::Unknown, "{f:#?}");
        assert!(!f.cause.is_empty());
    }
    assert_eq!(exit_code(&findings), 0);
}
