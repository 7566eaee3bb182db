//! Processor time, real time and memory of this process, as the kernel reports them.

use rustix::time::{ClockId, clock_gettime};
use sanloom_api::results::Engine;
use std::time::{Duration, Instant};

/// Processor time that this thread has used.
pub fn thread_cpu() -> Duration {
    // Several runs may go on side by side, so the time of the whole process would be that of all of
    // them.
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Resident memory of this process in bytes; 0 where the system does not tell.
pub fn rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}

/// Measures a run loop on the thread that runs it.
#[derive(Debug)]
pub struct Stopwatch {
    cpu: Duration,
    wall: Instant,
    taken: (Duration, Duration),
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Stopwatch {
        Stopwatch { cpu: thread_cpu(), wall: Instant::now(), taken: (Duration::ZERO, Duration::ZERO) }
    }

    /// The time up to now is what counts, unless there is another lap.
    pub fn lap(&mut self) {
        self.taken = (thread_cpu().saturating_sub(self.cpu), self.wall.elapsed());
    }

    /// Fills in what depends on real time and on the machine; `frame_hops` must be there already.
    pub fn fill(&self, engine: &mut Engine) {
        engine.cpu_s = self.taken.0.as_secs_f64();
        engine.wall_s = self.taken.1.as_secs_f64();
        engine.frame_hops_per_cpu_s = if engine.cpu_s > 0.0 { engine.frame_hops as f64 / engine.cpu_s } else { 0.0 };
        engine.rss_bytes = rss_bytes();
    }
}
