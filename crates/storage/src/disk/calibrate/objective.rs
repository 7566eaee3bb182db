//! Distance between measured and modelled response times, by groups of requests.

use super::times_ps;
use crate::disk::config::DiskConfig;
use crate::trace::validate::Record;
use std::collections::BTreeMap;

/// Smallest number of requests of a group.
const MIN_GROUP: usize = 40;

/// Weight of the error of a single request against that of its distribution.
const REQUEST_WEIGHT: f64 = 0.5;

/// Error of a single request above which it counts less and less, in ms.
const LARGE_MS: f64 = 0.5;

/// Properties of a request that define its group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Kind {
    is_write: bool,
    is_after_write: bool,
    is_sequential: bool,
    /// 1 for the larger half.
    size: u8,
    /// Third of the distances from the request before.
    distance: u8,
}

/// A measured trace, in groups.
pub(super) struct Objective<'r> {
    records: &'r [Record],
    /// Indices of the records of each group, and their sorted measured times in ms.
    groups: Vec<(Vec<u32>, Vec<f64>)>,
}

impl<'r> Objective<'r> {
    pub fn new(records: &'r [Record]) -> Objective<'r> {
        let mut sizes: Vec<u64> = records.iter().map(|record| record.blocks).collect();
        sizes.sort_unstable();
        let median = sizes.get(sizes.len() / 2).copied().unwrap_or(0);
        let end = |index: usize| records[index].lbn.saturating_add(records[index].blocks);
        let distance = |index: usize| match index {
            0 => 0,
            _ => records[index].lbn.abs_diff(end(index - 1)),
        };
        let mut distances: Vec<u64> = (0..records.len()).map(distance).filter(|distance| *distance > 0).collect();
        distances.sort_unstable();
        let third = |part: usize| distances.get(distances.len() * part / 3).copied().unwrap_or(0);
        let kind = |index: usize| Kind {
            is_write: records[index].is_write,
            is_after_write: index > 0 && records[index - 1].is_write,
            is_sequential: distance(index) == 0,
            size: u8::from(records[index].blocks > median),
            distance: u8::from(distance(index) > third(1)) + u8::from(distance(index) > third(2)),
        };
        let mut groups: BTreeMap<Kind, Vec<u32>> = BTreeMap::new();
        for index in 0..records.len() {
            groups.entry(kind(index)).or_default().push(index as u32);
        }
        // A small group joins that without its distance, and then that without its size.
        let merges: [fn(Kind) -> Kind; 3] = [
            |kind| Kind { distance: 0, ..kind },
            |kind| Kind { size: 0, distance: 0, ..kind },
            |kind| Kind { size: 0, distance: 0, is_sequential: false, ..kind },
        ];
        for merge in merges {
            let small: Vec<Kind> =
                groups.iter().filter(|group| group.1.len() < MIN_GROUP).map(|group| *group.0).collect();
            for kind in small {
                if let Some(indices) = groups.remove(&kind) {
                    groups.entry(merge(kind)).or_default().extend(indices);
                }
            }
        }
        let sorted = |indices: &[u32]| {
            let mut ms: Vec<f64> =
                indices.iter().map(|index| records[*index as usize].response_ps as f64 / 1e9).collect();
            ms.sort_by(f64::total_cmp);
            ms
        };
        let groups = groups
            .into_values()
            .map(|indices| {
                let measured = sorted(&indices);
                (indices, measured)
            })
            .collect();
        Objective { records, groups }
    }

    /// Mean number of blocks of the reads and of the writes.
    pub fn mean_blocks(&self) -> [f64; 2] {
        [false, true].map(|is_write| {
            let of_kind = self.records.iter().filter(|record| record.is_write == is_write);
            let (count, sum) =
                of_kind.fold((0.0, 0.0), |(count, sum), record| (count + 1.0, sum + record.blocks as f64));
            sum / f64::max(count, 1.0)
        })
    }

    /// Returns the differences of the sorted times of each group, and then the errors of the single
    /// requests, in ms, divided by the square root of their number. `None` if the parameters are
    /// impossible.
    pub fn residuals(&self, config: &DiskConfig) -> Option<Vec<f64>> {
        let times = times_ps(config, self.records).ok()?;
        let scale = 1.0 / (self.records.len().max(1) as f64).sqrt();
        let mut residuals = Vec::with_capacity(2 * self.records.len());
        for (indices, measured) in &self.groups {
            let mut ours: Vec<f64> = indices.iter().map(|index| times[*index as usize] as f64 / 1e9).collect();
            ours.sort_by(f64::total_cmp);
            residuals.extend(ours.iter().zip(measured).map(|(ours, measured)| (ours - measured) * scale));
        }
        let errors = times.iter().zip(self.records).map(|(ours_ps, record)| {
            let ms = (*ours_ps as f64 - record.response_ps as f64) / 1e9;
            REQUEST_WEIGHT * scale * ms / (1.0 + (ms / LARGE_MS).powi(2)).sqrt()
        });
        residuals.extend(errors);
        Some(residuals)
    }

    /// Returns the root mean square of the demerit figures of all groups in ms.
    pub fn distance_ms(&self, config: &DiskConfig) -> Option<f64> {
        let residuals = self.residuals(config)?;
        residuals.get(..self.records.len()).map(norm)
    }
}

/// Square root of the sum of squares.
pub(super) fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}
