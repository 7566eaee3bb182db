//! One circuit as a pure function: the times of every word that is not a fill word, from OPN to the
//! last CLS.
//!
//! Each transmitter follows the same order of preference, word by word: the rest of its frame, a
//! frame that credit permits (6 words after the previous one), CLS, an R_RDY that it owes, a fill
//! word. No R_RDY follows CLS. A port acts on a received word with the next word that it sends.

use super::time::LoopTime;

/// Words of a frame around its payload: SOF, six of header, CRC and EOF.
const FRAME_OVERHEAD_WORDS: u64 = 9;
/// Words between a frame and the next frame or CLS of one transmitter.
pub(super) const GAP_WORDS: u64 = 6;

/// Words of a frame without the fill words after it.
pub(super) fn frame_words(payload_bytes: u16) -> u64 {
    FRAME_OVERHEAD_WORDS + u64::from(payload_bytes).div_ceil(4)
}

/// One end of a circuit before it opens.
#[derive(Clone, Debug, Default)]
pub(super) struct End {
    /// This end sent OPN.
    pub(super) is_opener: bool,
    /// Time from this transmitter until the peer acts on a word, less one word.
    pub(super) to_peer: LoopTime,
    /// First time at which this end may send, after OPN was sent or received.
    pub(super) start: LoopTime,
    /// Payload bytes of the frames to send.
    pub(super) frames: Vec<u16>,
    /// Login credit, buffers and release time of this receiver.
    pub(super) login_credit: u16,
    pub(super) buffers: u16,
    pub(super) release: LoopTime,
    /// The peer may send data frames, so this end sends R_RDYs.
    pub(super) receives: bool,
    /// Closes without waiting for the peer: the opener, and an opened port that closes first.
    pub(super) closes_itself: bool,
    /// Times at which buffers that are still in use become free, in order.
    pub(super) releases: Vec<LoopTime>,
}

/// A frame on the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sent {
    /// First bit leaves the sender.
    pub(super) start: LoopTime,
    /// Last bit is read by the receiver.
    pub(super) arrival: LoopTime,
}

/// Transmitter during a circuit.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    end: End,
    /// End of the last word sent.
    free: LoopTime,
    /// End of the fill words after the last frame.
    gap: LoopTime,
    sent: Vec<Sent>,
    /// Times from which a received R_RDY counts.
    credits: Vec<LoopTime>,
    /// Times from which R_RDYs are owed, in order; those before `answered` are sent.
    owed: Vec<LoopTime>,
    answered: usize,
    /// Time at which the CLS of the peer is read.
    closed_by_peer: Option<LoopTime>,
    /// Time at which CLS leaves.
    closed: Option<LoopTime>,
    /// Intervals without fill words, in order.
    busy: Vec<(LoopTime, LoopTime)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Frame,
    Close,
    Ready,
}

/// Result of a circuit.
#[derive(Clone, Debug)]
pub(super) struct Circuit {
    pub(super) opener: Line,
    pub(super) opened: Line,
}

