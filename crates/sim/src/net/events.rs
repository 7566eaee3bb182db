//! The pending events of all planes, and the time.

use super::queue::EventQueue;
use super::sources::Sources;

/// The clock that all planes share: the event queue, the numbers of its sources and the time of
/// the current event.
pub(super) struct Events {
    pub queue: EventQueue,
    pub sources: Sources,
    /// Time of the current event, in ps.
    pub now: u64,
}

impl Events {
    /// Returns a clock at time zero without events. `spacing_ps` is the expected time between two
    /// events, `window_ps` the time within which most are due.
    pub fn new(sources: Sources, spacing_ps: u64, window_ps: u64) -> Events {
        Events {
            queue: EventQueue::with_window(sources.count(), sources.free(), spacing_ps, window_ps),
            sources,
            now: 0,
        }
    }
}
