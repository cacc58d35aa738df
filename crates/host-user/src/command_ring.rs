//! The ring of commands from the control side to an engine.
//!
//! Commands of a member's life always have a place: when the engine sends a member's last notice it
//! has popped its `Add` and `Gone`, and only `room` members at a time have not had that notice
//! popped. A change may come any number of times: changes have places of their own, and are refused
//! while these are in use.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::engine::Command;

/// Changes that wait for an engine at most.
const CHANGES: u64 = 64;

impl Command {
    /// A command that may come any number of times; the others belong to a member's life, or there
    /// is one of them at a time.
    fn is_change(&self) -> bool {
        matches!(self, Command::Change(..) | Command::OrderJobs(..))
    }
}

/// The control side's end.
pub struct CommandSender {
    ring: Producer<Command>,
    /// Members that may be handed over without their last notice having been popped.
    room: usize,
    /// Those that are.
    in_flight: usize,
    changes_sent: u64,
    changes_taken: Arc<AtomicU64>,
}

/// The engine's end.
pub struct CommandReceiver {
    ring: Consumer<Command>,
    changes_taken: Arc<AtomicU64>,
}

/// Both ends of a ring for `room` members in flight.
pub fn command_ring(room: usize) -> (CommandSender, CommandReceiver) {
    // `Add` and `Gone` of each, `Begin`, and one `Swap`.
    let lives = 2 * room + 2;
    let (sender, receiver) = RingBuffer::new(lives + CHANGES as usize);
    let changes_taken = Arc::new(AtomicU64::new(0));
    (
        CommandSender {
            ring: sender,
            room,
            in_flight: 0,
            changes_sent: 0,
            changes_taken: changes_taken.clone(),
        },
        CommandReceiver { ring: receiver, changes_taken },
    )
}

impl CommandSender {
    /// Whether so many more members can be handed over.
    pub fn has_room(&self, members: usize) -> bool {
        self.in_flight + members <= self.room
    }

    /// The last notice of a member has been popped.
    pub fn member_has_left(&mut self) {
        self.in_flight -= 1;
    }

    /// Hands a command over that is no change; ring the engine's doorbell after it. There is always
    /// room, see above.
    pub fn send(&mut self, command: Command) {
        debug_assert!(!command.is_change(), "a change has its own places");
        self.in_flight += usize::from(matches!(command, Command::Add(_)));
        let sent = self.ring.push(command);
        debug_assert!(sent.is_ok(), "more commands than members in flight permit");
    }

    /// Whether a change can be sent.
    ///
    /// # Errors
    /// EAGAIN: [`CHANGES`] of them wait for the engine.
    pub fn has_room_for_change(&self) -> Result<(), Diagnostic> {
        // Pairs with the receiver, which has popped them.
        if self.changes_sent - self.changes_taken.load(Acquire) < CHANGES {
            return Ok(());
        }
        Err(Diagnostic::machine("the dispatcher is behind with its commands", "try again")
            .with_errno(libc::EAGAIN))
    }

    /// Hands a change over; ring the engine's doorbell after it.
    ///
    /// # Errors
    /// As [`CommandSender::has_room_for_change`]; the command is dropped.
    pub fn send_change(&mut self, command: Command) -> Result<(), Diagnostic> {
        debug_assert!(command.is_change(), "its place is another one's");
        self.has_room_for_change()?;
        self.changes_sent += 1;
        let sent = self.ring.push(command);
        debug_assert!(sent.is_ok(), "changes have their own places");
        Ok(())
    }
}

impl CommandReceiver {
    /// The next command. Real-time safe.
    pub fn take(&mut self) -> Option<Command> {
        let command = self.ring.pop().ok()?;
        if command.is_change() {
            self.changes_taken.fetch_add(1, Release);
        }
        Some(command)
    }

    /// There is no sender any more.
    pub fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_taskset::TaskChange;

    #[test]
    fn changes_leave_the_places_of_members_that_leave_and_come() {
        const ROOM: usize = 3;
        let (mut sender, mut receiver) = command_ring(ROOM);
        let change = || Command::Change(0, TaskChange::default());
        let mut sent = 0;
        while sender.send_change(change()).is_ok() {
            sent += 1;
        }
        assert_eq!(sent, CHANGES);
        // `Gone` stands for `Add` as well: what a place is used for makes no difference.
        for _ in 0..2 * ROOM + 2 {
            sender.send(Command::Gone(0));
        }
        assert!(sender.ring.is_full());
        let refused = sender.send_change(change()).expect_err("all places are in use");
        assert_eq!(refused.errno, Some(libc::EAGAIN));
        assert!(receiver.take().is_some_and(|command| command.is_change()));
        assert!(sender.send_change(change()).is_ok(), "the engine took one");
        assert!(sender.send_change(change()).is_err());
        assert_eq!(std::iter::from_fn(|| receiver.take()).count(), sent as usize + 2 * ROOM + 2);
        assert!(sender.send_change(change()).is_ok());
    }
}
