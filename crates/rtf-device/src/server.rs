//! The server of a device: one thread, which answers what it can and keeps what must wait.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use punctual_diagnostic::Diagnostic;
use punctual_ipc::{Access, Content, Error, Fifo, Reader, Writer};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::channel::{Channel, MAX_TRANSFER, MAX_WRITE};
use crate::protocol::{open_reply, poll_reply, write_reply, DeviceRequest, Operation};

/// How long the server relies on the descriptors of the FIFO while programs wait. Of several
/// programs that share a side, the first that looks makes the descriptors of all of them unready,
/// also where there is room for another's smaller write; and a killed program notifies no other.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

const READABLE: u32 = (libc::POLLIN | libc::POLLRDNORM) as u32;
const WRITABLE: u32 = (libc::POLLOUT | libc::POLLWRNORM) as u32;
const FAILED: u32 = libc::POLLERR as u32;

/// A file of a program, from open(2) to the last close(2).
#[derive(Debug)]
struct OpenFile {
    /// The events that it may have, by the mode in which it was opened.
    possible: u32,
    /// The events of the sides that it uses.
    used: u32,
    /// Names the programs that poll it, once one does.
    poll_handle: Option<u64>,
    /// The events that these programs wait for.
    awaited: u32,
    /// How many bytes must have room for it to be writable: those of the last write that had none,
    /// or 1.
    room: usize,
}

#[derive(Debug)]
struct WaitingRead {
    id: u64,
    size: usize,
}

#[derive(Debug)]
struct WaitingWrite {
    id: u64,
    data: Vec<u8>,
}

/// What serves a device.
#[derive(Debug)]
pub struct DeviceServer {
    channel: Channel,
    fifo: Fifo,
    /// The ends, while a file uses their side.
    reader: Option<Reader>,
    writer: Option<Writer>,
    files: BTreeMap<u64, OpenFile>,
    last_file: u64,
    /// In the order in which they came. No write overtakes one that waits for more room, or that
    /// might wait for ever.
    reads: VecDeque<WaitingRead>,
    writes: VecDeque<WaitingWrite>,
    /// What was read, on its way to a program.
    data: Vec<u8>,
}

/// What the server was woken for.
struct Ready {
    stop: bool,
    request: bool,
}

impl DeviceServer {
    pub fn new(channel: Channel, fifo: Fifo) -> Self {
        Self {
            channel,
            fifo,
            reader: None,
            writer: None,
            files: BTreeMap::new(),
            last_file: 0,
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            data: vec![0; MAX_TRANSFER],
        }
    }

    /// Serves until `stop` is readable or hung up.
    ///
    /// # Errors
    /// ENODEV: the kernel ended the device. Others: it refused a system call.
    pub fn run(mut self, stop: BorrowedFd<'_>) -> io::Result<()> {
        let mut buffer = Channel::buffer();
        loop {
            self.serve_reads()?;
            self.serve_writes()?;
            self.notify_pollers()?;
            let ready = self.wait(stop)?;
            if ready.stop {
                return self.end();
            }
            if ready.request {
                if let Some(request) = self.channel.receive(&mut buffer)? {
                    self.handle(request)?;
                }
            }
        }
    }

    /// Waits for a request, and for the sides for which a program waits. The others are not
    /// looked at: their descriptors may be ready all the time.
    fn wait(&mut self, stop: BorrowedFd<'_>) -> io::Result<Ready> {
        let awaits = |events| self.files.values().any(|file| file.awaited & events != 0);
        let for_reader = !self.reads.is_empty() || awaits(READABLE);
        let for_writer = !self.writes.is_empty() || awaits(WRITABLE);
        let reader = self.reader.as_mut().filter(|_| for_reader).map(Reader::descriptor);
        let writer = self.writer.as_mut().filter(|_| for_writer).map(Writer::descriptor);
        let mut fds = vec![stop, self.channel.as_fd()];
        fds.extend(reader.into_iter().chain(writer));
        let timeout = (fds.len() > 2).then_some(&LOOK_AGAIN);
        let mut fds: Vec<_> =
            fds.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |n: usize| !fds[n].revents().is_empty();
        Ok(Ready { stop: is_ready(0), request: is_ready(1) })
    }

    /// Answers those that wait. Closing the channel does the same to requests that were not
    /// received.
    fn end(self) -> io::Result<()> {
        let reads = self.reads.iter().map(|read| read.id);
        for id in reads.chain(self.writes.iter().map(|write| write.id)) {
            self.channel.fail(id, libc::ENODEV)?;
        }
        Ok(())
    }

