//! The frame path of an N_Port: its send queue and its receive buffers.

use super::frame_ref::FrameRef;
use super::loops::lane_of;
use super::messages::{MessageTx, Messages};
use super::{BufferCount, NO_LANE, NPortPlan};
use sanloom_fc::exchange::SeqTx;
use sanloom_wire::{FCtl, FcId, FcType, Frame, Header};
use std::collections::VecDeque;

/// The frame path of an N_Port.
pub struct NPortPlane {
    pub(super) tx: u32,
    pub(super) rx: u32,
    pub(super) queue: SendQueue,
    pub(super) buffers: Buffers,
}

/// Frames that an N_Port has not sent.
pub(super) struct SendQueue {
    entries: VecDeque<Tx>,
    /// Pause before each data sequence, in ps.
    sequence_overhead_ps: u64,
    /// Further pause for each frame of the sequence, in ps.
    frame_overhead_ps: u64,
    /// True if data sequences have a pause.
    has_overhead: bool,
    /// True if the pause before the first queued sequence has already been applied.
    overhead_applied: bool,
    /// Earliest start of the next frame after a pause, in ps.
    not_before_ps: u64,
    /// Largest data field sent, in bytes.
    frame_bytes: u16,
}

/// An entry in the send queue of an N_Port.
#[derive(Clone, Debug)]
enum Tx {
    Message(MessageTx),
    Data(SeqTx),
    Frame(FrameRef),
}

/// Result of [`SendQueue::next`].
pub(super) enum Next {
    /// This frame is sent now.
    Frame(FrameRef),
    /// A data sequence begins at this time, in ps.
    Pause(u64),
    /// The first entry had nothing left to send, or the queue is empty.
    Nothing,
}

/// Receive buffers of an N_Port, with their counters.
#[derive(Default)]
pub(super) struct Buffers {
    /// Buffers that hold a frame.
    held: u32,
    /// Highest number of held buffers, integral of their number over time in buffers × ps, and time
    /// of the last change, since the counters were reset.
    max: u32,
    area_ps: u64,
    changed_ps: u64,
}

impl NPortPlane {
    pub(super) fn new(plan: &NPortPlan) -> NPortPlane {
        NPortPlane {
            tx: NO_LANE,
            rx: NO_LANE,
            queue: SendQueue {
                entries: VecDeque::new(),
                sequence_overhead_ps: plan.sequence_overhead_ps,
                frame_overhead_ps: plan.frame_overhead_ps,
                has_overhead: plan.sequence_overhead_ps + plan.frame_overhead_ps > 0,
                overhead_applied: false,
                not_before_ps: 0,
                frame_bytes: plan.frame_bytes,
            },
            buffers: Buffers::default(),
        }
    }

    /// Returns the number of the lane on which the N_Port sends.
    pub fn tx_lane(&self) -> u32 {
        lane_of(self.tx)
    }

    /// Returns the number of the lane on which the N_Port receives.
    pub fn rx_lane(&self) -> u32 {
        self.rx
    }

    /// Returns the number of entries in the send queue.
    pub fn unsent(&self) -> usize {
        self.queue.entries.len()
    }

    /// Returns the usage of the receive buffers until `now_ps`.
    pub fn buffers(&self, now_ps: u64) -> BufferCount {
        let Buffers { held, max, area_ps, changed_ps } = self.buffers;
        BufferCount { area_ps: area_ps + u64::from(held) * now_ps.saturating_sub(changed_ps), max }
    }
}

impl SendQueue {
    /// Returns the largest data field sent, in bytes.
    pub fn frame_bytes(&self) -> u16 {
        self.frame_bytes
    }

