//! Roles of this test binary (see adversarial.rs) with a second thread that reserves for itself,
//! with a page, and then misuses that.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use punctual_service::descriptor::DescriptorReader;
use punctual_service::message::{send, MessageReader};
use punctual_service::ClientPage;
use punctual_sys::futex;
use punctual_sys::sched::thread_id;
use serde_json::{json, Value};

use super::{spin, LIFE};

const PAGE: usize = 4096;
const WORDS: usize = PAGE / size_of::<u32>();
/// Its place in the page, in words: on which clients wait.
const ANSWERED: usize = 1;

/// A page with its descriptor and another mapping of it; they live as long as the process.
struct Attacker {
    memory: File,
    words: &'static [AtomicU32],
    page: ClientPage,
    /// The lease.
    _connection: UnixStream,
}

/// Reserves 1 ms in 10 ms for the second thread by the service at `socket`, and plays what `attack`
/// names there.
pub fn attack(attack: &str, socket: &str) {
    let (attack, socket) = (attack.to_owned(), socket.to_owned());
    let second = std::thread::spawn(move || {
        let attacker = reserve(&socket);
        match attack.as_str() {
            "asks" => attacker.ask_without_end(),
            "yields" => yield_without_end(),
            "executes" => attacker.execute_while_it_waits(),
            "garbage" => attacker.write_garbage(),
            "unmaps" => attacker.unmap(),
            "removes" => attacker.remove(),
            "hammers" => attacker.hammer(),
            "passes" => attacker.pass_on(),
            _ => std::process::exit(99),
        }
    });
    let _ = second.join();
    std::thread::sleep(LIFE);
}

fn call(connection: &mut UnixStream, method: &str, parameters: &Value) -> (Value, Option<File>) {
    let call = json!({ "method": format!("io.punctual.Service.{method}"),
                       "parameters": parameters });
    send(connection, &call).expect("it serves");
    let mut from = DescriptorReader::new(connection);
    let answer = MessageReader::new(1 << 20).next(&mut from).expect("it serves");
    let answer = serde_json::from_slice(&answer.expect("an answer")).expect("an object");
    (answer, from.descriptors.pop().map(File::from))
}

fn reserve(socket: &str) -> Attacker {
    let mut connection = UnixStream::connect(socket).expect("it serves");
    let end = Instant::now() + LIFE;
    while Instant::now() < end {
        let (answer, memory) = call(&mut connection, "MakePage", &json!({}));
        let memory = memory.unwrap_or_else(|| panic!("{answer}"));
        let page = ClientPage::open(memory.as_fd()).expect("it is not sealed");
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping, of a page that is always accessed by atomics.
        let words = unsafe {
            let at = libc::mmap(std::ptr::null_mut(), PAGE, access, flags, memory.as_raw_fd(), 0);
            assert_ne!(at, libc::MAP_FAILED);
            std::slice::from_raw_parts(at.cast::<AtomicU32>(), WORDS)
        };
        let task = json!({ "name": "page", "pid": std::process::id(), "tid": thread_id(),
                           "period_ns": 10_000_000, "budget_ns": 1_000_000, "page": true });
        let (answer, _) = call(&mut connection, "Reserve", &json!({ "tasks": [task] }));
        if answer["error"].is_null() {
            return Attacker { memory, words, page, _connection: connection };
        }
        assert!(answer.to_string().contains("already has a dispatcher"), "{answer}");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::process::exit(98);
}

/// Inside the kernel each is a wait.
fn yield_without_end() {
    let end = Instant::now() + LIFE;
    while Instant::now() < end {
        std::thread::yield_now();
    }
}

impl Attacker {
    fn ask_without_end(&self) {
        let end = Instant::now() + LIFE;
        while Instant::now() < end {
            self.page.ask();
        }
    }

    fn execute_while_it_waits(&self) {
        self.page.ask();
        self.page.ask();
        spin(LIFE);
    }

    fn write_garbage(&self) {
        let end = Instant::now() + LIFE;
        let mut random = 1u64;
        while Instant::now() < end {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            self.words[(random >> 40) as usize % WORDS].store((random >> 32) as u32, SeqCst);
        }
    }

    fn unmap(&self) {
        // SAFETY: nothing refers to the memory any more: the thread spins until its process ends.
        unsafe { libc::munmap(self.words.as_ptr().cast_mut().cast(), PAGE) };
        spin(LIFE);
    }

    /// Tries to take the page away from the service.
    fn remove(&self) {
        const HUGE: usize = 2 << 20;
        const MADV_COLLAPSE: i32 = 25;
        let end = Instant::now() + LIFE;
        let memory = self.memory.as_raw_fd();
        let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: new mappings, of which the second replaces a part of the first; it is not read.
        let at = unsafe {
            let free = libc::mmap(
                std::ptr::null_mut(),
                3 * HUGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            let at = (free as usize).next_multiple_of(HUGE) as *mut libc::c_void;
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            libc::mmap(at, HUGE, libc::PROT_READ, flags, memory, 0)
        };
        while Instant::now() < end {
            // SAFETY: all of it is the client's own, and accessed by atomics alone.
            unsafe {
                libc::ftruncate(memory, 0);
                libc::fallocate(memory, punch, 0, PAGE as libc::off_t);
                let words = self.words.as_ptr().cast_mut().cast();
                libc::madvise(words, PAGE, libc::MADV_REMOVE);
                libc::madvise(words, PAGE, libc::MADV_PAGEOUT);
                libc::madvise(at, HUGE, MADV_COLLAPSE);
            }
        }
    }

    /// Threads that wait on the page's word, and wake each other, beside one that asks.
    fn hammer(&self) {
        let word = &self.words[ANSWERED];
        for waits in [true, false].repeat(8) {
            std::thread::spawn(move || loop {
                match waits {
                    true => futex::wait_shared(word, word.load(SeqCst), u64::MAX),
                    false => futex::wake_shared(word),
                }
            });
        }
        self.ask_without_end();
    }

    /// Another process has the page, too.
    fn pass_on(&self) {
        // SAFETY: the child writes the shared page alone.
        match unsafe { libc::fork() } {
            0 => {
                self.write_garbage();
                std::process::exit(0);
            }
            _ => spin(LIFE),
        }
    }
}
