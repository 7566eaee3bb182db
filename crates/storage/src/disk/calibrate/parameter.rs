//! The free numbers of a disk.

use super::Fitted;
use crate::disk::config::{DiskConfig, SeekCurve, WritePolicy};
use crate::disk::seek::{self, Seek};
use std::borrow::Cow;

/// A free number.
struct Number {
    name: &'static str,
    /// Typical change, in the unit of the number.
    scale: f64,
    /// Digits behind the point after the fit.
    digits: i32,
    field: Field,
}

enum Field {
    Plain(fn(&mut DiskConfig) -> &mut f64),
    /// Index of the time for one cylinder, of the mean, and of the full stroke.
    Seek(usize),
}

/// The free numbers of a disk, and the disk to which they are applied.
pub(super) struct Space {
    base: DiskConfig,
    numbers: Vec<Number>,
    /// Times of the seek curve of the base: one cylinder, mean of random seeks, full stroke.
    seeks_ms: [f64; 3],
}

fn numbers(config: &DiskConfig) -> Vec<Number> {
    let plain = |name, field| Number { name, scale: 0.05, digits: 4, field: Field::Plain(field) };
    let block = |name, field| Number { name, scale: 0.005, digits: 6, field: Field::Plain(field) };
    let seek = |name, index| Number { name, scale: 0.1, digits: 4, field: Field::Seek(index) };
    let mut numbers = vec![
        seek("seek: one cylinder", 0),
        seek("seek: mean of random seeks", 1),
        seek("seek: full stroke", 2),
        plain("head_switch_ms", |config| &mut config.head_switch_ms),
        plain("write_settle_ms", |config| &mut config.write_settle_ms),
        plain("read_hit_after_read_ms", |config| &mut config.overheads.read_hit_after_read_ms),
        plain("read_hit_after_write_ms", |config| &mut config.overheads.read_hit_after_write_ms),
        plain("read_miss_after_read_ms", |config| &mut config.overheads.read_miss_after_read_ms),
        plain("read_miss_after_write_ms", |config| &mut config.overheads.read_miss_after_write_ms),
        plain("write_after_read_ms", |config| &mut config.overheads.write_after_read_ms),
        plain("write_after_write_ms", |config| &mut config.overheads.write_after_write_ms),
    ];
    if config.cache.write == WritePolicy::Through {
        numbers.push(plain("write_transfer_delay_ms", |config| &mut config.overheads.write_transfer_delay_ms));
        numbers.push(plain("write_completion_ms", |config| &mut config.overheads.write_completion_ms));
    }
    numbers.push(block("read_block_ms", |config| &mut config.bus.read_block_ms));
    numbers.push(block("write_block_ms", |config| &mut config.bus.write_block_ms));
    numbers
}

impl Space {
    pub fn new(config: &DiskConfig) -> Space {
        let mut base = config.clone();
        base.seek = fittable(config);
        let revolution_ps = (60e12 / config.rpm).round() as u64;
        let curve = Seek::new(&base.seek, cylinders(config), revolution_ps.max(1));
        let ms = |ps: u64| ps as f64 / 1e9;
        let seeks_ms = [ms(curve.time(1).time_ps), curve.random_mean_ps() / 1e9, ms(curve.time(u32::MAX).time_ps)];
        Space { numbers: numbers(&base), base, seeks_ms }
    }

    /// Values of the base. Numbers of the seek curve are additions to it.
    pub fn start(&self) -> Vec<f64> {
        let mut config = self.base.clone();
        let value = |number: &Number| match number.field {
            Field::Plain(field) => *field(&mut config),
            Field::Seek(_) => 0.0,
        };
        self.numbers.iter().map(value).collect()
    }

