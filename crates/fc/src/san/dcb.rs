//! DCBX between the ends of Ethernet links (IEEE 802.1Qaz): the settings of each port, and links
//! whose ends do not agree.

use super::validate::priorities_in_words;
use super::{Lab, fcoe_paths};
use crate::config::{EthernetLink, EthernetNode, EthernetSwitch, PRIORITIES};
use crate::dcbx::DcbSettings;
use sanloom_wire::ether::EtherType;
use sanloom_wire::lldp::dcbx::algorithm;
use sanloom_wire::lldp::{AppPriority, TrafficClasses};

/// Port of an Ethernet link that runs DCBX.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DcbPort {
    /// True if the port takes over the settings of the other end. Interfaces of hosts, storage
    /// systems and forwarders do, ports of switches do not. An interface of a virtual link without
    /// `pfc` does not either.
    pub willing: bool,
    /// Own settings.
    pub settings: DcbSettings,
}

/// Ethernet link whose ends keep different settings, because neither is willing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DcbMismatch {
    /// Index into `ethernet_links`.
    pub link: usize,
    /// The conflict in words.
    pub reason: String,
    /// Remedy.
    pub remedy: &'static str,
}

/// Ports at both ends of each Ethernet link, by index into `ethernet_links`. `None` if no switch at
/// an end has PFC or shares, so that there is nothing to agree on.
pub fn dcb_ports(lab: &Lab) -> Vec<Option<[DcbPort; 2]>> {
    let interfaces = lab.ethernet_interfaces();
    let mut applications = Vec::new();
    // Priorities for which an interface does not use PFC, by link and side.
    let mut off = vec![[0u8; 2]; lab.ethernet_links.len()];
    for path in fcoe_paths(lab).into_iter().filter(|path| path.config.fcip.is_none()) {
        for ether_type in [EtherType::FCOE, EtherType::FIP] {
            let entry = AppPriority::ether_type(ether_type, path.config.priority);
            if !applications.contains(&entry) {
                applications.push(entry);
            }
        }
        for interface in
            path.interfaces.map(|number| interfaces[usize::from(number)]).iter().filter(|_| !path.config.pfc)
        {
            off[interface.link][usize::from(interface.side)] |= 1 << path.config.priority;
        }
    }
    lab.ethernet_links.iter().zip(off).map(|(link, off)| ports_of(lab, link, off, &applications)).collect()
}

fn ports_of(lab: &Lab, link: &EthernetLink, off: [u8; 2], applications: &[AppPriority]) -> Option<[DcbPort; 2]> {
    let switches = link.ends.map(|end| match end.node {
        EthernetNode::Switch(switch) => lab.ethernet_switches.get(usize::from(switch)),
        EthernetNode::Host(_) | EthernetNode::Storage(_) | EthernetNode::Forwarder(_) => None,
    });
    let has_settings = |switch: &&&EthernetSwitch| switch.lossless != 0 || switch.shares != [0; PRIORITIES];
    switches.iter().flatten().find(has_settings)?;
    let port = |side: usize| {
        let of_switch = switches[side].or(switches[1 - side].filter(|_| off[side] != 0));
        let lossless = of_switch.map_or(0, |switch| if switch.pauses_links { 0 } else { switch.lossless });
        DcbPort {
            willing: switches[side].is_none() && off[side] == 0,
            settings: DcbSettings {
                traffic: traffic(of_switch.map_or([0; PRIORITIES], |switch| switch.shares)),
                lossless: lossless & !off[side],
                max_lossless: PRIORITIES as u8,
                applications: applications.to_vec(),
            },
        }
    };
    Some([port(0), port(1)])
}

/// Traffic classes of the priorities with these shares in percent, one for each; 0 for a strict
/// one.
pub fn traffic(shares: [u8; PRIORITIES]) -> TrafficClasses {
    TrafficClasses {
        classes: std::array::from_fn(|priority| priority as u8),
        bandwidth_percent: shares,
        algorithms: shares.map(|share| if share == 0 { algorithm::STRICT } else { algorithm::ETS }),
    }
}

/// Links between switches whose ends differ in the pauses that they obey. A simulation reports the
/// same links as `check`. Shares may differ: those of ETS are of one direction, and need no
/// agreement (IEEE 802.1Qaz: attributes of ETS are asymmetric, those of PFC symmetric).
pub fn dcb_mismatches(lab: &Lab) -> Vec<DcbMismatch> {
    let mut found = Vec::new();
    for (link, config) in lab.ethernet_links.iter().enumerate() {
        let at_ends = config.switches().filter_map(|(_, switch)| lab.ethernet_switches.get(usize::from(switch)));
        let [one, other] = at_ends.collect::<Vec<_>>()[..] else { continue };
        let (first, second, name) = (&one.name, &other.name, &config.name);
        if one.pauses_links != other.pauses_links {
            let (pauses, ignores) = if one.pauses_links { (first, second) } else { (second, first) };
            let reason = format!("`{pauses}` pauses the whole link `{name}`, and `{ignores}` ignores such pauses");
            found.push(DcbMismatch { link, reason, remedy: "give both switches the same `pause` or the same `pfc`" });
        } else if !one.pauses_links && one.lossless != other.lossless {
            let [own, far] = [one, other].map(|switch| priorities_in_words(switch.lossless));
            let reason = format!(
                "PFC is on for {own} at `{first}` and for {far} at `{second}`, so a priority is lossless at one end of `{name}` only"
            );
            found.push(DcbMismatch { link, reason, remedy: "give both switches the same `pfc`" });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_without_a_share_are_strict() {
        let traffic = traffic([50, 0, 0, 50, 0, 0, 0, 0]);
        assert_eq!(traffic.bandwidth_percent, [50, 0, 0, 50, 0, 0, 0, 0]);
        assert_eq!(traffic.algorithms, [2, 0, 0, 2, 0, 0, 0, 0]);
    }
}
