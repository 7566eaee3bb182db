//! States of a connection and events for the application.

/// State of a connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// No connection.
    Closed,
    /// A passive open waits for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// SYNs were sent and received.
    SynReceived,
    /// Data flow in both directions.
    Established,
    /// Own FIN sent.
    FinWait1,
    /// Own FIN acknowledged; the peer still sends.
    FinWait2,
    /// The peer's FIN arrived; the application still sends.
    CloseWait,
    /// Both FINs sent; own FIN not yet acknowledged.
    Closing,
    /// The peer's FIN arrived and the own FIN was sent after it.
    LastAck,
    /// Both FINs acknowledged; late segments of the peer are answered.
    TimeWait,
}

impl State {
    /// Name of the state as the standard writes it.
    pub const fn name(self) -> &'static str {
        match self {
            State::Closed => "CLOSED",
            State::Listen => "LISTEN",
            State::SynSent => "SYN-SENT",
            State::SynReceived => "SYN-RECEIVED",
            State::Established => "ESTABLISHED",
            State::FinWait1 => "FIN-WAIT-1",
            State::FinWait2 => "FIN-WAIT-2",
            State::CloseWait => "CLOSE-WAIT",
            State::Closing => "CLOSING",
            State::LastAck => "LAST-ACK",
            State::TimeWait => "TIME-WAIT",
        }
    }
    /// Returns true if the peer may send data.
    pub(super) fn receives(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::FinWait2)
    }
    /// Returns true if data or a FIN may be in flight.
    pub(super) fn sends(self) -> bool {
        matches!(self, State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck)
    }
    /// Returns the state after the application has closed, if it may close now.
    pub(super) fn closed_by_application(self) -> Option<State> {
        match self {
            State::Established | State::SynReceived => Some(State::FinWait1),
            State::CloseWait => Some(State::LastAck),
            State::Listen | State::SynSent => Some(State::Closed),
            _ => None,
        }
    }
    /// Returns the state after the peer has acknowledged the own FIN.
    pub(super) fn fin_acknowledged(self) -> State {
        match self {
            State::FinWait1 => State::FinWait2,
            State::Closing => State::TimeWait,
            State::LastAck => State::Closed,
            other => other,
        }
    }
    /// Returns the state after the peer's FIN has arrived in order.
    pub(super) fn fin_received(self) -> State {
        match self {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            other => other,
        }
    }
}

/// Set of events for the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events(u8);

impl Events {
    /// No event.
    pub const NONE: Events = Events(0);
    /// The handshake is complete.
    pub const CONNECTED: Events = Events(0x01);
    /// Data arrived in order.
    pub const READABLE: Events = Events(0x02);
    /// Room in the send buffer, after a `send` that was cut.
    pub const WRITABLE: Events = Events(0x04);
    /// The peer sends no more data.
    pub const PEER_CLOSED: Events = Events(0x08);
    /// The connection ended in order.
    pub const CLOSED: Events = Events(0x10);
    /// The peer reset the connection.
    pub const RESET: Events = Events(0x20);
    /// The peer has not answered for all retries.
    pub const TIMED_OUT: Events = Events(0x40);

    /// Returns true if all events of `other` are in the set.
    pub const fn has(self, other: Events) -> bool {
        self.0 & other.0 == other.0
    }
    /// Returns the set with the events of `other`.
    #[must_use]
    pub const fn with(self, other: Events) -> Events {
        Events(self.0 | other.0)
    }
    /// Adds the events of `other`.
    pub(super) fn add(&mut self, other: Events) {
        self.0 |= other.0;
    }
}

/// Counters of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expired retransmission timers of data.
    pub timeouts: u32,
    /// Fast recoveries.
    pub recoveries: u32,
    /// Reductions of the window because of an echoed mark.
    pub marks: u32,
    /// Ignored segments, SACK blocks and ACK positions that no correct peer sends.
    pub ignored: u32,
}
