//! Why a file is no trace.

use std::io;

/// Why a trace could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It could not be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is not a trace, or one of another version.
    #[error("not a trace that this version reads: {0}")]
    Format(String),
    /// Its header is not what was written.
    #[error("its header was changed since it was written")]
    Header,
    /// It ends before its end.
    #[error("cut short at record {number}")]
    Short {
        /// The first record that is not there whole.
        number: u64,
    },
    /// A record is not what was written, or not in its place.
    #[error("record {number} was changed since it was written ({what})")]
    Changed {
        /// The first such record.
        number: u64,
        /// What stands there now.
        what: String,
    },
}
