//! Conservative synchronisation of the parts of a world.
//!
//! Each part has a clock: all its events before that time have been processed. A part may process
//! its events before the clock of every other part plus the lookahead from there. If no part has
//! an event for some time, the clocks advance to the first event at once.

use super::plan::Plan;
use crate::net::{NEVER, Outbox, parts};
use crate::world::World;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Attempts of a waiting part before it offers its core to other threads.
const SPINS: u32 = 200;

/// Part of the lookahead after which a part publishes its clock.
const STEPS_PER_LOOKAHEAD: u64 = 4;

/// Reads the processor time of the calling thread, in ns.
pub type ThreadClock = fn() -> u64;

/// State of a part that the others read. A cache line of its own avoids false sharing.
#[derive(Default)]
#[repr(align(128))]
struct Published {
    /// All events before this time have been processed, and what they sent is in the channels.
    clock: AtomicU64,
    /// Odd while one of the next fields changes.
    version: AtomicU64,
    /// No event of this part comes before this time, unless it receives something.
    next: AtomicU64,
    /// Number of outboxes put into channels, and of those taken from them. Outboxes without an
    /// effect before the end do not count, because their receiver may have finished.
    sent: AtomicU64,
    received: AtomicU64,
}

/// Frames and R_RDYs from one part to another.
#[derive(Default)]
#[repr(align(128))]
struct Channel {
    content: Mutex<Content>,
    filled: AtomicBool,
}

#[derive(Default)]
struct Content {
    outbox: Outbox,
    /// Number of outboxes in it that count.
    count: u64,
}

/// Common state of the parts during one run.
pub(super) struct Sync<'p> {
    plan: &'p Plan,
    published: Vec<Published>,
    /// Indexed by sender × parts + receiver.
    channels: Vec<Channel>,
    /// End of the run, excluded, in ps.
    end_ps: u64,
    /// True if a part has panicked, so that no other one waits for it.
    failed: AtomicBool,
}

/// Ends the run of the other parts if a part panics.
struct Alarm<'s>(&'s AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// One part during a run.
pub(super) struct Part<'w> {
    number: usize,
    world: &'w mut World,
    clock_ps: u64,
    /// Parts with a common link.
    neighbours: Vec<usize>,
    step_ps: u64,
    sent: u64,
    received: u64,
    inbox: Outbox,
    /// Snapshot of the versions of all parts.
    versions: Vec<u64>,
}

impl<'p> Sync<'p> {
    /// Returns the state for a run from `start_ps` until `end_ps`, excluded.
    pub fn new(plan: &'p Plan, start_ps: u64, end_ps: u64) -> Sync<'p> {
        let published = || Published { clock: start_ps.into(), next: start_ps.into(), ..Published::default() };
        Sync {
            plan,
            published: (0..plan.parts).map(|_| published()).collect(),
            channels: (0..plan.parts * plan.parts).map(|_| Channel::default()).collect(),
            end_ps,
            failed: AtomicBool::new(false),
        }
    }

    fn channel(&self, from: usize, to: usize) -> &Channel {
        &self.channels[from * self.plan.parts + to]
    }

    /// Returns the time before which no part has an event or will have one, if it can be seen now.
    /// It is that if nothing changes while the states of all parts are read, and no channel
    /// contains anything with an effect before the end.
    fn first_event_ps(&self, versions: &mut Vec<u64>) -> Option<u64> {
        versions.clear();
        versions.extend(self.published.iter().map(|part| part.version.load(Ordering::SeqCst)));
        if versions.iter().any(|version| version % 2 == 1) {
            return None;
        }
        let (mut first, mut on_the_way) = (NEVER, 0_u64);
        for part in &self.published {
            first = first.min(part.next.load(Ordering::SeqCst));
            on_the_way = on_the_way.wrapping_add(part.sent.load(Ordering::SeqCst));
            on_the_way = on_the_way.wrapping_sub(part.received.load(Ordering::SeqCst));
        }
        let same = |(part, version): (&Published, &u64)| part.version.load(Ordering::SeqCst) == *version;
        (on_the_way == 0 && self.published.iter().zip(&*versions).all(same)).then_some(first)
    }
}

impl<'w> Part<'w> {
    pub fn new(sync: &Sync<'_>, number: usize, world: &'w mut World) -> Part<'w> {
        let lookahead = &sync.plan.lookahead_ps;
        let is_near = |other: &usize| lookahead[*other][number] != NEVER || lookahead[number][*other] != NEVER;
        let shortest = lookahead.iter().flatten().copied().min().unwrap_or(NEVER);
        // A part without events until the end publishes nothing else.
        sync.published[number].next.store(parts::next_event_ps(&mut world.net), Ordering::Relaxed);
        Part {
            number,
            world,
            clock_ps: sync.published[number].clock.load(Ordering::Relaxed),
            neighbours: (0..sync.plan.parts).filter(|other| *other != number).filter(is_near).collect(),
            step_ps: (shortest / STEPS_PER_LOOKAHEAD).max(1),
            sent: 0,
            received: 0,
            inbox: Outbox::default(),
            versions: Vec::new(),
        }
    }

