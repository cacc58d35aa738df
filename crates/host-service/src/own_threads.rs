//! Threads of this program.

use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_diagnostic::Diagnostic;
use punctual_taskset::TaskSpec;
use punctual_trace::{RunEvent, TaskEnd};

use crate::renewal::Renewal;
use crate::request::request;
use crate::thread::{lock, ServiceEntry, ServiceThread};
use crate::{ReservedTask, ServiceHost, TaskBody};

/// How long the threads of this program are waited for at the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// A thread that this host has made.
pub(crate) struct OwnThread {
    pub task: String,
    pub entry: Arc<ServiceEntry>,
    /// Has it begin; taken then.
    pub begin: Option<Sender<()>>,
    thread: JoinHandle<()>,
}

impl ServiceHost {
    /// Makes a thread of this program and reserves for it, as task number `index`. After
    /// [`begin`](ServiceHost::begin) it calls `body` at its first release.
    ///
    /// # Errors
    /// No thread can be made; the service refuses it, or has ended. `body` was not called then.
    pub fn add_thread(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        stack: usize,
        body: impl FnOnce(ServiceThread) + Send + 'static,
    ) -> Result<(), Diagnostic> {
        let entry = self.prepare_entry();
        let (ready, is_ready) = channel();
        let (begin, begins) = channel();
        let of_thread = entry.clone();
        let name = spec.name.chars().take(15).collect();
        let made = std::thread::Builder::new().name(name).stack_size(stack).spawn(move || {
            let thread = of_thread.enter();
            let _ = ready.send(());
            // An error: the set was not started.
            if begins.recv().is_err() {
                return thread.end_with(TaskEnd::NeverReleased);
            }
            thread.await_first_release();
            match thread.is_over() {
                true => thread.end_with(TaskEnd::NeverReleased),
                false => body(thread),
            }
        });
        let thread = made.map_err(|e| {
            let cause = format!("no thread can be made: {e}");
            Diagnostic::machine(cause, "raise RLIMIT_NPROC, or run fewer tasks").of_task(&spec.name)
        })?;
        // It sends in any case.
        let _ = is_ready.recv();
        self.add_entered(index, spec, &entry)?;
        self.threads.retain(|own| !own.thread.is_finished());
        let (task, begin) = (spec.name.clone(), Some(begin));
        self.threads.push(OwnThread { task, entry, begin, thread });
        Ok(())
    }

    /// Prepares a thread of this program that exists already to become a task. It calls
    /// [`ServiceEntry::enter`]; then [`add_entered`](ServiceHost::add_entered) makes it one.
    #[must_use]
    pub fn prepare_entry(&self) -> Arc<ServiceEntry> {
        ServiceEntry::new(&self.client)
    }

    /// Reserves for the thread that has entered, as task number `index`.
    ///
    /// # Errors
    /// The service refuses it, or has ended.
    pub fn add_entered(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        entry: &Arc<ServiceEntry>,
    ) -> Result<(), Diagnostic> {
        let pid = std::process::id() as i32;
        let request = request(&self.set, spec, pid, Some(entry.tid()));
        let reserved = self.with_client(|client| client.reserve_thread(&request))?;
        let id = reserved.info().id;
        let body = TaskBody::Own(entry.clone(), Renewal::new(request, reserved.info()));
        let task = ReservedTask::new(index, spec, body, id);
        entry.pass(reserved, &task.reservation);
        self.tasks.insert(id, task);
        Ok(())
    }

    /// Closes the connection, waits for the threads of this program, and reports their ends.
    pub(crate) fn end_threads(&mut self, sink: &mut dyn FnMut(RunEvent)) {
        let own = |task: &ReservedTask| match &task.body {
            TaskBody::Own(entry, _) => Some(entry.clone()),
            _ => None,
        };
        self.tasks.values().filter_map(own).for_each(|entry| entry.set_over());
        drop(lock(&self.client).take());
        let until = Instant::now() + PATIENCE;
        for own in &mut self.threads {
            own.begin = None;
            while !own.thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.tasks.retain(|_, task| {
            let Some(how) = own(task).and_then(|entry| entry.how()) else { return true };
            sink(RunEvent::Ended { task: task.index, how });
            false
        });
    }
}
