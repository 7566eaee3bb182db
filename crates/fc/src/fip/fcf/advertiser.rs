//! Advertisements of an FCF: [`Advertiser`].

use super::config::FcfConfig;
use super::station::{Station, Timer};
use crate::fip::jitter::up_to;
use crate::fip::{ADVERTISEMENT_JITTER, Advertisement};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::Instant;
use sanloom_wire::Wwnn;
use sanloom_wire::ether::MacAddr;

/// State of the fabric as advertised, and the schedule of the advertisements.
#[derive(Debug)]
pub(super) struct Advertiser {
    fabric_name: Wwnn,
    /// The switch has a domain, so it accepts logins.
    available: bool,
    random: SplitMix64,
}

impl Advertiser {
    pub(super) fn new(seed: u64) -> Advertiser {
        Advertiser { fabric_name: Wwnn(0), available: false, random: SplitMix64(seed) }
    }

    /// Stores the state of the fabric. Returns true if it has changed.
    pub(super) fn set_fabric(&mut self, name: Wwnn, available: bool) -> bool {
        let changed = (self.fabric_name, self.available) != (name, available);
        (self.fabric_name, self.available) = (name, available);
        changed
    }

    /// Sends the multicast advertisements and schedules the next ones.
    pub(super) fn advertise(&mut self, now: Instant, station: &mut Station) {
        let jitter = up_to(ADVERTISEMENT_JITTER, &mut self.random);
        station.alarms.set(Timer::Advertise, now + station.config.period + jitter);
        let groups = [(station.config.enodes, MacAddr::ALL_ENODES), (station.config.neighbours, MacAddr::ALL_FCFS)];
        for (_, group) in groups.into_iter().filter(|(enabled, _)| *enabled) {
            let packet = self.advertisement(&station.config, false).packet();
            station.send_fip(station.fip_frame(group, 0, packet));
        }
    }

    /// Answers a solicitation with an advertisement padded to the largest frame that the station
    /// may receive.
    pub(super) fn reply(&self, to: MacAddr, max_fcoe_bytes: u16, station: &mut Station) {
        let padded_bytes = max_fcoe_bytes.min(station.config.max_fcoe_bytes);
        let packet = self.advertisement(&station.config, true).packet();
        station.send_fip(station.fip_frame(to, padded_bytes, packet));
    }

    fn advertisement(&self, config: &FcfConfig, solicited: bool) -> Advertisement {
        Advertisement {
            mac: config.mac,
            switch_name: config.switch_name,
            fabric_name: self.fabric_name,
            fc_map: config.fc_map,
            vf_id: config.vf_id,
            priority: config.priority,
            period: config.period,
            keep_alives: config.keep_alives,
            available: self.available && config.enodes,
            solicited,
        }
    }
}
