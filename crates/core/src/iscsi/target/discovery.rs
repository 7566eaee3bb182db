//! Text requests: SendTargets, and what may be agreed anew in the full feature phase (RFC 7143, sections 6.5 and 11.10).

use super::security::Security;
use super::session::Session;
use crate::iscsi::negotiation::{NOT_UNDERSTOOD, REJECT, is_key};
use crate::iscsi::sequence::UNNUMBERED;
use sanloom_wire::iscsi::code::flag;
use sanloom_wire::iscsi::{Head, NO_TAG, RejectReason, TextRequest, TextResponse, text};

impl Session {
    pub(super) fn on_text(&mut self, head: &Head, request: &TextRequest, data: &[u8]) {
        if request.flags & flag::CONTINUE != 0 {
            // Nothing that is asked here is longer than one PDU.
            return self.reject(head, RejectReason::NOT_SUPPORTED);
        }
        let answer = if request.target_tag == NO_TAG {
            let Ok(pairs) = text::parse(data) else {
                return self.reject(head, RejectReason::PROTOCOL_ERROR);
            };
            // A key that comes again is an error of the protocol (section 6.2); this one is answered with a long list.
            if pairs.iter().filter(|(key, _)| *key == "SendTargets").count() > 1 {
                return self.reject(head, RejectReason::PROTOCOL_ERROR);
            }
            let mut out = Vec::new();
            for (key, value) in pairs {
                self.answer_pair(key, value, &mut out);
            }
            out
        } else {
            match self.rest_of_text.take().filter(|(tag, _)| *tag == request.target_tag) {
                Some((_, rest)) => rest,
                None => return self.reject(head, RejectReason::PROTOCOL_ERROR),
            }
        };
        self.send_text(request, answer);
    }

    fn answer_pair(&mut self, key: &str, value: &str, out: &mut Vec<u8>) {
        match key {
            "SendTargets" => self.send_targets(value, out),
            "MaxRecvDataSegmentLength" => match text::number(value).filter(|bytes| (512..1 << 24).contains(bytes)) {
                Some(bytes) => self.parameters.send_bytes = bytes,
                None => text::emit(key, REJECT, out),
            },
            "InitiatorAlias" => {}
            // It was for the login to agree on.
            key if is_key(key) || Security::is_key(key) => text::emit(key, REJECT, out),
            _ => text::emit(key, NOT_UNDERSTOOD, out),
        }
    }

    /// The targets that the initiator may know: all in discovery, in a session with a target that one.
    fn send_targets(&self, value: &str, out: &mut Vec<u8>) {
        let own = self.key.target.map(usize::from);
        for (index, target) in self.node.targets.iter().enumerate() {
            let asked = match (value, own) {
                ("All", None) => true,
                ("All", Some(_)) => false,
                ("", Some(own)) => index == own,
                (name, own) => target.name == name && own.is_none_or(|own| index == own),
            };
            if asked && target.access.allows(&self.key.initiator) {
                text::emit("TargetName", &target.name, out);
                for portal in &target.portals {
                    text::emit("TargetAddress", &format!("{},{}", portal.address, portal.group), out);
                }
            }
        }
        if value == "All" && own.is_some() {
            text::emit("SendTargets", REJECT, out);
        }
    }

    /// Sends as much as fits, and keeps the rest for the next request.
    fn send_text(&mut self, request: &TextRequest, mut answer: Vec<u8>) {
        let longest = self.parameters.send_bytes as usize;
        let rest = if answer.len() > longest { answer.split_off(longest) } else { Vec::new() };
        let (exp_cmd_sn, max_cmd_sn) = self.window();
        let whole = rest.is_empty();
        // Any number but that of "no tag": there is one text at a time.
        self.next_transfer = self.next_transfer.wrapping_add(1);
        let target_tag = if whole { NO_TAG } else { self.next_transfer.into() };
        self.rest_of_text = (!whole).then_some((target_tag, rest));
        let response = TextResponse {
            flags: if whole { flag::FINAL } else { flag::CONTINUE },
            lun: [0; 8],
            initiator_tag: request.initiator_tag,
            target_tag,
            stat_sn: UNNUMBERED,
            exp_cmd_sn,
            max_cmd_sn,
        };
        self.send(response, answer.into());
    }
}
