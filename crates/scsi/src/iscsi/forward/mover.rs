//! The Data Mover and the Header Extractor, without sockets. [`Mover`] walks the headers in the
//! bytes of a connection, in place, and determines the destination of each byte. The driver reads
//! into a buffer and writes the resulting pieces, many PDUs at once.
//!
//! ```text
//!   bytes of a connection:  |header|digest| data            |pad|digest|header| data  ...
//!   pieces for another one: |header|digest| data            |pad|digest|
//! ```
//!
//! A PDU that passes unchanged forms one piece with its neighbours. Because PDUs are cut through,
//! sent bytes cannot be withdrawn. While a PDU is half sent ([`Mover::is_open`]), nothing else
//! enters that connection. If the source of such a PDU fails, its destination has to be closed.

use super::action::{Action, Conn};
use super::machine::{Forward, Switch};
use super::output::HEAD_BYTES;
pub use super::output::{Output, Piece};
use crate::iscsi::framer::{Layout, len32};
use crate::iscsi::parameters::Parameters;
use crate::iscsi::sequence::Statuses;
use crate::time::Instant;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs, padding};
use std::collections::VecDeque;
use std::ops::Range;

/// Reason why [`Mover::run`] returned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// All input was consumed, except an incomplete header.
    More,
    /// A PDU of another back end is half sent to the host. Call again after that PDU is complete.
    Blocked,
    /// A range of bytes, with their digests, for the conventional path. Pass them on, then call
    /// again.
    Conventional(Range<usize>),
    /// The host's session has outputs that precede the remaining input. Send them, then call again.
    Session,
    /// Wrong header digest, so the start of the next PDU is unknown.
    HeaderDigest,
}

/// The driver's side of the connections, which receives the output of the mover.
#[derive(Debug)]
pub struct Outlet<'a> {
    /// Receives the pieces and the connections to close.
    pub output: &'a mut Output,
    /// Status numbers of the host's connection. PDUs of the conventional path also take their
    /// numbers from here, while no PDU is half sent.
    pub statuses: &'a mut Statuses,
}

/// State that [`Mover::run`] uses besides its own.
#[derive(Debug)]
pub struct RunContext<'a, 'b> {
    /// Current time.
    pub now: Instant,
    /// Forwarding path of this host.
    pub forward: &'a mut Forward,
    /// State shared by the host sessions.
    pub switch: &'a mut Switch<'b>,
    /// Receives the pieces and the connections to close.
    pub outlet: Outlet<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Header,
    /// Remaining bytes of a PDU that goes to the conventional path.
    Conventional(usize),
    /// Data segment, handled by [`Lane::actions`].
    Segment,
    /// Remaining bytes of padding and digest, and the connection to which they pass unchanged, if
    /// any.
    Tail(usize, Option<Conn>),
}

/// Makes the actions for a PDU use its data segment exactly: a remainder that no action covers is
/// discarded, and bytes beyond the segment are cut off. Returns the number of bytes that differed.
fn cover(actions: &mut Vec<Action>, data_bytes: u32) -> u32 {
    let mut left = data_bytes;
    let mut beyond = 0;
    for action in actions.iter_mut() {
        match action {
            Action::Move { bytes, .. } | Action::Discard { bytes } => {
                let used = left.min(*bytes);
                beyond += *bytes - used;
                *bytes = used;
                left -= used;
            }
            Action::Collect | Action::ToConventional => left = 0,
            Action::SendHeader { .. } | Action::Send { .. } | Action::Close { .. } => {}
        }
    }
    if left > 0 {
        actions.push(Action::Discard { bytes: left });
    }
    beyond + left
}

/// One connection, in both directions.
#[derive(Clone, Debug)]
struct Lane {
    layout: Layout,
    stage: Stage,
    /// Actions that remain for the current PDU.
    actions: VecDeque<Action>,
    /// Length of the current PDU's data, then the bytes not used yet.
    data_bytes: u32,
    data_left: u32,
    header: [u8; BHS_BYTES],
    collected: Vec<u8>,
    /// Source of the data segment that is half sent on this connection, and the bytes still
    /// missing.
    open: Option<(Conn, u32)>,
    /// Length of that segment, which determines its padding.
    open_bytes: u32,
    /// Headers without data that wait for the end of the half-sent PDU.
    deferred: Vec<[u8; BHS_BYTES]>,
    /// Number of deferred headers that belong to the host's PDU and leave first.
    deferred_first: usize,
}

