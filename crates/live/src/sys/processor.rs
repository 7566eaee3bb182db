//! Processor time of other processes.

#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::time::Duration;

/// Returns the user and system time of all threads of a process, including threads that have ended
/// (clock_getcpuclockid(3)). The resolution is the scheduler's; `/proc/PID/stat` has steps of 10
/// ms.
///
/// # Errors
/// When there is no such process.
pub fn time_of(pid: u32) -> io::Result<Duration> {
    // 0 means this process, and a negative number means a process group.
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0).ok_or(io::ErrorKind::NotFound)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the library writes one number.
    let code = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    if code != 0 {
        return Err(io::Error::from_raw_os_error(code));
    }
    // SAFETY: all fields are integers, for which zero is valid.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one structure.
    let outcome = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_a_process_grows_as_it_works_and_ends_with_it() {
        let begun = time_of(std::process::id()).unwrap();
        let mut spun = 0_u64;
        while time_of(std::process::id()).unwrap() < begun + Duration::from_millis(2) {
            spun += 1;
        }
        assert!(spun > 0);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(time_of(child.id()).is_err());
        assert!(time_of(0).is_err() && time_of(u32::MAX).is_err());
    }
}
