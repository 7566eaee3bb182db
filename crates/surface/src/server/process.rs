//! Resources that this process uses: [`Usage`].

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::system::sysinfo;
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// Processor time and memory of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Processor time since the start of the process, in percent of one processor.
    pub processor_percent: u64,
    /// Resident memory in bytes.
    pub memory_bytes: u64,
    /// Memory of the machine in bytes.
    pub total_bytes: u64,
}

/// Units and values of the machine.
struct Machine {
    /// Ticks per second of the times in `/proc`.
    ticks_per_s: u64,
    /// Bytes of a page of memory.
    page_bytes: u64,
    /// Time since the start of the machine in seconds, with the time in which it was suspended.
    running_s: f64,
    /// Memory in bytes.
    total_bytes: u64,
}

impl Machine {
    fn read() -> Machine {
        let (info, since_start) = (sysinfo(), clock_gettime(ClockId::Boottime));
        Machine {
            ticks_per_s: clock_ticks_per_second(),
            page_bytes: page_size() as u64,
            running_s: since_start.tv_sec as f64 + since_start.tv_nsec as f64 / 1e9,
            total_bytes: info.totalram.saturating_mul(info.mem_unit.into()),
        }
    }
}

impl Usage {
    /// Reads the values of this process. Returns `None` if `/proc` cannot be read.
    pub fn read() -> Option<Usage> {
        Usage::parse(&fs::read_to_string("/proc/self/stat").ok()?, &Machine::read())
    }

    /// Parses the file `stat` of a process (proc_pid_stat(5)): fields 14 and 15 are its processor
    /// time, 22 its start after that of the machine, and 24 its resident pages.
    fn parse(stat: &str, machine: &Machine) -> Option<Usage> {
        // The name of the program, in parentheses, may have spaces.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let seconds = |ticks: u64| ticks as f64 / machine.ticks_per_s as f64;
        let used_s = seconds(field(14)?.saturating_add(field(15)?));
        let running_s = machine.running_s - seconds(field(22)?);
        Some(Usage {
            processor_percent: (100.0 * used_s / running_s.max(0.01)).round() as u64,
            memory_bytes: field(24)?.saturating_mul(machine.page_bytes),
            total_bytes: machine.total_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_that_of_the_file_of_the_kernel_and_of_the_machine() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 1200 300 0 0 20 0 4 0 50000 1000 512 1 1";
        let machine = Machine { ticks_per_s: 100, page_bytes: 4_096, running_s: 550.0, total_bytes: 8 << 20 };
        let expected = Usage { processor_percent: 30, memory_bytes: 2 << 20, total_bytes: 8 << 20 };
        assert_eq!(Usage::parse(stat, &machine), Some(expected), "15 s of 50 s");
        assert_eq!(Usage::parse("", &machine), None);
        assert_eq!(Usage::parse("7 (a) S 1", &machine), None);
        assert!(Usage::read().is_some_and(|own| own.memory_bytes > 0 && own.memory_bytes < own.total_bytes));
    }
}