/// All connections of a host session.
#[derive(Clone, Debug)]
pub struct Mover {
    host: Lane,
    backs: Vec<Lane>,
    scratch: Vec<Action>,
}

impl Lane {
    fn new(parameters: &Parameters) -> Lane {
        Lane {
            layout: parameters.layout(),
            stage: Stage::Header,
            actions: VecDeque::new(),
            data_bytes: 0,
            data_left: 0,
            header: [0; BHS_BYTES],
            collected: Vec::new(),
            open: None,
            open_bytes: 0,
            deferred: Vec::new(),
            deferred_first: 0,
        }
    }
}

impl Lane {
    /// Returns whether an action for `conn` remains.
    fn has_actions_for(&self, conn: Conn) -> bool {
        let for_it = |action: &Action| match action {
            Action::SendHeader { to } | Action::Send { to, .. } | Action::Move { to, .. } => *to == conn,
            _ => false,
        };
        self.actions.iter().any(for_it)
    }
}

impl Mover {
    /// Creates the mover for a host that agreed to `front`.
    pub fn new(front: &Parameters) -> Mover {
        Mover { host: Lane::new(front), backs: Vec::new(), scratch: Vec::new() }
    }

    /// Registers a completed login at a back end.
    pub fn connect(&mut self, back: u8, parameters: &Parameters) {
        let number = usize::from(back);
        while self.backs.len() <= number {
            self.backs.push(Lane::new(&Parameters::default()));
        }
        self.backs[number] = Lane::new(parameters);
    }

    /// If a PDU is half sent to `to`, returns the connection from which the rest comes.
    pub fn is_open(&self, to: Conn) -> Option<Conn> {
        self.lane_of(to).and_then(|lane| lane.open).map(|(from, _)| from)
    }

    /// Returns whether header digests were agreed with a back end.
    pub fn has_header_digest(&self, back: u8) -> bool {
        self.lane_of(Conn::Back(back)).is_some_and(|lane| lane.layout.header_digest)
    }

    /// Returns whether a PDU from `from` has been received only in part.
    pub fn is_half(&self, from: Conn) -> bool {
        self.lane_of(from).is_some_and(|lane| lane.stage != Stage::Header)
    }

    /// Handles the loss of a back-end connection; call it before [`Forward::disconnect`]. Returns
    /// true if a PDU from there was half sent to the host. In that case the connection of the host
    /// has to be closed too.
    pub fn disconnect(&mut self, back: u8) -> bool {
        let gone = Conn::Back(back);
        // Drop the rest of a host PDU that was bound for this back end.
        for action in &mut self.host.actions {
            match *action {
                Action::Move { to, bytes } if to == gone => *action = Action::Discard { bytes },
                _ => {}
            }
        }
        // Drop headers for it that wait behind data of the host or of another back end, because
        // their commands have ended.
        for lane in std::iter::once(&mut self.host).chain(&mut self.backs) {
            lane.actions.retain(|action| !matches!(action, Action::Send { to, .. } if *to == gone));
        }
        if let Stage::Tail(_, to @ Some(_)) = &mut self.host.stage {
            to.take_if(|to| *to == gone);
        }
        if let Some(lane) = self.backs.get_mut(usize::from(back)) {
            *lane = Lane::new(&Parameters::default());
        }
        self.host.open.is_some_and(|(from, _)| from == gone)
    }

    /// Executes actions that belong to no received PDU, such as those of [`Forward::recall`] and
    /// [`Forward::disconnect`].
    pub fn execute(&mut self, actions: &mut Vec<Action>, outlet: &mut Outlet<'_>) {
        for action in actions.drain(..) {
            match action {
                Action::Send { to, header } => self.send(to, to, header, None, outlet),
                Action::Close { conn, reason } => outlet.output.closes.push((conn, reason)),
                // Without a PDU there are no data to move.
                _ => {}
            }
        }
    }

