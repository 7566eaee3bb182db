//! The Data Mover and the Header Extractor, without sockets: [`Mover`] walks the headers in the bytes of a connection, in their place, and
//! says which bytes go where. A driver reads into a buffer and writes what it is told, many PDUs at once.
//!
//! ```text
//!   bytes of a connection:  |header|digest| data            |pad|digest|header| data  ...
//!   pieces for another one: |header|digest| data            |pad|digest|
//! ```
//!
//! A PDU that passes whole stays one piece with what is beside it. What is cut through cannot be taken back: while a PDU is half sent
//! ([`Mover::is_open`]), nothing else enters that connection, and if its source dies, the connection has to be closed.

use super::action::{Action, CloseReason, Conn};
use super::machine::{Forward, Switch};
use crate::iscsi::parameters::Parameters;
use crate::iscsi::sequence::Statuses;
use crate::time::Instant;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs, digest, padding};
use std::collections::VecDeque;
use std::ops::Range;

/// A header with its digest.
const HEAD_BYTES: usize = BHS_BYTES + digest::DIGEST_BYTES;

/// Bytes that leave through a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// These of the input.
    Input(Range<usize>),
    /// These; so many of them count.
    Own([u8; HEAD_BYTES], u8),
}

impl Piece {
    /// How many they are.
    pub fn len(&self) -> usize {
        match self {
            Piece::Input(range) => range.len(),
            Piece::Own(_, len) => usize::from(*len),
        }
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// They themselves; `input`: what was followed.
    pub fn bytes<'p>(&'p self, input: &'p [u8]) -> &'p [u8] {
        match self {
            Piece::Input(range) => &input[range.clone()],
            Piece::Own(bytes, len) => &bytes[..usize::from(*len)],
        }
    }
}

/// Why [`Mover::run`] came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Everything that is there was used, but for the beginning of a header.
    More,
    /// The connection to the host is in the middle of a PDU of another back end: again when that is complete.
    Blocked,
    /// These bytes are for the conventional path, with whatever digests they have. Then on.
    Conventional(Range<usize>),
    /// The session of the host has outputs, which come before what follows. Then on.
    Session,
    /// A header digest is wrong: nobody knows where the next PDU begins.
    HeaderDigest,
}

/// What a run leaves behind, apart from [`Stop`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Output {
    /// Bytes that leave for the host, in their order.
    pub to_host: Vec<Piece>,
    /// Bytes that leave for each back end, by its number.
    pub to_backs: Vec<Vec<Piece>>,
    /// Connections to close, once all of that has left.
    pub closes: Vec<(Conn, CloseReason)>,
}

impl Output {
    /// There is nothing.
    pub fn is_empty(&self) -> bool {
        self.to_host.is_empty() && self.to_backs.iter().all(Vec::is_empty) && self.closes.is_empty()
    }

    fn to(&mut self, conn: Conn) -> &mut Vec<Piece> {
        let Conn::Back(back) = conn else { return &mut self.to_host };
        let number = usize::from(back);
        if self.to_backs.len() <= number {
            self.to_backs.resize_with(number + 1, Vec::new);
        }
        &mut self.to_backs[number]
    }

    fn piece(&mut self, to: Conn, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let pieces = self.to(to);
        match pieces.last_mut() {
            // Beside the last one: they leave together.
            Some(Piece::Input(before)) if before.end == range.start => before.end = range.end,
            _ => pieces.push(Piece::Input(range)),
        }
    }

    fn own(&mut self, to: Conn, bytes: &[u8]) {
        let mut own = [0; HEAD_BYTES];
        own[..bytes.len()].copy_from_slice(bytes);
        self.to(to).push(Piece::Own(own, bytes.len() as u8));
    }
}

/// What a run works with.
#[derive(Debug)]
pub struct Turn<'a, 'b> {
    /// The time.
    pub now: Instant,
    /// What knows the protocol.
    pub forward: &'a mut Forward,
    /// What the host sessions share.
    pub switch: &'a mut Switch<'b>,
    /// What is to be done.
    pub output: &'a mut Output,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Header,
    /// Bytes of the PDU that the conventional path gets.
    Conventional(usize),
    /// What [`Lane::actions`] says.
    Segment,
    /// Padding and digest behind the data; they pass or not.
    Tail(usize, Option<Conn>),
}

