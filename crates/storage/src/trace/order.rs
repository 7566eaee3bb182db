//! Requests that are out of order by a bounded number of positions, sorted by arrival.

use super::error::{Place, TraceError};
use super::parse::RawRequest;
use std::collections::VecDeque;

/// Window of requests, sorted by arrival; equal arrivals keep the order of the file.
#[derive(Debug)]
pub(super) struct Order {
    window: usize,
    sorted: VecDeque<(RawRequest, Place)>,
    /// Arrival of the last request that left the window.
    last_ps: Option<u128>,
}

impl Order {
    pub(super) fn new(window: usize) -> Order {
        Order { window, sorted: VecDeque::new(), last_ps: None }
    }

    /// True if a request can leave without waiting for more input.
    pub(super) fn is_full(&self) -> bool {
        self.sorted.len() >= self.window
    }

    /// # Errors
    /// If a later request has already left the window.
    pub(super) fn push(&mut self, place: Place, request: RawRequest) -> Result<(), TraceError> {
        if let Some(behind) = self.last_ps.and_then(|last| last.checked_sub(request.time_ps)).filter(|ps| *ps > 0) {
            let behind_ps = u64::try_from(behind).unwrap_or(u64::MAX);
            return Err(TraceError::Order { place, behind_ps, window: self.window });
        }
        let later = self.sorted.iter().rev().take_while(|(other, _)| other.time_ps > request.time_ps).count();
        self.sorted.insert(self.sorted.len() - later, (request, place));
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Option<(RawRequest, Place)> {
        let first = self.sorted.pop_front();
        self.last_ps = first.map(|(request, _)| request.time_ps).or(self.last_ps);
        first
    }
}
