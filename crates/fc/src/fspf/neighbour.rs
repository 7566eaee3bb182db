//! State of one link and of the neighbour at its other end: [`NeighbourState`] and the state of the
//! database exchange.

use super::domain_set::DomainSet;
use sanloom_scsi::time::Instant;
use std::fmt;

/// State of the neighbour on a link (FC-SW, FSPF neighbour states).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum NeighbourState {
    /// No HLO received.
    #[default]
    Down,
    /// An HLO was received that does not name this switch.
    Init,
    /// Both have received each other's HLO; records are exchanged in both directions.
    DatabaseExchange,
    /// All records of the neighbour are received; some of ours are not acknowledged.
    AcknowledgementWait,
    /// The neighbour has all our records; some of its records are missing here.
    DatabaseWait,
    /// Both have the same records. Only now the link is announced.
    Full,
}

/// Event that changes the state of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// An HLO that does not name this switch.
    OneWay,
    /// An HLO that names this switch.
    TwoWay,
    /// The neighbour sent the last of its records.
    Complete,
    /// The neighbour acknowledged the last of our records.
    Acknowledged,
    /// The database exchange took too long.
    Stuck,
    /// No HLO for the dead interval.
    Dead,
    /// Another switch at the other end, or no link.
    Gone,
}

impl NeighbourState {
    /// Transition table of the states.
    pub(super) fn after(self, event: Event) -> NeighbourState {
        use NeighbourState::*;
        match (self, event) {
            (_, Event::Dead | Event::Gone) => Down,
            (_, Event::OneWay) | (DatabaseExchange | AcknowledgementWait | DatabaseWait, Event::Stuck) => Init,
            (Down | Init, Event::TwoWay) => DatabaseExchange,
            (DatabaseExchange, Event::Complete) => AcknowledgementWait,
            (DatabaseExchange, Event::Acknowledged) => DatabaseWait,
            (DatabaseWait, Event::Complete) | (AcknowledgementWait, Event::Acknowledged) => Full,
            (state, _) => state,
        }
    }

    /// Returns true if records are exchanged over the link.
    pub(super) fn exchanges(self) -> bool {
        self >= NeighbourState::DatabaseExchange
    }
}

impl fmt::Display for NeighbourState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            NeighbourState::Down => "down",
            NeighbourState::Init => "init",
            NeighbourState::DatabaseExchange => "database exchange",
            NeighbourState::AcknowledgementWait => "acknowledgement wait",
            NeighbourState::DatabaseWait => "database wait",
            NeighbourState::Full => "full",
        })
    }
}

/// Link that is up.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) state: NeighbourState,
    /// Cost as announced in the record.
    pub(super) cost: u16,
    pub(super) bundle: Option<u16>,
    /// Domain at the other end from its HLO; 0 while unknown.
    pub(super) domain: u8,
    /// Index of the port at the other end.
    pub(super) port: u32,
    /// The state was full, and HLOs were lost while the link was up.
    pub(super) hellos_lost: bool,
    /// The state is full again shortly after a loss, so the link is not announced yet.
    pub(super) held: bool,
    /// Domains of the records to be sent.
    pub(super) queued: DomainSet,
    /// Domains of the records sent but not acknowledged.
    pub(super) unacknowledged: DomainSet,
    /// The last LSU of our database was acknowledged.
    pub(super) end_acknowledged: bool,
    /// Time at which the whole database was last sent to it.
    pub(super) database_sent: Option<Instant>,
}

impl Neighbour {
    pub(super) fn new(cost: u32, bundle: Option<u16>) -> Neighbour {
        Neighbour {
            state: NeighbourState::Down,
            cost: announced_cost(cost),
            bundle,
            domain: 0,
            port: 0,
            hellos_lost: false,
            held: false,
            queued: DomainSet::default(),
            unacknowledged: DomainSet::default(),
            end_acknowledged: false,
            database_sent: None,
        }
    }

    /// Records that the neighbour has, or no longer needs, the current record of this domain.
    pub(super) fn clear_queued(&mut self, domain: u8) {
        self.queued.remove(domain);
        self.unacknowledged.remove(domain);
    }

    /// Returns true if no database exchange is in progress.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.state.exchanges() || self.state == NeighbourState::Full
    }

    /// Returns true if the record of this switch may contain the link.
    pub(super) fn counts(&self) -> bool {
        self.state == NeighbourState::Full && !self.held
    }
}

/// Cost limited to the range of a record: 1 to 65,535.
pub(super) fn announced_cost(cost: u32) -> u16 {
    u16::try_from(cost).unwrap_or(u16::MAX).max(1)
}
