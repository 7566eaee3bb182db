//! Circles among waits: each wait is for the buffers that another one occupies.

use std::collections::BTreeMap;

/// Keeps the waits that can never end: all waits that they wait for are kept, too. The answer is
/// the largest set with this property.
pub(super) fn keep_stuck<W: Copy + Ord>(after: &mut BTreeMap<W, Vec<W>>) {
    loop {
        let goes_on = |waits_for: &[W]| waits_for.iter().any(|other| !after.contains_key(other));
        let free: Vec<W> = after.iter().filter(|(_, next)| goes_on(next)).map(|(wait, _)| *wait).collect();
        if free.is_empty() {
            return;
        }
        after.retain(|wait, _| free.binary_search(wait).is_err());
    }
}

/// Returns the circle in which a way of waits ends. All waits in `after` are for others in it.
pub(super) fn circle_behind<W: Copy + Ord>(start: W, after: &BTreeMap<W, Vec<W>>) -> Option<Vec<W>> {
    let mut way = vec![start];
    loop {
        let last = *way.last()?;
        let to = *after.get(&last)?.first()?;
        if let Some(begin) = way.iter().position(|other| *other == to) {
            return Some(way.split_off(begin));
        }
        way.push(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(of: &[(u8, &[u8])]) -> BTreeMap<u8, Vec<u8>> {
        of.iter().map(|(wait, next)| (*wait, next.to_vec())).collect()
    }

    #[test]
    fn a_wait_that_has_one_way_on_is_not_stuck_and_frees_those_behind_it() {
        let mut after = waits(&[(1, &[2]), (2, &[3]), (3, &[1, 9])]);
        keep_stuck(&mut after);
        assert!(after.is_empty(), "{after:?}");
    }

    #[test]
    fn a_wait_behind_a_circle_is_stuck_but_not_part_of_it() {
        let mut after = waits(&[(1, &[2]), (2, &[3]), (3, &[2]), (4, &[5])]);
        keep_stuck(&mut after);
        assert_eq!(after.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(circle_behind(1, &after), Some(vec![2, 3]));
    }
}
