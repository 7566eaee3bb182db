//! The map of a host: [`HostMap`].

use super::{Extent, Reply, Request};
use crate::map::LunBlock;
use crate::ordered::OrderedMap;
use crate::time::{Instant, Span};
use hashlink::LruCache;
use std::collections::{BTreeMap, VecDeque};

/// Settings of the map of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostConfig {
    /// Number of extents that the map holds. The extent that was used least recently makes room.
    pub entries: usize,
    /// Time after which a request without an answer is repeated.
    pub retry: Span,
    /// Time after which an access without a place fails.
    pub give_up: Span,
}

/// Output of the map of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostOutput {
    /// A message to the server.
    Send(Request),
    /// An access that waited may go to this place; [`HostMap::ended`] ends it.
    Go {
        /// Number of the access.
        token: u32,
        /// First block of its extent.
        place: LunBlock,
    },
    /// A flush that waited may go; [`HostMap::flushed`] ends it.
    Flush {
        /// Number of the flush.
        token: u32,
    },
    /// An access or a flush that waited has failed.
    Fail {
        /// Number of the access.
        token: u32,
    },
}

/// Accesses that wait for an extent.
#[derive(Clone, Debug)]
struct Wanted {
    /// Each with the time at which it fails, in order of time.
    tokens: VecDeque<(u32, Instant)>,
    resend_at: Instant,
}

/// Progress of a host that was fenced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fence {
    None,
    /// Commands are in flight.
    Draining,
    /// The server was asked.
    Registering {
        resend_at: Instant,
    },
}

/// Map of a host: places of extents that it knows, and accesses that wait for others.
#[derive(Clone, Debug)]
pub struct HostMap {
    config: HostConfig,
    /// Places of extents, the least recently used first.
    entries: LruCache<Extent, LunBlock>,
    /// Accesses in flight.
    in_flight: OrderedMap<Extent, u32>,
    wanted: OrderedMap<Extent, Wanted>,
    /// Empty lists of accesses that wait, to be used again.
    spare: Vec<VecDeque<(u32, Instant)>>,
    /// Flushes in flight.
    flushes: u32,
    /// Flushes that wait until the host is registered, each with the time at which it fails.
    held: VecDeque<(u32, Instant)>,
    /// Epoch of the last recall of each extent.
    recalled: BTreeMap<Extent, u64>,
    /// Recalls that wait for accesses in flight.
    draining: BTreeMap<Extent, u64>,
    fence: Fence,
    outputs: VecDeque<HostOutput>,
    /// Requests that were repeated.
    pub repeated: u64,
}

impl HostMap {
    /// Creates an empty map.
    pub fn new(config: HostConfig) -> HostMap {
        HostMap {
            entries: LruCache::new(config.entries.max(1)),
            config,
            in_flight: OrderedMap::new(),
            wanted: OrderedMap::new(),
            spare: Vec::new(),
            flushes: 0,
            held: VecDeque::new(),
            recalled: BTreeMap::new(),
            draining: BTreeMap::new(),
            fence: Fence::None,
            outputs: VecDeque::new(),
            repeated: 0,
        }
    }

    /// Begins an access to an extent. Returns the place of the extent if the map knows it (a hit);
    /// otherwise [`HostOutput::Go`] or [`HostOutput::Fail`] follows. [`HostMap::ended`] ends an
    /// access that has a place.
    pub fn access(&mut self, now: Instant, token: u32, extent: Extent) -> Option<LunBlock> {
        if let Some(&place) = self.entries.get(&extent) {
            self.begin(extent, 1);
            return Some(place);
        }
        let fails_at = now + self.config.give_up;
        match self.wanted.get_mut(&extent) {
            Some(wanted) => wanted.tokens.push_back((token, fails_at)),
            None => {
                let mut tokens = self.spare.pop().unwrap_or_default();
                tokens.push_back((token, fails_at));
                self.wanted.insert(extent, Wanted { tokens, resend_at: now + self.config.retry });
                if self.fence == Fence::None {
                    self.send(Request::Lookup(extent));
                }
            }
        }
        None
    }

    /// Ends an access that had a place.
    pub fn ended(&mut self, now: Instant, extent: Extent) {
        let Some(count) = self.in_flight.get_mut(&extent) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.in_flight.remove(&extent);
        if let Some(epoch) = self.draining.remove(&extent) {
            self.send(Request::Acknowledge { epoch });
        }
        self.register_if_drained(now);
    }

    /// Begins a flush, which needs no place. Returns false if the host is fenced: the flush then
    /// waits, and [`HostOutput::Flush`] or [`HostOutput::Fail`] follows.
    pub fn flush(&mut self, now: Instant, token: u32) -> bool {
        let may_go = self.fence == Fence::None;
        match may_go {
            true => self.flushes += 1,
            false => self.held.push_back((token, now + self.config.give_up)),
        }
        may_go
    }