    fn handle(&mut self, request: DeviceRequest<'_>) -> io::Result<()> {
        let id = request.id;
        let answer = match request.operation {
            Operation::Open { flags } => return self.open(id, flags),
            Operation::Read { file, offset, size, flags } => {
                let waits = offset == 0 && !is_nonblocking(flags);
                return match self.read(id, file, size, offset, waits) {
                    Ok(Some(length)) => self.channel.reply(id, &self.data[..length]),
                    Ok(None) => Ok(()),
                    Err(errno) => self.channel.fail(id, errno),
                };
            }
            Operation::Write { file, offset, flags, data } => {
                match self.write(id, file, data, offset, !is_nonblocking(flags)) {
                    Ok(true) => Ok(write_reply(data.len())),
                    Ok(false) => return Ok(()),
                    Err(errno) => Err(errno),
                }
            }
            Operation::Poll { file, handle, notify, events } => {
                let ready = self.poll(file, events);
                if let Some(file) = self.files.get_mut(&file).filter(|_| notify) {
                    file.poll_handle = Some(handle);
                    if ready & FAILED == 0 {
                        file.awaited |= events & file.possible & !ready;
                    }
                }
                Ok(poll_reply(ready))
            }
            Operation::Release { file } => {
                self.release(file);
                return self.channel.reply(id, &[]);
            }
            Operation::Interrupt { id } => return self.interrupt(id),
            Operation::Ioctl => Err(libc::ENOTTY),
            Operation::Init | Operation::Unknown => Err(libc::ENOSYS),
        };
        match answer {
            Ok(data) => self.channel.reply(id, &data),
            Err(errno) => self.channel.fail(id, errno),
        }
    }

    fn open(&mut self, id: u64, flags: u32) -> io::Result<()> {
        let possible = match flags as i32 & libc::O_ACCMODE {
            libc::O_RDONLY => READABLE,
            libc::O_WRONLY => WRITABLE,
            _ => READABLE | WRITABLE,
        };
        self.last_file += 1;
        let file = OpenFile { possible, used: 0, poll_handle: None, awaited: 0, room: 1 };
        self.files.insert(self.last_file, file);
        self.channel.reply(id, &open_reply(self.last_file))
    }

    /// Reads into `self.data`; returns how many bytes, or `None`: it waits.
    ///
    /// # Errors
    /// The number of the error.
    fn read(
        &mut self,
        id: u64,
        file: u64,
        size: usize,
        offset: u64,
        waits: bool,
    ) -> Result<Option<usize>, i32> {
        let size = size.min(MAX_TRANSFER);
        let is_part = offset > 0;
        let is_message = self.fifo.attr().content == Content::Messages;
        if is_part && is_message {
            return Ok(Some(0));
        }
        self.use_reader(file)?;
        if waits {
            // Served at once, if there is something and no other waits.
            self.reads.push_back(WaitingRead { id, size });
            return Ok(None);
        }
        let Some(reader) = &mut self.reader else { return Err(libc::EBADF) };
        match reader.get_some(&mut self.data[..size]) {
            Ok(length) => Ok(Some(length)),
            Err(Error::Empty) if is_part => Ok(Some(0)),
            Err(error) => {
                if error == Error::Empty {
                    self.await_again(file, READABLE);
                }
                Err(error.errno())
            }
        }
    }

    /// Writes all of `data`; false: it waits.
    ///
    /// # Errors
    /// The number of the error.
    fn write(
        &mut self,
        id: u64,
        file: u64,
        data: &[u8],
        offset: u64,
        waits: bool,
    ) -> Result<bool, i32> {
        let is_part = offset > 0;
        let is_message = self.fifo.attr().content == Content::Messages;
        if data.len() > MAX_WRITE || is_part && is_message {
            return Err(libc::EMSGSIZE);
        }
        self.use_writer(file)?;
        let Some(writer) = &mut self.writer else { return Err(libc::EBADF) };
        let put = match self.writes.is_empty() {
            true => writer.put(data),
            // Refused at once, if it can never be put.
            false => writer.is_ready_for(data.len()).and(Err(Error::Full)),
        };
        let room = match put {
            Err(Error::Full) if waits => {
                self.writes.push_back(WaitingWrite { id, data: data.to_vec() });
                return Ok(false);
            }
            Err(Error::Full) => data.len(),
            _ => 1,
        };
        if let Some(file) = self.files.get_mut(&file) {
            file.room = room;
        }
        if put == Err(Error::Full) {
            self.await_again(file, WRITABLE);
        }
        put.map(|()| true).map_err(Error::errno)
    }

