//! The owner of a loop, its circuit, and the fill words that pass both: what the owner learns about
//! other ports, and when other ports see the end of the access window.

use super::circuit::Line;
use super::ring::Ring;
use super::time::LoopTime;

/// Times of one tenancy, from the arbitration to the end of its last circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tenancy {
    /// Index of the owner.
    pub owner: usize,
    /// Index of the port that was opened last; `None` if no port was opened.
    pub peer: Option<usize>,
    /// Time since which the owner arbitrated.
    pub wish: LoopTime,
    /// The ARB of the owner came back to it.
    pub won: LoopTime,
    /// The last OPN left the owner.
    pub opened: LoopTime,
    /// CLS left the owner.
    pub closed: LoopTime,
    /// The first bit of the CLS of the peer was read, or the later CLS of the owner left.
    pub left: LoopTime,
    /// Number of circuits: more than 1 after TRANSFER.
    pub circuits: u32,
    /// ARB(F0) came back, so no other port arbitrated, and the access window ended.
    pub window_ended: bool,
}

/// A port that owns the loop or was its last owner, with the words that it and its peer sent.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub(super) owner: usize,
    /// The opened port; `None` if no port was opened.
    pub(super) peer: Option<usize>,
    pub(super) owner_line: Line,
    pub(super) peer_line: Line,
    /// First ARB(F0) cannot leave before this time.
    pub(super) ask_from: LoopTime,
}

/// The fill word ARB(F0) that returns to the owner first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    /// Time at which the newest fill word on its way left the owner.
    left: LoopTime,
    /// Time at which the peer repeats it.
    passed: LoopTime,
    /// Time at which the owner receives it.
    pub(super) back: LoopTime,
}

/// The first IDLE after the end of an access window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    owner: usize,
    peer: Option<usize>,
    /// The owner sends it.
    pub(super) sent: LoopTime,
    /// The peer sends it on: with its next fill word, even if it has received an ARB since.
    passed: LoopTime,
    /// The owner is fair and opens another port afterwards, which closes its window again.
    closes_owner: bool,
}

impl Holding {
    /// Time at which the owner receives ARB of a port that arbitrates since `wish`.
    pub(super) fn receives(&self, ring: &Ring, port: usize, wish: LoopTime) -> LoopTime {
        match self.peer {
            Some(peer) if ring.is_inside(self.owner, port, peer) => {
                let left = self.owner_line.fill_from(self.ask_from.max(wish - ring.between(self.owner, port)));
                let passed = self.peer_line.fill_from(left + ring.between(self.owner, peer));
                passed + ring.to_receiver(peer, self.owner)
            }
            Some(peer) if peer == port => self.peer_line.fill_from(wish) + ring.to_receiver(port, self.owner),
            _ => wish + ring.to_receiver(port, self.owner),
        }
    }

    /// The first question of this tenancy.
    pub(super) fn question(&self, ring: &Ring, word: LoopTime) -> Question {
        let left = self.owner_line.fill_from(self.ask_from);
        match self.peer {
            Some(peer) => {
                let way = ring.between(self.owner, peer);
                let passed = self.peer_line.fill_from(left + way);
                let left = self.owner_line.fill_until(passed - way, word);
                Question { left, passed, back: passed + ring.to_receiver(peer, self.owner) }
            }
            None => Question { left, passed: left, back: left + ring.to_receiver(self.owner, self.owner) },
        }
    }

    /// True if no port has put its ARB in the place of the question. `from` returns the time since
    /// which a port arbitrates.
    pub(super) fn is_alone(&self, ring: &Ring, question: &Question, from: impl Fn(usize) -> LoopTime) -> bool {
        (0..ring.len()).filter(|port| *port != self.owner).all(|port| {
            let since = from(port);
            let passes = match self.peer {
                Some(peer) if ring.is_inside(self.owner, port, peer) => question.left + ring.between(self.owner, port),
                Some(peer) if port == peer => question.passed,
                Some(peer) => question.passed + ring.between(peer, port),
                None => question.left + ring.between(self.owner, port),
            };
            since > passes
        })
    }

    /// The IDLE that follows a question without an answer.
    pub(super) fn front(&self, ring: &Ring, sent: LoopTime) -> Front {
        let passed = match self.peer {
            Some(peer) => self.peer_line.fill_from(sent + ring.between(self.owner, peer)),
            None => sent,
        };
        Front { owner: self.owner, peer: self.peer, sent, passed, closes_owner: false }
    }
}

impl Front {
    /// Time at which a port other than the owner reads the IDLE, if no port replaces it before.
    fn read_by(&self, ring: &Ring, port: usize) -> LoopTime {
        match self.peer {
            Some(peer) if port != peer && !ring.is_inside(self.owner, port, peer) => {
                self.passed + ring.between(peer, port)
            }
            _ => self.sent + ring.between(self.owner, port),
        }
    }

    /// Word of the peer that the IDLE takes because the peer could not send it at once. `None` if
    /// it was not late, or if a port replaced it before.
    pub(super) fn late_word(&self, ring: &Ring, from: impl Fn(usize) -> LoopTime) -> Option<LoopTime> {
        let peer = self.peer?;
        let inside = (0..ring.len()).filter(|port| *port == peer || ring.is_inside(self.owner, *port, peer));
        let is_late = self.passed > self.sent + ring.between(self.owner, peer);
        let is_whole = inside.into_iter().all(|port| from(port) > self.read_by(ring, port));
        (is_late && is_whole).then_some(self.passed)
    }

    /// The same IDLE, after which the owner opens another port.
    pub(super) fn before_transfer(self, owner_is_fair: bool) -> Front {
        Front { closes_owner: owner_is_fair, ..self }
    }

    /// Opens the window of each closed port that the IDLE passes. `access` has the time from which
    /// each port may arbitrate, `wishes` the time since which it wants to; an arbitrating port
    /// replaces the IDLE.
    pub(super) fn open_windows(&self, ring: &Ring, word: LoopTime, wishes: &[LoopTime], access: &mut [LoopTime]) {
        let open = |slot: &mut LoopTime, read: LoopTime| {
            if *slot == LoopTime::NEVER {
                *slot = read + word;
            }
        };
        open(&mut access[self.owner], self.sent);
        for step in 1..ring.len() {
            let port = (self.owner + step) % ring.len();
            let read = self.read_by(ring, port);
            open(&mut access[port], read);
            if wishes[port].max(access[port]) <= read {
                break;
            }
        }
        if self.closes_owner {
            access[self.owner] = LoopTime::NEVER;
        }
    }
}
