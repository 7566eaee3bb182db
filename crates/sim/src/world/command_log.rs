//! Requests to the services of switches: when they came in, when their answers left, and what they cost.

use sanloom_core::switch::Work;
use sanloom_wire::{FcId, Frame, Header, Message, Payload};
use std::collections::BTreeMap;

/// Records every request to a service of a switch. Set [`super::World::command_log`] to have it.
#[derive(Default)]
pub struct CommandLog {
    open: BTreeMap<Key, CommandRecord>,
    records: Vec<CommandRecord>,
}

/// Switch, port, who asks, service, OX_ID.
type Key = (u16, u16, FcId, FcId, u16);

/// A request that was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandRecord {
    /// The switch.
    pub switch: u16,
    /// The port that it came in through.
    pub port: u16,
    /// Name of the command: `FDISC`, `RFT_ID`.
    pub command: String,
    /// Address of the service.
    pub service: FcId,
    /// Address that the answer went to: of a login, the new one.
    pub port_id: FcId,
    /// When its last bit was in, in ps since the first login.
    pub at_ps: u64,
    /// From then until the answer was ready to leave, in ps.
    pub latency_ps: u64,
    /// It was not rejected.
    pub accepted: bool,
    /// What the switch counted for it.
    pub work: Work,
}

impl CommandLog {
    /// The requests that were answered so far, in the order of their answers.
    pub fn records(&self) -> &[CommandRecord] {
        &self.records
    }

    /// A message for a service has come in.
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

    /// The machine has dealt with it.
    pub(super) fn served(&mut self, switch: u16, port: u16, request: &Header, work: Work) {
        if let Some(record) = self.open.get_mut(&key_of(switch, port, request)) {
            record.work = work;
        }
    }

    /// A message of a service leaves.
    pub(super) fn answer(&mut self, now_ps: u64, switch: u16, port: u16, frame: &Frame) {
        let header = &frame.header;
        // A login has asked from no address, and is answered at its new one.
        let asked_by = [header.d_id, FcId::ZERO];
        let keys = asked_by.map(|from| (switch, port, from, header.s_id, header.ox_id));
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
