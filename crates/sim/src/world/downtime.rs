//! Downtime of links.

/// Downtime of each link, in total and since the end of the warm-up.
#[derive(Default)]
pub struct Downtimes {
    links: Vec<Downtime>,
}

#[derive(Clone, Copy, Default)]
struct Downtime {
    /// Ended outages, in ps.
    ended_ps: u64,
    /// Start of the current outage; `None` if the link is up.
    since_ps: Option<u64>,
    /// Downtime until the end of the warm-up, in ps.
    before_ps: u64,
    /// Failures since the first login, as each end counts them.
    failures: [u64; 2],
}

impl Downtime {
    fn total_ps(&self, now_ps: u64) -> u64 {
        self.ended_ps + self.since_ps.map_or(0, |since_ps| now_ps - since_ps)
    }
}

impl Downtimes {
    /// Returns the state of `links` links that are up.
    pub(super) fn new(links: usize) -> Downtimes {
        Downtimes { links: vec![Downtime::default(); links] }
    }

    /// Records that a link went up or down. Repeated reports of the same state change nothing.
    pub(super) fn link_changed(&mut self, link: u16, up: bool, now_ps: u64) {
        let downtime = &mut self.links[usize::from(link)];
        match downtime.since_ps {
            Some(since_ps) if up => {
                debug_assert!(since_ps <= now_ps, "the outage of link {link} begins before it ends");
                downtime.ended_ps += now_ps - since_ps;
                downtime.since_ps = None;
            }
            None if !up => downtime.since_ps = Some(now_ps),
            Some(_) | None => {}
        }
    }

    /// Counts a failure of a link at those of its ends that see one.
    pub(super) fn link_failed(&mut self, link: u16, ends: [bool; 2]) {
        let failures = &mut self.links[usize::from(link)].failures;
        failures.iter_mut().zip(ends).for_each(|(sum, sees)| *sum += u64::from(sees));
    }

    /// Returns the failures of a link since the first login, as an end counts them.
    pub fn failures(&self, link: u16, end: u8) -> u64 {
        self.links[usize::from(link)].failures[usize::from(end)]
    }

    /// Starts the measurement at the end of the warm-up.
    pub(super) fn begin_measurement(&mut self, now_ps: u64) {
        for downtime in &mut self.links {
            downtime.before_ps = downtime.total_ps(now_ps);
        }
    }

    /// Returns the downtime of a link since the end of the warm-up, in ps.
    pub fn measured_ps(&self, link: u16, now_ps: u64) -> u64 {
        let downtime = &self.links[usize::from(link)];
        downtime.total_ps(now_ps).saturating_sub(downtime.before_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downtime_counts_from_the_end_of_the_warm_up() {
        let mut downtimes = Downtimes::new(2);
        downtimes.link_changed(1, false, 100);
        downtimes.link_changed(1, false, 150);
        assert_eq!((downtimes.measured_ps(1, 200), downtimes.measured_ps(0, 200)), (100, 0));
        downtimes.begin_measurement(200);
        downtimes.link_changed(1, true, 250);
        downtimes.link_changed(1, true, 300);
        assert_eq!(downtimes.measured_ps(1, 400), 50);
    }

    #[test]
    fn an_end_counts_the_failures_that_it_sees() {
        let mut downtimes = Downtimes::new(1);
        downtimes.link_failed(0, [true, true]);
        downtimes.link_failed(0, [false, true]);
        assert_eq!([0, 1].map(|end| downtimes.failures(0, end)), [1, 2]);
    }
}
