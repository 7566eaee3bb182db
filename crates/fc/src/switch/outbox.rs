//! Outputs of a switch, with the counters of its events and its work: [`Outbox`].

use super::{Counters, Output, PeerUpdate, Work};
use crate::fabric::FibDelta;
use sanloom_wire::ct::{Ct, CtBody, CtReject};
use sanloom_wire::els::Els;
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header, Message, Payload, RCtl};
use std::collections::VecDeque;

/// Queue of the outputs of all services, in the order of their effects. Services write to it and
/// never read it.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: VecDeque<Output>,
    pub(super) counters: Counters,
    pub(super) work: Work,
}

impl Outbox {
    pub(super) fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    pub(super) fn push(&mut self, output: Output) {
        self.queue.push_back(output);
    }

    pub(super) fn fib(&mut self, delta: FibDelta) {
        self.push(Output::Fib(delta));
    }

    /// Changes the permissions of the forwarding table, and counts the change.
    pub(super) fn permission(&mut self, delta: FibDelta) {
        self.work.permissions += 1;
        self.fib(delta);
    }

    /// Sends an update to the other switches.
    pub(super) fn peer(&mut self, update: PeerUpdate) {
        self.push(Output::Peer(update));
    }

    /// Counts a frame that is discarded without a reply.
    pub(super) fn discard(&mut self) {
        self.counters.frames_discarded += 1;
    }

    /// Answers a request in one sequence that ends its exchange. RX_ID stays unassigned because no
    /// exchange outlasts its reply.
    pub(super) fn reply(&mut self, port: u16, request: &Header, d_id: FcId, r_ctl: RCtl, message: Message) {
        let header = Header {
            r_ctl,
            d_id,
            s_id: request.d_id,
            f_ctl: FCtl::REPLY,
            seq_id: 0,
            seq_cnt: 0,
            parameter: 0,
            df_ctl: 0,
            cs_ctl: 0,
            ..*request
        };
        let frame = Frame { header, payload: Payload::Typed(message) };
        self.push(Output::Send { port, frame });
    }

    /// Sends the reply to a CT request: an accept with its number of residual words, or a reject.
    pub(super) fn ct_reply(
        &mut self,
        port: u16,
        header: &Header,
        request: &Ct,
        answer: Result<(CtBody, u16), CtReject>,
    ) {
        let reply = match answer {
            Ok((accept, residual_words)) => {
                self.counters.ct_accepted += 1;
                Ct { max_or_residual_words: residual_words, ..request.reply(accept) }
            }
            Err(reject) => {
                self.counters.ct_rejected += 1;
                request.reply(CtBody::Reject(reject))
            }
        };
        let message = Message::Ct(Box::new(reply));
        self.reply(port, header, header.s_id, RCtl::SOLICITED_CONTROL, message);
    }

    /// Sends an extended link service that opens an exchange of this switch.
    pub(super) fn els_request(&mut self, port: u16, s_id: FcId, d_id: FcId, ox_id: u16, els: Els) {
        let header = Header {
            r_ctl: RCtl::ELS_REQUEST,
            d_id,
            cs_ctl: 0,
            s_id,
            fc_type: FcType::ELS,
            f_ctl: FCtl::REQUEST,
            seq_id: 0,
            df_ctl: 0,
            seq_cnt: 0,
            ox_id,
            rx_id: sanloom_wire::header::RX_ID_UNASSIGNED,
            parameter: 0,
        };
        let frame = Frame { header, payload: Payload::Typed(Message::Els(Box::new(els))) };
        self.push(Output::Send { port, frame });
    }
}