    fn lane_of(&self, conn: Conn) -> Option<&Lane> {
        match conn {
            Conn::Host => Some(&self.host),
            Conn::Back(back) => self.backs.get(usize::from(back)),
        }
    }

    fn lane(&mut self, conn: Conn) -> &mut Lane {
        match conn {
            Conn::Host => &mut self.host,
            Conn::Back(back) => &mut self.backs[usize::from(back)],
        }
    }

    /// Processes the bytes of a connection. `at` is the position of the first unused byte in
    /// `input` and is advanced. Unused bytes must be passed again in the next call.
    pub fn run(&mut self, context: &mut RunContext<'_, '_>, from: Conn, input: &mut [u8], at: &mut usize) -> Stop {
        loop {
            match self.lane(from).stage {
                Stage::Header => {
                    // While a PDU is half sent, outputs of the session have to wait anyway.
                    if context.switch.session.has_output() && self.host.open.is_none() {
                        return Stop::Session;
                    }
                    if let Some(stop) = self.extract(context, from, input, at) {
                        return stop;
                    }
                }
                Stage::Conventional(left) => {
                    let bytes = left.min(input.len() - *at);
                    if bytes == 0 {
                        return Stop::More;
                    }
                    let range = *at..*at + bytes;
                    *at += bytes;
                    self.lane(from).stage =
                        if bytes == left { Stage::Header } else { Stage::Conventional(left - bytes) };
                    return Stop::Conventional(range);
                }
                Stage::Segment => {
                    if !self.segment(context, from, input, at) {
                        return Stop::More;
                    }
                }
                Stage::Tail(left, to) => {
                    let bytes = left.min(input.len() - *at);
                    if let Some(to) = to {
                        context.outlet.output.piece(to, *at..*at + bytes);
                    }
                    *at += bytes;
                    if bytes < left {
                        self.lane(from).stage = Stage::Tail(left - bytes, to);
                        return Stop::More;
                    }
                    self.lane(from).stage = Stage::Header;
                    if let Some(to) = to {
                        self.complete(to, &mut context.outlet);
                    }
                }
            }
        }
    }

    /// The Header Extractor: processes the next header, if it is complete. Returns the reason to
    /// stop, if any.
    fn extract(
        &mut self,
        context: &mut RunContext<'_, '_>,
        from: Conn,
        input: &mut [u8],
        at: &mut usize,
    ) -> Option<Stop> {
        if from != Conn::Host && self.host.open.is_some() {
            return Some(Stop::Blocked);
        }
        let layout = self.lane(from).layout;
        let Some(header) = input[*at..].first_chunk::<BHS_BYTES>() else { return Some(Stop::More) };
        let bhs = Bhs(*header);
        let head = BHS_BYTES + bhs.ahs_bytes() + layout.head_digest_bytes();
        let Some(all) = input.get(*at..*at + head) else { return Some(Stop::More) };
        let (covered, crc) = all.split_at(head - layout.head_digest_bytes());
        if !layout.is_head_intact(covered, crc) {
            return Some(Stop::HeaderDigest);
        }
        let mut header = bhs.0;
        let mut actions = std::mem::take(&mut self.scratch);
        context.forward.on_header(context.now, from, &mut header, context.switch, &mut actions);
        let bytes = bhs.data_bytes();
        let uncovered = cover(&mut actions, bytes);
        debug_assert_eq!(uncovered, 0, "the actions cover the data segment of {:?}", bhs.opcode());
        context.forward.counters.uncovered_bytes += u64::from(uncovered);
        if actions.first() == Some(&Action::ToConventional) {
            self.lane(from).stage = Stage::Conventional(head + bytes as usize + layout.tail_bytes(bytes));
        } else {
            let place = *at..*at + head;
            *at += head;
            let lane = self.lane(from);
            (lane.stage, lane.data_left, lane.data_bytes, lane.header) = (Stage::Segment, bytes, bytes, header);
            self.plan(from, &mut actions, &mut context.outlet);
            self.adapt(from, Some((input, place)), &mut context.outlet);
        }
        actions.clear();
        self.scratch = actions;
        None
    }

