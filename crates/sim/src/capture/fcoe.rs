//! Frames of FCoE and FIP as bytes.
//!
//! Fabric logins, logouts and the exchange of link parameters travel in FIP, all other frames in
//! FCoE. A VN_Port has the address that the fabric provides: the FC-MAP and its FC_ID.

use super::contents;
use super::ethernet::mac;
use crate::net::End;
use crate::net::ethernet::Packet;
use crate::net::fcoe::SeenFrame;
use crate::world::World;
use sanloom_wire::crc::crc_bytes;
use sanloom_wire::delimiter::Eof;
use sanloom_wire::els::{Els, LsAcc};
use sanloom_wire::ether::{EtherHeader, EtherType, FcMap, MacAddr, VlanTag};
use sanloom_wire::fcoe::Fcoe;
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, LinkService, Operation, flag};
use sanloom_wire::sw_ils::{SwAcc, SwIls};
use sanloom_wire::{FCtl, FcId, Frame, Message, Payload};

/// Returns whether a frame travels in FIP.
pub(crate) fn is_fip(seen: &SeenFrame) -> bool {
    matches!(&seen.message, Some((whole, _, 1)) if for_fip(whole).is_some())
}

/// Appends the frame of a packet with these contents. `None` if its bytes are not known.
pub(super) fn frame(
    world: &World,
    tag: Option<VlanTag>,
    packet: &Packet,
    seen: &SeenFrame,
    out: &mut Vec<u8>,
) -> Option<()> {
    let lane = &world.net.fc.lanes()[seen.lane as usize];
    let map = fc_map(world, [lane.from, lane.to]);
    if let Some((whole, _, 1)) = &seen.message
        && let Some((service, is_reply, granted)) = for_fip(whole)
    {
        let ends = [(lane.from, packet.from), (lane.to, packet.to)];
        let [from, to] = ends.map(|(end, interface)| port_mac(world, end).unwrap_or_else(|| mac(interface)));
        let own = match service {
            LinkService::Elp => Some(from),
            LinkService::Logo if is_reply => None,
            LinkService::Logo => Some(MacAddr::fpma(map, whole.header.s_id)),
            // An address of the fabric is requested with zeros.
            LinkService::Flogi | LinkService::Fdisc if !is_reply => Some(MacAddr::ZERO),
            LinkService::Flogi | LinkService::Fdisc => granted.map(|port_id| MacAddr::fpma(map, port_id)),
        };
        let service = Descriptor::LinkService { service, frame: Box::new(whole.clone()) };
        let descriptors = [service].into_iter().chain(own.map(Descriptor::Mac)).collect();
        let operation = if is_reply { Operation::LINK_SERVICE_REPLY } else { Operation::LINK_SERVICE_REQUEST };
        let of_switch = matches!(lane.from, End::Switch { .. });
        let flags = flag::FPMA | if of_switch { flag::FCF } else { 0 };
        FipFrame { to, from, padded_bytes: 0, packet: Fip { operation, flags, descriptors } }.emit(tag, out);
        return Some(());
    }
    let message = seen.message.as_ref().map(|(whole, bytes, parts)| (&whole.header, bytes.as_slice(), *parts));
    let (sof, last, bytes) = contents(world, &seen.frame, message)?;
    let from = port_mac(world, lane.from).unwrap_or_else(|| MacAddr::fpma(map, seen.frame.s_id()));
    let to = port_mac(world, lane.to).unwrap_or_else(|| MacAddr::fpma(map, seen.frame.d_id()));
    EtherHeader { to, from, tag, ether_type: EtherType::FCOE }.emit(out);
    let eof_code = Eof::class_3(last).code();
    Fcoe { sof_code: sof.code(), frame: &bytes, crc: crc_bytes(&bytes), eof_code }.emit(out);
    Some(())
}

/// Returns the FCF-MAC of a port of a switch; `None` for a VN_Port.
pub(super) fn port_mac(world: &World, end: End) -> Option<MacAddr> {
    match end {
        End::Switch { switch, port } => Some(world.lab.switches[usize::from(switch)].fcf_mac(port)),
        End::NPort(_) | End::Loop { .. } => None,
    }
}

/// Returns the FC-MAP of the forwarder at one of two ends.
pub(super) fn fc_map(world: &World, ends: [End; 2]) -> FcMap {
    let of_switch = ends.into_iter().find_map(|end| match end {
        End::Switch { switch, .. } => Some(world.lab.live.fcoe(switch).fc_map),
        End::NPort(_) | End::Loop { .. } => None,
    });
    FcMap([0x0e, 0xfc, of_switch.unwrap_or(0)])
}

/// Returns the service of a frame that travels in FIP, whether it is a reply, and the address that
/// a reply to a login grants.
fn for_fip(frame: &Frame) -> Option<(LinkService, bool, Option<FcId>)> {
    let header = &frame.header;
    let is_reply = header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
    match &frame.payload {
        Payload::Typed(Message::Els(els)) if !is_reply && header.d_id == FcId::F_PORT => match &**els {
            Els::Flogi(_) => Some((LinkService::Flogi, false, None)),
            Els::Fdisc(_) => Some((LinkService::Fdisc, false, None)),
            Els::Logo(_) => Some((LinkService::Logo, false, None)),
            _ => None,
        },
        Payload::Typed(Message::Els(els)) if header.s_id == FcId::F_PORT => match &**els {
            // A switch gives an address that ends with 00 to a port, and others to virtual ports.
            Els::LsAcc(LsAcc::Login(_)) if header.d_id.to_bytes()[2] != 0 => {
                Some((LinkService::Fdisc, true, Some(header.d_id)))
            }
            Els::LsAcc(LsAcc::Login(_)) => Some((LinkService::Flogi, true, Some(header.d_id))),
            Els::LsAcc(LsAcc::Empty) => Some((LinkService::Logo, true, None)),
            _ => None,
        },
        Payload::Typed(Message::SwIls(ils)) => match &**ils {
            SwIls::Elp(_) => Some((LinkService::Elp, false, None)),
            SwIls::SwAcc(SwAcc::Elp(_)) => Some((LinkService::Elp, true, None)),
            _ => None,
        },
        _ => None,
    }
}
