//! State change notifications: which logins are in question, and the question that settles it.

use super::NPort;
use super::remote::{RemoteState, flag};
use crate::time::Instant;
use sanloom_wire::FcId;
use sanloom_wire::els::{AddressFormat, Rscn};

impl NPort {
    /// Marks what the pages name. An initiator asks the name server for its targets again, and only those that are marked
    /// are verified after the answer; an initiator that logged in to us is verified at once.
    pub(super) fn on_rscn(&mut self, now: Instant, rscn: &Rscn) {
        self.counters.rscns += 1;
        if self.mesh {
            // Nobody could say more.
            return;
        }
        for page in &rscn.pages {
            let (first, last) = scope(page.format, page.address);
            for remote in self.remotes.range_mut(first, last) {
                self.work += 1;
                if remote.has(flag::DISCOVERED) {
                    remote.set(flag::AFFECTED);
                } else if remote.state.is_up() && !remote.has(flag::AFFECTED) {
                    remote.set(flag::AFFECTED);
                    if remote.state == RemoteState::Up {
                        self.due.insert((now, remote.port_id));
                    }
                }
            }
        }
        if self.config.initiator {
            self.discovery.ask();
        }
    }
}

/// First and last address that a page covers.
fn scope(format: AddressFormat, address: FcId) -> (FcId, FcId) {
    let first = address.to_u32();
    let (first, low_bits) = match format {
        AddressFormat::Port => (first, 0),
        AddressFormat::Area => (first & 0xff_ff00, 0xff),
        AddressFormat::Domain => (first & 0xff_0000, 0xffff),
        AddressFormat::Fabric => (0, 0xff_ffff),
    };
    (FcId::new(first), FcId::new(first | low_bits))
}
