//! A host port of the instance in a Fibre Channel fabric: [`HostPort`], an initiator whose LUNs are back ends (the bridge of document 004).

use crate::initiator::host::Host;
use crate::storage::port::At;
use sanloom_wire::{FcId, Wwpn};

/// A host port.
#[derive(Debug)]
pub struct HostPort {
    /// Its name in the lab.
    pub name: String,
    /// What it is attached to.
    pub at: At,
    /// Full egress queues that hold it back.
    pub held: u16,
    /// Login, FCP, and the disks.
    pub host: Host,
}

impl HostPort {
    /// A port without a link.
    pub fn new(name: String, at: At, host: Host) -> HostPort {
        HostPort { name, at, held: 0, host }
    }

    /// The address of a target port that it is logged in to, or why it is not.
    pub(super) fn path(&self, target: Wwpn) -> Result<FcId, String> {
        if let Some(remote) = self.host.target(target).and_then(|seen| seen.remote) {
            return Ok(remote.port_id);
        }
        Err(match self.host.port_id() {
            FcId::ZERO => format!("{} is not logged in to the fabric", self.name),
            _ => format!("{} is not logged in to the target port: it is not there, or in no zone with it", self.name),
        })
    }
}
