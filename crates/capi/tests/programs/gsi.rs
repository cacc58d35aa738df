//! gsi.h: the programs of RED-Linux's figures, and its calls with right and wrong arguments.

use std::path::{Path, PathBuf};
use std::process::Command;

use punctual_test_support::c_library::VERSIONS_OF_C;
use punctual_test_support::process::run;
use punctual_trace::Trace;

use crate::figures::{bands, figure_5, figures_3_and_4, figures_6_and_7};
use crate::traced_jobs::{jobs_of, read, TracedJob};
use crate::{passed, passes, turn, LIBRARY};

/// Programs of gsi.h convert numbers as the paper's do.
const CONVERSIONS: &str = "-Wno-conversion";

fn text(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).expect("it is there")
}

fn example(name: &str) -> PathBuf {
    LIBRARY.path("examples/gsi").join(name)
}

/// What EDITS.md says of a file: the lines as they are, and as they were printed.
fn edits(file: &str) -> Vec<(String, String)> {
    let all = text(example("EDITS.md"));
    let section = all.split("\n## ").find(|section| section.starts_with(file)).expect("a section");
    let blocks = section.split("```diff\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().expect("a block ends"));
    let side = |block: &str, mark: char| {
        let of_side = block.lines().filter(|line| line.starts_with([' ', mark]));
        of_side.map(|line| format!("{}\n", &line[1..])).collect::<String>()
    };
    blocks.map(|block| (side(block, '+'), side(block, '-'))).collect()
}

#[test]
fn the_list_of_edits_has_every_line_that_is_not_the_papers() {
    for figure in ["fig3", "fig4", "fig5"] {
        let printed = text(example(&format!("printed/{figure}.txt")));
        let file = format!("{figure}.c");
        let whole = text(example(&file));
        let first = printed.lines().next().expect("it is not empty");
        let begins = whole.find(first).expect("the first line of the figure");
        let ends = whole.find("\n/* From here on it is not the paper's. */").unwrap_or(whole.len());
        let mut as_it_is = whole[begins..ends].to_owned();
        for (now, before) in edits(&file) {
            assert_eq!(as_it_is.matches(&now).count(), 1, "{file}:\n{now}");
            as_it_is = as_it_is.replace(&now, &before);
        }
        assert_eq!(as_it_is.trim_end(), printed.trim_end(), "{file}");
    }
}

#[test]
fn the_header_is_clean_and_the_figures_have_no_warning_in_every_version_of_c_and_cpp() {
    let source = "#include <gsi.h>\n#include <punctual.h>\n#include <gsi.h>\n\
                  GSI_TIME of(GSI_Event e, GSI_JOB j);\n\
                  GSI_TIME of(GSI_Event e, GSI_JOB j)\n\
                  { return e.budget + (GSI_TIME)j.GSI_PRIVATE + (GSI_TIME)QOS_BUDGET; }\n";
    LIBRARY.is_clean(&[source.to_owned()], &[]);
    for version in VERSIONS_OF_C {
        for figure in ["fig3.c", "fig5.c"] {
            let mut command = Command::new("cc");
            command.arg(format!("-std={version}")).args(LIBRARY.warnings).arg(CONVERSIONS);
            command.args(["-O2", "-c", "-D_GNU_SOURCE", "-o", "/dev/null", "-I"]);
            run(command.arg(LIBRARY.path(LIBRARY.headers)).arg(example(figure)));
        }
    }
}

#[test]
fn calls_of_gsi_refuse_what_is_wrong_and_report_how_jobs_end() {
    passes("gsi.c");
}

#[test]
fn groups_share_budgets_and_execute_on_their_server_jobs() {
    let source = LIBRARY.path("tests/c/gsi_groups.c");
    let Some(trace) = trace_of(&source) else { return };
    figures_6_and_7(&trace);
}

/// Runs a program of gsi.h; its trace. `None`: the machine lacks something.
fn trace_of(source: &Path) -> Option<Trace> {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join(source.file_stem().expect("a file"));
    let trace = folder.path().join("trace");
    LIBRARY.compile(source, &program, &[CONVERSIONS]);
    let _turn = turn();
    let mut command = Command::new(&program);
    let ran = passed(command.env("PUNCTUAL_GSI_TRACE", &trace), folder.path());
    ran.then(|| read(&trace))
}

/// The ended jobs of its processes, each list that of one.
fn jobs_of_program(source: &Path) -> Option<Vec<Vec<TracedJob>>> {
    trace_of(source).map(|trace| jobs_of(&trace).into_values().collect())
}

#[test]
fn figures_3_and_4_execute_optional_parts_on_what_mandatory_ones_left() {
    jobs_of_program(&example("fig3.c")).map(|jobs| figures_3_and_4(&jobs));
}

#[test]
fn mandatory_parts_come_before_other_jobs_and_optional_ones_after_them() {
    let source = LIBRARY.path("tests/c/gsi_bands.c");
    jobs_of_program(&source).map(|jobs| bands(&jobs));
}

#[test]
fn figure_5_promotes_what_the_low_band_did_not_complete() {
    jobs_of_program(&example("fig5.c")).map(|jobs| figure_5(&jobs));
}
