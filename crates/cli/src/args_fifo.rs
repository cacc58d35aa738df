//! The arguments of `punctual fifo`.

use clap::{Args, Subcommand};
use punctual_ipc::Name;

#[derive(Args)]
#[command(after_help = "A FIFO lies in shared memory, in a folder of the user that is closed to \
others, and is found by its name or number. One that a program makes lives as long as a program \
has it open; one that `create` makes, until `remove`. docs/fifo.md has the rules.

First steps:
  punctual fifo create servo --messages     # a FIFO of messages
  punctual fifo cat servo --lines &         # prints each message on a line
  punctual fifo put servo \"set 10\"          # puts one
  punctual fifo list                        # who has which end

Exit codes: 0 done; 1 it was full, with put --no-wait or for --timeout; 2 bad usage, there is no \
such FIFO, or its end is another program's alone; 4 the machine does not permit it.")]
pub struct FifoCommand {
    #[command(subcommand)]
    pub action: FifoAction,
}

#[derive(Subcommand)]
pub enum FifoAction {
    /// Make a FIFO that lives until it is removed
    Create(Create),
    /// All FIFOs of this user
    List(ListFifos),
    /// Get from a FIFO, and write it to standard output, until Ctrl-C
    Cat(Cat),
    /// Put a text, or standard input, into a FIFO
    Put(Put),
    /// Serve a numbered FIFO as the device /dev/rtfN, for programs of RT-Linux, until Ctrl-C
    Device(Device),
    /// Remove the name of a FIFO; programs that have it open keep it
    Remove(Remove),
}

impl FifoAction {
    pub fn json(&self) -> bool {
        match self {
            Self::Create(create) => create.json,
            Self::List(list) => list.json,
            Self::Remove(remove) => remove.json,
            Self::Cat(_) | Self::Put(_) | Self::Device(_) => false,
        }
    }
}

#[derive(Args)]
pub struct Create {
    /// Its name, or its number
    pub name: Name,
    /// How many bytes it can have in it, with a unit k, M or G if wanted; rounded up to a power of
    /// two, at least 4k
    #[arg(long, value_name = "SIZE", default_value = "64k", value_parser = size)]
    pub capacity: usize,
    /// Of messages, each of which is got as it was put, instead of bytes
    #[arg(long)]
    pub messages: bool,
    /// What was made as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ListFifos {
    /// The list as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Cat {
    /// Its name, or its number
    pub name: Name,
    /// End after so many messages, or bytes
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// End when the FIFO is empty
    #[arg(long)]
    pub no_wait: bool,
    /// Write a line break after each message
    #[arg(long)]
    pub lines: bool,
}

#[derive(Args)]
pub struct Put {
    /// Its name, or its number
    pub name: Name,
    /// What to put [default: standard input]
    pub text: Option<String>,
    /// Each line of standard input is a message
    #[arg(long, conflicts_with = "text")]
    pub lines: bool,
    /// Fail where the FIFO is full, instead of waiting for room
    #[arg(long, conflicts_with = "timeout")]
    pub no_wait: bool,
    /// Fail where it is full for so long
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
}

#[derive(Args)]
pub struct Device {
    /// The number of the FIFO, and of the device
    pub number: u32,
}

#[derive(Args)]
pub struct Remove {
    /// Their names, or their numbers
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<Name>,
    /// What was removed as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// A number of bytes: `4096`, `64k`, `1M`.
fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = match text.strip_suffix(['k', 'K', 'M', 'G']) {
        Some(number) => (number, text.as_bytes()[text.len() - 1]),
        None => (text, b' '),
    };
    let shift = match unit {
        b'k' | b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        _ => 0,
    };
    let bytes = number.parse::<usize>().ok().and_then(|n| n.checked_mul(1 << shift));
    bytes.ok_or_else(|| "use a number of bytes, such as 4096, 64k or 1M".to_owned())
}
