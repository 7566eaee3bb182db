//! A log of requests to the services of switches, with arrival, latency and work.

use sanloom_fc::switch::Work;
use sanloom_wire::{FcId, Frame, Header, Message, Payload};
use std::collections::BTreeMap;

/// A record of every request to a service of a switch. Enabled by setting
/// [`super::ControlPlane::command_log`].
#[derive(Default)]
pub struct CommandLog {
    open: BTreeMap<Key, CommandRecord>,
    records: Vec<CommandRecord>,
}

/// Switch, port, S_ID of the request, address of the service, OX_ID.
type Key = (u16, u16, FcId, FcId, u16);

/// A request that has been answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandRecord {
    pub switch: u16,
    /// Ingress port of the request.
    pub port: u16,
    /// Name of the command, for example `FDISC` or `RFT_ID`.
    pub command: String,
    /// Address of the service.
    pub service: FcId,
    /// Destination address of the response. For a login, this is the newly assigned address.
    pub port_id: FcId,
    /// Arrival of the last bit, in ps since the first login.
    pub at_ps: u64,
    /// Time from `at_ps` until the response was ready to leave, in ps.
    pub latency_ps: u64,
    /// True if the request was not rejected.
    pub accepted: bool,
    /// Work counted by the switch for this request.
    pub work: Work,
}

impl CommandLog {
    /// Returns the requests answered so far, in the order of their responses.
    pub fn records(&self) -> &[CommandRecord] {
        &self.records
    }

    /// Records the arrival of a message for a service.
    pub(super) fn request(&mut self, now_ps: u64, switch: u16, port: u16, frame: &Frame) {
        let Payload::Typed(message) = &frame.payload else { return };
        if message.reply_key().is_none() {
            return;
        }
        let header = &frame.header;
        let record = CommandRecord {
            switch,
            port,
            command: message.to_string(),
            service: header.d_id,
            port_id: header.s_id,
            at_ps: now_ps,
            latency_ps: 0,
            accepted: false,
            work: Work::default(),
        };
        self.open.insert(key_of(switch, port, header), record);
    }

    /// Records the work that the switch machine counted for a request.
    pub(super) fn work_counted(&mut self, switch: u16, port: u16, request: &Header, work: Work) {
        if let Some(record) = self.open.get_mut(&key_of(switch, port, request)) {
            record.work = work;
        }
    }

    /// Records the departure of a response.
    pub(super) fn response(&mut self, now_ps: u64, switch: u16, port: u16, frame: &Frame) {
        let header = &frame.header;
        // A fabric login is sent from address 0, and its response is sent to the new address.
        let requester_ids = [header.d_id, FcId::ZERO];
        let keys = requester_ids.map(|from| (switch, port, from, header.s_id, header.ox_id));
        let Some(mut record) = keys.iter().find_map(|key| self.open.remove(key)) else { return };
        record.port_id = header.d_id;
        record.latency_ps = now_ps - record.at_ps;
        record.accepted = matches!(&frame.payload, Payload::Typed(message) if !is_reject(message));
        self.records.push(record);
    }
}

fn key_of(switch: u16, port: u16, request: &Header) -> Key {
    (switch, port, request.s_id, request.d_id, request.ox_id)
}

fn is_reject(message: &Message) -> bool {
    match message {
        Message::Els(els) => matches!(**els, sanloom_wire::els::Els::LsRjt(_)),
        Message::Ct(ct) => matches!(ct.body, sanloom_wire::ct::CtBody::Reject(_)),
        _ => false,
    }
}
