//! Campaigns of random labs: [`Plan`] runs seeds on two threads, and ends the test if one hangs.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const THREADS: usize = 2;
/// Time after which a lab counts as hanging. A normal lab takes less than a second, and the search
/// for a smaller one 40 s.
const HANGS: Duration = Duration::from_secs(120);
/// Time between two checks for such a lab; the workers do not wait for them.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);

/// Returns the number in an environment variable.
///
/// # Panics
/// If the variable is set, but not to a number.
pub fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Seeds of a campaign and its time limit.
#[derive(Debug)]
pub struct Plan {
    first: u64,
    many: u64,
    time: Option<Duration>,
}

/// Number of labs so far, and the current lab of each thread.
struct Progress<T> {
    next: AtomicU64,
    results: Mutex<(Vec<T>, Vec<String>)>,
    busy: [Mutex<Option<(u64, Instant)>>; THREADS],
}

impl Plan {
    /// Creates the plan from `SANLOOM_SEED`, or from `SANLOOM_FIRST_SEED`, `SANLOOM_SEEDS` and
    /// `SANLOOM_MINUTES`. Without them, `many` seeds follow `first`.
    pub fn from_environment(first: u64, many: u64) -> Plan {
        if let Some(seed) = number("SANLOOM_SEED") {
            return Plan { first: seed, many: 1, time: None };
        }
        let time = number("SANLOOM_MINUTES").map(|minutes| Duration::from_secs(60 * minutes));
        let many = number("SANLOOM_SEEDS").unwrap_or(if time.is_some() { u64::MAX } else { many });
        Plan { first: number("SANLOOM_FIRST_SEED").unwrap_or(first), many, time }
    }

    /// Returns the seeds. Zero follows the largest one.
    pub fn seeds(&self) -> impl Iterator<Item = u64> {
        let first = self.first;
        (0..self.many).map(move |number| first.wrapping_add(number))
    }

    /// Runs the seeds, and returns outcomes and failures. If a seed hangs, the process ends, and
    /// prints the seed with the `command` that repeats it.
    pub fn run<T: Send>(
        &self,
        judge: fn(u64) -> Result<T, String>,
        command: fn(u64) -> String,
    ) -> (Vec<T>, Vec<String>) {
        let progress = Progress { next: AtomicU64::new(0), results: Mutex::default(), busy: Default::default() };
        let began = Instant::now();
        std::thread::scope(|scope| {
            let work = |thread| self.work(&progress, thread, began, judge);
            let workers: [_; THREADS] = std::array::from_fn(|thread| scope.spawn(move || work(thread)));
            let mut printed = Instant::now();
            while workers.iter().any(|worker| !worker.is_finished()) {
                std::thread::sleep(WATCH_INTERVAL);
                progress.end_if_one_hangs(command);
                if self.time.is_some() && printed.elapsed() > Duration::from_secs(10) {
                    printed = Instant::now();
                    progress.print(began);
                }
            }
        });
        progress.results.into_inner().expect("no panic holds it")
    }

    fn work<T>(&self, progress: &Progress<T>, thread: usize, began: Instant, judge: fn(u64) -> Result<T, String>) {
        loop {
            let number = progress.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.many || self.time.is_some_and(|time| began.elapsed() >= time) {
                return;
            }
            let seed = self.first.wrapping_add(number);
            *progress.busy[thread].lock().expect("no panic holds it") = Some((seed, Instant::now()));
            let result = judge(seed);
            *progress.busy[thread].lock().expect("no panic holds it") = None;
            let mut results = progress.results.lock().expect("no panic holds it");
            match result {
                Ok(outcome) => results.0.push(outcome),
                Err(failure) => {
                    if self.time.is_some() {
                        eprintln!("{failure}");
                    }
                    results.1.push(failure);
                }
            }
        }
    }
}

impl<T> Progress<T> {
    fn print(&self, began: Instant) {
        let results = self.results.lock().expect("no panic holds it");
        let (good, bad) = (results.0.len(), results.1.len());
        eprintln!("random labs: {good} good, {bad} bad after {} s", began.elapsed().as_secs());
    }

    fn end_if_one_hangs(&self, command: fn(u64) -> String) {
        for slot in &self.busy {
            if let Some((seed, since)) = *slot.lock().expect("no panic holds it")
                && since.elapsed() > HANGS
            {
                let _ = writeln!(std::io::stderr(), "seed {seed} hangs: {}", command(seed));
                std::process::exit(1);
            }
        }
    }
}
