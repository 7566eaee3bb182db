//! One link and the switch at its other end: [`NeighbourState`] and what the exchange of databases needs.

use super::domain_set::DomainSet;
use crate::time::Instant;
use std::fmt;

/// How far a switch is with the neighbour on a link (FC-SW, FSPF neighbour states).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum NeighbourState {
    /// No HLO heard.
    #[default]
    Down,
    /// An HLO heard that does not name us.
    Init,
    /// Each has heard the other; records are on their way both ways.
    DatabaseExchange,
    /// All records of the neighbour are here; some of ours are not acknowledged.
    AcknowledgementWait,
    /// The neighbour has all of ours; some of its records are not here.
    DatabaseWait,
    /// Both have the same records. Only now the link is announced.
    Full,
}

/// What moves a neighbour from state to state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// An HLO that does not name us.
    OneWay,
    /// An HLO that names us.
    TwoWay,
    /// The neighbour sent the last of its records.
    Complete,
    /// The neighbour acknowledged the last of our records.
    Acknowledged,
    /// The exchange of databases took too long.
    Stuck,
    /// No HLO for too long, another switch at the other end, or no link.
    Gone,
}

impl NeighbourState {
    /// The transition table.
    pub(super) fn after(self, event: Event) -> NeighbourState {
        use NeighbourState::*;
        match (self, event) {
            (_, Event::Gone) => Down,
            (_, Event::OneWay) | (DatabaseExchange | AcknowledgementWait | DatabaseWait, Event::Stuck) => Init,
            (Down | Init, Event::TwoWay) => DatabaseExchange,
            (DatabaseExchange, Event::Complete) => AcknowledgementWait,
            (DatabaseExchange, Event::Acknowledged) => DatabaseWait,
            (DatabaseWait, Event::Complete) | (AcknowledgementWait, Event::Acknowledged) => Full,
            (state, _) => state,
        }
    }

    /// Records go over the link.
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

/// A link that is up.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) state: NeighbourState,
    /// As the record of a switch announces it.
    pub(super) cost: u16,
    pub(super) bundle: Option<u16>,
    /// Domain at the other end as its HLO says, 0 while unknown.
    pub(super) domain: u8,
    /// Index of the port at the other end.
    pub(super) port: u32,
    /// It is full, but was so a short while ago and then was not: not announced yet.
    pub(super) held: bool,
    /// Records to be sent.
    pub(super) queued: DomainSet,
    /// Records sent and not acknowledged.
    pub(super) unacknowledged: DomainSet,
    /// The end of our records is acknowledged.
    pub(super) end_acknowledged: bool,
    /// When all our records were last sent to it.
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
            held: false,
            queued: DomainSet::default(),
            unacknowledged: DomainSet::default(),
            end_acknowledged: false,
            database_sent: None,
        }
    }

    /// The neighbour has, or need not have, this record as it is here.
    pub(super) fn settled(&mut self, domain: u8) {
        self.queued.remove(domain);
        self.unacknowledged.remove(domain);
    }

    /// No exchange of databases is going on.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.state.exchanges() || self.state == NeighbourState::Full
    }

    /// The link may stand in the record of this switch.
    pub(super) fn counts(&self) -> bool {
        self.state == NeighbourState::Full && !self.held
    }
}

/// A cost as a record holds it: 1 to 65,535.
pub(super) fn announced_cost(cost: u32) -> u16 {
    u16::try_from(cost).unwrap_or(u16::MAX).max(1)
}
