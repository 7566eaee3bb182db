//! Pace of answers to control requests: [`AnswerPace`].

use std::time::Duration;

/// Part of the time that answers may take from a loop that never waits: 1 / 50.
const SHARE: i64 = 50;
/// Credit of a loop that has not answered for a while, in nanoseconds.
const MOST_NS: i64 = 20_000_000;
/// Credit below which nothing is counted, in nanoseconds. Otherwise one slow answer would delay the
/// next one for seconds.
const LEAST_NS: i64 = -2_000_000;
/// Credit at which answers begin again, in nanoseconds.
const ENOUGH_NS: i64 = 200_000;

/// Bounds the time that the loop spends on answers to control requests, so that clients which ask
/// without a pause do not slow the fabric. Credit grows by 1/50 of the time that passes, and by all
/// time that the loop waits for events. An answer that takes longer than 2 ms is followed by a rest
/// of 110 ms at most, and so takes a larger share.
#[derive(Debug)]
pub struct AnswerPace {
    credit_ns: i64,
    rests: bool,
}

impl Default for AnswerPace {
    fn default() -> AnswerPace {
        AnswerPace { credit_ns: MOST_NS, rests: false }
    }
}

impl AnswerPace {
    /// Records that `elapsed` has passed, of which the loop has waited for `waited`.
    pub fn passed(&mut self, elapsed: Duration, waited: Duration) {
        let gained = nanoseconds(elapsed) / SHARE + nanoseconds(waited);
        self.credit_ns = self.credit_ns.saturating_add(gained).min(MOST_NS);
        self.rests &= self.credit_ns < ENOUGH_NS;
    }

    /// Records the time that answers took.
    pub fn spent(&mut self, time: Duration) {
        self.credit_ns = self.credit_ns.saturating_sub(nanoseconds(time)).max(LEAST_NS);
        self.rests |= self.credit_ns < 0;
    }

    /// Returns how long requests have to wait if the loop waits all the time; `None` if they are
    /// answered now.
    pub fn rest(&self) -> Option<Duration> {
        let missing_ns = u64::try_from(ENOUGH_NS - self.credit_ns).unwrap_or(0);
        self.rests.then(|| Duration::from_nanos(missing_ns))
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Lets a loop answer as often as it may, for ten seconds. Returns the time of the answers.
    fn answered(answer: Duration, waits: bool) -> Duration {
        let mut pace = AnswerPace::default();
        let (mut at, mut answers) = (Duration::ZERO, Duration::ZERO);
        while at < Duration::from_secs(10) {
            let mut step = MS / 100;
            if pace.rest().is_none() {
                pace.spent(answer);
                answers += answer;
                step += answer;
            }
            at += step;
            pace.passed(step, if waits { MS / 100 } else { Duration::ZERO });
        }
        answers
    }

    #[test]
    fn answers_take_a_fiftieth_of_a_loop_that_never_waits() {
        let answers = answered(MS / 50, false);
        assert!((200..=225).contains(&answers.as_millis()), "{answers:?}");
    }

    #[test]
    fn long_answers_take_a_larger_share_with_rests_between_them() {
        // 20 ms of every 110 ms.
        let answers = answered(20 * MS, false);
        assert!((1_800..=1_860).contains(&answers.as_millis()), "{answers:?}");
    }

    #[test]
    fn answers_take_about_half_of_a_loop_that_waits_in_the_rest_of_its_time() {
        let answers = answered(MS / 50, true);
        assert!((4_900..=5_200).contains(&answers.as_millis()), "{answers:?}");
    }

    #[test]
    fn one_slow_answer_delays_the_next_one_by_110_ms_at_most() {
        let mut pace = AnswerPace::default();
        pace.spent(Duration::from_secs(10));
        let mut passed = Duration::ZERO;
        while pace.rest().is_some() {
            pace.passed(MS, Duration::ZERO);
            passed += MS;
        }
        assert_eq!(passed, 110 * MS);
    }

    #[test]
    fn credit_is_limited() {
        let mut pace = AnswerPace::default();
        pace.passed(Duration::from_secs(3_600), Duration::from_secs(3_600));
        pace.spent(Duration::from_nanos(MOST_NS as u64));
        assert_eq!(pace.rest(), None);
        pace.spent(MS);
        assert_eq!(pace.rest(), Some(Duration::from_micros(1_200)));
        pace.passed(Duration::ZERO, Duration::from_micros(1_200));
        assert_eq!(pace.rest(), None);
    }
}
