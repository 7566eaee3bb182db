//! Host ports of the instance at inner ports of its switches: what goes in and comes out.

use super::{Runtime, Source};
use crate::initiator::host::Leaving;
use crate::storage::port::At;
use crate::volumes::HostPort;
use sanloom_core::time::Instant;
use sanloom_wire::{Frame, Header};

/// Frames of one port before it is the turn of the next.
const FRAMES_IN_TURN: usize = 32;

impl Runtime {
    /// A host port of the instance, by index.
    pub(super) fn host_mut(&mut self, port: usize) -> Option<&mut HostPort> {
        self.volumes.as_mut()?.hosts_mut().get_mut(port)
    }

    /// The link of a host port went up or down.
    pub(super) fn host_link(&mut self, now: Instant, port: usize, up: bool) {
        if let Some(port) = self.host_mut(port) {
            port.host.link(now, up);
        }
    }

    /// A frame for a host port: header and data field, CRC right.
    pub(super) fn host_frame_in(&mut self, now: Instant, port: usize, header: Header, field: &[u8]) {
        if let Some(port) = self.host_mut(port) {
            port.host.frame_in(now, header, field);
        }
    }

    /// A whole message for a host port.
    pub(super) fn host_message_in(&mut self, now: Instant, port: usize, frame: Frame) {
        if let Some(port) = self.host_mut(port) {
            port.host.message_in(now, frame);
        }
    }

    /// Host ports send: each in turn, a few frames at a time, unless it is held back. True if somebody has more, or something to tell.
    pub(super) fn pump_hosts(&mut self, now: Instant) -> bool {
        let mut more = false;
        let ports = self.volumes.as_ref().map_or(0, |engine| engine.hosts().len());
        for number in 0..ports {
            for _ in 0..FRAMES_IN_TURN {
                if !self.host_sends(now, number) {
                    break;
                }
            }
            more |= self
                .host_mut(number)
                .is_some_and(|port| port.held == 0 && port.host.has_output() || port.host.has_events());
        }
        more
    }

    /// A host port sends its next frame into its switch. False if it does not.
    fn host_sends(&mut self, now: Instant, number: usize) -> bool {
        let source = Source::Host(number);
        let engine = self.volumes.as_mut();
        let Some(port) = engine.and_then(|engine| engine.hosts_mut().get_mut(number)) else { return false };
        let At::Switch { switch, port: at } = port.at else { return false };
        if port.held > 0 {
            return false;
        }
        match port.host.next_leaving() {
            None => return false,
            Some(Leaving::Message(frame)) => self.pass_inside(switch, at, source, frame),
            Some(Leaving::Data(header, data)) => {
                let mut buffer = self.pool.take();
                buffer.fill_fcoe(&header, data);
                self.data_inside(switch, at, source, buffer);
            }
        }
        self.settle_inside(now);
        true
    }
}