    /// Runs the part to the end. Returns the processor time that it worked, in ns, if there is a
    /// clock; waiting is excluded.
    pub fn run(&mut self, sync: &Sync<'_>, clock: Option<ThreadClock>) -> u64 {
        let _alarm = Alarm(&sync.failed);
        let read = || clock.map_or(0, |clock| clock());
        let (mut waits, mut worked) = (0, 0);
        let mut since = read();
        while self.clock_ps < sync.end_ps && !sync.failed.load(Ordering::Relaxed) {
            if self.advance(sync) {
                if waits > 0 {
                    (waits, since) = (0, read());
                }
                continue;
            }
            if waits == 0 {
                worked += read() - since;
            }
            waits += 1;
            if waits < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        worked + if waits == 0 { read() - since } else { 0 }
    }

    /// Receives from the other parts and processes some events. Returns false if the part has to
    /// wait.
    pub fn advance(&mut self, sync: &Sync<'_>) -> bool {
        let lookahead = &sync.plan.lookahead_ps;
        let mut safe = sync.end_ps;
        for &other in &self.neighbours {
            let clock = sync.published[other].clock.load(Ordering::Acquire);
            safe = safe.min(clock.saturating_add(lookahead[other][self.number]));
        }
        let received = self.receive(sync);
        let mut next = parts::next_event_ps(&mut self.world.net);
        if received {
            self.publish_next(sync, next);
        }
        if next >= safe
            && safe < sync.end_ps
            && let Some(first) = sync.first_event_ps(&mut self.versions)
        {
            let effects = self.neighbours.iter().map(|&other| first.saturating_add(lookahead[other][self.number]));
            safe = safe.max(effects.fold(sync.end_ps, u64::min));
        }
        if next >= safe {
            return received | self.go_to(sync, safe);
        }
        let until = safe.min(next + self.step_ps);
        self.world.run_until(until - 1);
        self.send(sync);
        next = parts::next_event_ps(&mut self.world.net);
        self.publish_next(sync, next);
        self.go_to(sync, until);
        true
    }

    /// Advances the clock. Returns whether it was earlier.
    fn go_to(&mut self, sync: &Sync<'_>, clock_ps: u64) -> bool {
        let is_later = clock_ps > self.clock_ps;
        if is_later {
            self.clock_ps = clock_ps;
            sync.published[self.number].clock.store(clock_ps, Ordering::Release);
        }
        is_later
    }

    fn publish_next(&self, sync: &Sync<'_>, next: u64) {
        let published = &sync.published[self.number];
        published.version.fetch_add(1, Ordering::SeqCst);
        published.next.store(next, Ordering::SeqCst);
        published.received.store(self.received, Ordering::SeqCst);
        published.version.fetch_add(1, Ordering::SeqCst);
    }

    fn send(&mut self, sync: &Sync<'_>) {
        for &other in &self.neighbours {
            let outbox = parts::outbox(&mut self.world.net, other);
            if outbox.is_empty() {
                continue;
            }
            let counts = outbox.first_effect_ps() < sync.end_ps;
            // The count rises first, so that nothing in a channel is overlooked.
            if counts {
                self.sent += 1;
                let published = &sync.published[self.number];
                published.version.fetch_add(1, Ordering::SeqCst);
                published.sent.store(self.sent, Ordering::SeqCst);
                published.version.fetch_add(1, Ordering::SeqCst);
            }
            let channel = sync.channel(self.number, other);
            let mut content = channel.content.lock().unwrap_or_else(PoisonError::into_inner);
            outbox.append_to(&mut content.outbox);
            content.count += u64::from(counts);
            channel.filled.store(true, Ordering::Release);
        }
    }

    /// Returns whether the part has reached the end.
    pub fn is_done(&self, sync: &Sync<'_>) -> bool {
        self.clock_ps >= sync.end_ps
    }

    /// Receives the rest after all parts have reached the end, and sets the time of the world to
    /// it.
    pub fn finish(&mut self, sync: &Sync<'_>) {
        self.receive(sync);
        self.world.run_until(sync.end_ps - 1);
    }

    /// Receives everything that the other parts have sent. Returns whether there was something.
    fn receive(&mut self, sync: &Sync<'_>) -> bool {
        let mut has_received = false;
        for at in 0..self.neighbours.len() {
            let channel = sync.channel(self.neighbours[at], self.number);
            if !channel.filled.load(Ordering::Acquire) {
                continue;
            }
            let mut content = channel.content.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut content.outbox, &mut self.inbox);
            self.received += std::mem::take(&mut content.count);
            channel.filled.store(false, Ordering::Release);
            drop(content);
            parts::receive(&mut self.world.net, &mut self.inbox);
            has_received = true;
        }
        has_received
    }
}
