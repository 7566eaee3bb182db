//! The Ethernet ports of an instance, with lossless flow control: [`Ports`].
//!
//! A full egress queue holds back the source of the frame until half of the queue is sent. Frames
//! that a blocked peer does not accept within the hold time are dropped and counted.

use super::spread::Spread;
use super::work::{Deadlines, Source, Timer};
use crate::capture::{CapturePoint, Captures};
use crate::frame::{FrameBuf, Pool};
use crate::lldp::Agent;
use crate::poll::{Happened, Interest, Poller};
use crate::ports::{Driver, EthernetPort, reason};
use crate::sys::batch::BATCH;
use sanloom_fc::fip::vlan::VlanResponder;
use sanloom_scsi::time::{Instant, Span};
use std::io;
use std::ops::{Index, IndexMut};

/// An Ethernet port and its users.
#[derive(Debug)]
pub struct LivePort {
    /// The port.
    pub ethernet: EthernetPort,
    /// Index of the link of the lab; `None` for a storage system without a link.
    pub link: Option<usize>,
    /// Segments at the port, by index.
    pub segments: Vec<usize>,
    /// The station at the port, by index.
    pub station: Option<usize>,
    /// Switch, by index, and its port, at the end of an FCIP link.
    pub tunnel: Option<(usize, u16)>,
    /// Responder to VLAN requests, if all segments have a VLAN.
    pub vlans: Option<VlanResponder>,
    /// Number of full egress queues that hold the port back.
    pub held: u16,
    /// The peer is present.
    pub light: bool,
    /// FCoE may be used, and the segments have been notified.
    pub up: bool,
    /// LLDP agent, if FCoE requires DCBX.
    pub agent: Option<Agent>,
    /// The socket may have frames.
    ready: bool,
    /// Sources that the full egress queue of this port holds back.
    holds: Vec<Source>,
    /// The port is in [`Ports::changed`].
    changed: bool,
}

impl LivePort {
    /// Returns a port without users.
    pub fn new(ethernet: EthernetPort, link: Option<usize>) -> LivePort {
        LivePort {
            ethernet,
            link,
            segments: Vec::new(),
            station: None,
            tunnel: None,
            vlans: None,
            held: 0,
            light: false,
            up: false,
            agent: None,
            ready: false,
            holds: Vec::new(),
            changed: false,
        }
    }

    /// Returns whether the socket may have frames, and no queue holds the port back.
    #[inline]
    pub fn may_receive(&self) -> bool {
        self.ready && self.held == 0
    }

    /// Returns whether frames are queued that the peer may accept.
    #[inline]
    pub fn may_send(&self) -> bool {
        !self.ethernet.egress.is_empty() && !self.ethernet.egress.blocked
    }

    /// Receives a batch of frames. Returns their number, and a bit mask of those that were too
    /// long; `None` if there are no more.
    pub fn receive(&mut self, buffers: &mut [FrameBuf]) -> Option<(usize, u32)> {
        if !self.may_receive() {
            return None;
        }
        match self.ethernet.receive(buffers) {
            Ok((got, cut)) => {
                debug_assert!(got <= BATCH, "a batch has {got} frames");
                self.ready = got == BATCH || self.ethernet.is_unfinished();
                Some((got, cut))
            }
            Err(error) => {
                self.ready = false;
                if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                    tracing::debug!(port = self.ethernet.name, %error, "receive");
                }
                None
            }
        }
    }

    /// Sets whether the peer is present. Returns true if that has changed.
    pub fn set_light(&mut self, light: bool) -> bool {
        std::mem::replace(&mut self.light, light) != light
    }

    /// Returns whether the port has a driver, which is closed with its link.
    pub fn is_open(&self) -> bool {
        !matches!(self.ethernet.driver, Driver::Closed)
    }
}

/// The Ethernet ports of an instance, by index, with the buffers of their frames.
#[derive(Debug)]
pub struct Ports {
    list: Vec<LivePort>,
    /// Captures of Ethernet ports and of inner ports.
    pub captures: Captures,
    /// Free buffers.
    pub pool: Pool,
    /// Buffers for the next batch.
    spare: Vec<FrameBuf>,
    /// Buffer for composed messages.
    scratch: Vec<u8>,
    /// Maximum time of a frame in an egress queue.
    hold_time: Span,
    /// Ports with frames in their sockets.
    readable: Vec<usize>,
    /// Ports whose egress queue or interest may have changed since the last flush.
    changed: Vec<usize>,
}

impl Index<usize> for Ports {
    type Output = LivePort;

    fn index(&self, port: usize) -> &LivePort {
        &self.list[port]
    }
}

impl IndexMut<usize> for Ports {
    fn index_mut(&mut self, port: usize) -> &mut LivePort {
        &mut self.list[port]
    }
}

