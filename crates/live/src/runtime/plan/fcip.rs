//! FCIP links of a runtime: their ports and link ends.

use super::End;
use crate::ports::{Driver, EthernetPort, Fcip, PortError};
use crate::runtime::instance::Instance;
use crate::runtime::ports::LivePort;
use sanloom_fc::config::{FcipAddresses, Node};
use sanloom_fc::fcip::{Role, TunnelConfig};
use sanloom_fc::san::Lab;
use sanloom_wire::Wwnn;

/// Opens the port of an FCIP link and returns its index. `here`: index of the switch.
pub(super) fn open(
    instance: &mut Instance,
    end: End<'_>,
    addresses: &FcipAddresses,
    name: Wwnn,
    here: usize,
) -> Result<usize, PortError> {
    let config = config(&instance.lab, end, addresses, name);
    let link = &end.link.name;
    let driver = match config.role {
        Role::Listens => Fcip::listen(link, addresses.listen, config)?,
        Role::Connects => Fcip::connect(link, addresses.peer, config),
    };
    let mut port = LivePort::new(EthernetPort::new(link, Driver::Fcip(Box::new(driver))), Some(end.number));
    port.tunnel = Some((here, end.port));
    Ok(instance.ports.add(port))
}

/// Configuration of a link end. The end that the link names second connects.
fn config(lab: &Lab, end: End<'_>, addresses: &FcipAddresses, switch_name: Wwnn) -> TunnelConfig {
    TunnelConfig {
        role: if end.side == 0 { Role::Listens } else { Role::Connects },
        switch_name,
        entity: end.port.into(),
        peer: match end.link.ends[1 - end.side].node {
            Node::Switch(other) => Some(lab.switches[usize::from(other)].wwn),
            _ => None,
        },
        r_a_tov: lab.timers.r_a_tov.to_span(),
        k_a_tov: addresses.keep_alive.to_span(),
        seed: switch_name.0 ^ u64::from(end.port),
    }
}
