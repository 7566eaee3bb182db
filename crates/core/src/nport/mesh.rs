//! A segment without a fabric (FC-BB-6, VN2VN): the address comes from the station ([`crate::fip::vn2vn`]), and so does the
//! news of other ports. There are no services to log in to, and nobody to ask.

use super::fabric::FabricState;
use super::remote::{RemoteState, flag};
use super::{NPort, Output};
use crate::time::Instant;
use sanloom_wire::{FcId, Wwpn};

impl NPort {
    /// The segment lets us have an address.
    pub(super) fn join(&mut self, port_id: FcId) {
        self.go_offline();
        self.mesh = true;
        self.port_id = port_id;
        self.fabric_receive_size_bytes = self.config.receive_size_bytes;
        self.state = FabricState::Ready;
        self.counters.fabric_logins += 1;
        self.outputs.push_back(Output::FabricUp { port_id });
    }

    /// Another port is there. The one with the greater name logs in; the other waits for that, and not for ever.
    pub(super) fn meet(&mut self, now: Instant, port_id: FcId, wwpn: Wwpn) {
        if !self.mesh || port_id == self.port_id {
            return;
        }
        self.forget(port_id);
        let remote = self.remotes.get_or_insert(port_id, RemoteState::Waiting);
        remote.wwpn = wwpn;
        remote.set(flag::DISCOVERED);
        let at = if self.config.wwpn > wwpn { now } else { now + self.request_timeout() };
        self.due.insert((at, port_id));
    }
}
