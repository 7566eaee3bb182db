//! Times of an SSD: dies and channels as resources.

use super::channel::Channel;
use super::ftl::{FlashOperation, Ftl};
use super::settings::{FlashError, FlashSettings, FlashTiming};
use rand::Rng;

/// An SSD that serves pages in the order of its calls. Times are in picoseconds.
///
/// A read occupies its die for the cells, then die and channel for the transfer. A program occupies
/// channel and die for the transfer, then the die. Garbage collection delays the write that causes
/// it. Host interface, controller and cache are not part of this model.
#[derive(Clone, Debug)]
pub struct Ssd {
    ftl: Ftl,
    settings: FlashSettings,
    /// Die and channel of each unit.
    places: Vec<(usize, usize)>,
    transfer_ps: u64,
    /// Times from which dies are free.
    dies_ps: Vec<u64>,
    channels: Vec<Channel>,
}

impl Ssd {
    /// Creates an SSD with erased blocks.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn new(settings: FlashSettings) -> Result<Ssd, FlashError> {
        let ftl = Ftl::new(&settings)?;
        let geometry = settings.geometry;
        let bytes_times_ps = u128::from(geometry.page_bytes) * 1_000_000_000_000;
        Ok(Ssd {
            ftl,
            settings,
            places: (0..geometry.units())
                .map(|unit| (geometry.die(unit) as usize, geometry.channel(unit) as usize))
                .collect(),
            transfer_ps: (bytes_times_ps / u128::from(settings.timing.channel_bytes_per_second)) as u64,
            dies_ps: vec![0; (geometry.channels * geometry.dies) as usize],
            channels: (0..geometry.channels).map(|_| Channel::new()).collect(),
        })
    }

    /// Translation layer, for its counters.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Fills the SSD and overwrites it at random, in no time (see [`Ftl::precondition`]).
    pub fn precondition(&mut self, turns: u32, random: &mut impl Rng) {
        self.ftl.precondition(turns, random);
    }

    /// Reads a logical page, and returns the time of its end. A page that is not mapped needs no
    /// flash operation and ends at once.
    pub fn read(&mut self, now_ps: u64, logical: u32) -> u64 {
        let Some(page) = self.ftl.physical(logical) else { return now_ps };
        let (die, channel) = self.places[self.settings.geometry.unit(page) as usize];
        let sensed_ps = now_ps.max(self.dies_ps[die]) + self.settings.timing.read_ps;
        let end_ps = self.channels[channel].reserve(sensed_ps, self.transfer_ps);
        self.dies_ps[die] = end_ps;
        end_ps
    }

    /// Writes a logical page, and returns the time at which the cells hold it.
    pub fn write(&mut self, now_ps: u64, logical: u32) -> u64 {
        let Ssd { ftl, settings, places, transfer_ps, dies_ps, channels } = self;
        let FlashTiming { read_ps, program_ps, erase_ps, has_copy_back, .. } = settings.timing;
        let mut end_ps = now_ps;
        ftl.write(logical, |unit, operation| {
            let (die, channel) = places[unit as usize];
            let mut at_ps = now_ps.max(dies_ps[die]);
            let mut transfer = |at_ps: u64| channels[channel].reserve(at_ps, *transfer_ps);
            at_ps = match operation {
                FlashOperation::Program { .. } => transfer(at_ps) + program_ps,
                FlashOperation::Copy { .. } if has_copy_back => at_ps + read_ps + program_ps,
                FlashOperation::Copy { .. } => {
                    let out_ps = transfer(at_ps + read_ps);
                    transfer(out_ps) + program_ps
                }
                FlashOperation::Erase { .. } => at_ps + erase_ps,
            };
            dies_ps[die] = at_ps;
            end_ps = at_ps;
        });
        end_ps
    }

    /// Unmaps a logical page. The flash memory is not accessed.
    pub fn trim(&mut self, logical: u32) {
        self.ftl.trim(logical);
    }
}
