//! Chassis with several switches: [`Chassis`].

use sanloom_fc::san::Lab;
use std::collections::BTreeMap;

/// A chassis with several switches, which fail together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chassis {
    pub name: String,
    /// Indices of its switches, in the order of the lab.
    pub switches: Vec<u16>,
}

/// Returns each chassis with several switches, in the order of their first switches.
pub fn chassis(lab: &Lab) -> Vec<Chassis> {
    let mut by_name: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
    for (number, switch) in (0..).zip(&lab.switches) {
        if let Some(fabric) = &switch.virtual_fabric {
            by_name.entry(&fabric.chassis).or_default().push(number);
        }
    }
    let several = by_name.into_iter().filter(|(_, switches)| switches.len() > 1);
    let mut chassis: Vec<Chassis> =
        several.map(|(name, switches)| Chassis { name: name.to_owned(), switches }).collect();
    chassis.sort_by_key(|chassis| chassis.switches.first().copied());
    chassis
}
