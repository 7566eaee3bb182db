//! Warnings of `sanloom check` about the design of a good lab: zones, redundancy, ratios.
//!
//! Each lint has a code, a place in the lab file, a reason and a remedy. Equal findings at one
//! place, such as those of a range of hosts, share one warning that names them all.

mod design;
mod planes;
mod ratios;
mod zones;

use super::classes::Classes;
use super::network::Network;
use super::report::Report;
use sanloom_fc::san::{Lab, Place};

/// A linked port that is in no zone while ports in no zone are closed.
pub(crate) const UNZONED_PORT: &str = "unzoned-port";
/// A zone with initiators only, or with targets only.
pub(crate) const ONE_SIDED_ZONE: &str = "one-sided-zone";
/// A zone whose initiators and targets share no fabric.
pub(crate) const SPLIT_ZONE: &str = "split-zone";
/// A zone in which initiators see each other.
pub(crate) const SEVERAL_INITIATORS: &str = "several-initiators";
/// Storage that no host can reach.
pub(crate) const UNREACHED_STORAGE: &str = "unreached-storage";
/// A cable that makes one fabric of the two fabrics of dual-fabric hosts.
pub(crate) const JOINED_FABRICS: &str = "joined-fabrics";
/// A host whose HBAs all end at one switch.
pub(crate) const SAME_SWITCH: &str = "same-switch";
/// A port that is much slower than its partners.
pub(crate) const SLOW_PORT: &str = "slow-port";
/// More host bandwidth, or more host ports, at a storage port than the limit.
pub(crate) const FAN_IN: &str = "fan-in";
/// More bandwidth behind an ISL than the limit.
pub(crate) const ISL_RATIO: &str = "isl-oversubscription";

/// Codes of all lints.
pub(crate) const CODES: &[&str] = &[
    UNZONED_PORT,
    ONE_SIDED_ZONE,
    SPLIT_ZONE,
    SEVERAL_INITIATORS,
    UNREACHED_STORAGE,
    JOINED_FABRICS,
    SAME_SWITCH,
    SLOW_PORT,
    FAN_IN,
    ISL_RATIO,
];

/// Bounds of the ratios: section `[check]` of the lab file.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Limits {
    /// Bandwidth of the host ports of a storage port, divided by its own.
    pub fan_in: f64,
    /// Host ports that use one storage port.
    pub host_ports: u64,
    /// Bandwidth of the ports behind a group of ISLs, divided by that of the ISLs.
    pub isl: f64,
    /// Rate of the fastest partner of a port, divided by its own.
    pub slow_port: f64,
}

/// One finding. In `reason` and `remedy`, [`SUBJECTS`] stands for the names of all equal findings
/// at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lint {
    pub code: &'static str,
    pub place: Place,
    pub subject: String,
    pub reason: String,
    pub remedy: String,
}

/// Stands for the names in the texts of a [`Lint`].
pub(crate) const SUBJECTS: &str = "{subjects}";

/// Input of the lints, and their findings.
struct Design<'l> {
    lab: &'l Lab,
    network: &'l Network,
    classes: &'l Classes,
    report: &'l Report,
    limits: Limits,
    found: Vec<Lint>,
}

impl Design<'_> {
    fn add(&mut self, code: &'static str, place: Place, subject: String, reason: String, remedy: &str) {
        self.found.push(Lint { code, place, subject, reason, remedy: remedy.to_owned() });
    }
}

/// All findings, in the order of the lints and of the lab.
pub(super) fn all(lab: &Lab, network: &Network, classes: &Classes, report: &Report, limits: Limits) -> Vec<Lint> {
    let mut design = Design { lab, network, classes, report, limits, found: Vec::new() };
    zones::unzoned_ports(&mut design);
    zones::members(&mut design);
    zones::unreached_storage(&mut design);
    design::joined_fabrics(&mut design);
    design::same_switch(&mut design);
    ratios::slow_ports(&mut design);
    ratios::fan_in(&mut design);
    planes::fan_in(&mut design);
    ratios::isls(&mut design);
    design.found
}
