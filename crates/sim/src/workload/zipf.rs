//! Zipf's law: item 0 is the most popular, and item k is `(k + 1)^-exponent` times as popular.

use crate::rng::{StreamRng, below, uniform};

/// A sampler of Zipf's law over a finite number of items, in constant memory and time, by
/// rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions", 1996).
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    items: u32,
    exponent: f64,
    /// Area under the hat function to the left of the first item, and up to the right edge of the
    /// last item.
    left: f64,
    right: f64,
    /// Distance right of an item's centre within which the item is accepted without evaluating the
    /// law.
    sure: f64,
}

impl Zipf {
    /// Returns a sampler over `items` items (0 is treated as 1) with `exponent`. If the exponent is
    /// 0, negative or not a number, the distribution is uniform.
    pub fn new(items: u32, exponent: f64) -> Zipf {
        let exponent = if exponent > 0.0 { exponent } else { 0.0 };
        let items = items.max(1);
        Zipf {
            items,
            exponent,
            left: hat_area(exponent, 1.5) - 1.0,
            right: hat_area(exponent, f64::from(items) + 0.5),
            sure: 2.0 - hat_area_inverse(exponent, hat_area(exponent, 2.5) - hat(exponent, 2.0)),
        }
    }

    /// Returns the next item, from 0 to `items` - 1.
    pub fn next(&self, rng: &mut StreamRng) -> u32 {
        if self.exponent == 0.0 || self.items == 1 {
            return below(rng, u64::from(self.items)) as u32;
        }
        let last = f64::from(self.items);
        loop {
            let area = self.right + uniform(rng) * (self.left - self.right);
            let x = hat_area_inverse(self.exponent, area);
            let place = libm::floor(x + 0.5).clamp(1.0, last);
            if place - x <= self.sure || area >= hat_area(self.exponent, place + 0.5) - hat(self.exponent, place) {
                return place as u32 - 1;
            }
        }
    }
}

fn hat(exponent: f64, x: f64) -> f64 {
    libm::exp(-exponent * libm::log(x))
}

/// Integral of the hat from 1 to `x`: `(x^(1-s) - 1) / (1 - s)`, which is `ln x` for s = 1.
fn hat_area(exponent: f64, x: f64) -> f64 {
    let log = libm::log(x);
    let t = (1.0 - exponent) * log;
    // The quotient has a removable singularity at 0; near it, the series is exact to the last bit.
    let quotient = if t.abs() > 1e-8 { libm::expm1(t) / t } else { 1.0 + t / 2.0 };
    quotient * log
}

fn hat_area_inverse(exponent: f64, area: f64) -> f64 {
    // Rounding must not push the argument of the logarithm below its pole.
    let t = (area * (1.0 - exponent)).max(-1.0);
    let quotient = if t.abs() > 1e-8 { libm::log1p(t) / t } else { 1.0 - t / 2.0 };
    libm::exp(quotient * area)
}
