//! Commands, running processes, and single threads of these.

use punctual_diagnostic::Diagnostic;
use punctual_process::{CommandSpec, Commands};
use punctual_taskset::TaskSpec;

use crate::request::{check_role, request};
use crate::{ReservedTask, ServiceHost, TaskBody};

/// A program that is to have a reservation.
pub enum ReservedProgram {
    /// Started, and held at its exec until [`ServiceHost::begin`].
    Command(CommandSpec),
    /// A running process with its children.
    Process(i32),
    /// One thread of a running process.
    ThreadOf {
        /// The process.
        pid: i32,
        /// The thread.
        tid: i32,
    },
}

impl ServiceHost {
    /// Reserves for all these programs, each as task number `index`, or for none. Commands are held
    /// until [`begin`](ServiceHost::begin), which the same thread calls.
    ///
    /// # Errors
    /// The service refuses a task, or has ended; a command is not there.
    pub fn add_programs(
        &mut self,
        programs: Vec<(u32, &TaskSpec, ReservedProgram)>,
    ) -> Result<(), Diagnostic> {
        if programs.is_empty() {
            return Ok(());
        }
        let mut requests = Vec::new();
        let mut bodies = Vec::new();
        for (index, spec, program) in programs {
            let (pid, tid, body) = match program {
                ReservedProgram::Command(command) => {
                    let (place, pid) = self.start_command(command, &spec.name)?;
                    (pid, None, TaskBody::Command(place))
                }
                ReservedProgram::Process(pid) => (pid, None, TaskBody::Adopted),
                ReservedProgram::ThreadOf { pid, tid } => (pid, Some(tid), TaskBody::Adopted),
            };
            requests.push(request(&self.set, spec, pid, tid));
            bodies.push((index, spec, body));
        }
        let reserved = self.with_client(|client| {
            let reserved = client.reserve(&requests)?;
            let checked = bodies.iter().zip(&reserved).try_for_each(|(of, i)| check_role(of.1, i));
            if checked.is_err() {
                reserved.iter().try_for_each(|info| client.release(info.id))?;
            }
            checked.map(|()| reserved)
        });
        let reserved = reserved.inspect_err(|_| self.kill(bodies.iter().map(|(.., body)| body)))?;
        for (info, (index, spec, body)) in reserved.iter().zip(bodies) {
            self.tasks.insert(info.id, ReservedTask::new(index, spec, body, info.id));
        }
        Ok(())
    }

    /// Starts a command, held; its place and its process.
    fn start_command(
        &mut self,
        command: CommandSpec,
        name: &str,
    ) -> Result<(usize, i32), Diagnostic> {
        let commands = match &mut self.commands {
            Some(commands) => commands,
            None => {
                let commands = Commands::new(&[])?;
                commands.let_adopt()?;
                self.commands.insert(commands)
            }
        };
        let place = commands.iter().count();
        Ok((place, commands.start(command, name)?.id().pid))
    }

    /// Kills those that are commands.
    pub(crate) fn kill<'a>(&self, bodies: impl Iterator<Item = &'a TaskBody>) {
        for body in bodies {
            let TaskBody::Command(place) = body else { continue };
            let command = self.commands.as_ref().and_then(|commands| commands.iter().nth(*place));
            command.into_iter().for_each(|command| command.kill_group());
        }
    }
}
