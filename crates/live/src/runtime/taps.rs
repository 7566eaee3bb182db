//! Ports that are captured while they run, whatever is behind them.

use super::{Attachment, LivePort, Runtime, UpError};
use crate::capture::Place;
use crate::frame::FrameBuf;
use crate::initiator::Adapter;
use crate::ports::Driver;
use crate::sequence::{self, MESSAGE_FRAME_BYTES};
use crate::volumes::HostPort;
use sanloom_core::config::Node;
use sanloom_core::time::Instant;
use sanloom_wire::Frame;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fcoe;
use std::path::Path;

impl Runtime {
    /// Writes every frame of a port to a file from now on. The port is called by its link, by switch and number (`sw1:0`), or, of
    /// a station, by its storage, of a host with `fcoe` by its name. An inner cable has two ends; the link means the one that it names first.
    ///
    /// # Errors
    /// When there is no such port, nothing is attached to it, or the file cannot be written.
    pub fn capture(&mut self, name: &str, file: &Path) -> Result<(), UpError> {
        let now = self.clock.now();
        if let Some(adapter) = self.uplink_named(name) {
            let started = adapter.captures.start(now, Place::Ethernet(0), name, file);
            return started.map_err(|error| UpError::Capture { path: file.to_owned(), error });
        }
        let place =
            self.place_named(name).ok_or_else(|| UpError::Unknown { what: "port or link", name: name.to_owned() })?;
        let started = self.captures.start(now, place, name, file);
        started.map_err(|error| UpError::Capture { path: file.to_owned(), error })
    }

    /// Ends the capture of a port, and says how many frames it has; nothing if there was none.
    pub(super) fn end_capture(&mut self, name: &str) -> Option<u64> {
        if let Some(adapter) = self.uplink_named(name) {
            return adapter.captures.stop(Place::Ethernet(0));
        }
        let place = self.place_named(name)?;
        self.captures.stop(place)
    }

    /// A host port of the instance with an Ethernet port of its own.
    fn uplink_named(&mut self, name: &str) -> Option<&mut Adapter> {
        let ports = self.volumes.iter_mut().flat_map(|engine| engine.hosts_mut());
        ports.filter(|port| port.name == name).find_map(HostPort::adapter_mut)
    }

    fn place_named(&self, name: &str) -> Option<Place> {
        let is_open = |port: &LivePort| !matches!(port.ethernet.driver, Driver::Closed);
        if let Some(port) = self.ports.iter().position(|port| is_open(port) && port.ethernet.name == name) {
            return Some(Place::Ethernet(port));
        }
        let of_link = || {
            let link = self.lab.links.iter().find(|link| link.name == name)?;
            link.ends.iter().find_map(|end| {
                let switch = self.lab_switches.iter().position(|switch| end.node == Node::Switch(*switch))?;
                Some((switch, end.port))
            })
        };
        let (switch, port) = self.port_named(name).ok().or_else(of_link)?;
        match self.switches[switch].attachment(port) {
            // Several VLANs have one Ethernet port.
            Attachment::Segment(segment) => Some(Place::Ethernet(self.segments[segment].port)),
            Attachment::Storage { .. } | Attachment::Host(_) | Attachment::Cable { .. } => {
                Some(Place::Inner { switch, port })
            }
            Attachment::Nothing => None,
        }
    }

    /// A frame passes a port of a switch; Ethernet ports are captured where they send and receive.
    #[inline]
    pub(super) fn passes(&mut self, now: Instant, (switch, port): (usize, u16), outbound: bool, frame: &FrameBuf) {
        self.captures.record(now, Place::Inner { switch, port }, outbound, frame);
    }

    /// A switch sends a message of its own through a port.
    pub(super) fn message_passes(&mut self, now: Instant, (switch, port): (usize, u16), frame: &Frame) {
        let place = Place::Inner { switch, port };
        if !self.captures.has(place) {
            return;
        }
        for piece in sequence::cut(frame.clone(), MESSAGE_FRAME_BYTES) {
            let mut buffer = self.pool.take();
            buffer.compose(&mut self.scratch, |out| fcoe::encapsulate(MacAddr::ZERO, MacAddr::ZERO, None, &piece, out));
            self.captures.record(now, place, true, &buffer);
            self.pool.give(buffer);
        }
    }
}
