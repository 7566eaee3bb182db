//! Requests of other switches for domains, forwarded towards the principal: [`Relays`].

use super::outbox::{Outbox, Purpose};
use crate::ils::Request;
use sanloom_wire::Wwnn;
use sanloom_wire::sw_ils::{Rdi, SwIls};
use std::collections::BTreeMap;

/// Maximum number of requests of one switch that wait for the same reply; they stem from
/// retransmissions.
const MAX_WAITING: usize = 8;

/// RDI forwarded towards the principal.
#[derive(Debug)]
struct Relay {
    /// Requested domains.
    domains: Vec<u8>,
    /// Requests that the reply answers.
    waiting: Vec<Request>,
}

/// Forwarded RDIs, by the requesting switch.
#[derive(Debug, Default)]
pub(super) struct Relays(BTreeMap<Wwnn, Relay>);

impl Relays {
    /// Forwards an RDI to the port towards the principal. A retransmission waits for the same
    /// reply.
    pub(super) fn forward(&mut self, request: Request, rdi: Rdi, upstream: u16, outbox: &mut Outbox) {
        let Some(relay) = self.0.get_mut(&rdi.switch_name) else {
            let (name, domains) = (rdi.switch_name, rdi.domains.clone());
            self.0.insert(name, Relay { domains, waiting: vec![request] });
            outbox.request(SwIls::Rdi(rdi), Purpose::Relay(upstream, name));
            return;
        };
        if relay.domains != rdi.domains {
            // The pending RDI requests other domains.
            return outbox.reject_busy(request);
        }
        relay.waiting.push(request);
        if relay.waiting.len() > MAX_WAITING {
            let oldest = relay.waiting.remove(0);
            outbox.reject_busy(oldest);
        }
    }

    /// Passes the reply on to the switch that sent the RDI.
    pub(super) fn answer(&mut self, name: Wwnn, answer: Option<&SwIls>, outbox: &mut Outbox) {
        for request in self.0.remove(&name).into_iter().flat_map(|relay| relay.waiting) {
            match answer {
                Some(answer) => outbox.answer(request, answer.clone()),
                None => outbox.reject_busy(request),
            }
        }
    }

    /// Rejects all forwarded requests as busy after the upstream port changed, so that their
    /// senders repeat them.
    pub(super) fn reject_all(&mut self, outbox: &mut Outbox) {
        outbox.drop_requests(|purpose| matches!(purpose, Purpose::Relay(..)));
        for request in std::mem::take(&mut self.0).into_values().flat_map(|relay| relay.waiting) {
            outbox.reject_busy(request);
        }
    }

    /// Drops the requests that arrived on a port that is gone.
    pub(super) fn remove_port(&mut self, port: u16) {
        for relay in self.0.values_mut() {
            relay.waiting.retain(|request| request.port != port);
        }
    }
}
