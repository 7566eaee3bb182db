//! Frames of Fibre Channel in the words of a timeline, on their own links and on Ethernet.

use crate::capture::{DataPlace, part_header};
use crate::net::FrameRef;
use crate::world::World;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::{FcId, Header, Message, ReplyTo};
use std::collections::BTreeMap;

/// Open requests that are kept, more than ports of a lab have at a time. Requests whose answers
/// were lost stay until their exchange identifier is used again.
const MAX_REQUESTS: usize = 1 << 16;

/// Texts of frames, with the open requests that name their answers.
#[derive(Default)]
pub(super) struct FrameTexts {
    requests: BTreeMap<Exchange, Request>,
}

/// Lane of the request, originator, responder, OX_ID. The originator is 0 for a fabric login, which
/// assigns its address.
type Exchange = (u32, FcId, FcId, u16);

#[derive(Clone, Debug)]
enum Request {
    /// Name of an extended link service or a CT request.
    Service(String),
    /// A SCSI command, with the length of its data in bytes.
    Command(u32),
}

/// Returns the addresses and the OX_ID of a frame.
pub(super) fn ids(frame: &FrameRef) -> String {
    format!("{} {} {:04x}", frame.s_id(), frame.d_id(), frame.ox_id())
}

/// Returns the name of a SCSI status.
pub(super) fn status_text(code: u8) -> String {
    status::name(code).map_or_else(|| format!("status {code:02x}"), str::to_owned)
}

impl FrameTexts {
    /// Returns the text of a frame on a lane. `message` are the header, the bytes and the number of
    /// parts of a control message.
    pub fn what(
        &mut self,
        world: &World,
        lane: u32,
        frame: &FrameRef,
        message: Option<(&Header, &[u8], u16)>,
    ) -> String {
        match message {
            Some((header, bytes, parts)) => self.message_text(lane, frame, header, bytes, parts),
            None => self.data_text(world, lane, frame),
        }
    }

    fn open(&mut self, exchange: Exchange, request: Request) {
        if self.requests.len() >= MAX_REQUESTS && !self.requests.contains_key(&exchange) {
            self.requests.pop_first();
        }
        self.requests.insert(exchange, request);
    }

    fn data_text(&self, world: &World, lane: u32, frame: &FrameRef) -> String {
        let place = DataPlace::of(world, frame);
        let number = u32::from(frame.seq_cnt()) + 1;
        let key = match frame.from_responder() {
            true => exchange(lane ^ 1, frame.d_id(), frame.s_id(), frame.ox_id()),
            false => exchange(lane, frame.s_id(), frame.d_id(), frame.ox_id()),
        };
        match self.requests.get(&key) {
            Some(Request::Command(bytes)) => {
                let frames = bytes.div_ceil(u32::from(place.frame_bytes)).max(1);
                format!("FCP_DATA {number}/{frames} offset {}", place.offset)
            }
            _ => format!("FCP_DATA {number} offset {}", place.offset),
        }
    }

    fn message_text(&mut self, lane: u32, frame: &FrameRef, header: &Header, bytes: &[u8], parts: u16) -> String {
        if parts > 1 {
            let header = part_header(header, frame.part(), parts, bytes.len());
            return format!("{} / {}, part {}/{parts}", header.r_ctl, header.fc_type, frame.part() + 1);
        }
        let Ok(message) = Message::parse(header, bytes, None) else {
            return format!("{} / {}", header.r_ctl, header.fc_type);
        };
        match &message {
            Message::FcpCmnd(command) => {
                let request = Request::Command(command.data_len);
                self.open(originated(lane, header), request);
                if command.task_management != 0 {
                    return format!("FCP_CMND task management {:02x}", command.task_management);
                }
                format!("FCP_CMND {} len {}", Cdb::parse(&command.cdb), command.data_len)
            }
            Message::FcpXferRdy(ready) => format!("FCP_XFER_RDY offset {} len {}", ready.offset, ready.burst_len),
            Message::FcpRsp(response) => {
                self.requests.remove(&responded(lane, header));
                format!("FCP_RSP {}", status_text(response.status))
            }
            Message::Els(_) | Message::Ct(_) | Message::SwIls(_) => self.service_text(lane, header, &message),
            other => other.to_string(),
        }
    }

    /// Returns the text of a service frame. A reply is named after its request, because the frame
    /// itself does not identify it.
    fn service_text(&mut self, lane: u32, header: &Header, message: &Message) -> String {
        let name = message.to_string();
        match message.reply_key() {
            Some(ReplyTo::Els(_) | ReplyTo::Ct(..) | ReplyTo::SwIls(_)) => {
                let request = Request::Service(name.clone());
                self.open(originated(lane, header), request);
                name
            }
            None => match self.requests.remove(&responded(lane, header)) {
                Some(Request::Service(request)) => format!("{request}: {name}"),
                _ => name,
            },
        }
    }
}

fn exchange(lane: u32, originator: FcId, responder: FcId, ox_id: u16) -> Exchange {
    let originator = if responder == FcId::F_PORT { FcId::ZERO } else { originator };
    (lane, originator, responder, ox_id)
}

/// Returns the exchange of a frame sent by its originator.
fn originated(lane: u32, header: &Header) -> Exchange {
    exchange(lane, header.s_id, header.d_id, header.ox_id)
}

/// Returns the exchange of a frame sent by its responder.
fn responded(lane: u32, header: &Header) -> Exchange {
    exchange(lane ^ 1, header.d_id, header.s_id, header.ox_id)
}