    /// Values of another disk. Numbers of the seek curve are 0.
    pub fn values_of(&self, config: &DiskConfig) -> Vec<f64> {
        Space { base: config.clone(), numbers: numbers(&self.base), seeks_ms: self.seeks_ms }.start()
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Directions in which the search moves: each number alone, a bus against the overheads beside
    /// it, and the seek curve against the overheads. The mean time hardly changes along the last
    /// ones, so a walk by single numbers cannot follow them. `blocks` is the mean number of blocks
    /// of a read and of a write.
    pub fn directions(&self, blocks: [f64; 2]) -> Vec<Vec<f64>> {
        let is_read = |name: &str| name.starts_with("read_") && !name.ends_with("block_ms");
        let is_write =
            |name: &str| ["write_after_read_ms", "write_after_write_ms", "write_transfer_delay_ms"].contains(&name);
        let is_miss = |name: &str| name.starts_with("read_miss") || is_write(name);
        let of = |part: &dyn Fn(&Number) -> f64| self.numbers.iter().map(part).collect::<Vec<f64>>();
        let mut directions: Vec<Vec<f64>> = (0..self.len())
            .map(|index| (0..self.len()).map(|other| if other == index { self.scale(index) } else { 0.0 }).collect())
            .collect();
        directions.push(of(&|number| match number.name {
            "read_block_ms" => -number.scale,
            name if is_read(name) => blocks[0] * 0.005,
            _ => 0.0,
        }));
        directions.push(of(&|number| match number.name {
            "write_block_ms" => -number.scale,
            name if is_write(name) => blocks[1] * 0.005,
            _ => 0.0,
        }));
        directions.push(of(&|number| match number.field {
            Field::Seek(_) => -0.05,
            Field::Plain(_) if is_miss(number.name) => 0.05,
            Field::Plain(_) => 0.0,
        }));
        directions
    }

    pub fn scale(&self, index: usize) -> f64 {
        self.numbers[index].scale
    }

    /// Returns the nearest permitted value of a number.
    pub fn clamped(&self, index: usize, value: f64) -> f64 {
        match self.numbers[index].field {
            Field::Plain(_) => value.clamp(0.0, 1e3),
            Field::Seek(of) => value.clamp(-self.seeks_ms[of], 1e3),
        }
    }

    /// Returns the disk with these values.
    pub fn config(&self, values: &[f64]) -> DiskConfig {
        let mut config = self.base.clone();
        let mut added_ms = [0.0; 3];
        for (number, value) in self.numbers.iter().zip(values) {
            match number.field {
                Field::Plain(field) => *field(&mut config) = *value,
                Field::Seek(index) => added_ms[index] = *value,
            }
        }
        if added_ms != [0.0; 3] {
            config.seek = moved(&self.base.seek, added_ms, cylinders(&self.base).saturating_sub(1));
        }
        config
    }

    /// Returns the disk with values that have as many digits as are of use.
    pub fn rounded(&self, values: &[f64]) -> DiskConfig {
        let rounded = |value: f64, digits: i32| {
            let unit = 10f64.powi(digits);
            (value * unit).round() / unit
        };
        let values: Vec<f64> =
            self.numbers.iter().zip(values).map(|(number, value)| rounded(*value, number.digits)).collect();
        let mut config = self.config(&values);
        match &mut config.seek {
            SeekCurve::Table { points } => points.to_mut().iter_mut().for_each(|point| point.1 = rounded(point.1, 4)),
            SeekCurve::ThreePoint { single_ms, average_ms, full_ms } => {
                [single_ms, average_ms, full_ms].into_iter().for_each(|ms| *ms = rounded(*ms, 4));
            }
            SeekCurve::Linear { .. } | SeekCurve::SquareRootThenLinear { .. } => {}
        }
        config
    }

    /// Returns the numbers of this disk beside those of the disk before the fit.
    pub fn shown(&self, before: &Space, plus_minus: &[Option<f64>]) -> Vec<Fitted> {
        let value = |space: &Space, name: &str| {
            let mut config = space.base.clone();
            let all = numbers_of_all(&space.base);
            let number = all.iter().find(|number| number.name == name);
            number.map_or(0.0, |number| match number.field {
                Field::Plain(field) => *field(&mut config),
                Field::Seek(index) => space.seeks_ms[index],
            })
        };
        let rows = self.numbers.iter().enumerate().map(|(index, number)| Fitted {
            name: number.name,
            before: value(before, number.name),
            after: value(self, number.name),
            plus_minus: plus_minus.get(index).copied().flatten(),
        });
        rows.collect()
    }
}

/// Returns all numbers, also those that the write policy does not use.
fn numbers_of_all(config: &DiskConfig) -> Vec<Number> {
    let mut config = config.clone();
    config.cache.write = WritePolicy::Through;
    numbers(&config)
}

fn cylinders(config: &DiskConfig) -> u32 {
    config.zones.iter().map(|zone| zone.last_cylinder).max().unwrap_or(0) + 1
}

/// Returns the seek curve in a form to which three numbers can be added: a table, or three numbers.
fn fittable(config: &DiskConfig) -> SeekCurve {
    let full = cylinders(config).saturating_sub(1).max(1);
    match &config.seek {
        SeekCurve::Linear { single_ms, full_ms } => SeekCurve::ThreePoint {
            single_ms: *single_ms,
            // The mean at which the factor of the square root is 0.
            average_ms: (2.0 * single_ms + full_ms) / 3.0,
            full_ms: *full_ms,
        },
        SeekCurve::SquareRootThenLinear { boundary_cylinders, first_ms, .. } => {
            let mut distances: Vec<u32> = (1..=first_ms.len().min(64) as u32 + 1).collect();
            let mut distance = 1.0;
            while distance < f64::from(full) {
                distances.push(distance as u32);
                distance *= 1.2;
            }
            distances.extend([boundary_cylinders.saturating_sub(1), *boundary_cylinders, full]);
            distances.retain(|distance| (1..=full).contains(distance));
            distances.sort_unstable();
            distances.dedup();
            let point = |x: u32| (x, (seek::time_ms(&config.seek, x, full) * 1e4).round() / 1e4);
            SeekCurve::Table { points: Cow::Owned(distances.into_iter().map(point).collect()) }
        }
        curve => curve.clone(),
    }
}

/// Adds three numbers to a curve: at one cylinder, to the mean, and at the full stroke.
fn moved(curve: &SeekCurve, added_ms: [f64; 3], full: u32) -> SeekCurve {
    let [single, average, most] = added_ms;
    match curve {
        SeekCurve::ThreePoint { single_ms, average_ms, full_ms } => SeekCurve::ThreePoint {
            single_ms: single_ms + single,
            average_ms: average_ms + average,
            full_ms: full_ms + most,
        },
        SeekCurve::Table { points } => {
            let correction = SeekCurve::ThreePoint { single_ms: single, average_ms: average, full_ms: most };
            let added = |x: u32| seek::time_ms(&correction, x.max(1), full);
            let moved = points.iter().map(|(x, ms)| (*x, (ms + added(*x)).max(0.0)));
            SeekCurve::Table { points: Cow::Owned(moved.collect()) }
        }
        curve => curve.clone(),
    }
}
