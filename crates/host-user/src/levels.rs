//! SCHED_FIFO levels in selection order, with as few changes as possible: each is a system call
//! for every thread of the task.

use crate::sched::{HIGHEST, LOWEST};

/// Places a member whose threads take `height` further levels above its own; returns its level.
///
/// `above` is the level of the member ranked above, `own` its present level, `below` the highest
/// level of the member ranked below, and all members ranked below need `needed` levels. All of the
/// member's levels are strictly below `above`; its level stays `own` where that holds already.
pub fn place(above: Option<i32>, own: i32, height: i32, below: Option<i32>, needed: i32) -> i32 {
    let ceiling = above.unwrap_or(HIGHEST + 1) - height;
    let floor = LOWEST + needed;
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

    use crate::dispatch::UNPARKED;
    use punctual_process::OWN_LEVELS;

    fn arrange(levels: &mut [i32]) {
        arrange_high(levels, &vec![0; levels.len()]);
    }

    fn arrange_high(levels: &mut [i32], heights: &[i32]) {
        for i in 0..levels.len() {
            let above = i.checked_sub(1).map(|a| levels[a]);
            let below = levels.get(i + 1).map(|l| l + heights[i + 1]);
            let needed = heights[i + 1..].iter().map(|h| h + 1).sum();
            levels[i] = place(above, levels[i], heights[i], below, needed);
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

    #[test]
    fn levels_of_threads_overlap_those_of_no_other_member() {
        let mut state = 1u64;
        let mut random = |limit: i32| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as i32 % limit
        };
        for _ in 0..100_000 {
            let mut levels = [0; UNPARKED].map(|_: i32| LOWEST + random(HIGHEST - LOWEST + 1));
            let heights = [0; UNPARKED].map(|_: i32| random(OWN_LEVELS + 1));
            arrange_high(&mut levels, &heights);
            for (i, pair) in levels.windows(2).enumerate() {
                assert!(pair[0] > pair[1] + heights[i + 1], "{levels:?} {heights:?}");
            }
            assert!(
                levels[0] + heights[0] <= HIGHEST && levels[3] >= LOWEST,
                "{levels:?} {heights:?}"
            );
        }
    }
}
