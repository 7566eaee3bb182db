//! Peer at the other end of a link: [`Peer`].

use super::{Counters, DcbSettings};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::lldp::dcbx::algorithm;
use sanloom_wire::lldp::{Application, EtsConfiguration, Id, Lldpdu, Pfc, Tlv, TrafficClasses};

/// Identity of a peer: chassis and port (IEEE 802.1AB, MSAP identifier).
pub(super) type PeerId = (u8, Box<[u8]>, u8, Box<[u8]>);

/// Content of the last LLDPDU of a peer.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    mac: MacAddr,
    /// Time at which the TTL expires.
    pub(super) until: Instant,
    pub(super) lldpdu: Lldpdu,
    configuration: Option<EtsConfiguration>,
    recommendation: Option<TrafficClasses>,
    pfc: Option<Pfc>,
    application: Option<Application>,
}

impl Peer {
    /// Decodes an LLDPDU. It must begin with chassis, port and time to live, and contain none of
    /// them twice.
    pub(super) fn read(now: Instant, mac: MacAddr, lldpdu: Lldpdu, counters: &mut Counters) -> Option<(PeerId, Peer)> {
        let [Tlv::ChassisId(chassis), Tlv::PortId(port), Tlv::TimeToLive(seconds), rest @ ..] = &lldpdu.tlvs[..] else {
            return None;
        };
        let again = |tlv: &Tlv| matches!(tlv, Tlv::ChassisId(_) | Tlv::PortId(_) | Tlv::TimeToLive(_));
        let valid = |id: &Id| (1..=255).contains(&id.id.len());
        if rest.iter().any(again) || !valid(chassis) || !valid(port) {
            return None;
        }
        let id = (chassis.subtype, chassis.id.clone(), port.subtype, port.id.clone());
        let until = now + Span::from_secs(u64::from(*seconds));
        let mut once = Once { tlvs: rest, counters };
        let configuration = once.tlv(|tlv| match tlv {
            Tlv::EtsConfiguration(ets) => Some((*ets, is_possible(&ets.traffic))),
            _ => None,
        });
        let recommendation = once.tlv(|tlv| match tlv {
            Tlv::EtsRecommendation(ets) => Some((ets.traffic, is_possible(&ets.traffic))),
            _ => None,
        });
        let pfc = once.tlv(|tlv| match tlv {
            Tlv::Pfc(pfc) => Some((*pfc, pfc.max_priorities <= 8)),
            _ => None,
        });
        let application = once.tlv(|tlv| match tlv {
            Tlv::Application(application) => Some((application.clone(), true)),
            _ => None,
        });
        Some((id, Peer { mac, until, configuration, recommendation, pfc, application, lldpdu }))
    }

    pub(super) fn supports_dcbx(&self) -> bool {
        self.configuration.is_some() || self.pfc.is_some()
    }

    /// Applies the peer's settings that a willing port adopts.
    pub(super) fn overrule(&self, own: MacAddr, settings: &mut DcbSettings) {
        if let Some(traffic) = self.recommendation {
            settings.traffic = traffic;
        }
        // If both are willing, the settings of the port with the lower address apply to both.
        if let Some(pfc) = self.pfc.filter(|pfc| !pfc.willing || self.mac < own) {
            settings.lossless = pfc.priorities;
        }
        if let Some(application) = &self.application {
            settings.applications = application.entries.clone();
        }
    }
}

/// TLVs that may occur only once.
struct Once<'a> {
    tlvs: &'a [Tlv],
    counters: &'a mut Counters,
}

impl Once<'_> {
    /// Returns the single TLV that `find` selects, if its value is valid.
    fn tlv<T>(&mut self, find: impl Fn(&Tlv) -> Option<(T, bool)>) -> Option<T> {
        let mut found = self.tlvs.iter().filter_map(find);
        let (value, possible) = found.next()?;
        if possible && found.next().is_none() {
            return Some(value);
        }
        self.counters.tlvs_in_error += 1;
        None
    }
}

/// Returns true if all traffic classes exist and the bandwidth shares of the ETS classes sum to 100
/// percent.
fn is_possible(traffic: &TrafficClasses) -> bool {
    let shares = traffic.bandwidth_percent.iter().zip(traffic.algorithms);
    let sum: u32 = shares.filter(|(_, served)| *served == algorithm::ETS).map(|(share, _)| u32::from(*share)).sum();
    let shared = traffic.algorithms.contains(&algorithm::ETS);
    traffic.classes.iter().all(|class| *class < 8) && (sum == 100 || !shared)
}