    /// Sends headers without data at once, unless data of this PDU precede them on the same
    /// connection. Command numbers are assigned in this order.
    fn plan(&mut self, from: Conn, actions: &mut Vec<Action>, outlet: &mut Outlet<'_>) {
        for action in actions.drain(..) {
            match action {
                Action::Send { to, header }
                    if Bhs(header).data_bytes() == 0 && !self.lane(from).has_actions_for(to) =>
                {
                    self.send(from, to, header, None, outlet);
                }
                other => self.lane(from).actions.push_back(other),
            }
        }
    }

    /// Executes actions up to the next one that requires data. `place` is the range of the header
    /// in the input, if it is still there.
    fn adapt(&mut self, from: Conn, mut place: Option<(&mut [u8], Range<usize>)>, outlet: &mut Outlet<'_>) {
        while let Some(action) = self.lane(from).actions.front().copied() {
            match action {
                Action::SendHeader { to } => {
                    let header = self.lane(from).header;
                    self.send(from, to, header, place.take(), outlet);
                }
                Action::Send { to, header } => self.send(from, to, header, None, outlet),
                Action::Close { conn, reason } => outlet.output.closes.push((conn, reason)),
                Action::ToConventional => {}
                Action::Move { .. } | Action::Discard { .. } | Action::Collect => return,
            }
            self.lane(from).actions.pop_front();
        }
    }

    /// Sends a header, or defers it while a PDU is half sent.
    fn send(
        &mut self,
        from: Conn,
        to: Conn,
        header: [u8; BHS_BYTES],
        place: Option<(&mut [u8], Range<usize>)>,
        outlet: &mut Outlet<'_>,
    ) {
        let mut bhs = Bhs(header);
        if to == Conn::Host {
            outlet.statuses.number(&mut bhs);
        }
        let bytes = bhs.data_bytes();
        // The host's PDU has actions for this connection whose command numbers were assigned
        // earlier.
        let later = from != Conn::Host && self.host.has_actions_for(to);
        let lane = self.lane(to);
        if lane.open.is_some() || later {
            debug_assert_eq!(bytes, 0, "only the host has data for back ends, one PDU after the other");
            let place = if from == Conn::Host { lane.deferred_first } else { lane.deferred.len() };
            lane.deferred_first += usize::from(from == Conn::Host);
            return lane.deferred.insert(place, header);
        }
        let layout = lane.layout;
        if bytes > 0 {
            (lane.open, lane.open_bytes) = (Some((from, bytes)), bytes);
        }
        match place {
            // The new header is as long as the old one. It is written in place, so that it stays
            // adjacent to its data.
            Some((input, range)) if range.len() == BHS_BYTES + layout.head_digest_bytes() => {
                layout.put_head(&bhs, &mut input[range.clone()]);
                outlet.output.piece(to, range);
            }
            _ => {
                let mut own = [0; HEAD_BYTES];
                let len = layout.put_head(&bhs, &mut own);
                outlet.output.own(to, &own[..len]);
            }
        }
    }

    /// Consumes data of the current PDU. Returns false if more input is needed.
    fn segment(&mut self, context: &mut RunContext<'_, '_>, from: Conn, input: &mut [u8], at: &mut usize) -> bool {
        let there = len32(input.len() - *at).min(self.lane(from).data_left);
        let (tail, passed) = match self.lane(from).actions.front().copied() {
            Some(Action::Move { to, bytes }) => {
                let take = bytes.min(there);
                context.outlet.output.piece(to, *at..*at + take as usize);
                let done = self.used(from, at, take, bytes, |bytes| Action::Move { to, bytes });
                let whole = self.moved(from, to, take, done, &mut context.outlet);
                if !done {
                    return false;
                }
                (self.tail_of(from), whole.then_some(to))
            }
            Some(Action::Discard { bytes }) => {
                let take = bytes.min(there);
                if !self.used(from, at, take, bytes, |bytes| Action::Discard { bytes }) {
                    return false;
                }
                (self.tail_of(from), None)
            }
            Some(Action::Collect) => {
                let lane = self.lane(from);
                lane.collected.extend_from_slice(&input[*at..*at + there as usize]);
                lane.data_left -= there;
                *at += there as usize;
                if lane.data_left > 0 {
                    return false;
                }
                lane.actions.pop_front();
                let (header, data) = (lane.header, std::mem::take(&mut lane.collected));
                if let Conn::Back(back) = from {
                    let mut actions = std::mem::take(&mut self.scratch);
                    context.forward.on_collected(back, &header, &data, context.switch, &mut actions);
                    self.lane(from).actions.extend(actions.drain(..));
                    self.scratch = actions;
                }
                (self.tail_of(from), None)
            }
            _ => (self.tail_of(from), None),
        };
        self.adapt(from, None, &mut context.outlet);
        if from == Conn::Host {
            (0..=u8::MAX).take(self.backs.len()).for_each(|back| self.flush(Conn::Back(back), &mut context.outlet));
        }
        let lane = self.lane(from);
        if lane.actions.is_empty() {
            debug_assert_eq!(lane.data_left, 0, "`cover` has made the actions use every byte");
            lane.stage = match tail {
                0 => Stage::Header,
                tail => Stage::Tail(tail, passed),
            };
        }
        true
    }

