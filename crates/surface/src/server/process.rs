//! Resources that this process uses: [`Usage`].

use std::fs;

/// Ticks per second of the times in `/proc`, which the kernel shows in this unit on every
/// architecture (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

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

impl Usage {
    /// Reads the values from `/proc`. Returns `None` if they cannot be read.
    pub fn read() -> Option<Usage> {
        let text = |path: &str| fs::read_to_string(path).ok();
        Usage::parse(
            &text("/proc/self/stat")?,
            &text("/proc/self/status")?,
            &text("/proc/meminfo")?,
            &text("/proc/uptime")?,
        )
    }

    /// Parses the files `stat` and `status` of a process, `meminfo` and `uptime` (proc(5)).
    fn parse(stat: &str, status: &str, meminfo: &str, uptime: &str) -> Option<Usage> {
        let kib = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
        };
        // The name of the program, in parentheses, may have spaces.
        let (_, rest) = stat.rsplit_once(')')?;
        let columns: Vec<&str> = rest.split_whitespace().collect();
        let column = |number: usize| columns.get(number - 3)?.parse::<f64>().ok();
        let used_s = (column(14)? + column(15)?) / TICKS_PER_S;
        let running_s = uptime.split(' ').next()?.parse::<f64>().ok()? - column(22)? / TICKS_PER_S;
        Some(Usage {
            processor_percent: (100.0 * used_s / running_s.max(0.01)).round() as u64,
            memory_bytes: kib(status, "VmRSS:")? * 1_024,
            total_bytes: kib(meminfo, "MemTotal:")? * 1_024,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_that_of_the_files_of_the_kernel() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 1200 300 0 0 20 0 4 0 50000 1000 10 1 1";
        let usage =
            Usage::parse(stat, "Name:\ta\nVmRSS:\t    2048 kB\n", "MemTotal:       8192 kB\n", "550.00 900.00\n");
        let expected = Usage { processor_percent: 30, memory_bytes: 2 << 20, total_bytes: 8 << 20 };
        assert_eq!(usage, Some(expected), "15 s of 50 s");
        assert_eq!(Usage::parse("", "", "", ""), None);
        assert!(Usage::read().is_some_and(|own| own.memory_bytes > 0 && own.memory_bytes < own.total_bytes));
    }
}
