//! Priorities: those of the threads of RT-Linux 2 and 3, where the larger number is the more
//! important one, and those of the paper and of RT-Linux 1, where the smaller one is.

/// The least important priority of the paper's calls (RT_LOWEST_PRIORITY), and the most important
/// one of a thread.
pub const LARGEST: i32 = 1_000_000;

/// The priority of a thread, as a dispatcher has it; `None`: out of its range.
pub fn of_thread(priority: i32) -> Option<i64> {
    (0..=LARGEST).contains(&priority).then_some(priority.into())
}

/// That of the paper.
pub fn of_task(priority: i32) -> Option<i64> {
    (0..=LARGEST).contains(&priority).then(|| (LARGEST - priority).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_smaller_number_comes_first_and_a_threads_larger_one() {
        assert!(of_task(1) > of_task(2));
        assert!(of_thread(2) > of_thread(1));
        assert_eq!(of_task(LARGEST), of_thread(0));
        for bad in [-1, LARGEST + 1, i32::MIN, i32::MAX] {
            assert_eq!((of_task(bad), of_thread(bad)), (None, None));
        }
    }
}
