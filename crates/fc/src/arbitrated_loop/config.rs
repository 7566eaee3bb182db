//! Configuration of a loop and of its ports.

use super::time::{LoopRate, LoopTime};
use sanloom_wire::arbitrated_loop::{AL_PA_COUNT, AlPa};

/// A loop after initialisation: its ports in the order in which words pass them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopConfig {
    /// Line rate of all ports.
    pub rate: LoopRate,
    /// Ports in the order of the loop.
    pub ports: Vec<LoopPort>,
}

/// One port of a loop, and the cable to the next one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopPort {
    /// Address; `None` for a port that repeats words only (non-participating or bypassed).
    pub al_pa: Option<AlPa>,
    /// Words from the receiver to the transmitter of a port that repeats, at least 1. FC-AL permits
    /// 6, FC-AL-2 with amendment 2 permits 12.
    pub delay_words: u32,
    /// Propagation time of the cable to the next port, above zero.
    pub cable: LoopTime,
    /// The port uses the access fairness algorithm. Ignored for AL_PA 00, which is never fair.
    pub fair: bool,
    /// Frames that each sender may send in a circuit before the first R_RDY (login BB_Credit).
    pub login_credit: u16,
    /// Receive buffers, 1 to 4096 and at least `login_credit`.
    pub buffers: u16,
    /// Time from the end of a received frame until its buffer is free.
    pub release: LoopTime,
    /// As opened port, it closes after its own last frame without waiting for the CLS of the
    /// opener. Requires `release` zero, because this port cannot delay its departure.
    pub closes_first: bool,
    /// As opener, it goes to TRANSFER instead of closing when it has more requests and no other
    /// port arbitrates.
    pub transfers: bool,
}

/// Error of [`LoopConfig::validate`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoopConfigError {
    /// Fewer than two ports.
    #[error("a loop has {0} ports, but needs at least 2: add ports")]
    TooFewPorts(usize),
    /// More participating ports than addresses.
    #[error("a loop has {0} participating ports, but only 127 addresses: move ports to another loop")]
    TooManyPorts(usize),
    /// Two ports have one address.
    #[error("ports {first} and {second} of the loop both have AL_PA {al_pa}: give each its own")]
    SameAddress {
        /// Index of the first port.
        first: usize,
        /// Index of the second port.
        second: usize,
        /// Address of both.
        al_pa: AlPa,
    },
    /// A value of a port is out of range.
    #[error("port {port} of the loop: {problem}")]
    Port {
        /// Index of the port.
        port: usize,
        /// Problem and remedy.
        problem: &'static str,
    },
}

impl LoopPort {
    /// A fair NL_Port with 6 words of delay, 10 m of cable, login credit 0 and 8 receive buffers
    /// that are freed at once.
    pub fn new(al_pa: AlPa) -> LoopPort {
        LoopPort {
            al_pa: Some(al_pa),
            delay_words: 6,
            cable: LoopTime::from_ps(50_000),
            fair: true,
            login_credit: 0,
            buffers: 8,
            release: LoopTime::ZERO,
            closes_first: false,
            transfers: false,
        }
    }
    /// True if the port waits for the next access window after each win.
    pub(super) fn is_fair(&self) -> bool {
        self.fair && self.al_pa != Some(AlPa::FL_PORT)
    }
    fn problem(&self) -> Option<&'static str> {
        const LONGEST: LoopTime = LoopTime::from_ps(1_000_000_000);
        if !(1..=1000).contains(&self.delay_words) {
            Some("the delay must be 1 to 1000 words")
        } else if self.cable == LoopTime::ZERO || self.cable > LONGEST {
            Some("the propagation time of the cable must be above zero and at most 1 ms")
        } else if !(1..=4096).contains(&self.buffers) || self.buffers < self.login_credit {
            Some("receive buffers must be 1 to 4096 and at least the login credit: change buffers or login credit")
        } else if self.release > LONGEST.times(1000) {
            Some("the time to free a buffer must be at most 1 s")
        } else if self.closes_first && self.release > LoopTime::ZERO {
            Some("a port that closes first must free its buffers at once")
        } else {
            None
        }
    }
}

impl LoopConfig {
    /// Time that a tenancy costs beside its frames, if `owner` opens `peer` on an idle loop and
    /// both close after the last frame. `None` for an unknown port.
    ///
    /// L is a round without the owner's delay, and w is a word. A port acts on a word that it
    /// receives with the next word that it sends, which is one w later.
    ///
    /// | Part | Without login credit | With login credit |
    /// |---|---|---|
    /// | ARB round, OPN is the next word | L + w | L + w |
    /// | OPN up to the first frame | L + 2 w: OPN to the peer, R_RDY as its next word and on to the owner, the frame as the next word | w: the frame follows OPN, which is one transmission word |
    /// | CLS after the last frame, CLS of the peer as its next word | L + w | L + w |
    /// | Sum | 3 L + 4 w | 2 L + 3 w |
    ///
    /// Without login credit, OPN is on its way during its own word, so this word is a part of L + 2
    /// w. A sum of 2 L + 2 w with login credit would leave it out: the first word of the frame
    /// would leave together with OPN.
    pub fn tenancy_cost(&self, owner: usize, peer: usize) -> Option<LoopTime> {
        let has_credit = self.ports.get(peer)?.login_credit > 0;
        self.ports.get(owner)?;
        let (word, round) = (self.rate.word(), self.round(owner));
        Some(if has_credit { round.times(2) + word.times(3) } else { round.times(3) + word.times(4) })
    }

    /// Time of a word from the transmitter of a port round to its receiver: L in the times of a
    /// tenancy.
    pub fn round(&self, owner: usize) -> LoopTime {
        let others = self.ports.iter().enumerate().filter(|(index, _)| *index != owner);
        let words = others.map(|(_, port)| u64::from(port.delay_words)).sum();
        self.ports.iter().fold(self.rate.word().times(words), |sum, port| sum + port.cable)
    }

    /// Checks the ranges of all values, and that no address is used twice.
    pub fn validate(&self) -> Result<(), LoopConfigError> {
        if self.ports.len() < 2 {
            return Err(LoopConfigError::TooFewPorts(self.ports.len()));
        }
        let participating = self.ports.iter().filter(|port| port.al_pa.is_some()).count();
        if participating > AL_PA_COUNT {
            return Err(LoopConfigError::TooManyPorts(participating));
        }
        let mut owner = [None; AL_PA_COUNT];
        for (index, port) in self.ports.iter().enumerate() {
            if let Some(problem) = port.problem() {
                return Err(LoopConfigError::Port { port: index, problem });
            }
            if let Some(al_pa) = port.al_pa
                && let Some(first) = owner[usize::from(al_pa.priority())].replace(index)
            {
                return Err(LoopConfigError::SameAddress { first, second: index, al_pa });
            }
        }
        Ok(())
    }
}
