//! Gateways between the sessions of hosts and the storage behind: [`Gateway`].
//!
//! The key `gateway` of `[storage.NAME]` is for a storage system that hosts reach over one network
//! (iSCSI, SRP) while its data are in another one. [`ForwardingGrain`] does not depend on either
//! network.

use super::host_processor::per_kib;
use super::units::Picos;
use sanloom_wire::Wwpn;

/// Amount of data that a gateway collects before it passes them on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Debug)]
pub enum ForwardingGrain {
    /// All data of a command: both networks take their time one after the other.
    #[default]
    Command,
    /// The data of a PDU, or of a burst of the network of the hosts.
    Pdu,
    /// The data of a frame.
    Frame,
}

impl ForwardingGrain {
    /// Returns the bytes that are passed on together, for a PDU and a frame of these sizes. `None`:
    /// all bytes of a command.
    pub fn bytes(self, pdu: u32, frame: u32) -> Option<u32> {
        match self {
            ForwardingGrain::Command => None,
            ForwardingGrain::Pdu => Some(pdu.max(1)),
            ForwardingGrain::Frame => Some(pdu.min(frame).max(1)),
        }
    }
}

/// Address of hosts in the Fibre Channel fabric behind a gateway.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, Debug)]
pub enum GatewayMode {
    /// All hosts share the N_Port of the gateway.
    #[default]
    Proxy,
    /// Each host has a virtual N_Port of its own (N_Port_ID virtualisation).
    Transparent,
}

/// Processor time of a gateway, which does one piece of work after the other.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GatewayCost {
    /// Time of a command that the gateway ends and issues again.
    pub per_command: Picos,
    /// Time per KiB of its data.
    pub per_kib: Picos,
    /// Time of a PDU that is forwarded.
    pub per_pdu: Picos,
    /// Time per KiB of forwarded data.
    pub per_kib_forwarded: Picos,
}

impl GatewayCost {
    /// Returns the time of a command with `bytes` of data that the gateway ends and issues again.
    pub fn of_command(&self, bytes: u64) -> Picos {
        Picos(self.per_command.0.saturating_add(per_kib(self.per_kib, bytes).0))
    }

    /// Returns the time of a forwarded PDU with `bytes` of data.
    pub fn of_pdu(&self, bytes: u64) -> Picos {
        Picos(self.per_pdu.0.saturating_add(per_kib(self.per_kib_forwarded, bytes).0))
    }
}

/// A host that a gateway gives a virtual N_Port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GatewayHost {
    /// Host with the sessions, by index into [`Lab::hosts`](crate::san::Lab::hosts).
    pub host: u16,
    /// Host with the virtual N_Port, which the lab adds.
    pub port: u16,
}

/// Ports between a gateway and the LUNs behind it: each initiator port uses each target port that
/// the fabric permits.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct GatewayPorts {
    /// Port names of one host of the lab, in the order of its ports.
    pub initiators: Vec<Wwpn>,
    /// Port names of one storage system, in the order of its ports.
    pub targets: Vec<Wwpn>,
}

impl GatewayPorts {
    /// Returns the paths from ports with these names, the first target port of all of them first.
    pub fn paths_from(&self, initiators: &[Wwpn]) -> Vec<[Wwpn; 2]> {
        self.targets.iter().flat_map(|target| initiators.iter().map(|own| [*own, *target])).collect()
    }
}

/// Forwarding of a storage system between its hosts and the storage behind it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Gateway {
    /// Amount of data that is passed on together.
    pub grain: ForwardingGrain,
    /// Address of the hosts in the fabric.
    pub mode: GatewayMode,
    /// Ports to the storage system whose LUNs are those of the gateway. `None`: the LUNs are
    /// virtual disks.
    pub through: Option<GatewayPorts>,
    /// Hosts with a virtual N_Port, in transparent mode.
    pub hosts: Vec<GatewayHost>,
    /// Time for which commands end with BUSY after the loss of the last path of a host to the
    /// storage behind. Then its sessions end.
    pub path_timeout: Picos,
    /// Processor time.
    pub cost: GatewayCost,
}

impl Gateway {
    /// Default of [`Gateway::path_timeout`]: the `dev_loss_tmo` of a remote port in Linux
    /// (`FC_DEFAULT_DEV_LOSS_TMO` of drivers/scsi/scsi_transport_fc.c is 60 s, and the drivers of
    /// adapters set 30 s).
    pub const PATH_TIMEOUT: Picos = Picos::from_secs(30);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_uses_all_its_ports_before_it_uses_another_one_of_the_target() {
        let ports = GatewayPorts { initiators: vec![Wwpn(1), Wwpn(2)], targets: vec![Wwpn(8), Wwpn(9)] };
        let names = |[own, target]: [Wwpn; 2]| (own.0, target.0);
        let paths: Vec<(u64, u64)> = ports.paths_from(&ports.initiators).into_iter().map(names).collect();
        assert_eq!(paths, [(1, 8), (2, 8), (1, 9), (2, 9)]);
    }

    #[test]
    fn a_grain_is_at_most_a_pdu() {
        assert_eq!(ForwardingGrain::Command.bytes(8192, 2048), None);
        assert_eq!(ForwardingGrain::Pdu.bytes(8192, 2048), Some(8192));
        assert_eq!(ForwardingGrain::Frame.bytes(8192, 2048), Some(2048));
        assert_eq!(ForwardingGrain::Frame.bytes(512, 2048), Some(512));
    }
}
