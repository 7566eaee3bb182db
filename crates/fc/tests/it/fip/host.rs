//! Host on the segment: an ENode, a physical N_Port and virtual N_Ports.

use crate::fip::net::{Net, Station};
use sanloom_fc::fip::enode::{self, Enode, EnodeConfig};
use sanloom_fc::nport::{self, NPort, NPortConfig, Remote, VirtualPort};
use sanloom_scsi::time::Span;
use sanloom_wire::ether::{EtherHeader, MacAddr};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::{FCtl, FcId, Frame, Payload, ReplyTo, Wwnn, Wwpn};
use std::collections::BTreeMap;

/// Host with its ENode, its physical N_Port and its virtual N_Ports.
pub struct HostStation {
    pub enode: Enode,
    pub nports: Vec<NPort>,
    pub remotes: Vec<BTreeMap<FcId, Remote>>,
    pub mac: MacAddr,
    /// Requests by N_Port and OX_ID, with the type for parsing the reply.
    requested: BTreeMap<(usize, u16), ReplyTo>,
}

pub fn host_mac(number: usize) -> MacAddr {
    MacAddr([0x52, 0x54, 0, 0, 0, number as u8])
}

pub fn host_node(number: usize) -> Wwnn {
    Wwnn(0x1000_5254_0000_0000 + number as u64)
}

pub fn host_port(number: usize, port: u16) -> Wwpn {
    Wwpn(0x2000_5254_0000_0000 + (u64::from(port) << 48) + number as u64)
}

impl Net {
    /// Adds a host with this many virtual ports.
    pub fn add_host(&mut self, number: usize, target: bool, virtual_ports: u16) -> usize {
        let mac = host_mac(number);
        let nport = |port: u16| {
            NPort::new(NPortConfig {
                wwpn: host_port(number, port),
                wwnn: host_node(number),
                receive_size_bytes: 2112,
                bb_credit: 10,
                bb_sc_n: 0,
                initiator: !target,
                target,
                symbolic_name: format!("host {number}"),
                e_d_tov: Span::from_secs(2),
                r_a_tov: Span::from_secs(10),
                seed: number as u64,
                virtual_port: (port > 0).then(|| VirtualPort { number: port, ..VirtualPort::default() }),
            })
        };
        let host = HostStation {
            enode: Enode::new(EnodeConfig::new(mac, host_node(number))),
            nports: (0..=virtual_ports).map(nport).collect(),
            remotes: vec![BTreeMap::new(); usize::from(virtual_ports) + 1],
            mac,
            requested: BTreeMap::new(),
        };
        self.stations.push(Station::Host(Box::new(host)));
        let at = self.stations.len() - 1;
        self.enode(at, enode::Input::LinkUp);
        at
    }

    pub fn host(&self, at: usize) -> &HostStation {
        let Station::Host(host) = &self.stations[at] else { panic!("station {at} is no host") };
        host
    }

    fn host_mut(&mut self, at: usize) -> &mut HostStation {
        let Station::Host(host) = &mut self.stations[at] else { panic!("station {at} is no host") };
        host
    }

    pub fn enode(&mut self, at: usize, input: enode::Input) {
        let now = self.now;
        self.host_mut(at).enode.handle(now, input);
        self.drain_host(at);
    }

    pub fn nport(&mut self, at: usize, port: usize, input: nport::Input) {
        let now = self.now;
        self.host_mut(at).nports[port].handle(now, input);
        self.drain_host(at);
    }

    /// Executes the outputs of a host's machines until none are left.
    pub fn drain_host(&mut self, at: usize) {
        let now = self.now;
        loop {
            if let Some(output) = self.host_mut(at).enode.poll_output() {
                self.enode_output(at, output);
                continue;
            }
            let ports = 0..self.host(at).nports.len();
            let emitted =
                ports.into_iter().find_map(|port| Some((port, self.host_mut(at).nports[port].poll_output()?)));
            let Some((port, output)) = emitted else { return };
            let host = self.host_mut(at);
            match output {
                nport::Output::Send(frame) => {
                    if let Payload::Typed(message) = &frame.payload
                        && let Some(key) = message.reply_key()
                    {
                        host.requested.insert((port, frame.header.ox_id), key);
                    }
                    host.enode.handle(now, enode::Input::Send(frame));
                }
                nport::Output::FabricUp { .. } if port == 0 => {
                    host.nports.iter_mut().skip(1).for_each(|port| port.handle(now, nport::Input::LinkUp));
                }
                nport::Output::FabricDown if port == 0 => {
                    host.nports.iter_mut().skip(1).for_each(|port| port.handle(now, nport::Input::LinkDown));
                }
                nport::Output::RemoteUp(remote) => {
                    host.remotes[port].insert(remote.port_id, remote);
                }
                nport::Output::RemoteDown { port_id, .. } => {
                    host.remotes[port].remove(&port_id);
                }
                nport::Output::FabricUp { .. } | nport::Output::FabricDown => {}
            }
        }
    }

    fn enode_output(&mut self, at: usize, output: enode::Output) {
        let now = self.now;
        match output {
            enode::Output::Fip(frame) => self.send_fip(at, &frame),
            enode::Output::Fcoe { to, from, frame } => self.send_fcoe(at, to, from, &frame),
            enode::Output::Deliver(frame) => {
                let nports = &mut self.host_mut(at).nports;
                let d_id = frame.header.d_id;
                let waits = |port: &&mut NPort| port.expects(&frame.header) || port.port_id() == d_id;
                if let Some(port) = nports.iter_mut().find(waits) {
                    port.handle(now, nport::Input::Frame(frame));
                }
            }
            enode::Output::FcfUp(_) => self.host_mut(at).nports[0].handle(now, nport::Input::LinkUp),
            enode::Output::FcfDown => {
                let nports = &mut self.host_mut(at).nports;
                nports.iter_mut().for_each(|port| port.handle(now, nport::Input::LinkDown));
            }
            enode::Output::Cleared { port_id } => {
                let nports = &mut self.host_mut(at).nports;
                if let Some(port) = nports.iter_mut().find(|port| port.port_id() == port_id) {
                    port.handle(now, nport::Input::LinkDown);
                    port.handle(now, nport::Input::LinkUp);
                }
            }
            enode::Output::Vlans { .. } => {}
        }
    }

    pub fn fcoe_at_host(&mut self, at: usize, header: EtherHeader, pdu: &[u8]) {
        let Ok(fcoe) = Fcoe::parse(pdu) else { return };
        let Some((d_id, s_id, _)) = fcoe::addresses(pdu) else { return };
        let now = self.now;
        let host = self.host_mut(at);
        if host.enode.ingress(header.to, header.from, s_id, d_id).is_err() {
            return;
        }
        let Some(port) = host.nports.iter().position(|port| port.port_id() == d_id) else { return };
        let Ok(header) = fcoe.header() else { return };
        let responds = header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
        let reply_to = host.requested.get(&(port, header.ox_id)).copied().filter(|_| responds);
        if let Ok(frame) = Frame::parse(fcoe.frame, reply_to) {
            host.nports[port].handle(now, nport::Input::Frame(frame));
        }
        self.drain_host(at);
    }
}
