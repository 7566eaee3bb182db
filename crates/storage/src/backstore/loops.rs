//! Arbitrated loops between the controllers and their devices.

use super::NEVER;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Words of the frames of a command with the fill words between them (FC-PH; FCP: FCP_CMND,
/// FCP_XFER_RDY, FCP_RSP), and of a data frame without its data.
const COMMAND_WORDS: u64 = 23;
const READY_WORDS: u64 = 18;
const RESPONSE_WORDS: u64 = 21;
const FRAME_WORDS: u64 = 15;
/// Data of a frame.
const FRAME_BYTES: u64 = 2_048;

/// Loops of devices, with the controllers as one more port of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopConfig {
    /// Time of a word of four bytes in picoseconds.
    pub word_ps: u64,
    /// Time of a tenancy without its frames, in picoseconds: arbitration, OPN until the first
    /// R_RDY, and CLS.
    pub tenancy_ps: u64,
    /// Devices of each loop, 1 to 126; consecutive ones share a loop.
    pub devices: u32,
}

impl LoopConfig {
    /// Returns the times that a request occupies its loop before the device has it, and after the
    /// device has ended it.
    fn times_ps(&self, bytes: u64, is_write: bool) -> [u64; 2] {
        let words = |words: u64| words * self.word_ps;
        let data_ps = words(bytes.div_ceil(FRAME_BYTES) * FRAME_WORDS + bytes.div_ceil(4));
        let tenancy_ps = self.tenancy_ps;
        let (command_ps, response_ps) = (tenancy_ps + words(COMMAND_WORDS), words(RESPONSE_WORDS));
        match is_write {
            true => [command_ps + tenancy_ps + words(READY_WORDS) + tenancy_ps + data_ps, tenancy_ps + response_ps],
            false => [command_ps, tenancy_ps + data_ps + response_ps],
        }
    }
}

/// A transfer: its end, its number, the request, and whether it goes to the device.
type Transfer = Reverse<(u64, u64, u32, bool)>;

#[derive(Clone, Debug)]
pub(super) struct Loops {
    config: LoopConfig,
    /// Times from which the loops are free. Transfers follow each other in the order in which they
    /// are ready.
    free_ps: Vec<u64>,
    /// Time that each loop was occupied in the measurement.
    busy_ps: Vec<u64>,
    transfers: BinaryHeap<Transfer>,
    count: u64,
}

impl Loops {
    pub fn new(config: LoopConfig, devices: usize) -> Loops {
        let loops = devices.div_ceil(config.devices.max(1) as usize);
        Loops { config, free_ps: vec![0; loops], busy_ps: vec![0; loops], transfers: BinaryHeap::new(), count: 0 }
    }

    /// Makes room for so many devices.
    pub fn grow(&mut self, devices: usize) {
        let loops = devices.div_ceil(self.config.devices.max(1) as usize);
        self.free_ps.resize(loops, 0);
        self.busy_ps.resize(loops, 0);
    }

    /// Sends a request to its device, or its data and response back.
    pub fn send(&mut self, now_ps: u64, device: u32, id: u32, (bytes, is_write): (u64, bool), to_device: bool) {
        let number = (device / self.config.devices.max(1)) as usize;
        let time_ps = self.config.times_ps(bytes, is_write)[usize::from(!to_device)];
        let end_ps = self.free_ps[number].max(now_ps) + time_ps;
        self.free_ps[number] = end_ps;
        self.busy_ps[number] += time_ps;
        self.count += 1;
        self.transfers.push(Reverse((end_ps, self.count, id, to_device)));
    }

    pub fn next_ps(&self) -> u64 {
        self.transfers.peek().map_or(NEVER, |Reverse((end_ps, ..))| *end_ps)
    }

    /// Removes and returns the next transfer that has ended: its request, and whether the device
    /// has it now.
    pub fn pop(&mut self, now_ps: u64) -> Option<(u32, bool)> {
        self.transfers.peek().filter(|Reverse((end_ps, ..))| *end_ps <= now_ps)?;
        self.transfers.pop().map(|Reverse((_, _, id, to_device))| (id, to_device))
    }

    /// Discards the transfers of requests that have failed. Each occupies its loop all the same.
    pub fn discard(&mut self, failed: &[u32]) {
        self.transfers.retain(|Reverse((_, _, id, _))| !failed.contains(id));
    }

    /// The power fails.
    pub fn power_loss(&mut self) {
        self.free_ps.fill(0);
        self.transfers.clear();
    }

    pub fn restart(&mut self, now_ps: u64) {
        for (busy_ps, free_ps) in self.busy_ps.iter_mut().zip(&self.free_ps) {
            *busy_ps = free_ps.saturating_sub(now_ps);
        }
    }

    /// Returns the time that the busiest loop was occupied from the start of the measurement to
    /// `now_ps`.
    pub fn busiest_ps(&self, now_ps: u64) -> u64 {
        let busy = self.busy_ps.iter().zip(&self.free_ps);
        busy.map(|(busy_ps, free_ps)| busy_ps.saturating_sub(free_ps.saturating_sub(now_ps))).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time of a word in ps, then times in microseconds that were computed by hand: a tenancy,
    /// reads of 512 bytes, 2, 8 and 32 KiB, and writes of 512 bytes and 8 KiB.
    const BY_HAND: [(u64, [f64; 7]); 5] = [
        (37_647, [1.128, 9.296, 23.753, 83.273, 321.35, 12.231, 86.207]),
        (18_824, [0.714, 4.948, 12.176, 41.936, 160.98, 6.715, 43.704]),
        (18_824, [7.558, 18.635, 25.864, 55.624, 174.66, 34.089, 71.078]),
        (18_824, [61.328, 126.18, 133.41, 163.17, 282.21, 249.17, 286.16]),
        (9_412, [0.507, 2.774, 6.388, 21.268, 80.79, 3.958, 22.452]),
    ];

    #[test]
    fn requests_occupy_the_loop_as_long_as_the_arithmetic_of_its_tenancies_says() {
        for (word_ps, [tenancy_us, reads @ .., write_512, write_8k]) in BY_HAND {
            let config = LoopConfig { word_ps, tenancy_ps: (tenancy_us * 1e6) as u64, devices: 1 };
            let us = |bytes, is_write| config.times_ps(bytes, is_write).iter().sum::<u64>() as f64 / 1e6;
            let close = |ours: f64, by_hand: f64| assert!((ours / by_hand - 1.0).abs() < 1e-3, "{ours} {by_hand}");
            [512, 2_048, 8_192, 32_768]
                .iter()
                .zip(reads)
                .for_each(|(bytes, by_hand)| close(us(*bytes, false), by_hand));
            close(us(512, true), write_512);
            close(us(8_192, true), write_8k);
        }
    }
}