impl Ports {
    /// Returns an empty list of ports.
    pub fn new(hold_time: Span) -> Ports {
        let mut pool = Pool::default();
        Ports {
            list: Vec::new(),
            captures: Captures::default(),
            spare: (0..BATCH).map(|_| pool.take()).collect(),
            pool,
            scratch: Vec::with_capacity(4_096),
            hold_time,
            readable: Vec::new(),
            changed: Vec::new(),
        }
    }

    /// Maximum time of a frame in an egress queue.
    pub fn hold_time(&self) -> Span {
        self.hold_time
    }

    /// Number of ports, including closed ones.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// All ports in order, including closed ones.
    pub fn iter(&self) -> impl Iterator<Item = &LivePort> {
        self.list.iter()
    }

    /// All ports in order, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut LivePort> {
        self.list.iter_mut()
    }

    /// Adds a port at the index of a closed one, or at the end. Returns its index.
    pub fn add(&mut self, port: LivePort) -> usize {
        let number = self.list.iter().position(|port| !port.is_open()).unwrap_or(self.list.len());
        match self.list.get_mut(number) {
            // Full queues of other ports may still hold back the closed port.
            Some(place) => {
                debug_assert!(place.holds.is_empty(), "a closed port holds back {:?}", place.holds);
                let (held, changed) = (place.held, place.changed);
                *place = LivePort { held, changed, ..port };
            }
            None => self.list.push(port),
        }
        self.mark(number);
        number
    }

    /// Closes a port: frames in its egress queue are sent or lost. Its index can be reused.
    pub fn close(&mut self, number: usize, poller: &mut Poller) {
        let port = &mut self.list[number];
        port.ethernet.flush(&mut self.pool);
        port.ethernet.driver = Driver::Closed;
        port.ethernet.egress.blocked = false;
        port.ethernet.name.clear();
        (port.link, port.agent, port.vlans) = (None, None, None);
        (port.light, port.up, port.ready) = (false, false, false);
        port.ethernet.forget_pause();
        port.ethernet.egress.configure(None);
        poller.forget(2 * number as u64);
        poller.forget(2 * number as u64 + 1);
        self.captures.close(CapturePoint::Ethernet(number));
        self.readable.retain(|other| *other != number);
        // The next flush empties the queue and releases the sources that it holds back.
        self.mark(number);
    }

    /// Composes a frame without a tag.
    pub fn compose(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> FrameBuf {
        let mut buffer = self.pool.take();
        buffer.compose(&mut self.scratch, write);
        buffer
    }

    /// Drops a frame at a port and counts it.
    pub fn drop_frame(&mut self, port: usize, reason: &'static str, frame: FrameBuf) {
        self.list[port].ethernet.count(reason, 1);
        self.pool.give(frame);
    }

    /// Appends a frame to the egress queue of a port. Returns true if the queue is full and
    /// `source` must be held back from now on.
    #[inline]
    #[must_use]
    pub fn push(&mut self, now: Instant, number: usize, source: Source, frame: FrameBuf) -> bool {
        self.captures.record(now, CapturePoint::Ethernet(number), true, &frame);
        self.mark(number);
        let port = &mut self.list[number];
        port.ethernet.push(now, frame);
        if !port.ethernet.egress.is_full() || source == Source::Machine || port.holds.contains(&source) {
            return false;
        }
        port.holds.push(source);
        true
    }

    /// Marks a port to be flushed, and its interest to be updated, at the end of the step.
    #[inline]
    pub fn mark(&mut self, number: usize) {
        if !std::mem::replace(&mut self.list[number].changed, true) {
            self.changed.push(number);
        }
    }

    /// Flushes the egress queues that have changed, and drops frames over the hold time. Appends
    /// the sources that are no longer held back to `released`.
    pub fn flush(&mut self, now: Instant, spread: &mut Spread, deadlines: &mut Deadlines, released: &mut Vec<Source>) {
        for number in &self.changed {
            self.list[*number].ethernet.egress.resume(now);
        }
        if spread.is_running() {
            spread.send(&mut self.list, &self.changed, &mut self.pool);
        }
        for number in &self.changed {
            let port = &mut self.list[*number];
            let ethernet = &mut port.ethernet;
            if !ethernet.egress.is_empty() {
                if !ethernet.egress.blocked {
                    ethernet.flush(&mut self.pool);
                }
                let expired = ethernet.egress.expire(now, self.hold_time, &mut self.pool);
                if expired > 0 {
                    tracing::warn!(port = ethernet.name, frames = expired, "hold time over, frames dropped");
                    ethernet.count(reason::HOLD_TIME, expired);
                }
                let ends = [ethernet.egress.expires(self.hold_time), ethernet.egress.resumes()];
                deadlines.update(Timer::Egress(*number), ends.into_iter().flatten().min());
            }
            if !port.holds.is_empty() && port.ethernet.egress.has_room() {
                released.append(&mut port.holds);
            }
        }
    }

    /// Pauses the lossless priorities of the peers of ports that are held back or whose receive
    /// buffers fill up, repeats that before the time is over, and ends it. Such ports are those
    /// among the ones that have changed.
    pub fn pause_peers(&mut self, now: Instant, deadlines: &mut Deadlines) {
        for place in 0..self.changed.len() {
            let number = self.changed[place];
            let port = &mut self.list[number];
            let Some(from) = port.agent.as_ref().map(Agent::mac) else { continue };
            let repeats = port.ethernet.repeats_pause();
            let pause = port.ethernet.pause(now, port.held > 0);
            if port.ethernet.repeats_pause() != repeats {
                deadlines.update(Timer::Pause(number), port.ethernet.repeats_pause());
            }
            let Some(pause) = pause else { continue };
            let frame = self.compose(|out| pause.emit(from, out));
            self.captures.record(now, CapturePoint::Ethernet(number), true, &frame);
            let port = &mut self.list[number];
            port.ethernet.egress.push_control(now, frame);
            if !port.ethernet.egress.blocked {
                port.ethernet.flush(&mut self.pool);
            }
        }
    }

    /// Takes a frame of MAC control from the peer of a port. Returns false if it is none that DCBX
    /// has agreed on.
    pub fn paused(&mut self, now: Instant, number: usize, frame: &FrameBuf) -> bool {
        self.mark(number);
        self.list[number].ethernet.paused(now, frame)
    }

    /// Updates the interests of the ports that have changed.
    ///
    /// # Errors
    /// A descriptor that cannot be polled.
    pub fn watch(&mut self, poller: &mut Poller) -> io::Result<()> {
        while let Some(number) = self.changed.last().copied() {
            let port = &self.list[number];
            debug_assert!(port.changed, "port {number} is in the list, and its flag is clear");
            let token = 2 * number as u64;
            let write = port.ethernet.egress.blocked && !port.ethernet.egress.is_empty();
            let read = port.held == 0 && !port.ready;
            poller.set(token, port.ethernet.socket(), Interest { read, write })?;
            if port.ethernet.listener().is_some() {
                port.ethernet.watch_listener(poller, token + 1)?;
            }
            self.list[number].changed = false;
            self.changed.pop();
        }
        Ok(())
    }

    /// Handles an event of the poller for the socket of a port.
    pub fn happened(&mut self, number: usize, event: Happened) {
        self.mark(number);
        let port = &mut self.list[number];
        port.ethernet.egress.blocked &= !event.writable;
        if event.readable && !std::mem::replace(&mut port.ready, true) {
            self.readable.push(number);
        }
    }

    /// Takes the list of ports with frames in their sockets, in the order of the events. Return it
    /// with [`put_readable`](Self::put_readable).
    pub fn take_readable(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.readable)
    }

    /// Keeps the ports of a list that still have frames. Returns whether one of them is not held
    /// back.
    pub fn put_readable(&mut self, mut list: Vec<usize>) -> bool {
        list.retain(|number| self.list[*number].ready);
        let more = list.iter().any(|number| self.list[*number].held == 0);
        debug_assert!(self.readable.is_empty(), "events were reported while ports are read");
        self.readable = list;
        more
    }

    /// Receives a batch of frames from a port, as [`LivePort::receive`] does. Take the frames with
    /// [`take_received`](Self::take_received).
    pub fn receive(&mut self, number: usize) -> Option<(usize, u32)> {
        let port = &mut self.list[number];
        if !port.may_receive() {
            return None;
        }
        let received = port.receive(&mut self.spare);
        if !port.ready || port.ethernet.may_pause() {
            self.mark(number);
        }
        received
    }

    /// All ports in order, for threads that share them.
    pub fn list_mut(&mut self) -> &mut [LivePort] {
        &mut self.list
    }

    /// Takes a frame of the last batch, by its index.
    #[inline]
    pub fn take_received(&mut self, place: usize) -> FrameBuf {
        let next = self.pool.take();
        std::mem::replace(&mut self.spare[place], next)
    }

    /// Checks the presence of the peer of a port. Returns true if it has changed.
    pub fn check_peer(&mut self, number: usize, poller: &mut Poller) -> bool {
        let port = &mut self.list[number];
        let was_paused = port.ethernet.is_listener_paused();
        if port.ethernet.check_peer() {
            poller.forget(2 * number as u64);
            self.mark(number);
        }
        if self.list[number].ethernet.is_listener_paused() != was_paused {
            self.mark(number);
        }
        if self.list[number].ethernet.is_unfinished() {
            self.happened(number, Happened { token: 0, readable: true, writable: false });
        }
        let port = &mut self.list[number];
        let light = port.ethernet.has_peer();
        let changed = port.set_light(light);
        if changed {
            tracing::info!(port = port.ethernet.name, up = light, "link");
        }
        changed
    }
}
