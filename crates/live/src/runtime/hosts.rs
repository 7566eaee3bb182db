//! Host ports of the instance: what goes in and comes out, at inner ports of its switches and on Ethernet of their own.

use super::{Runtime, Source};
use crate::initiator::host::{Host, Leaving};
use crate::volumes::{HostPort, Wire};
use sanloom_core::time::Instant;

/// Frames of one port before it is the turn of the next.
const FRAMES_IN_TURN: usize = 32;

impl Runtime {
    /// A host port of the instance, by index.
    pub(super) fn host_port_mut(&mut self, number: usize) -> Option<&mut HostPort> {
        self.volumes.as_mut()?.hosts_mut().get_mut(number)
    }

    /// Something happens to a host port, by index: a frame comes in, the link goes up.
    pub(super) fn tell_host(&mut self, number: usize, tell: impl FnOnce(&mut Host)) {
        if let Some(port) = self.host_port_mut(number) {
            tell(port.host_mut());
        }
    }

    /// The inner ports at which hosts of the instance are have light.
    pub(super) fn begin_hosts(&mut self, now: Instant) {
        for port in self.volumes.iter_mut().flat_map(|engine| engine.hosts_mut()) {
            if let Wire::Inside { host, .. } = &mut port.wire {
                host.link(now, true);
            }
        }
    }

    /// Host ports send: each in turn, a few frames at a time, unless it is held back. True if somebody on
    /// Ethernet has more.
    pub(super) fn pump_hosts(&mut self, now: Instant) -> bool {
        let mut more = false;
        for number in 0..self.volumes.as_ref().map_or(0, |engine| engine.hosts().len()) {
            let mut left = FRAMES_IN_TURN;
            while left > 0 && self.host_sends(now, number) {
                left -= 1;
            }
            let adapter = self.host_port_mut(number).and_then(HostPort::adapter_mut);
            more |= adapter.is_some_and(|adapter| adapter.send(now));
        }
        more
    }

    /// A host port has something to tell, or to send that nobody holds back.
    pub(super) fn hosts_are_busy(&self) -> bool {
        self.volumes.as_ref().is_some_and(|engine| engine.hosts().iter().any(HostPort::is_busy))
    }

    /// A host port sends its next frame into its switch. False if it does not.
    fn host_sends(&mut self, now: Instant, number: usize) -> bool {
        let engine = self.volumes.as_mut();
        let Some(port) = engine.and_then(|engine| engine.hosts_mut().get_mut(number)) else { return false };
        let Wire::Inside { switch, port: at, ref mut host } = port.wire else { return false };
        if port.held > 0 {
            return false;
        }
        let source = Source::Host(number);
        match host.next_leaving() {
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

    /// Host ports on Ethernet send what is left.
    pub(super) fn end_hosts(&mut self, now: Instant) {
        let ports = self.volumes.iter_mut().flat_map(|engine| engine.hosts_mut());
        ports.filter_map(HostPort::adapter_mut).for_each(|adapter| adapter.end(now));
    }
}
