//! How long storage systems keep their data: [`Durability`].

use super::names::compress_all;
use sanloom_fc::config::Storage;
use sanloom_fc::san::Lab;
use sanloom_storage::raid::Level;
use sanloom_storage::reliability::{HOURS_PER_YEAR, Organisation, Reliability, loss_probability};

/// Years for which the probability of a loss is given.
const YEARS: f64 = 5.0;

/// Largest number of groups of one storage system that the Markov chain follows.
const MAX_GROUPS: u32 = 4_096;

/// Storage systems with equal devices, organisation and assumptions.
#[derive(Clone, PartialEq, Debug)]
pub struct Durability {
    /// Names in range notation.
    pub storage: String,
    /// Model of the devices.
    pub model: String,
    /// Organisation of each LUN in words: `RAID 5 of 8`.
    pub organisation: String,
    /// LUNs of each system.
    pub luns: u32,
    /// Devices of each system, without spares.
    pub devices: u32,
    /// Failed devices that each group survives; `None` if the model does not follow the layout.
    pub tolerated: Option<u32>,
    /// Time to rebuild a device of an idle group, in hours; `None` without redundancy.
    pub rebuild_h: Option<f64>,
    /// Mean time to the loss of data of any LUN of one system, in years.
    pub mttdl_years: Option<f64>,
    /// Probability that one system loses data within five years.
    pub loss: Option<f64>,
}

/// Failed devices that each group of a storage system survives; `None` without devices, or if the
/// model does not follow the layout.
fn tolerated(storage: &Storage) -> Option<u32> {
    storage.device()?;
    Some(organisation(storage)?.tolerated)
}

/// Returns whether a LUN of a storage system loses data with any of its disks or SSDs.
pub fn is_unprotected(storage: &Storage) -> bool {
    tolerated(storage) == Some(0)
}

/// Returns the storage systems that have disks or SSDs, in the order of the lab.
pub(super) fn of(lab: &Lab) -> Vec<Durability> {
    let mut alike: Vec<(&Storage, Vec<&str>)> = Vec::new();
    for storage in lab.storage.iter().filter(|storage| storage.device().is_some()) {
        match alike.iter_mut().find(|(first, _)| is_alike(first, storage)) {
            Some((_, names)) => names.push(&storage.name),
            None => alike.push((storage, vec![&storage.name])),
        }
    }
    let named =
        |(storage, names): (&Storage, Vec<&str>)| Some(Durability { storage: compress_all(names), ..one(storage)? });
    alike.into_iter().filter_map(named).collect()
}

fn is_alike(one: &Storage, other: &Storage) -> bool {
    let devices = |storage: &Storage| (storage.disk.clone(), storage.ssd.clone());
    let rest = |storage: &Storage| (storage.backstore.raid, storage.failures, storage.luns.len());
    rest(one) == rest(other) && devices(one) == devices(other)
}

fn organisation(storage: &Storage) -> Option<Organisation> {
    match storage.backstore.raid {
        None => Some(Organisation { groups: 1, members: 1, tolerated: 0, sources: 0 }),
        Some(raid) => Organisation::new(raid.level, raid.members).ok(),
    }
}

fn one(storage: &Storage) -> Option<Durability> {
    let (model, blocks) = storage.device()?;
    let raid = storage.backstore.raid;
    let luns = storage.luns.len() as u32;
    let members = raid.map_or(1, |raid| raid.members);
    let organisation = organisation(storage);
    let bytes = blocks as f64 * 512.0;
    let rebuild_h = bytes / rebuild_bytes_per_s(storage) / 3_600.0;
    let rebuild_h = Some(rebuild_h).filter(|hours| hours.is_finite() && organisation.is_some_and(|o| o.tolerated > 0));
    let hours = organisation.and_then(|organisation| {
        let groups = organisation.groups * luns;
        let failures = &storage.failures;
        let reliability = Reliability {
            // Groups beyond those of the chain lose data at the same rate.
            organisation: Organisation { groups: groups.min(MAX_GROUPS), ..organisation },
            mttf_h: failures.mttf_h,
            mttr_h: rebuild_h.unwrap_or(1.0),
            spares: raid.map_or(0, |raid| raid.spares),
            replacement_h: failures.replacement.as_secs_f64() / 3_600.0,
            disk_bits: bytes * 8.0,
            errors_per_bit: failures.errors_per_bit,
            components: Vec::new(),
        };
        let mean = reliability.markov().ok()?.hours;
        Some(mean * f64::from(groups.min(MAX_GROUPS)) / f64::from(groups))
    });
    Some(Durability {
        storage: storage.name.clone(),
        model: model.to_owned(),
        organisation: words(raid.map(|raid| (raid.level, raid.members))),
        luns,
        devices: members * luns,
        tolerated: organisation.map(|organisation| organisation.tolerated),
        rebuild_h,
        mttdl_years: hours.map(|hours| hours / HOURS_PER_YEAR),
        loss: hours.map(|hours| loss_probability(hours, YEARS * HOURS_PER_YEAR)),
    })
}

/// Rate of a rebuild of an idle group: that of the device, or the upper limit of the group.
fn rebuild_bytes_per_s(storage: &Storage) -> f64 {
    let of_device = match (&storage.ssd, &storage.disk) {
        (Some(ssd), _) => ssd.drive.link_bytes_per_second as f64,
        (None, Some(disk)) => disk.sequential_bytes_per_s(),
        (None, None) => 0.0,
    };
    storage.backstore.raid.map_or(of_device, |raid| of_device.min(raid.limits.maximum as f64 * 512.0))
}

fn words(raid: Option<(Level, u32)>) -> String {
    let Some((level, members)) = raid else { return "single".to_owned() };
    let number = match level {
        Level::Mirror { near: 1, far: 1, .. } => "0",
        Level::Mirror { near, .. } if near == members => "1",
        Level::Mirror { .. } => "10",
        Level::Parity { has_q: false, groups: 1, .. } if level == Level::RAID4 => "4",
        Level::Parity { has_q: false, groups: 1, .. } => "5",
        Level::Parity { has_q: true, groups: 1, .. } => "6",
        Level::Parity { has_q: false, .. } => "50",
        Level::Parity { has_q: true, .. } => "60",
    };
    format!("RAID {number} of {members}")
}
