//! A storage port on a segment without a switch (VN2VN): [`Station`].

use super::forward::reason;
use super::segment::FCOE_PRIORITY;
use super::{Runtime, Source};
use crate::frame::FrameBuf;
use crate::sequence::{self, MESSAGE_FRAME_BYTES};
use crate::storage::port::Leaving;
use sanloom_core::fip::Discard;
use sanloom_core::fip::vn2vn::{self, Vn2vn, Vn2vnConfig};
use sanloom_core::nport;
use sanloom_core::time::Instant;
use sanloom_wire::ether::{ETHER_BYTES, EtherHeader, MacAddr, VlanTag, readdress};
use sanloom_wire::fcoe::{self, Fcoe};
use sanloom_wire::header::HEADER_BYTES;
use sanloom_wire::{FcId, Frame};

/// A station.
#[derive(Debug)]
pub struct Station {
    /// Index of the Ethernet port.
    pub port: usize,
    /// VLAN of its frames; `None`: untagged.
    pub vlan: Option<u16>,
    /// Index of the storage system.
    pub system: usize,
    /// Port of the storage system.
    pub storage_port: u16,
    /// Its controller.
    pub machine: Vn2vn,
}

impl Station {
    /// A station without a link.
    pub fn new(port: usize, vlan: Option<u16>, (system, storage_port): (usize, u16), config: Vn2vnConfig) -> Station {
        Station { port, vlan, system, storage_port, machine: Vn2vn::new(config) }
    }

    /// The tag that its frames leave with.
    pub fn tag(&self) -> Option<VlanTag> {
        self.vlan.map(|vlan| VlanTag { priority: FCOE_PRIORITY, drop_eligible: false, vlan })
    }
}

impl Runtime {
    /// Something happened to a station.
    pub(super) fn tell_station(&mut self, now: Instant, number: usize, input: vn2vn::Input) {
        if let Some(recorder) = &mut self.recorder {
            recorder.station_input(now, number, &input);
        }
        self.stations[number].machine.handle(now, input);
        while let Some(output) = self.ask_station(number) {
            let login = match output {
                vn2vn::Output::Fip(packet) => {
                    let mut buffer = self.pool.take();
                    buffer.compose(&mut self.scratch, |out| packet.emit(None, out));
                    self.station_out(now, number, Source::Machine, buffer);
                    continue;
                }
                vn2vn::Output::Fcoe { to, from, frame } => {
                    self.station_message(now, number, (to, from), frame);
                    continue;
                }
                vn2vn::Output::Up { port_id } => nport::Input::Joined { port_id },
                vn2vn::Output::Down => nport::Input::LinkDown,
                vn2vn::Output::NeighbourUp { port_id, port_name: wwpn } => nport::Input::Neighbour { port_id, wwpn },
                vn2vn::Output::NeighbourDown { port_id } => nport::Input::NeighbourGone { port_id },
            };
            let Station { system, storage_port, .. } = self.stations[number];
            self.systems[system].tell_login(now, storage_port, login);
            self.drain_storage(system);
        }
    }

    fn station_message(&mut self, now: Instant, number: usize, (to, from): (MacAddr, MacAddr), frame: Frame) {
        let Station { system, storage_port, .. } = self.stations[number];
        for piece in sequence::cut(frame, MESSAGE_FRAME_BYTES) {
            let mut buffer = self.pool.take();
            buffer.compose(&mut self.scratch, |out| fcoe::encapsulate(to, from, None, &piece, out));
            self.station_out(now, number, Source::Storage(system, storage_port), buffer);
        }
    }

    fn station_out(&mut self, now: Instant, number: usize, source: Source, mut frame: FrameBuf) {
        frame.tag = self.stations[number].tag();
        self.ethernet_out(now, self.stations[number].port, source, frame);
    }

    /// A FIP frame for the station of a port. True if it was one.
    pub(super) fn station_fip_in(&mut self, now: Instant, port: usize, vlan: Option<u16>, frame: &FrameBuf) -> bool {
        let Some(number) = self.ports[port].station.filter(|number| self.stations[*number].vlan == vlan) else {
            return false;
        };
        let Ok((EtherHeader { to, from, .. }, pdu)) = EtherHeader::parse(frame.bytes()) else { return false };
        self.tell_station(now, number, vn2vn::Input::Fip { to, from, pdu: pdu.into() });
        true
    }

    /// An FCoE frame for the station of a port, or why it is dropped.
    pub(super) fn station_in(
        &mut self,
        now: Instant,
        number: usize,
        vlan: Option<u16>,
        frame: &FrameBuf,
    ) -> Result<(), &'static str> {
        let Station { system, storage_port, ref machine, .. } = self.stations[number];
        if self.stations[number].vlan != vlan {
            return Err(reason::UNKNOWN_VLAN);
        }
        let bytes = frame.bytes();
        let (ether, pdu) = EtherHeader::parse(bytes).map_err(|_| reason::MALFORMED)?;
        let fcoe = Fcoe::parse(pdu).map_err(|_| reason::MALFORMED)?;
        let header = fcoe.header().map_err(|_| reason::MALFORMED)?;
        machine.ingress(ether.to, ether.from, header.s_id, header.d_id).map_err(|discard| discard.name())?;
        if !fcoe.crc_is_right() {
            return Err(reason::BAD_CRC);
        }
        let field = &bytes[ETHER_BYTES + fcoe::HEAD_BYTES + HEADER_BYTES..][..fcoe.frame.len() - HEADER_BYTES];
        self.systems[system].frame_in(now, storage_port, header, field);
        self.drain_storage(system);
        Ok(())
    }

    /// The storage port of a station sends its next frame. False if there is none.
    pub(super) fn station_sends(&mut self, now: Instant, number: usize) -> bool {
        let Station { system, storage_port, ref machine, .. } = self.stations[number];
        match self.systems[system].ports[usize::from(storage_port)].next_leaving() {
            None => return false,
            Some(Leaving::Message(frame)) => self.tell_station(now, number, vn2vn::Input::Send(frame)),
            Some(Leaving::Data(header, data)) => {
                let d_id: FcId = header.d_id;
                // Without a login nobody waits for it any more.
                let Some((to, from)) = machine.path(d_id) else {
                    let port = self.stations[number].port;
                    self.ports[port].ethernet.count(Discard::NotLoggedIn.name(), 1);
                    return true;
                };
                let mut buffer = self.pool.take();
                buffer.fill_fcoe(&header, data);
                readdress(buffer.bytes_mut(), to, from);
                self.station_out(now, number, Source::Storage(system, storage_port), buffer);
            }
        }
        true
    }
}
