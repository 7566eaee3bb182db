//! Occupation of a channel by transfers.

use std::collections::VecDeque;

/// Reserved spans that a channel remembers. Pauses before the oldest one are given up.
const MAX_SPANS: usize = 64;

/// Transfers without a pause between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    from_ps: u64,
    until_ps: u64,
}

/// Reserved transfers of a channel. A transfer takes the first pause that is long enough, so a
/// transfer of an idle die may precede reserved ones of busy dies.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    /// Transfers start at this time or later.
    open_ps: u64,
    /// In the order of time, with a pause between neighbours.
    spans: VecDeque<Span>,
}

impl Channel {
    pub(super) fn new() -> Channel {
        Channel { open_ps: 0, spans: VecDeque::with_capacity(MAX_SPANS + 1) }
    }

    /// Reserves the channel from `earliest_ps` on, and returns the end of the transfer.
    pub(super) fn reserve(&mut self, earliest_ps: u64, duration_ps: u64) -> u64 {
        let mut start_ps = earliest_ps.max(self.open_ps);
        if duration_ps == 0 {
            return start_ps;
        }
        let mut at = self.spans.partition_point(|span| span.until_ps < start_ps);
        while let Some(span) = self.spans.get(at)
            && start_ps.saturating_add(duration_ps) > span.from_ps
        {
            start_ps = start_ps.max(span.until_ps);
            at += 1;
        }
        let end_ps = start_ps.saturating_add(duration_ps);
        let joins_next = self.spans.get(at).is_some_and(|next| next.from_ps == end_ps);
        let joins_last = at > 0 && self.spans[at - 1].until_ps == start_ps;
        match (joins_last, joins_next) {
            (true, true) => {
                self.spans[at - 1].until_ps = self.spans[at].until_ps;
                self.spans.remove(at);
            }
            (true, false) => self.spans[at - 1].until_ps = end_ps,
            (false, true) => self.spans[at].from_ps = start_ps,
            (false, false) => self.spans.insert(at, Span { from_ps: start_ps, until_ps: end_ps }),
        }
        if self.spans.len() > MAX_SPANS
            && let Some(oldest) = self.spans.pop_front()
        {
            self.open_ps = oldest.until_ps;
        }
        end_ps
    }
}

#[cfg(test)]
mod tests {
    use super::{Channel, MAX_SPANS};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_transfer_takes_the_first_pause_that_is_long_enough(
            steps in prop::collection::vec((0u64..150, 1u64..8), 1..60),
        ) {
            let mut channel = Channel::new();
            let mut is_busy = vec![false; 1_000];
            for (earliest, duration) in steps {
                let is_free = |start: &usize| !is_busy[*start..*start + duration as usize].contains(&true);
                let start = (earliest as usize..).find(is_free).expect("the list is long enough");
                let end = start + duration as usize;
                is_busy[start..end].fill(true);
                prop_assert_eq!(channel.reserve(earliest, duration), end as u64);
            }
        }
    }

    #[test]
    fn a_channel_remembers_a_limited_number_of_pauses() {
        let mut channel = Channel::new();
        for at in 0..=MAX_SPANS as u64 {
            assert_eq!(channel.reserve(10 + at * 10, 5), 15 + at * 10);
        }
        assert_eq!(channel.reserve(0, 1), 16, "the pause before the first transfer is given up");
        assert_eq!(channel.spans.len(), MAX_SPANS);
    }
}
