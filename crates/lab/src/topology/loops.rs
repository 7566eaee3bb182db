//! Times of arbitrated loops: [`LoopTimes`].

use sanloom_fc::arbitrated_loop::LoopTime;
use sanloom_fc::san::Lab;

/// Data of the reads for which the rate of a loop is given, in bytes.
const READ_BYTES: u64 = 4096;
/// Words of the frames of such a read, with six fill words after each: FCP_CMND, two data frames of
/// 2,048 bytes, FCP_RSP.
const READ_WORDS: u64 = 23 + READ_BYTES / 2048 * 527 + 21;

/// Times of an arbitrated loop.
#[derive(Clone, PartialEq, Debug)]
pub struct LoopTimes {
    /// Name of the loop.
    pub name: String,
    /// Number of ports.
    pub ports: usize,
    /// Name of its line rate.
    pub rate: String,
    /// Time that a tenancy costs beside its frames, on an idle loop, in microseconds.
    pub tenancy_us: f64,
    /// Reads of 4 KiB per second that the loop can carry: two tenancies and their frames.
    pub reads_per_s: f64,
}

/// Returns the loops in the order of the lab.
pub(super) fn of(lab: &Lab) -> Vec<LoopTimes> {
    let one = |number: u16| {
        let config = lab.loop_config(number)?;
        let tenancy = config.tenancy_cost(0, 1)?;
        let us = |time: LoopTime| time.ps() as f64 / 1e6;
        let rate = lab.links.iter().find(|link| link.loop_end() == Some(number))?.rate;
        Some(LoopTimes {
            name: lab.loops[usize::from(number)].name.clone(),
            ports: config.ports.len(),
            rate: rate.name().to_owned(),
            tenancy_us: us(tenancy),
            reads_per_s: 1e6 / us(tenancy.times(2) + config.rate.word().times(READ_WORDS)),
        })
    };
    (0..lab.loops.len() as u16).filter_map(one).collect()
}