    /// What is ready of `events` of a file.
    fn poll(&mut self, number: u64, events: u32) -> u32 {
        let Some(file) = self.files.get(&number) else { return FAILED };
        let (events, room) = (events & file.possible, file.room);
        let mut ready = 0;
        if events & READABLE != 0 {
            ready |= match self.use_reader(number).map(|()| self.is_readable()) {
                Ok(Ok(is_ready)) => READABLE * u32::from(is_ready),
                _ => FAILED,
            };
        }
        if events & WRITABLE != 0 {
            ready |= match self.use_writer(number).map(|()| self.is_writable(room)) {
                Ok(Ok(is_ready)) => WRITABLE * u32::from(is_ready),
                _ => FAILED,
            };
        }
        ready & (events | FAILED)
    }

    /// A program that was notified of events polls no more where its epoll is edge-triggered: the
    /// events are awaited again when a read or write finds nothing.
    fn await_again(&mut self, file: u64, events: u32) {
        if let Some(file) = self.files.get_mut(&file) {
            if file.poll_handle.is_some() {
                file.awaited |= events;
            }
        }
    }

    /// A program that waits has a signal. A request that was answered meanwhile stays so.
    fn interrupt(&mut self, id: u64) -> io::Result<()> {
        let waiting = self.reads.len() + self.writes.len();
        self.reads.retain(|read| read.id != id);
        self.writes.retain(|write| write.id != id);
        if self.reads.len() + self.writes.len() < waiting {
            self.channel.fail(id, libc::EINTR)?;
        }
        Ok(())
    }

    /// Drops a file, and the ends that no file uses any more, so that another program can have
    /// their side alone. The kernel releases no file that has a request.
    fn release(&mut self, file: u64) {
        self.files.remove(&file);
        let used = self.files.values().fold(0, |used, file| used | file.used);
        if used & READABLE == 0 {
            self.reader = None;
        }
        if used & WRITABLE == 0 {
            self.writer = None;
        }
    }

    fn serve_reads(&mut self) -> io::Result<()> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        while let Some(&WaitingRead { id, size }) = self.reads.front() {
            match reader.get_some(&mut self.data[..size]) {
                Err(Error::Empty) => break,
                Ok(length) => self.channel.reply(id, &self.data[..length])?,
                Err(error) => self.channel.fail(id, error.errno())?,
            }
            self.reads.pop_front();
        }
        Ok(())
    }

    fn serve_writes(&mut self) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        while let Some(WaitingWrite { id, data }) = self.writes.front() {
            match writer.put(data) {
                Err(Error::Full) => break,
                Ok(()) => self.channel.reply(*id, &write_reply(data.len()))?,
                Err(error) => self.channel.fail(*id, error.errno())?,
            }
            self.writes.pop_front();
        }
        Ok(())
    }

    /// Wakes the programs that poll for what is ready by now. They poll again then.
    fn notify_pollers(&mut self) -> io::Result<()> {
        let numbers: Vec<u64> =
            self.files.iter().filter(|(_, file)| file.awaited != 0).map(|(n, _)| *n).collect();
        for number in numbers {
            let Some(file) = self.files.get(&number) else { continue };
            let ready = self.poll(number, file.awaited);
            let Some(file) = self.files.get_mut(&number) else { continue };
            if ready & FAILED != 0 {
                file.awaited = 0;
            }
            file.awaited &= !ready;
            if let Some(handle) = file.poll_handle.filter(|_| ready != 0) {
                self.channel.notify_poll(handle)?;
            }
        }
        Ok(())
    }

    fn is_readable(&mut self) -> Result<bool, Error> {
        self.reader.as_mut().map_or(Ok(false), Reader::is_ready)
    }

    fn is_writable(&mut self, room: usize) -> Result<bool, Error> {
        let is_first = self.writes.is_empty();
        let writer = self.writer.as_mut().filter(|_| is_first);
        writer.map_or(Ok(false), |writer| writer.is_ready_for(room))
    }

    /// The file uses the readers' side from now on.
    fn use_reader(&mut self, file: u64) -> Result<(), i32> {
        if self.reader.is_none() {
            let mut reader = self.fifo.reader(Access::Shared).map_err(refused)?;
            // From here on a get that finds nothing makes it unready.
            reader.descriptor();
            self.reader = Some(reader);
        }
        self.mark(file, READABLE)
    }

    fn use_writer(&mut self, file: u64) -> Result<(), i32> {
        if self.writer.is_none() {
            let mut writer = self.fifo.writer(Access::Shared).map_err(refused)?;
            writer.descriptor();
            self.writer = Some(writer);
        }
        self.mark(file, WRITABLE)
    }

    fn mark(&mut self, file: u64, events: u32) -> Result<(), i32> {
        let file = self.files.get_mut(&file).ok_or(libc::EBADF)?;
        file.used |= events;
        Ok(())
    }
}

fn is_nonblocking(flags: u32) -> bool {
    flags as i32 & libc::O_NONBLOCK != 0
}

fn refused(error: Diagnostic) -> i32 {
    error.errno.unwrap_or(libc::EIO)
}
