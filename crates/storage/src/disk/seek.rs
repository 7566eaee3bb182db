//! Seek times, computed once for every distance.

use super::config::{SeekCurve, ps};

/// Time of a seek, the same time modulo one revolution, and a bound for longer seeks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeekTime {
    /// Time until the head is on its track.
    pub time_ps: u64,
    /// Angle by which the disk turns in this time, as a time below one revolution.
    pub turned_ps: u64,
    /// Shortest time of this and all longer seeks. Measured curves are not monotonic.
    pub floor_ps: u64,
}

/// Seek times by distance.
///
/// The table has one entry for each distance, because schedulers that compare positions read it for
/// every waiting request.
#[derive(Clone, PartialEq, Debug)]
pub struct Seek {
    times: Vec<SeekTime>,
}

impl Seek {
    /// Computes the times for a disk of `cylinders`, whose revolution takes `revolution_ps`.
    pub fn new(curve: &SeekCurve, cylinders: u32, revolution_ps: u64) -> Seek {
        let full = cylinders.saturating_sub(1);
        let times = (0..cylinders.max(1)).map(|distance| {
            let time_ps = if distance == 0 { 0 } else { ps(time_ms(curve, distance, full)) };
            SeekTime { time_ps, turned_ps: time_ps % revolution_ps, floor_ps: time_ps }
        });
        let mut times: Vec<SeekTime> = times.collect();
        for index in (1..times.len()).rev() {
            times[index - 1].floor_ps = times[index - 1].floor_ps.min(times[index].floor_ps);
        }
        Seek { times }
    }

    /// Returns the time for a distance in cylinders. Longer distances take as long as a full
    /// stroke.
    #[inline]
    pub fn time(&self, distance: u32) -> SeekTime {
        self.times[(distance as usize).min(self.times.len() - 1)]
    }

    /// Returns the mean time between two random cylinders, in picoseconds: the sum over all
    /// distances x of `2 (C - x) / C²` times the time of x.
    pub fn random_mean_ps(&self) -> f64 {
        let cylinders = self.times.len() as f64;
        let weighted = self.times.iter().enumerate().skip(1);
        weighted.map(|(x, seek)| 2.0 * (cylinders - x as f64) * seek.time_ps as f64).sum::<f64>() / cylinders.powi(2)
    }
}

/// Time for a distance of at least one cylinder; `full` is the longest distance.
pub(super) fn time_ms(curve: &SeekCurve, distance: u32, full: u32) -> f64 {
    let x = f64::from(distance);
    match curve {
        SeekCurve::Linear { single_ms, full_ms } => {
            single_ms + (full_ms - single_ms) * (x - 1.0) / f64::from(full.saturating_sub(1).max(1))
        }
        SeekCurve::ThreePoint { single_ms, average_ms, full_ms } => {
            let [a, b] = three_point(*single_ms, *average_ms, *full_ms, full);
            a * (x - 1.0).sqrt() + b * (x - 1.0) + single_ms
        }
        SeekCurve::SquareRootThenLinear {
            boundary_cylinders,
            short_constant_ms,
            short_factor_ms,
            long_constant_ms,
            long_factor_ms,
            first_ms,
        } => match first_ms.get(distance as usize - 1) {
            Some(ms) => *ms,
            None if distance < *boundary_cylinders => short_constant_ms + short_factor_ms * x.sqrt(),
            None => long_constant_ms + long_factor_ms * x,
        },
        SeekCurve::Table { points } => interpolated(points, x),
    }
}

/// Returns the shortest time of all distances up to `full`. Between the distances that this
/// function visits, each curve rises or falls throughout.
pub(super) fn shortest_ms(curve: &SeekCurve, full: u32) -> f64 {
    let full = full.max(1);
    let turns = match curve {
        SeekCurve::Linear { .. } | SeekCurve::Table { .. } => [1; 4],
        SeekCurve::ThreePoint { single_ms, average_ms, full_ms } => {
            // The slope of a u + b u² is 0 at -a / 2b, with u = sqrt(x - 1).
            let [a, b] = three_point(*single_ms, *average_ms, *full_ms, full);
            let x = (1.0 + (-a / (2.0 * b)).max(0.0).powi(2)).min(f64::from(full)) as u32;
            [x, x.saturating_add(1), 1, 1]
        }
        SeekCurve::SquareRootThenLinear { boundary_cylinders, first_ms, .. } => {
            let after = (first_ms.len() as u32).saturating_add(1);
            [after, after.max(*boundary_cylinders), boundary_cylinders.saturating_sub(1), 1]
        }
    };
    let explicit = match curve {
        SeekCurve::SquareRootThenLinear { first_ms, .. } => first_ms.iter().copied().fold(f64::INFINITY, f64::min),
        SeekCurve::Table { points } => points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min),
        _ => f64::INFINITY,
    };
    let distances = turns.into_iter().chain([full]).map(|distance| distance.clamp(1, full));
    distances.map(|distance| time_ms(curve, distance, full)).fold(explicit, f64::min)
}

/// Returns a and b of [`SeekCurve::ThreePoint`].
fn three_point(single_ms: f64, average_ms: f64, full_ms: f64, full: u32) -> [f64; 2] {
    let cylinders = f64::from(full.max(1));
    let a = (-10.0 * single_ms + 15.0 * average_ms - 5.0 * full_ms) / (3.0 * cylinders.sqrt());
    let b = (7.0 * single_ms - 15.0 * average_ms + 8.0 * full_ms) / (3.0 * cylinders);
    [a, b]
}

fn interpolated(points: &[(u32, f64)], x: f64) -> f64 {
    let after = points.partition_point(|point| f64::from(point.0) < x);
    let Some(pair) = (match points.len() {
        0 | 1 => None,
        length => points.get(after.clamp(1, length - 1) - 1..=after.clamp(1, length - 1)),
    }) else {
        return points.first().map_or(0.0, |point| point.1);
    };
    if after == 0 {
        return pair[0].1;
    }
    let (x0, x1) = (f64::from(pair[0].0), f64::from(pair[1].0));
    pair[0].1 + (pair[1].1 - pair[0].1) * (x - x0) / (x1 - x0)
}