impl Line {
    /// A transmitter whose peer has the given login credit.
    fn new(word: LoopTime, end: End, credit: usize) -> Line {
        let in_use: Vec<LoopTime> = end.releases.iter().copied().filter(|due| *due >= end.start).collect();
        let free = usize::from(end.buffers).saturating_sub(in_use.len());
        let mut owed = Vec::new();
        if end.receives {
            owed.extend(std::iter::repeat_n(end.start, free));
            owed.extend_from_slice(&in_use);
        }
        let credits = vec![LoopTime::ZERO; credit];
        let busy = if end.is_opener { vec![(end.start - word, end.start)] } else { Vec::new() };
        Line { end: End { releases: in_use, ..end }, owed, credits, busy, ..Line::default() }
    }
    /// An opener whose OPN came back. CLS leaves at `close`, and before it R_RDYs.
    pub(super) fn refused(word: LoopTime, end: End, close: LoopTime) -> Line {
        let mut line = Line::new(word, end, 0);
        let mut free = line.end.start;
        for due in std::mem::take(&mut line.owed) {
            let time = free.max(due);
            if time >= close {
                break;
            }
            line.busy.push((time, time + word));
            free = time + word;
        }
        line.close(close, word);
        line
    }
    pub(super) fn sent(&self) -> &[Sent] {
        &self.sent
    }
    /// Time at which CLS leaves.
    pub(super) fn close_time(&self) -> LoopTime {
        self.closed.unwrap_or(LoopTime::NEVER)
    }
    /// Time at which the CLS of the peer is read.
    pub(super) fn peer_close_time(&self) -> LoopTime {
        self.closed_by_peer.unwrap_or(LoopTime::NEVER)
    }
    /// Times at which R_RDYs leave.
    pub(super) fn ready_times(&self, word: LoopTime) -> impl Iterator<Item = LoopTime> + '_ {
        // A frame is longer than a word, and OPN ends when the circuit starts.
        let is_ready = move |(start, end): &&(LoopTime, LoopTime)| {
            *end == *start + word && Some(*start) != self.closed && *end != self.end.start
        };
        self.busy.iter().filter(is_ready).map(|(start, _)| *start)
    }
    /// Time at which the peer reads a word that leaves at `sent`.
    pub(super) fn read_by_peer(&self, sent: LoopTime) -> LoopTime {
        sent + self.end.to_peer
    }
    /// Sends CLS at `time`.
    pub(super) fn close(&mut self, time: LoopTime, word: LoopTime) {
        self.closed = Some(time);
        self.busy.push((time, time + word));
    }
    /// Marks a word as no fill word of another port.
    pub(super) fn insert_word(&mut self, time: LoopTime, word: LoopTime) {
        let place = self.busy.partition_point(|(start, _)| *start < time);
        self.busy.insert(place, (time, time + word));
    }
    /// Time from which the free buffers cover the login credit.
    pub(super) fn covered(&self) -> LoopTime {
        let spare = usize::from(self.end.buffers - self.end.login_credit);
        let releases = &self.end.releases;
        releases.len().checked_sub(spare + 1).map_or(LoopTime::ZERO, |at| releases[at])
    }
    /// Times at which buffers become free.
    pub(super) fn releases(&self) -> &[LoopTime] {
        &self.end.releases
    }
    /// First fill word at or after `time`.
    pub(super) fn fill_from(&self, mut time: LoopTime) -> LoopTime {
        let first = self.busy.partition_point(|(_, end)| *end <= time);
        for (start, end) in &self.busy[first..] {
            if *start > time {
                break;
            }
            time = *end;
        }
        time
    }
    /// Last fill word at or before `time`, for words of one grid.
    pub(super) fn fill_until(&self, mut time: LoopTime, word: LoopTime) -> LoopTime {
        let first = self.busy.partition_point(|(start, _)| *start <= time);
        for (start, end) in self.busy[..first].iter().rev() {
            if *end <= time {
                break;
            }
            time = *start - word;
        }
        time
    }

    fn credit_from(&self) -> Option<LoopTime> {
        let sent = self.sent.len();
        // The peer's login credit is stored as credits at the start of the circuit.
        self.credits.get(sent).copied()
    }

    /// Earliest next word that is not a fill word; the order of preference decides between equal
    /// times.
    fn next(&self, word: LoopTime) -> Option<(LoopTime, Action)> {
        if self.closed.is_some() {
            return None;
        }
        let free = self.free.max(self.end.start);
        let has_frames = self.sent.len() < self.end.frames.len();
        let frame = self.credit_from().filter(|_| has_frames).map(|from| free.max(self.gap).max(from));
        let ready = self.owed.get(self.answered).map(|due| free.max(*due));
        let is_done = !has_frames && (self.end.is_opener || !self.end.frames.is_empty());
        let by_itself = (self.end.closes_itself && is_done).then_some(free);
        let by_peer = self.closed_by_peer.filter(|_| frame.is_none()).map(|read| read + word);
        let allowed = match (by_itself, by_peer) {
            (Some(own), Some(peer)) => Some(own.min(peer)),
            (own, peer) => own.or(peer),
        };
        // An opener covers its login credit before it leaves. A port that closes first frees its
        // buffers at once.
        let covered = if self.end.closes_itself { LoopTime::ZERO } else { self.covered() };
        let close = allowed.map(|from| free.max(self.gap).max(from).max(covered));
        let all = [(frame, Action::Frame), (ready, Action::Ready), (close, Action::Close)];
        all.into_iter().filter_map(|(time, action)| Some((time?, action))).min()
    }
}

/// Computes a circuit. `opener.start` is the end of its OPN, `opened.start` the word after OPN was
/// read. Login credit of the peer counts as credit from the start.
pub(super) fn run(word: LoopTime, opener: End, opened: End) -> Circuit {
    let logins = [usize::from(opened.login_credit), usize::from(opener.login_credit)];
    let mut lines = [Line::new(word, opener, logins[0]), Line::new(word, opened, logins[1])];
    let mut discarded = [0, 0];
    loop {
        let next = [0, 1].into_iter().filter_map(|side| Some((lines[side].next(word)?, side))).min_by_key(|n| n.0.0);
        let Some(((time, action), side)) = next else {
            break;
        };
        let peer = 1 - side;
        let read = time + lines[side].end.to_peer;
        match action {
            Action::Frame => {
                let payload = lines[side].end.frames[lines[side].sent.len()];
                let end = time + word.times(frame_words(payload));
                let arrival = end + lines[side].end.to_peer;
                let due = arrival + lines[peer].end.release;
                lines[side].sent.push(Sent { start: time, arrival });
                lines[side].gap = end + word.times(GAP_WORDS);
                lines[side].free = end;
                lines[side].busy.push((time, end));
                lines[peer].end.releases.push(due);
                lines[peer].owed.push(due);
            }
            Action::Ready => {
                lines[side].answered += 1;
                lines[side].free = time + word;
                lines[side].busy.push((time, time + word));
                // The first R_RDYs stand for the login credit.
                if discarded[peer] < logins[peer] {
                    discarded[peer] += 1;
                } else {
                    lines[peer].credits.push(read + word);
                }
            }
            Action::Close => {
                lines[side].closed = Some(time);
                lines[side].free = time + word;
                lines[side].busy.push((time, time + word));
                lines[peer].closed_by_peer = Some(read);
            }
        }
    }
    let [opener, opened] = lines;
    Circuit { opener, opened }
}