    /// Consumes `take` of the `bytes` of an action. Returns true if the action is complete.
    fn used(&mut self, from: Conn, at: &mut usize, take: u32, bytes: u32, rest: impl Fn(u32) -> Action) -> bool {
        *at += take as usize;
        let lane = self.lane(from);
        lane.data_left -= take;
        lane.actions.pop_front();
        if take < bytes {
            lane.actions.push_front(rest(bytes - take));
        }
        take == bytes
    }

    /// Accounts for moved data. Returns true if the padding and digest that follow in the input can
    /// be passed on unchanged.
    fn moved(&mut self, from: Conn, to: Conn, take: u32, done: bool, outlet: &mut Outlet<'_>) -> bool {
        let tail = self.tail_of(from);
        let data_left = self.lane(from).data_left;
        let lane = self.lane(to);
        let Some((_, left)) = &mut lane.open else { return false };
        *left -= take;
        if !done || *left > 0 {
            return false;
        }
        let segment = lane.open_bytes;
        let needed = lane.layout.tail_bytes(segment);
        if data_left == 0 && needed > 0 && needed == tail {
            // The PDU is complete after padding and digest have passed.
            return true;
        }
        // A split segment never has a digest: see `fits`.
        if padding(segment) > 0 {
            outlet.output.own(to, &[0; 3][..padding(segment) as usize]);
        }
        self.complete(to, outlet);
        false
    }

    /// Length of the padding and digest that follow the data of the current PDU, in bytes.
    fn tail_of(&mut self, from: Conn) -> usize {
        let lane = self.lane(from);
        lane.layout.tail_bytes(lane.data_bytes)
    }

    /// Ends a sent PDU and sends the headers that waited for it.
    fn complete(&mut self, to: Conn, outlet: &mut Outlet<'_>) {
        self.lane(to).open = None;
        self.flush(to, outlet);
    }

    /// Sends deferred headers, unless they still have to wait.
    fn flush(&mut self, to: Conn, outlet: &mut Outlet<'_>) {
        let waits = self.lane(to).open.is_some() || self.host.has_actions_for(to);
        if waits || self.lane(to).deferred.is_empty() {
            return;
        }
        self.lane(to).deferred_first = 0;
        for header in std::mem::take(&mut self.lane(to).deferred) {
            self.send(to, to, header, None, outlet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_remainder_of_a_segment_that_no_action_covers_is_discarded() {
        let to = Conn::Back(0);
        let (moved, discard) = (|bytes| Action::Move { to, bytes }, |bytes| Action::Discard { bytes });
        let header = Action::SendHeader { to };
        for (before, after, uncovered) in [
            (vec![header, moved(10)], vec![header, moved(10)], 0),
            (vec![header, moved(4)], vec![header, moved(4), discard(6)], 6),
            (vec![], vec![discard(10)], 10),
            (vec![discard(3), header, moved(9)], vec![discard(3), header, moved(7)], 2),
            (vec![Action::Collect], vec![Action::Collect], 0),
            (vec![Action::ToConventional], vec![Action::ToConventional], 0),
        ] {
            let mut actions = before.clone();
            assert_eq!(cover(&mut actions, 10), uncovered, "{before:?}");
            assert_eq!(actions, after);
        }
        let mut none = vec![header];
        assert_eq!((cover(&mut none, 0), none.len()), (0, 1));
    }
}