    /// Returns the earliest start of the next frame after a pause, in ps.
    #[inline]
    pub fn not_before_ps(&self) -> u64 {
        self.not_before_ps
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends a control message, which enters the pool of messages.
    pub fn push_message(&mut self, messages: &mut Messages, frame: Frame) {
        self.entries.push_back(Tx::Message(messages.insert(frame, self.frame_bytes)));
    }

    /// Appends a data sequence.
    #[inline]
    pub fn push_data(&mut self, seq: SeqTx) {
        self.entries.push_back(Tx::Data(seq));
    }

    /// Appends a single data frame.
    pub fn push_frame(&mut self, frame: FrameRef) {
        self.entries.push_back(Tx::Frame(frame));
    }

    /// Removes the next frame, unless a pause precedes it.
    #[inline(always)]
    pub fn next(&mut self, now_ps: u64, messages: &Messages) -> Next {
        debug_assert!(self.not_before_ps <= now_ps, "the pause before a sequence has passed");
        let Some(front) = self.entries.front_mut() else { return Next::Nothing };
        let (frame, last) = match front {
            Tx::Data(seq) if self.has_overhead && !self.overhead_applied => {
                self.overhead_applied = true;
                let of_frames_ps = u64::from(seq.remaining_frames()) * self.frame_overhead_ps;
                self.not_before_ps = now_ps + self.sequence_overhead_ps + of_frames_ps;
                return Next::Pause(self.not_before_ps);
            }
            Tx::Data(seq) => match seq.next_frame() {
                Some(data) => (Some(FrameRef::data(seq, &data)), seq.remaining_bytes() == 0),
                None => (None, true),
            },
            Tx::Frame(frame) => (Some(*frame), true),
            Tx::Message(tx) => match messages.next_part(tx) {
                Some((part, last)) => (Some(part), last),
                None => (None, true),
            },
        };
        if last {
            self.entries.pop_front();
            self.overhead_applied = false;
        }
        frame.map_or(Next::Nothing, Next::Frame)
    }

    /// Takes the first frames that go to one destination, at most `most`, for one circuit of an
    /// arbitrated loop. A data sequence with a pause before it is a circuit of its own, and its
    /// pause begins only if the second value of `now_ps` permits it. Returns the pause, or
    /// [`Next::Nothing`].
    pub fn take_for_circuit(
        &mut self,
        (now_ps, may_pause): (u64, bool),
        messages: &Messages,
        most: usize,
        frames: &mut VecDeque<FrameRef>,
    ) -> Next {
        while frames.len() < most {
            let Some(front) = self.entries.front() else { break };
            let d_id = match front {
                Tx::Data(seq) => Some(seq.d_id),
                Tx::Frame(frame) => Some(frame.d_id()),
                Tx::Message(tx) => messages.get(tx.number).map(|frame| frame.header.d_id),
            };
            let pauses = matches!(front, Tx::Data(_)) && self.has_overhead && !self.overhead_applied;
            if frames.front().is_some_and(|first| pauses || d_id != Some(first.d_id())) || (pauses && !may_pause) {
                break;
            }
            if self.not_before_ps > now_ps {
                return Next::Pause(self.not_before_ps);
            }
            match self.next(now_ps, messages) {
                Next::Frame(frame) => frames.push_back(frame),
                Next::Pause(until_ps) => return Next::Pause(until_ps),
                Next::Nothing => {}
            }
        }
        Next::Nothing
    }

    /// Moves the unsent parts of all messages to another pool.
    pub fn move_messages(&mut self, from: &mut Messages, to: &mut Messages) {
        for entry in &mut self.entries {
            if let Tx::Message(tx) = entry {
                let parts = from.unsent_parts(tx);
                tx.number = to.enter(from.leave(tx.number, parts));
            }
        }
    }

    /// Ends a pause, because the link has come up.
    pub fn end_pause(&mut self) {
        self.not_before_ps = 0;
    }

    /// Discards all entries.
    pub fn clear(&mut self, messages: &mut Messages) {
        self.overhead_applied = false;
        for entry in std::mem::take(&mut self.entries) {
            if let Tx::Message(tx) = entry {
                messages.abandon(tx);
            }
        }
    }
}

impl Buffers {
    /// Returns the number of buffers that hold a frame.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Occupies a buffer.
    #[inline]
    pub fn occupy(&mut self, now_ps: u64) {
        self.add_area(now_ps);
        self.held += 1;
        self.max = self.max.max(self.held);
    }

    /// Frees a buffer.
    #[inline]
    pub fn free(&mut self, now_ps: u64) {
        debug_assert!(self.held > 0, "a buffer that is freed holds a frame");
        self.add_area(now_ps);
        self.held -= 1;
    }

