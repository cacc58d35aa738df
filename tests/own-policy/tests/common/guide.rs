//! The guide "Write your own" of docs/policies.md: its commands and its code.

const DOCUMENT: &str = include_str!("../../../../docs/policies.md");

/// The block of this language in the guide, without its fences.
pub fn block(language: &str) -> &'static str {
    block_of("\n## Write your own\n", language)
}

/// The first block of this language behind a heading.
pub fn block_of(heading: &str, language: &str) -> &'static str {
    let (_, part) = DOCUMENT.split_once(heading).expect("it has that part");
    let (_, rest) = part.split_once(&format!("```{language}\n")).expect("the guide has one");
    rest.split_once("```").expect("the block ends").0
}

/// Its commands, without comments.
pub fn commands() -> Vec<&'static str> {
    without_comments(block("sh"))
}

/// The lines of a block.
pub fn without_comments(block: &'static str) -> Vec<&'static str> {
    block.lines().map(|line| line.split(" # ").next().unwrap_or_default().trim()).collect()
}

/// The arguments of its runs with enforced budgets, on the kernel host or on the user host.
#[allow(dead_code)] // not every test program has a host
pub fn run_on(kernel: bool) -> Vec<&'static str> {
    let prefix = "sudo target/release/shortest ";
    let mut runs = commands().into_iter().filter_map(|line| line.strip_prefix(prefix));
    let run = runs.find(|line| line.contains("--host kernel") == kernel);
    run.expect("the guide has such a run").split(' ').collect()
}
