//! Frames that this port sends: requests with their open exchanges, replies, and the output queue.

use super::identity::Identity;
use super::pending::{Pending, Purpose};
use super::{Counters, NPortConfig, Output};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::{Ct, CtBody, Service};
use sanloom_wire::els::Els;
use sanloom_wire::fdmi::FdmiRequest;
use sanloom_wire::header::RX_ID_UNASSIGNED;
use sanloom_wire::ns::NsRequest;
use sanloom_wire::{FcId, Frame, Header, Message, Payload, Wwpn};
use std::collections::VecDeque;

/// Local end of all exchanges. The other parts of the port send through it and do not refer to each
/// other.
#[derive(Debug)]
pub(super) struct Exchanges {
    pub(super) identity: Identity,
    /// Requests in flight.
    pub(super) pending: Pending,
    pub(super) counters: Counters,
    random: SplitMix64,
    outputs: VecDeque<Output>,
}

impl Exchanges {
    pub(super) fn new(config: NPortConfig) -> Exchanges {
        Exchanges {
            random: SplitMix64(config.seed),
            identity: Identity::new(config),
            pending: Pending::default(),
            counters: Counters::default(),
            outputs: VecDeque::new(),
        }
    }

    /// Sends an ELS request and opens its exchange.
    pub(super) fn request(&mut self, now: Instant, d_id: FcId, timeout: Span, purpose: Purpose, els: Els) {
        let ox_id = self.pending.open(now + timeout, d_id, purpose);
        self.send(d_id, ox_id, Message::from(els));
    }

    /// Sends an ELS request with a given OX_ID and opens its exchange.
    pub(super) fn request_as(&mut self, ox_id: u16, deadline: Instant, d_id: FcId, purpose: Purpose, els: Els) {
        self.pending.open_as(ox_id, deadline, d_id, purpose);
        self.send(d_id, ox_id, Message::from(els));
    }

    /// Sends an ELS request to a fabric service as a step of the fabric login.
    pub(super) fn request_service(&mut self, now: Instant, service: FcId, els: Els) {
        self.request(now, service, self.identity.reply_timeout(), Purpose::Fabric, els);
    }

    /// Sends a request to the name server and opens its exchange.
    pub(super) fn request_name_server(&mut self, now: Instant, purpose: Purpose, request: NsRequest) {
        let d_id = FcId::NAME_SERVER;
        let ox_id = self.pending.open(now + self.identity.reply_timeout(), d_id, purpose);
        let ct = Ct {
            in_id: 0,
            service: Service::NAME_SERVER,
            options: 0,
            max_or_residual_words: 0,
            body: CtBody::Ns(request),
        };
        self.send(d_id, ox_id, Message::from(ct));
    }

    /// Sends a request to the HBA management service and opens its exchange.
    pub(super) fn request_management(&mut self, now: Instant, purpose: Purpose, request: FdmiRequest) {
        let d_id = FcId::MANAGEMENT_SERVER;
        let ox_id = self.pending.open(now + self.identity.reply_timeout(), d_id, purpose);
        let body = CtBody::Fdmi(request);
        let ct = Ct { in_id: 0, service: Service::FDMI, options: 0, max_or_residual_words: 0, body };
        self.send(d_id, ox_id, Message::from(ct));
    }

    fn send(&mut self, d_id: FcId, ox_id: u16, message: Message) {
        let header = message.header(self.identity.source(), d_id, ox_id, RX_ID_UNASSIGNED);
        self.outputs.push_back(Output::Send(Frame { header, payload: Payload::Typed(message) }));
    }

    /// Sends the reply to a request, which ends its exchange.
    pub(super) fn reply(&mut self, request: &Header, message: Message) {
        let header = message.header(request.d_id, request.s_id, request.ox_id, RX_ID_UNASSIGNED);
        self.outputs.push_back(Output::Send(Frame { header, payload: Payload::Typed(message) }));
    }

    /// Queues an output that is not a frame.
    pub(super) fn report(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Reports the end of a process login.
    pub(super) fn report_down(&mut self, port_id: FcId, wwpn: Wwpn) {
        self.report(Output::RemoteDown { port_id, wwpn });
    }

    /// Back-off before retry number `tries`: E_D_TOV, doubled for each retry up to 32-fold, plus up
    /// to an eighth, so that ports that failed together do not retry together.
    pub(super) fn back_off(&mut self, tries: u8) -> Span {
        let span = self.identity.config.e_d_tov.times(1 << tries.saturating_sub(1).min(5));
        span + Span::from_ns(self.random.below(span.as_ns() / 8 + 1))
    }

    pub(super) fn poll_output(&mut self) -> Option<Output> {
        let output = self.outputs.pop_front();
        // A port with hundreds of logins may lose them all at once; the memory for that burst is
        // released.
        if output.is_none() && self.outputs.capacity() > 64 {
            self.outputs.shrink_to(16);
        }
        output
    }

    /// Memory of the output queue, in bytes.
    pub(super) fn queue_bytes(&self) -> usize {
        self.outputs.capacity() * size_of::<Output>()
    }
}
