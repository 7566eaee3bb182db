//! The only conversions of integers to floats. Every function returns a finite value for all
//! inputs.

/// Picoseconds as microseconds.
pub fn us_of_ps(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// Nanoseconds as microseconds.
pub fn us_of_ns(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Picoseconds as seconds.
pub fn s_of_ps(ps: u64) -> f64 {
    ps as f64 / 1e12
}

/// Rate of `count` per second over `ps` picoseconds; 0 if `ps` is 0.
pub fn per_s(count: u64, ps: u64) -> f64 {
    if ps == 0 { 0.0 } else { count as f64 * 1e12 / ps as f64 }
}

/// `part / whole`; 0 if `whole` is 0.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Mean of a level over time. `level_ps` is the sum of level times duration in picoseconds, which
/// may exceed 64 bits. Returns 0 if `ps` is 0.
pub fn mean_level(level_ps: u128, ps: u64) -> f64 {
    if ps == 0 { 0.0 } else { level_ps as f64 / ps as f64 }
}

/// Mean in microseconds of `count` times with the sum `sum_ps` in picoseconds; 0 if `count` is 0.
pub fn mean_us(sum_ps: u128, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum_ps as f64 / count as f64 / 1e6 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_means_over_zero_time_are_zero() {
        for value in [per_s(7, 0), ratio(7, 0), mean_level(7, 0), mean_us(7, 0), us_of_ps(0)] {
            assert_eq!(value, 0.0);
        }
    }

    #[test]
    fn units_agree_with_the_names() {
        assert_eq!(us_of_ps(44_444_444), 44.444444);
        assert_eq!(us_of_ns(1_500), 1.5);
        assert_eq!(s_of_ps(2_500_000_000_000), 2.5);
        assert_eq!(per_s(22_500, 1_000_000_000_000), 22_500.0);
        assert_eq!(mean_level(3_000, 2_000), 1.5);
        assert_eq!(mean_us(9_000_000, 3), 3.0);
        assert_eq!(ratio(1, 4), 0.25);
    }
}
