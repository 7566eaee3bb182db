//! A host port of the instance in a Fibre Channel fabric: [`HostPort`], an initiator whose LUNs are
//! back ends (the bridge of the GUPFS report).

use crate::initiator::Adapter;
use crate::initiator::host::Host;
use crate::poll::Poller;
use sanloom_scsi::time::Instant;
use sanloom_wire::{FcId, Wwpn};
use std::io;

/// Carrier of the frames of a host port.
#[derive(Debug)]
pub enum Wire {
    /// A port of a switch of this process.
    Inside {
        /// Index of the switch.
        switch: usize,
        /// Its port.
        port: u16,
        /// Login, FCP, and the disks.
        host: Box<Host>,
    },
    /// An Ethernet port, connected to an external FCoE forwarder.
    Ethernet(Box<Adapter>),
}

/// A host port.
#[derive(Debug)]
pub struct HostPort {
    /// Name in the lab.
    pub name: String,
    /// Carrier of its frames.
    pub wire: Wire,
    /// Number of full egress queues of other ports that stop this one.
    pub held: u16,
}

impl HostPort {
    /// Returns a port without state.
    pub fn new(name: String, wire: Wire) -> HostPort {
        HostPort { name, wire, held: 0 }
    }

    /// Login, FCP, and the disks.
    pub fn host(&self) -> &Host {
        match &self.wire {
            Wire::Inside { host, .. } => host,
            Wire::Ethernet(adapter) => &adapter.hosts[0],
        }
    }

    /// Mutable [`host`](Self::host).
    pub fn host_mut(&mut self) -> &mut Host {
        match &mut self.wire {
            Wire::Inside { host, .. } => host,
            Wire::Ethernet(adapter) => &mut adapter.hosts[0],
        }
    }

    /// Returns its Ethernet port, if it has one of its own.
    pub fn adapter(&self) -> Option<&Adapter> {
        match &self.wire {
            Wire::Inside { .. } => None,
            Wire::Ethernet(adapter) => Some(adapter),
        }
    }

    /// Mutable [`adapter`](Self::adapter).
    pub fn adapter_mut(&mut self) -> Option<&mut Adapter> {
        match &mut self.wire {
            Wire::Inside { .. } => None,
            Wire::Ethernet(adapter) => Some(adapter),
        }
    }

    /// Returns whether frames for the switch are queued that are not held back. An adapter reports
    /// separately whether it can send.
    pub fn may_send(&self) -> bool {
        self.held == 0 && self.adapter().is_none() && self.host().has_output()
    }

    /// Returns the N_Port ID of a target port that it is logged in to, or the reason why it is not.
    pub(super) fn path(&self, target: Wwpn) -> Result<FcId, String> {
        if let Some(remote) = self.host().target(target).and_then(|seen| seen.remote) {
            return Ok(remote.port_id);
        }
        Err(match (self.host().port_id(), self.adapter()) {
            (FcId::ZERO, Some(adapter)) if !adapter.port.has_peer() => {
                format!("no peer is at the other end of the port of {}", self.name)
            }
            (FcId::ZERO, _) => format!("{} is not logged in to the fabric", self.name),
            _ => format!(
                "{} is not logged in to the target port: the target port is absent, or no zone holds both",
                self.name
            ),
        })
    }

    pub(super) fn watch(&self, poller: &mut Poller, token: u64) -> io::Result<()> {
        self.adapter().map_or(Ok(()), |adapter| adapter.watch(poller, token))
    }

    /// Time of the next call of `process_events` if no event occurs before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.wire {
            Wire::Inside { host, .. } => host.poll_timeout(),
            Wire::Ethernet(adapter) => Some(adapter.poll_timeout()),
        }
    }

    /// Reads received frames and calls machines whose deadline is over.
    pub(super) fn process_events(&mut self, now: Instant, poller: &mut Poller, token: u64) {
        match &mut self.wire {
            Wire::Inside { host, .. } => {
                if host.poll_timeout().is_some_and(|at| at <= now) {
                    host.timeout(now);
                }
            }
            Wire::Ethernet(adapter) => {
                adapter.process_events(now, poller, token);
                adapter.timers(now);
            }
        }
    }
}