    /// Ends a flush that was sent.
    pub fn flushed(&mut self, now: Instant) {
        self.flushes = self.flushes.saturating_sub(1);
        self.register_if_drained(now);
    }

    /// A back end has refused a command because the host is fenced. Call [`HostMap::ended`] for its
    /// access, or [`HostMap::flushed`] for its flush, too.
    pub fn refused(&mut self, now: Instant) {
        if self.fence == Fence::None {
            self.entries.clear();
            self.fence = Fence::Draining;
            self.register_if_drained(now);
        }
    }

    /// Handles a message of the server.
    pub fn handle(&mut self, now: Instant, reply: Reply) {
        match reply {
            Reply::Grant { extent, place, epoch } => self.granted(extent, place, epoch),
            Reply::Recall { extent, epoch } => {
                self.entries.remove(&extent);
                self.recalled.insert(extent, epoch);
                match self.in_flight.contains_key(&extent) {
                    true => _ = self.draining.insert(extent, epoch),
                    false => self.send(Request::Acknowledge { epoch }),
                }
            }
            Reply::Fenced => self.refused(now),
            Reply::Registered => {
                if matches!(self.fence, Fence::Registering { .. }) {
                    self.fence = Fence::None;
                    let resend_at = now + self.config.retry;
                    self.wanted.retain_mut(|_, wanted| {
                        wanted.resend_at = resend_at;
                        true
                    });
                    let extents: Vec<Extent> = self.wanted.keys().copied().collect();
                    extents.into_iter().for_each(|extent| self.send(Request::Lookup(extent)));
                    self.flushes += self.held.len() as u32;
                    self.outputs.extend(self.held.drain(..).map(|(token, _)| HostOutput::Flush { token }));
                }
            }
        }
    }

    /// Handles the time of [`HostMap::poll_timeout`].
    pub fn timeout(&mut self, now: Instant) {
        let (retry, may_ask) = (self.config.retry, self.fence == Fence::None);
        let mut outputs = Vec::new();
        self.wanted.retain_mut(|extent, wanted| {
            while wanted.tokens.front().is_some_and(|(_, fails_at)| *fails_at <= now)
                && let Some((token, _)) = wanted.tokens.pop_front()
            {
                outputs.push(HostOutput::Fail { token });
            }
            if wanted.resend_at <= now && !wanted.tokens.is_empty() {
                wanted.resend_at = now + retry;
                if may_ask {
                    self.repeated += 1;
                    outputs.push(HostOutput::Send(Request::Lookup(*extent)));
                }
            }
            !wanted.tokens.is_empty()
        });
        while self.held.front().is_some_and(|(_, fails_at)| *fails_at <= now)
            && let Some((token, _)) = self.held.pop_front()
        {
            outputs.push(HostOutput::Fail { token });
        }
        self.outputs.extend(outputs);
        if let Fence::Registering { resend_at } = &mut self.fence
            && *resend_at <= now
        {
            *resend_at = now + retry;
            self.repeated += 1;
            self.send(Request::Register);
        }
    }

    /// Returns the time of the next timeout.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let of = |wanted: &Wanted| Some(wanted.tokens.front()?.1.min(wanted.resend_at));
        let wanted = self.wanted.values().filter_map(of).min();
        let register = match self.fence {
            Fence::Registering { resend_at } => Some(resend_at),
            Fence::None | Fence::Draining => None,
        };
        Instant::earliest(&[wanted, register, self.held.front().map(|(_, fails_at)| *fails_at)])
    }

    /// Returns the next output.
    pub fn poll_output(&mut self) -> Option<HostOutput> {
        self.outputs.pop_front()
    }

    /// Number of extents that the map knows.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    fn send(&mut self, request: Request) {
        self.outputs.push_back(HostOutput::Send(request));
    }

    /// Begins accesses to an extent.
    fn begin(&mut self, extent: Extent, accesses: u32) {
        match self.in_flight.get_mut(&extent) {
            Some(count) => *count += accesses,
            None => _ = self.in_flight.insert(extent, accesses),
        }
    }

    fn granted(&mut self, extent: Extent, place: LunBlock, epoch: u64) {
        let is_old = self.recalled.get(&extent).is_some_and(|recalled| epoch < *recalled);
        if self.fence != Fence::None || is_old {
            return;
        }
        self.entries.insert(extent, place);
        let Some(Wanted { mut tokens, .. }) = self.wanted.remove(&extent) else { return };
        self.begin(extent, tokens.len() as u32);
        self.outputs.extend(tokens.drain(..).map(|(token, _)| HostOutput::Go { token, place }));
        self.spare.push(tokens);
    }

    fn register_if_drained(&mut self, now: Instant) {
        if self.fence == Fence::Draining && self.in_flight.is_empty() && self.flushes == 0 {
            self.fence = Fence::Registering { resend_at: now + self.config.retry };
            self.send(Request::Register);
        }
    }
}
