//! Station of a segment without FCF: a VN2VN machine and an N_Port.

use crate::fip::host::{host_mac, host_node, host_port};
use crate::fip::net::{Net, Station};
use sanloom_fc::fip::vn2vn::{self, Vn2vn, Vn2vnConfig};
use sanloom_fc::nport::{self, NPort, NPortConfig, Remote};
use sanloom_scsi::time::Span;
use sanloom_wire::ether::{EtherHeader, MacAddr};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::{FCtl, FcId, Frame, Payload, ReplyTo};
use std::collections::BTreeMap;

pub struct PeerStation {
    pub vn2vn: Vn2vn,
    pub nport: NPort,
    pub remotes: BTreeMap<FcId, Remote>,
    pub mac: MacAddr,
    requested: BTreeMap<u16, ReplyTo>,
}

impl Net {
    /// Adds a station whose port name ends in these 16 bits.
    pub fn add_peer(&mut self, number: usize, name: u16, target: bool) -> usize {
        let mac = host_mac(number);
        let mut port_name = host_port(number, 0);
        port_name.0 = (port_name.0 & !0xffff) + ((number as u64) << 48) + u64::from(name);
        let node_name = host_node(number);
        let nport = NPortConfig {
            wwpn: port_name,
            wwnn: node_name,
            receive_size_bytes: 2112,
            bb_credit: 10,
            bb_sc_n: 0,
            initiator: !target,
            target,
            symbolic_name: format!("peer {number}"),
            e_d_tov: Span::from_secs(2),
            r_a_tov: Span::from_secs(10),
            seed: number as u64,
            virtual_port: None,
        };
        let peer = PeerStation {
            vn2vn: Vn2vn::new(Vn2vnConfig::new(mac, port_name, node_name, !target, target)),
            nport: NPort::new(nport),
            remotes: BTreeMap::new(),
            mac,
            requested: BTreeMap::new(),
        };
        self.stations.push(Station::Peer(Box::new(peer)));
        let at = self.stations.len() - 1;
        self.vn2vn(at, vn2vn::Input::LinkUp);
        at
    }

    pub fn peer(&self, at: usize) -> &PeerStation {
        let Station::Peer(peer) = &self.stations[at] else { panic!("station {at} is no peer") };
        peer
    }

    fn peer_mut(&mut self, at: usize) -> &mut PeerStation {
        let Station::Peer(peer) = &mut self.stations[at] else { panic!("station {at} is no peer") };
        peer
    }

    pub fn vn2vn(&mut self, at: usize, input: vn2vn::Input) {
        let now = self.now;
        self.peer_mut(at).vn2vn.handle(now, input);
        self.drain_peer(at);
    }

    pub fn drain_peer(&mut self, at: usize) {
        let now = self.now;
        loop {
            if let Some(output) = self.peer_mut(at).vn2vn.poll_output() {
                self.vn2vn_output(at, output);
                continue;
            }
            let peer = self.peer_mut(at);
            match peer.nport.poll_output() {
                Some(nport::Output::Send(frame)) => {
                    if let Payload::Typed(message) = &frame.payload
                        && let Some(key) = message.reply_key()
                    {
                        peer.requested.insert(frame.header.ox_id, key);
                    }
                    peer.vn2vn.handle(now, vn2vn::Input::Send(frame));
                }
                Some(nport::Output::RemoteUp(remote)) => {
                    peer.remotes.insert(remote.port_id, remote);
                }
                Some(nport::Output::RemoteDown { port_id, .. }) => {
                    peer.remotes.remove(&port_id);
                }
                Some(nport::Output::FabricUp { .. } | nport::Output::FabricDown) => {}
                None => return,
            }
        }
    }

    fn vn2vn_output(&mut self, at: usize, output: vn2vn::Output) {
        let now = self.now;
        let nport = &mut self.peer_mut(at).nport;
        match output {
            vn2vn::Output::Fip(frame) => self.send_fip(at, &frame),
            vn2vn::Output::Fcoe { to, from, frame } => self.send_fcoe(at, to, from, &frame),
            vn2vn::Output::Up { port_id } => nport.handle(now, nport::Input::Joined { port_id }),
            vn2vn::Output::Down => nport.handle(now, nport::Input::LinkDown),
            vn2vn::Output::NeighbourUp { port_id, port_name } => {
                nport.handle(now, nport::Input::Neighbour { port_id, wwpn: port_name });
            }
            vn2vn::Output::NeighbourDown { port_id } => nport.handle(now, nport::Input::NeighbourGone { port_id }),
        }
    }

    pub fn fcoe_at_peer(&mut self, at: usize, header: EtherHeader, pdu: &[u8]) {
        let Ok(fcoe) = Fcoe::parse(pdu) else { return };
        let Some((d_id, s_id, _)) = fcoe::addresses(pdu) else { return };
        let now = self.now;
        let peer = self.peer_mut(at);
        if peer.vn2vn.ingress(header.to, header.from, s_id, d_id).is_err() {
            return;
        }
        let Ok(header) = fcoe.header() else { return };
        let responds = header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
        let reply_to = peer.requested.get(&header.ox_id).copied().filter(|_| responds);
        if let Ok(frame) = Frame::parse(fcoe.frame, reply_to) {
            peer.nport.handle(now, nport::Input::Frame(frame));
        }
        self.drain_peer(at);
    }
}
