//! Unreliable datagrams: no order, no acknowledgement, one packet each (IBA volume 1, 9.8).

use super::packet::Mtu;
use std::collections::VecDeque;

/// Event of an end point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// A datagram to send: its name and bytes.
    Post(u64, u32),
    /// A datagram of this many bytes has arrived.
    Packet(u32),
    /// This many receives were posted.
    Receives(u32),
}

/// Effect of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a datagram of this many bytes.
    Send(u32),
    /// The datagram has left; nothing is known of its arrival.
    Completed(u64),
    /// The datagram is longer than the MTU and was not sent.
    TooLong(u64),
    /// A datagram of this many bytes was received.
    Received(u32),
}

/// End point of unreliable datagrams.
#[derive(Clone, Debug)]
pub struct Endpoint {
    mtu: Mtu,
    receives: u32,
    dropped: u64,
    outputs: VecDeque<Output>,
}

impl Endpoint {
    /// End point on a path with this MTU.
    pub fn new(mtu: Mtu) -> Endpoint {
        Endpoint { mtu, receives: 0, dropped: 0, outputs: VecDeque::new() }
    }

    /// Processes an event.
    pub fn handle(&mut self, input: Input) {
        match input {
            Input::Post(id, length) if length > self.mtu.bytes() => self.outputs.push_back(Output::TooLong(id)),
            Input::Post(id, length) => self.outputs.extend([Output::Send(length), Output::Completed(id)]),
            Input::Receives(count) => self.receives = self.receives.saturating_add(count),
            Input::Packet(length) => match self.receives.checked_sub(1) {
                Some(left) if length <= self.mtu.bytes() => {
                    self.receives = left;
                    self.outputs.push_back(Output::Received(length));
                }
                _ => self.dropped += 1,
            },
        }
    }

    /// Next effect.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Datagrams that were dropped because no receive was posted, or because of their length.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