    #[inline]
    fn add_area(&mut self, now_ps: u64) {
        self.area_ps += u64::from(self.held) * now_ps.saturating_sub(self.changed_ps);
        self.changed_ps = now_ps;
    }

    /// Resets the counters.
    pub fn restart_counts(&mut self, now_ps: u64) {
        (self.max, self.area_ps, self.changed_ps) = (self.held, 0, now_ps);
    }
}

/// The send queue of an N_Port, to discard frames that must not leave.
pub struct Unsent<'a> {
    pub(super) queue: &'a mut SendQueue,
    pub(super) messages: &'a mut Messages,
}

/// An entry in the send queue of an N_Port.
enum Entry<'a> {
    /// The unsent rest of a data sequence.
    Data(&'a SeqTx),
    /// A data frame.
    Frame(&'a FrameRef),
    /// A control message; some of its parts may already have left.
    Message(&'a Header),
}

impl Unsent<'_> {
    /// Discards the unsent data of an exchange that this N_Port originated. `s_id` is the source
    /// address, where several addresses send through the N_Port.
    pub fn discard_exchange_of_originator(&mut self, s_id: Option<FcId>, ox_id: u16) {
        let matches = |of: FcId, other: u16| s_id.is_none_or(|s_id| s_id == of) && other == ox_id;
        self.discard(|entry| match entry {
            Entry::Data(seq) => !seq.from_responder && matches(seq.s_id, seq.ox_id),
            Entry::Frame(frame) => !frame.from_responder() && matches(frame.s_id(), frame.ox_id()),
            Entry::Message(_) => false,
        });
    }

    /// Discards the unsent data of an exchange to which this N_Port responds.
    pub fn discard_exchange_of_responder(&mut self, rx_id: u16) {
        self.discard(|entry| match entry {
            Entry::Data(seq) => seq.from_responder && seq.rx_id == rx_id,
            Entry::Frame(frame) => frame.from_responder() && frame.rx_id() == rx_id,
            Entry::Message(_) => false,
        });
    }

    /// Discards the unsent answers to another port, both data and FCP messages, of one exchange or,
    /// with `None`, of all. Called if the exchange was aborted or the login has ended.
    pub fn discard_answers(&mut self, to: FcId, ox_id: Option<u16>) {
        let matches = |d_id: FcId, of: u16| d_id == to && ox_id.is_none_or(|ox_id| ox_id == of);
        self.discard(|entry| match entry {
            Entry::Data(seq) => seq.from_responder && matches(seq.d_id, seq.ox_id),
            Entry::Frame(frame) => frame.from_responder() && matches(frame.d_id(), frame.ox_id()),
            Entry::Message(header) => {
                let answer = header.fc_type == FcType::FCP && header.f_ctl.has(FCtl::EXCHANGE_RESPONDER);
                answer && matches(header.d_id, header.ox_id)
            }
        });
    }

    /// Discards the unsent data and messages of one port behind the N_Port, because that port no
    /// longer exists. Data is matched by address, messages by header.
    pub fn discard_source(&mut self, s_id: FcId, is_source: impl Fn(&Header) -> bool) {
        self.discard(|entry| match entry {
            Entry::Data(seq) => seq.s_id == s_id,
            Entry::Frame(frame) => frame.s_id() == s_id,
            Entry::Message(header) => is_source(header),
        });
    }

    /// Removes the matching entries.
    fn discard(&mut self, matches: impl Fn(Entry<'_>) -> bool) {
        let SendQueue { entries, overhead_applied, .. } = &mut *self.queue;
        let messages = &mut *self.messages;
        let before = entries.len();
        entries.retain(|entry| match entry {
            Tx::Data(seq) => !matches(Entry::Data(seq)),
            Tx::Frame(frame) => !matches(Entry::Frame(frame)),
            Tx::Message(tx) => {
                let is_match = messages.get(tx.number).is_some_and(|frame| matches(Entry::Message(&frame.header)));
                if is_match {
                    messages.abandon(*tx);
                }
                !is_match
            }
        });
        if entries.len() != before {
            *overhead_applied = false;
        }
    }
}
