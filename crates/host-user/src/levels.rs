//! SCHED_FIFO levels in selection order, with as few changes as possible: each is a system call
//! for every thread of the task.

use crate::sched::{HIGHEST, LOWEST};

/// The level for the member at `rank`, given the level of the one above it (if any), its own, and
/// that of the one below. Strictly below the one above; its own if that will do.
pub fn place(above: Option<i32>, own: i32, below: Option<i32>, rank: usize, count: usize) -> i32 {
    let ceiling = above.unwrap_or(HIGHEST + 1);
    // Those after it must find a place beneath.
    let floor = LOWEST + (count - 1 - rank) as i32;
    if own < ceiling && own >= floor {
        return own;
    }
    match below {
        Some(below) if below >= floor && below + 1 < ceiling => (below + ceiling) / 2,
        _ => (floor + ceiling) / 2,
    }
    .clamp(floor, ceiling - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrange(levels: &mut [i32]) {
        let count = levels.len();
        for i in 0..count {
            let above = i.checked_sub(1).map(|a| levels[a]);
            levels[i] = place(above, levels[i], levels.get(i + 1).copied(), i, count);
        }
    }

    #[test]
    fn an_order_that_holds_is_left_alone() {
        let mut levels = [90, 80, 70, 60];
        arrange(&mut levels);
        assert_eq!(levels, [90, 80, 70, 60]);
    }

    #[test]
    fn a_newcomer_goes_between_without_moving_the_others() {
        let mut levels = [80, 90, 70, 65];
        arrange(&mut levels);
        assert_eq!([levels[0], levels[2], levels[3]], [80, 70, 65]);
        assert!(levels[1] < 80 && levels[1] > 70);
    }

    #[test]
    fn any_order_ends_strictly_descending_within_the_range() {
        let mut state = 1u64;
        for _ in 0..100_000 {
            let mut levels = [0; 4];
            for l in &mut levels {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                *l = LOWEST + (state >> 33) as i32 % (HIGHEST - LOWEST + 1);
            }
            arrange(&mut levels);
            assert!(levels.windows(2).all(|w| w[0] > w[1]), "{levels:?}");
            assert!(levels[0] <= HIGHEST && levels[3] >= LOWEST, "{levels:?}");
        }
    }
}
