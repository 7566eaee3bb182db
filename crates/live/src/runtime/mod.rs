//! The running lab: [`Runtime`], one thread that waits for sockets and timers, carries frames, and
//! calls machines.
//!
//! | type | owns |
//! |---|---|
//! | `Runtime` | the loop: clock, poller, and the two below |
//! | `Instance` | the parts of the lab, the queue of work between them, and the deadlines |
//! | `Fabric` | switches, segments where they meet Ethernet, stations, injected faults |
//! | `Ports` | Ethernet ports with their egress queues, buffers, captures |
//! | `Services` | storage systems, iSCSI targets, virtual disks, workers |
//! | `Operations` | control requests without an answer yet: zones, a changed lab |
//!
//! Frames are received in batches. A full egress queue holds back the source of the frame: its port
//! is no longer read. A frame that is queued for longer than the hold time is dropped and counted.

mod error;
mod events;
mod fabric;
mod forward;
mod instance;
mod operations;
mod pace;
pub mod plan;
mod ports;
mod run;
mod services;
mod spread;
#[cfg(test)]
mod tests;
mod tunnel;
mod view;
mod work;

pub use error::UpError;

use crate::clock::Clock;
use crate::control::Control;
use crate::poll::{Poller, Polling};
use fabric::switch::Attachment;
use instance::Instance;
use operations::{Operations, Site};
use pace::AnswerPace;
use sanloom_fc::config::Node;
use sanloom_fc::san::Lab;
use sanloom_scsi::time::Instant;
use std::sync::Arc;

/// A running lab.
#[derive(Debug)]
pub struct Runtime {
    /// Switches, ports, storage.
    instance: Instance,
    operations: Operations,
    clock: Clock,
    poller: Poller,
    /// Adaptive time of polling before the thread sleeps.
    polling: Polling,
    /// The `go_on` function of [`run`](Runtime::run) must be called.
    called: bool,
    /// Time for answers to control requests.
    pace: AnswerPace,
    /// End of the last wait.
    awake: Instant,
    /// Time of the next check of peers and other states without events.
    next_check: Instant,
}

impl Runtime {
    /// The lab that was applied last.
    pub fn lab(&self) -> &Lab {
        &self.instance.lab
    }

    /// Like [`lab`](Self::lab), for other threads.
    pub fn shared_lab(&self) -> Arc<Lab> {
        self.instance.lab.clone()
    }

    /// Number of Ethernet ports.
    pub fn ethernet_ports(&self) -> usize {
        self.instance.ports.len()
    }

    /// Ports of switches that no host can use, with their links, because the host at the other end
    /// exists in simulations only.
    pub fn unusable_ports(&self) -> Vec<(String, String)> {
        let Instance { lab, fabric, .. } = &self.instance;
        let ends = lab
            .links
            .iter()
            .flat_map(|link| link.ends.iter().zip(link.ends.iter().rev()).map(move |ends| (link, ends)));
        let unusable = ends.filter_map(|(link, (end, other))| {
            let (Node::Switch(switch), Node::Host(_)) = (end.node, other.node) else { return None };
            let live = &fabric.switches[self.instance.switch_here(switch)?];
            let nothing = live.attachment(end.port) == Attachment::Nothing;
            nothing.then(|| (format!("{}:{}", live.name, end.port), link.name.clone()))
        });
        unusable.collect()
    }

    /// Answers the requests at a control socket. `read` parses a lab file, or returns its problems.
    /// Returns false if the end of the instance is requested.
    pub fn answer(&mut self, control: &Control, read: impl Fn(&str, &[String]) -> Result<Lab, String>) -> bool {
        let now = self.clock.now();
        let site = &mut Site { instance: &mut self.instance, poller: &mut self.poller, now };
        self.operations.answer(site, control, read)
    }
}
