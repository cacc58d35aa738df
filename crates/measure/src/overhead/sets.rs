//! The RTAI paper's task sets.

/// The set of Tables 2 and 3: 2 ms/1 ms and 5 ms/1 ms, which never stop by themselves.
pub const TABLE_2: &str = r#"
policy = "rm"
task = [
  { name = "tau1", period = "2ms", budget = "1ms", work = { spin = "forever" } },
  { name = "tau2", period = "5ms", budget = "1ms", work = { spin = "forever" } },
]
"#;

/// The three computing tasks of Fig. 6.
pub const FIG_6: &str = r#"
policy = "rm"
task = [
  { name = "4ms/1ms", period = "4ms", budget = "1ms", work = { spin = "forever" } },
  { name = "2ms/0.5ms", period = "2ms", budget = "500us", work = { spin = "forever" } },
  { name = "1ms/0.25ms", period = "1ms", budget = "250us", work = { spin = "forever" } },
]
"#;
