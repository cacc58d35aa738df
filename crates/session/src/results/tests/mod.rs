//! Figures by hand, and against a naive recomputation.

mod figures;
mod naive;
mod runs;

use super::*;
use punctual_trace::{JobEnd, Period, NEVER};
use runs::*;
