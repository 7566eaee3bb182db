//! Discovery advertisement of an FCF: [`Advertisement`].

use super::Discard;
use sanloom_scsi::time::Span;
use sanloom_wire::Wwnn;
use sanloom_wire::ether::{FcMap, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, Operation, flag};

/// Content of a discovery advertisement (FC-BB, FIP discovery advertisement).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Advertisement {
    /// MAC address of the FCF.
    pub mac: MacAddr,
    /// Name of its switch; never zero.
    pub switch_name: Wwnn,
    /// Name of its fabric.
    pub fabric_name: Wwnn,
    /// FC-MAP of its fabric, the upper half of fabric-provided MAC addresses.
    pub fc_map: FcMap,
    /// Virtual fabric ID.
    pub vf_id: u16,
    /// Priority; the lowest number is preferred.
    pub priority: u8,
    /// FKA_ADV_PERIOD, the interval between advertisements.
    pub period: Span,
    /// True if the FCF requires keep-alives.
    pub keep_alives: bool,
    /// A bit: the FCF accepts logins.
    pub available: bool,
    /// S bit: the advertisement answers a solicitation. It is padded, so its arrival proves that
    /// the path carries frames of full size.
    pub solicited: bool,
}

impl Advertisement {
    /// Decodes an advertisement. A valid packet has each required descriptor exactly once and no
    /// other critical one. Its values must be usable: a station address, a legal FC-MAP, a nonzero
    /// switch name.
    pub fn read(packet: &Fip) -> Result<Advertisement, Discard> {
        let (mut priority, mut mac, mut name, mut fabric, mut period) = (None, None, None, None, None);
        for descriptor in &packet.descriptors {
            let twice = match descriptor {
                Descriptor::Priority(value) => priority.replace(*value).is_some(),
                Descriptor::Mac(value) => mac.replace(*value).is_some(),
                Descriptor::Name(value) => name.replace(*value).is_some(),
                Descriptor::Fabric { vf_id, fc_map, name } => fabric.replace((*vf_id, *fc_map, *name)).is_some(),
                Descriptor::AdvertisementPeriod { no_keep_alives, period_ms } => {
                    period.replace((*no_keep_alives, *period_ms)).is_some()
                }
                Descriptor::Other { kind, .. } if *kind >= Descriptor::FIRST_NON_CRITICAL => false,
                Descriptor::Other { .. } => return Err(Discard::UnknownCritical),
                _ => return Err(Discard::Descriptors),
            };
            if twice {
                return Err(Discard::Descriptors);
            }
        }
        let all = priority.zip(mac).zip(name).zip(fabric).zip(period);
        let Some(((((priority, mac), switch_name), (vf_id, fc_map, fabric_name)), (no_keep_alives, period_ms))) = all
        else {
            return Err(Discard::Descriptors);
        };
        let Some(fc_map) = super::usable(fc_map).filter(|_| mac.is_station() && switch_name.0 != 0) else {
            return Err(Discard::Descriptors);
        };
        Ok(Advertisement {
            mac,
            switch_name,
            fabric_name,
            fc_map,
            vf_id,
            priority,
            period: Span::from_ms(period_ms.into()),
            keep_alives: !no_keep_alives,
            available: packet.has(flag::AVAILABLE),
            solicited: packet.has(flag::SOLICITED),
        })
    }

    /// Encodes the advertisement as a FIP packet.
    pub fn packet(&self) -> Fip {
        let set = |wanted, flag| if wanted { flag } else { 0 };
        Fip {
            operation: Operation::ADVERTISEMENT,
            flags: flag::FPMA | flag::FCF | set(self.available, flag::AVAILABLE) | set(self.solicited, flag::SOLICITED),
            descriptors: vec![
                Descriptor::Priority(self.priority),
                Descriptor::Mac(self.mac),
                Descriptor::Name(self.switch_name),
                Descriptor::Fabric { vf_id: self.vf_id, fc_map: self.fc_map, name: self.fabric_name },
                Descriptor::AdvertisementPeriod {
                    no_keep_alives: !self.keep_alives,
                    period_ms: u32::try_from(self.period.as_ms()).unwrap_or(u32::MAX),
                },
            ],
        }
    }
}
