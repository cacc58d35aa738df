//! Results: statistics per task, tables for people, JSON for programs
