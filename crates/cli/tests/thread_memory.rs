//! What each thread of the command takes before it does anything.

/// The type of a program header for thread-local memory (elf(5), PT_TLS).
const THREAD_LOCAL: u32 = 7;

/// Static thread-local memory lies on each thread's stack, and the thread clears it: 64 KiB of it
/// took 7 MiB with a hundred tasks, and left each of them a third of its stack.
#[test]
fn the_thread_local_memory_of_the_command_is_less_than_a_page() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_punctual")).expect("it can be read");
    // elf(5): e_phoff, e_phentsize and e_phnum; p_type and p_memsz.
    let word = |at: usize, len: usize| {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&program[at..at + len]);
        u64::from_le_bytes(bytes)
    };
    let (headers, size, count) = (word(32, 8), word(54, 2), word(56, 2));
    let memory: Vec<u64> = (0..count)
        .map(|n| (headers + n * size) as usize)
        .filter(|&at| word(at, 4) == u64::from(THREAD_LOCAL))
        .map(|at| word(at + 40, 8))
        .collect();
    assert!(memory.len() == 1 && memory[0] < 4096, "{memory:?}");
}
