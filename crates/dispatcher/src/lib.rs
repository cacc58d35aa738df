//! The safe Rust face of the dispatcher, Punctual's scheduling mechanism in C
