//! Words of a tenancy for traces: [`Signal`].

use super::circuit::Line;
use super::time::LoopTime;
use sanloom_wire::arbitrated_loop::Primitive;

/// Equal words of a tenancy in a row that are neither fill words nor part of a frame. An ARB is
/// reported when it has come back, so it was sent at the beginning of the arbitration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signal {
    /// Index of the sender.
    pub from: usize,
    /// Index of the port that receives it: the sender itself if the word goes round.
    pub to: usize,
    /// The word.
    pub word: Primitive,
    /// Number of equal words in a row.
    pub count: u32,
    /// The first word leaves the sender.
    pub sent: LoopTime,
    /// The receiver acts on the first word with the next word that it sends.
    pub read: LoopTime,
}

impl Signal {
    /// One word.
    pub(super) fn one(word: Primitive, (from, to): (usize, usize), sent: LoopTime, read: LoopTime) -> Signal {
        Signal { from, to, word, count: 1, sent, read }
    }

    /// R_RDYs and CLS of a transmitter to its peer, in order.
    pub(super) fn of_line(line: &Line, word: LoopTime, between: (usize, usize)) -> Vec<Signal> {
        let mut signals: Vec<Signal> = Vec::new();
        for sent in line.ready_times(word) {
            match signals.last_mut() {
                Some(last) if last.sent + word.times(last.count.into()) == sent => last.count += 1,
                _ => signals.push(Signal::one(Primitive::RRdy, between, sent, line.read_by_peer(sent))),
            }
        }
        let closed = line.close_time();
        if closed != LoopTime::NEVER {
            signals.push(Signal::one(Primitive::Close, between, closed, line.read_by_peer(closed)));
        }
        signals
    }
}
