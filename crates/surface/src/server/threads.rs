//! Threads of the surfaces, which run behind those of the fabric: [`spawn`].

use rustix::process::setpriority_process;
use std::io;
use std::thread::{self, JoinHandle};

/// Nice value of the threads. Where the fabric keeps all processors busy, they get about a tenth of
/// one: the kernel weighs 10 with 110, and 0 with 1024 (Linux, `sched_prio_to_weight`).
const NICE: i32 = 10;

/// Starts a thread of a surface under a name.
///
/// # Errors
/// The limit of threads is reached.
pub fn spawn<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        // In Linux the call names a thread, although its name says process. A system that refuses
        // it leaves the thread as it is.
        let _ = setpriority_process(Some(rustix::thread::gettid()), NICE);
        body()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn a_thread_of_a_surface_runs_behind_the_thread_that_started_it() {
        let own = || getpriority_process(Some(rustix::thread::gettid())).unwrap();
        let before = own();
        assert_eq!(spawn("test", own).unwrap().join().unwrap(), NICE);
        assert_eq!(own(), before, "other threads keep their value");
    }
}
