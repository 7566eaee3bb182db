//! Text requests: SendTargets, and keys that may be negotiated again in the full feature phase (RFC
//! 7143, sections 6.5 and 11.10).

use super::session::Session;
use crate::iscsi::keys::{Key, Kind, Rule};
use crate::iscsi::negotiation::{NOT_UNDERSTOOD, REJECT};
use crate::iscsi::sequence::UNNUMBERED;
use sanloom_wire::iscsi::code::flag;
use sanloom_wire::iscsi::{Head, NO_TAG, RejectReason, TextRequest, TextResponse, text};

/// Text exchange of a session: the part of an answer that did not fit the last response. One is
/// enough, because at most one text exchange is open.
#[derive(Debug, Default)]
pub(super) struct TextExchange {
    /// Target transfer tag of the exchange, and the text still to be sent.
    rest: Option<(u32, Vec<u8>)>,
}

impl TextExchange {
    /// Returns the part of the answer that a request with this tag continues.
    fn resume(&mut self, target_tag: u32) -> Option<Vec<u8>> {
        self.rest.take().filter(|(tag, _)| *tag == target_tag).map(|(_, rest)| rest)
    }

    /// Keeps all text beyond `longest` bytes, for a request with this tag. Returns whether there is
    /// any.
    fn split(&mut self, answer: &mut Vec<u8>, longest: usize, target_tag: u32) -> bool {
        let rest = if answer.len() > longest { answer.split_off(longest) } else { Vec::new() };
        self.rest = (!rest.is_empty()).then_some((target_tag, rest));
        self.rest.is_some()
    }
}

impl Session {
    pub(super) fn on_text(&mut self, head: &Head, request: &TextRequest, data: &[u8]) {
        if request.flags & flag::CONTINUE != 0 {
            // No supported request is longer than one PDU.
            return self.engine.reject(head, RejectReason::NOT_SUPPORTED);
        }
        let answer = if request.target_tag == NO_TAG {
            let Ok(pairs) = text::parse(data) else {
                return self.engine.reject(head, RejectReason::PROTOCOL_ERROR);
            };
            // A repeated key is a protocol error (section 6.2). SendTargets is checked because its
            // answer is a long list.
            if pairs.iter().filter(|(key, _)| *key == Key::SendTargets.name()).count() > 1 {
                return self.engine.reject(head, RejectReason::PROTOCOL_ERROR);
            }
            let mut out = Vec::new();
            for (key, value) in pairs {
                self.answer_pair(key, value, &mut out);
            }
            out
        } else {
            match self.text.resume(request.target_tag) {
                Some(rest) => rest,
                None => return self.engine.reject(head, RejectReason::PROTOCOL_ERROR),
            }
        };
        self.send_text(request, answer);
    }

    fn answer_pair(&mut self, name: &str, value: &str, out: &mut Vec<u8>) {
        let key = Key::named(name);
        match key.map(Key::kind) {
            Some(Kind::Request) => self.send_targets(value, out),
            Some(Kind::Operational(Rule::Declared(low, high), ..)) => {
                match text::number(value).filter(|bytes| (low..=high).contains(bytes)) {
                    Some(bytes) => self.engine.parameters.send_bytes = bytes,
                    None => text::emit(name, REJECT, out),
                }
            }
            Some(Kind::Declaration) if key == Some(Key::InitiatorAlias) => {}
            // The key may only be negotiated during login.
            Some(Kind::Operational(..)) => text::emit(name, REJECT, out),
            _ if Key::is_security(name) => text::emit(name, REJECT, out),
            _ => text::emit(name, NOT_UNDERSTOOD, out),
        }
    }

    /// Appends the targets visible to the initiator: all that it may use in a discovery session,
    /// else the session's own target.
    fn send_targets(&self, value: &str, out: &mut Vec<u8>) {
        let own = self.key.target.map(usize::from);
        for (index, target) in self.node.targets.iter().enumerate() {
            let requested = match (value, own) {
                ("All", None) => true,
                ("All", Some(_)) => false,
                ("", Some(own)) => index == own,
                (name, own) => target.name == name && own.is_none_or(|own| index == own),
            };
            if requested && target.access.allows(&self.key.initiator) {
                Key::TargetName.emit(&target.name, out);
                for portal in &target.portals {
                    Key::TargetAddress.emit(&format!("{},{}", portal.address, portal.group), out);
                }
            }
        }
        if value == "All" && own.is_some() {
            Key::SendTargets.emit(REJECT, out);
        }
    }

    /// Sends as much text as fits one PDU and keeps the rest for the next request.
    fn send_text(&mut self, request: &TextRequest, mut answer: Vec<u8>) {
        let longest = self.parameters().send_bytes as usize;
        let (exp_cmd_sn, max_cmd_sn) = self.engine.window.numbers();
        let next_tag = self.engine.out.next_transfer().into();
        let more = self.text.split(&mut answer, longest, next_tag);
        let response = TextResponse {
            flags: if more { flag::CONTINUE } else { flag::FINAL },
            lun: [0; 8],
            initiator_tag: request.initiator_tag,
            target_tag: if more { next_tag } else { NO_TAG },
            stat_sn: UNNUMBERED,
            exp_cmd_sn,
            max_cmd_sn,
        };
        self.engine.out.send(response, answer.into());
    }
}