/// A connection: what comes from it, and what goes there.
#[derive(Clone, Debug)]
struct Lane {
    header_digest: bool,
    data_digest: bool,
    stage: Stage,
    /// What is still to be done with the PDU under way.
    actions: VecDeque<Action>,
    /// Its data, and those of them that were not used.
    data_bytes: u32,
    data_left: u32,
    header: [u8; BHS_BYTES],
    collected: Vec<u8>,
    /// Bytes of a data segment that have to follow, and from whom.
    open: Option<(Conn, u32)>,
    /// Length of that segment, for its padding.
    open_bytes: u32,
    /// Headers without data that wait until the PDU under way is complete.
    deferred: Vec<[u8; BHS_BYTES]>,
    /// Those of them that come first: they belong to the host's PDU.
    deferred_first: usize,
}

/// All connections of a host session.
#[derive(Clone, Debug)]
pub struct Mover {
    statuses: Statuses,
    host: Lane,
    backs: Vec<Lane>,
    scratch: Vec<Action>,
}

impl Lane {
    fn new(parameters: &Parameters) -> Lane {
        Lane {
            header_digest: parameters.header_digest,
            data_digest: parameters.data_digest,
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
    /// Something for a connection is still to be done.
    fn has_actions_for(&self, conn: Conn) -> bool {
        let for_it = |action: &Action| match action {
            Action::SendHeader { to } | Action::Send { to, .. } | Action::Move { to, .. } => *to == conn,
            _ => false,
        };
        self.actions.iter().any(for_it)
    }
}

impl Mover {
    /// For a host that agreed to these, whose next status has this number.
    pub fn new(front: &Parameters, statuses: Statuses) -> Mover {
        Mover { statuses, host: Lane::new(front), backs: Vec::new(), scratch: Vec::new() }
    }

    /// A login at a back end is complete.
    pub fn back_up(&mut self, back: u8, parameters: &Parameters) {
        let number = usize::from(back);
        while self.backs.len() <= number {
            self.backs.push(Lane::new(&Parameters::default()));
        }
        self.backs[number] = Lane::new(parameters);
    }

    /// The numbers of statuses, for PDUs of the conventional path: they leave when nothing is half sent.
    pub fn statuses(&mut self) -> &mut Statuses {
        &mut self.statuses
    }

    /// A PDU is half sent to a connection, and where the rest of it comes from.
    pub fn is_open(&self, to: Conn) -> Option<Conn> {
        self.lane_of(to).and_then(|lane| lane.open).map(|(from, _)| from)
    }

    /// Header digests were agreed with a back end.
    pub fn has_header_digest(&self, back: u8) -> bool {
        self.lane_of(Conn::Back(back)).is_some_and(|lane| lane.header_digest)
    }

    /// A PDU of this connection is half here.
    pub fn is_half(&self, from: Conn) -> bool {
        self.lane_of(from).is_some_and(|lane| lane.stage != Stage::Header)
    }

    /// The connection to a back end is gone; to be called before [`Forward::lost`]. True if a PDU from there was half sent to the host:
    /// then that connection has to be closed too.
    pub fn lost(&mut self, back: u8) -> bool {
        let gone = Conn::Back(back);
        // What the host still sends of a PDU for it goes nowhere.
        for action in &mut self.host.actions {
            match *action {
                Action::Move { to, bytes } if to == gone => *action = Action::Discard { bytes },
                _ => {}
            }
        }
        // Headers for it that wait behind data, of the host or of another back end, are those of commands that are over.
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

    /// Actions of [`Forward::recall`], [`Forward::lost`] and the like, which come with no PDU.
    pub fn execute(&mut self, actions: &mut Vec<Action>, output: &mut Output) {
        for action in actions.drain(..) {
            match action {
                Action::Send { to, header } => self.send(to, to, header, None, output),
                Action::Close { conn, reason } => output.closes.push((conn, reason)),
                // There is nothing to move.
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

    /// Follows the bytes of a connection. `at` is where they begin in `input`, and stands behind what was used afterwards; what is not used
    /// has to be there again the next time.
    pub fn run(&mut self, turn: &mut Turn<'_, '_>, from: Conn, input: &mut [u8], at: &mut usize) -> Stop {
        loop {
            match self.lane(from).stage {
                Stage::Header => {
                    // While a PDU is half sent, the session's have to wait anyway.
                    if turn.switch.session.has_output() && self.host.open.is_none() {
                        return Stop::Session;
                    }
                    if let Some(stop) = self.extract(turn, from, input, at) {
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
                    if !self.segment(turn, from, input, at) {
                        return Stop::More;
                    }
                }
                Stage::Tail(left, to) => {
                    let bytes = left.min(input.len() - *at);
                    if let Some(to) = to {
                        turn.output.piece(to, *at..*at + bytes);
                    }
                    *at += bytes;
                    if bytes < left {
                        self.lane(from).stage = Stage::Tail(left - bytes, to);
                        return Stop::More;
                    }
                    self.lane(from).stage = Stage::Header;
                    if let Some(to) = to {
                        self.complete(to, turn.output);
                    }
                }
            }
        }
    }

    /// The Header Extractor: the next header, if it is complete.
    fn extract(&mut self, turn: &mut Turn<'_, '_>, from: Conn, input: &mut [u8], at: &mut usize) -> Option<Stop> {
        if from != Conn::Host && self.host.open.is_some() {
            return Some(Stop::Blocked);
        }
        let (has_digest, data_digest) = (self.lane(from).header_digest, self.lane(from).data_digest);
        let Some(header) = input[*at..].first_chunk::<BHS_BYTES>() else { return Some(Stop::More) };
        let bhs = Bhs(*header);
        let digest_bytes = if has_digest { digest::DIGEST_BYTES } else { 0 };
        let head = BHS_BYTES + bhs.ahs_bytes() + digest_bytes;
        let Some(all) = input.get(*at..*at + head) else { return Some(Stop::More) };
        let (covered, crc) = all.split_at(head - digest_bytes);
        if has_digest && digest::of(covered) != *crc {
            return Some(Stop::HeaderDigest);
        }
        let mut header = bhs.0;
        let mut actions = std::mem::take(&mut self.scratch);
        turn.forward.on_header(turn.now, from, &mut header, turn.switch, &mut actions);
        let bytes = bhs.data_bytes();
        let tail = if bytes > 0 && data_digest { digest::DIGEST_BYTES } else { 0 } + bhs.padding() as usize;
        if actions.first() == Some(&Action::ToConventional) {
            self.lane(from).stage = Stage::Conventional(head + bytes as usize + tail);
        } else {
            let place = *at..*at + head;
            *at += head;
            let lane = self.lane(from);
            (lane.stage, lane.data_left, lane.data_bytes, lane.header) = (Stage::Segment, bytes, bytes, header);
            self.plan(from, &mut actions, turn.output);
            self.adapt(from, Some((input, place)), turn.output);
        }
        actions.clear();
        self.scratch = actions;
        None
    }

    /// Headers alone leave at once, unless data of this PDU stand before them: command numbers are given in this order.
    fn plan(&mut self, from: Conn, actions: &mut Vec<Action>, output: &mut Output) {
        for action in actions.drain(..) {
            match action {
                Action::Send { to, header }
                    if Bhs(header).data_bytes() == 0 && !self.lane(from).has_actions_for(to) =>
                {
                    self.send(from, to, header, None, output);
                }
                other => self.lane(from).actions.push_back(other),
            }
        }
    }

    /// Carries out actions up to the next one that needs data. `place`: where the header stands in the input, if it still does.
    fn adapt(&mut self, from: Conn, mut place: Option<(&mut [u8], Range<usize>)>, output: &mut Output) {
        while let Some(action) = self.lane(from).actions.front().copied() {
            match action {
                Action::SendHeader { to } => {
                    let header = self.lane(from).header;
                    self.send(from, to, header, place.take(), output);
                }
                Action::Send { to, header } => self.send(from, to, header, None, output),
                Action::Close { conn, reason } => output.closes.push((conn, reason)),
                Action::ToConventional => {}
                Action::Move { .. } | Action::Discard { .. } | Action::Collect => return,
            }
            self.lane(from).actions.pop_front();
        }
    }

    /// A header leaves, or waits.
    fn send(
        &mut self,
        from: Conn,
        to: Conn,
        header: [u8; BHS_BYTES],
        place: Option<(&mut [u8], Range<usize>)>,
        output: &mut Output,
    ) {
        let mut bhs = Bhs(header);
        if to == Conn::Host {
            self.statuses.number(&mut bhs);
        }
        let bytes = bhs.data_bytes();
        // What the host's PDU has for this connection was numbered before.
        let later = from != Conn::Host && self.host.has_actions_for(to);
        let lane = self.lane(to);
        if lane.open.is_some() || later {
            debug_assert_eq!(bytes, 0, "only the host has data for back ends, one PDU after the other");
            let place = if from == Conn::Host { lane.deferred_first } else { lane.deferred.len() };
            lane.deferred_first += usize::from(from == Conn::Host);
            return lane.deferred.insert(place, header);
        }
        let has_digest = lane.header_digest;
        if bytes > 0 {
            (lane.open, lane.open_bytes) = (Some((from, bytes)), bytes);
        }
        let head = BHS_BYTES + if has_digest { digest::DIGEST_BYTES } else { 0 };
        match place {
            // In its place: as long as it was, so that data stay beside it.
            Some((input, range)) if range.len() == head => {
                let room = &mut input[range.clone()];
                room[..BHS_BYTES].copy_from_slice(&bhs.0);
                if has_digest {
                    room[BHS_BYTES..].copy_from_slice(&digest::of(&bhs.0));
                }
                output.piece(to, range);
            }
            _ => {
                let mut own = [0; HEAD_BYTES];
                own[..BHS_BYTES].copy_from_slice(&bhs.0);
                if has_digest {
                    own[BHS_BYTES..].copy_from_slice(&digest::of(&bhs.0));
                }
                output.own(to, &own[..head]);
            }
        }
    }

    /// Uses data of the PDU under way. False if there are none.
    fn segment(&mut self, turn: &mut Turn<'_, '_>, from: Conn, input: &mut [u8], at: &mut usize) -> bool {
        let there = (input.len() - *at).min(self.lane(from).data_left as usize) as u32;
        let (tail, passed) = match self.lane(from).actions.front().copied() {
            Some(Action::Move { to, bytes }) => {
                let take = bytes.min(there);
                turn.output.piece(to, *at..*at + take as usize);
                let done = self.used(from, at, take, bytes, |bytes| Action::Move { to, bytes });
                let whole = self.moved(from, to, take, done, turn.output);
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
                    turn.forward.on_collected(back, &header, &data, turn.switch, &mut actions);
                    self.lane(from).actions.extend(actions.drain(..));
                    self.scratch = actions;
                }
                (self.tail_of(from), None)
            }
            _ => (self.tail_of(from), None),
        };
        self.adapt(from, None, turn.output);
        if from == Conn::Host {
            (0..self.backs.len()).for_each(|back| self.flush(Conn::Back(back as u8), turn.output));
        }
        let lane = self.lane(from);
        if lane.actions.is_empty() {
            debug_assert_eq!(lane.data_left, 0, "every byte of a segment is used");
            lane.stage = match tail {
                0 => Stage::Header,
                tail => Stage::Tail(tail, passed),
            };
        }
        true
    }

    /// Takes `take` of `bytes` for an action. True if that was all of it.
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

    /// Data have passed. True if the padding and digest behind them in the input are those that have to follow.
    fn moved(&mut self, from: Conn, to: Conn, take: u32, done: bool, output: &mut Output) -> bool {
        let tail = self.tail_of(from);
        let data_left = self.lane(from).data_left;
        let lane = self.lane(to);
        let Some((_, left)) = &mut lane.open else { return false };
        *left -= take;
        if !done || *left > 0 {
            return false;
        }
        let segment = lane.open_bytes;
        let wanted = padding(segment) as usize + if lane.data_digest { digest::DIGEST_BYTES } else { 0 };
        if data_left == 0 && wanted > 0 && wanted == tail {
            // It is complete when these have passed.
            return true;
        }
        // A segment that was cut has no digest: see `fits`.
        if padding(segment) > 0 {
            output.own(to, &[0; 3][..padding(segment) as usize]);
        }
        self.complete(to, output);
        false
    }

    /// Padding and digest behind the data of the PDU under way.
    fn tail_of(&mut self, from: Conn) -> usize {
        let lane = self.lane(from);
        match lane.data_bytes {
            0 => 0,
            bytes => padding(bytes) as usize + if lane.data_digest { digest::DIGEST_BYTES } else { 0 },
        }
    }

    /// A PDU has left: what waited for that follows.
    fn complete(&mut self, to: Conn, output: &mut Output) {
        self.lane(to).open = None;
        self.flush(to, output);
    }

    /// Headers that had to wait leave, if they need not any longer.
    fn flush(&mut self, to: Conn, output: &mut Output) {
        let waits = self.lane(to).open.is_some() || self.host.has_actions_for(to);
        if waits || self.lane(to).deferred.is_empty() {
            return;
        }
        self.lane(to).deferred_first = 0;
        for header in std::mem::take(&mut self.lane(to).deferred) {
            self.send(to, to, header, None, output);
        }
    }
}
