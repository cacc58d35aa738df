//! What tasks execute: calibrated spinning and commands
