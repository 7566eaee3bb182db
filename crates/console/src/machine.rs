//! Processor time, real time and memory of this process, as the kernel reports them.

use rustix::time::{ClockId, clock_gettime};
use sanloom_api::results::Engine;
use std::time::{Duration, Instant};

/// Processor time that this thread has used.
pub fn thread_cpu() -> Duration {
    // Several runs may be in progress, so the time of the process would include all of them.
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Resident memory of this process in bytes; 0 if the system does not report it.
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

    /// Records the time until now. A later lap replaces it.
    pub fn lap(&mut self) {
        self.taken = (thread_cpu().saturating_sub(self.cpu), self.wall.elapsed());
    }

    /// Sets the fields that depend on real time and on the machine; `frame_hops` must be set
    /// before. `others` is the processor time of other threads of the run.
    pub fn fill(&self, engine: &mut Engine, others: Duration) {
        engine.cpu_s = (self.taken.0 + others).as_secs_f64();
        engine.wall_s = self.taken.1.as_secs_f64();
        engine.frame_hops_per_cpu_s = if engine.cpu_s > 0.0 { engine.frame_hops as f64 / engine.cpu_s } else { 0.0 };
        engine.rss_bytes = rss_bytes();
    }
}
