//! Cost of a link: [`CostRule`]. Vendors use different rules, so a mixed fabric may route otherwise
//! than expected.

/// Rule that derives the cost of a link from its data rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CostRule {
    /// Cost by the rate of one link: 1000 at 1GFC, 500 at 2GFC (RFC 4626, link cost). Each link of
    /// a bundle counts separately.
    #[default]
    Standard,
    /// Brocade: 1000 at 1GFC, 500 at any other rate, regardless of the width of a trunk.
    Brocade,
    /// Cisco MDS: as the standard, but by the sum of the rates of all links of a bundle.
    Cisco,
}

impl CostRule {
    /// Cost of a link, or of each link of a bundle. `bytes_per_s` has the data rates of the links
    /// that are up.
    pub fn cost(self, bytes_per_s: &[u64]) -> u32 {
        let fastest = bytes_per_s.iter().copied().max().unwrap_or(0);
        match self {
            CostRule::Standard => standard(fastest),
            CostRule::Brocade if fastest > ONE_GFC_BYTES_PER_S => 500,
            CostRule::Brocade => 1000,
            CostRule::Cisco => standard(bytes_per_s.iter().fold(0, |sum, rate| sum.saturating_add(*rate))),
        }
    }
}

const ONE_GFC_BYTES_PER_S: u64 = 106_250_000;

/// Cost of a link by its data rate in bytes per second: 1000 at 1GFC, 500 at 2GFC, never below 1.
///
/// RFC 4626, link cost: 1.0625 * 10^12 / line rate in bits per second, which for 8b/10b is ten bits
/// per byte.
pub fn standard(bytes_per_s: u64) -> u32 {
    let cost = 1000 * ONE_GFC_BYTES_PER_S / bytes_per_s.max(1);
    u32::try_from(cost).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::units::LineRate;
    use super::*;

    #[test]
    fn a_cost_follows_from_the_rule_and_the_rate() {
        let cost = |rule: CostRule| LineRate::ALL.map(|rate| rule.cost(&[rate.bytes_per_s()]));
        assert_eq!(cost(CostRule::Standard), [1000, 500, 250, 125, 83, 62, 31, 15, 8, 7, 3]);
        assert_eq!(cost(CostRule::Cisco), cost(CostRule::Standard));
        assert_eq!(cost(CostRule::Brocade), [1000, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500]);
    }

    #[test]
    fn only_one_rule_adds_the_rates_of_a_bundle() {
        let four = [2 * ONE_GFC_BYTES_PER_S; 4];
        let cost = |rule: CostRule| rule.cost(&four);
        assert_eq!([CostRule::Standard, CostRule::Brocade, CostRule::Cisco].map(cost), [500, 500, 125]);
    }

    #[test]
    fn an_empty_bundle_causes_no_division_by_zero() {
        assert_eq!(CostRule::Standard.cost(&[]), u32::MAX);
        assert_eq!(standard(u64::MAX), 1);
    }
}
