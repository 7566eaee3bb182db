//! The engine of a loop: arbitration, tenancies, circuits.

use super::circuit::{self, Circuit, End, Line, Sent};
use super::config::{LoopConfig, LoopConfigError, LoopPort};
use super::ring::Ring;
use super::signals::Signal;
use super::tenancy::{Front, Holding, Question, Tenancy};
use super::time::LoopTime;
use sanloom_wire::arbitrated_loop::{AL_PA_COUNT, AlPa, Primitive};
use std::collections::VecDeque;

/// Request of a port to open another port and to send frames to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Address of the port to open.
    pub to: AlPa,
    /// Payload bytes of each frame, in order: at least one frame.
    pub frames: Vec<u16>,
    /// Full duplex (OPNyx): the opened port may send its own frames to the opener.
    pub full_duplex: bool,
    /// Returned with each output.
    pub tag: u64,
}

/// Result of a loop. Times may lie in the future, because a circuit is computed when it opens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// A frame travels.
    Frame(LoopFrame),
    /// The port does not exist: OPN came back to the sender. The request is dropped.
    NoSuchPort {
        /// Index of the sender.
        from: usize,
        /// Tag of the request.
        tag: u64,
        /// Time at which OPN came back.
        time: LoopTime,
    },
    /// A tenancy has ended.
    Tenancy(Tenancy),
    /// A word of a tenancy, after [`Loop::report_signals`].
    Signal(Signal),
}

/// A frame that travels through a circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopFrame {
    /// Index of the sender.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// Tag of the request.
    pub tag: u64,
    /// Number of frames of the request that are still to be sent after this one.
    pub left: usize,
    /// The first bit leaves the sender.
    pub start: LoopTime,
    /// The last bit is read by the receiver.
    pub arrival: LoopTime,
}

/// An arbitrated loop after initialisation. The contract is that of the crate's control machines:
/// times never decrease, and the driver calls [`Loop::handle_timeout`] at [`Loop::poll_timeout`] at
/// the latest. A request at the time of a timeout comes first.
#[derive(Clone, Debug)]
pub struct Loop {
    ring: Ring,
    word: LoopTime,
    ports: Vec<Port>,
    /// Index of the port of each priority.
    by_priority: [Option<usize>; AL_PA_COUNT],
    /// Bit of the priority of each port that wants the loop.
    wishing: u128,
    /// Time since which each port wants the loop.
    wishes: Vec<LoopTime>,
    /// Time from which the fairness algorithm lets each port arbitrate.
    access: Vec<LoopTime>,
    /// As `access`, with `fronts` applied.
    access_now: Vec<LoopTime>,
    /// Ends of access windows since the last arbitration.
    fronts: Vec<Front>,
    /// Owner or last owner.
    holding: Holding,
    state: State,
    tenancy: Tenancy,
    outputs: VecDeque<Output>,
    next: Option<LoopTime>,
    reports_signals: bool,
}

#[derive(Clone, Debug)]
struct Port {
    config: LoopPort,
    queue: VecDeque<Request>,
    /// Times at which receive buffers become free, in order.
    releases: Vec<LoopTime>,
}

#[derive(Clone, Debug)]
enum State {
    /// All ports repeat. The first word that the last owner repeats arrives at `first` and leaves
    /// at `repeated`.
    Free { first: LoopTime, repeated: LoopTime, winner: Option<(LoopTime, usize)>, late: Option<Question> },
    /// The owner has sent OPN; the peer reads it at `read`.
    Opening { read: LoopTime },
    /// The owner decides at its CLS whether to keep the loop.
    Open { decision: LoopTime, left: LoopTime },
    /// The owner waits for a CLS.
    Closing { left: LoopTime },
    /// As `Closing`, and the owner opens the next port afterwards.
    Transferring { left: LoopTime, front: Front },
}

impl Loop {
    /// A loop that is idle: all ports repeat IDLE, and every port may arbitrate.
    pub fn new(config: LoopConfig) -> Result<Loop, LoopConfigError> {
        config.validate()?;
        let ring = Ring::new(&config);
        let mut by_priority = [None; AL_PA_COUNT];
        for (index, port) in config.ports.iter().enumerate() {
            if let Some(al_pa) = port.al_pa {
                by_priority[usize::from(al_pa.priority())] = Some(index);
            }
        }
        let count = config.ports.len();
        let none = Tenancy {
            owner: 0,
            peer: None,
            wish: LoopTime::ZERO,
            won: LoopTime::ZERO,
            opened: LoopTime::ZERO,
            closed: LoopTime::ZERO,
            left: LoopTime::ZERO,
            circuits: 0,
            window_ended: false,
        };
        let holding = Holding {
            owner: 0,
            peer: None,
            owner_line: Line::default(),
            peer_line: Line::default(),
            ask_from: LoopTime::ZERO,
        };
        Ok(Loop {
            word: config.rate.word(),
            ring,
            ports: config
                .ports
                .into_iter()
                .map(|config| Port { config, queue: VecDeque::new(), releases: Vec::new() })
                .collect(),
            by_priority,
            wishing: 0,
            wishes: vec![LoopTime::NEVER; count],
            access: vec![LoopTime::ZERO; count],
            access_now: vec![LoopTime::ZERO; count],
            fronts: Vec::new(),
            holding,
            state: State::Free { first: LoopTime::ZERO, repeated: LoopTime::ZERO, winner: None, late: None },
            tenancy: none,
            outputs: VecDeque::new(),
            next: None,
            reports_signals: false,
        })
    }

    /// Reports the words of each tenancy as outputs, from the next word on.
    pub fn report_signals(&mut self) {
        self.reports_signals = true;
    }

    /// Queues a request of the port with index `port`. Returns false, and changes nothing, if there
    /// is no such participating port, if it opens itself, or if the request has no frame.
    pub fn request(&mut self, now: LoopTime, port: usize, request: Request) -> bool {
        self.advance(now, false);
        let Some(sender) = self.ports.get_mut(port) else {
            return false;
        };
        if sender.config.al_pa.is_none_or(|own| own == request.to) || request.frames.is_empty() {
            return false;
        }
        sender.queue.push_back(request);
        let is_owner = !matches!(self.state, State::Free { .. }) && self.holding.owner == port;
        if !is_owner {
            self.wish(now, port);
        }
        self.plan();
        true
    }

    /// Ends everything at a LIP and returns the requests that are not sent completely, with their
    /// ports. Frames with an arrival after `now` are lost; the driver drops them, because they were
    /// reported when their circuit opened. Build a new loop after the initialisation.
    pub fn interrupt(&mut self, now: LoopTime) -> Vec<(usize, Request)> {
        self.advance(now, true);
        self.next = None;
        self.wishing = 0;
        let ports = self.ports.iter_mut().enumerate();
        ports.flat_map(|(index, port)| port.queue.drain(..).map(move |request| (index, request))).collect()
    }

    /// Number of requests of a port that are not sent completely.
    pub fn queued(&self, port: usize) -> usize {
        self.ports.get(port).map_or(0, |port| port.queue.len())
    }

    /// Next result.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which to call [`Loop::handle_timeout`]; `None` while no port wants the loop.
    pub fn poll_timeout(&self) -> Option<LoopTime> {
        self.next
    }

    /// Advances the loop to `now`.
    pub fn handle_timeout(&mut self, now: LoopTime) {
        self.advance(now, true);
    }

    fn advance(&mut self, now: LoopTime, inclusive: bool) {
        while let Some(time) = self.next.filter(|time| *time < now || (inclusive && *time == now)) {
            self.step(time);
            self.plan();
        }
        self.end_late_window(now);
    }

    fn wish(&mut self, now: LoopTime, port: usize) {
        if let Some(al_pa) = self.ports[port].config.al_pa
            && self.wishes[port] == LoopTime::NEVER
        {
            self.wishes[port] = now;
            self.wishing |= 1 << al_pa.priority();
        }
    }

    fn step(&mut self, time: LoopTime) {
        match self.state.clone() {
            State::Free { winner: Some((won, owner)), .. } if won == time => self.win(won, owner),
            State::Free { .. } => self.end_late_window(time + LoopTime(1)),
            State::Opening { read } => self.open(read),
            State::Open { decision, left } => self.decide(decision, left),
            State::Closing { left } => self.leave(left),
            State::Transferring { left, front } => self.transfer(left, front),
        }
    }

    /// Updates the time of the next event, and the winner if ports arbitrate.
    fn plan(&mut self) {
        self.next = match &self.state {
            State::Opening { read } => Some(*read),
            State::Open { decision, .. } => Some(*decision),
            State::Closing { left } | State::Transferring { left, .. } => Some(*left),
            State::Free { first, repeated, late, .. } => {
                let (first, repeated, late) = (*first, *repeated, *late);
                self.apply_fronts();
                let found = self.next_winner(first, repeated);
                if let State::Free { winner, .. } = &mut self.state {
                    *winner = found;
                }
                let window = late.filter(|_| self.wishing != 0).map(|question| self.idle_time(&question));
                match (found, window) {
                    (Some((won, _)), Some(window)) => Some(won.min(window)),
                    (won, window) => won.map(|(won, _)| won).or(window),
                }
            }
        };
    }

    /// Time since which a port arbitrates, or will arbitrate.
    fn since(&self, port: usize) -> LoopTime {
        self.wishes[port].max(self.access_now[port])
    }

    fn apply_fronts(&mut self) {
        self.access_now.clone_from(&self.access);
        for front in &self.fronts {
            front.open_windows(&self.ring, self.word, &self.wishes, &mut self.access_now);
        }
    }

    /// Time at which the last owner, which repeats again, changes a returning ARB(F0) into IDLE.
    fn idle_time(&self, question: &Question) -> LoopTime {
        question.back + self.ring.delay(self.holding.owner)
    }

    /// Ends the access window if an ARB(F0) came back before `now` to an owner that had closed.
    fn end_late_window(&mut self, now: LoopTime) {
        let State::Free { late: Some(question), .. } = self.state else {
            return;
        };
        let idle = self.idle_time(&question);
        if idle >= now {
            return;
        }
        self.apply_fronts();
        let owner_arbitrates = self.since(self.holding.owner) <= idle;
        if !owner_arbitrates && self.holding.is_alone(&self.ring, &question, |port| self.since(port)) {
            self.fronts.push(self.holding.front(&self.ring, idle));
        }
        if let State::Free { late, .. } = &mut self.state {
            *late = None;
        }
        self.plan();
    }

    /// The next winner and its time, if no further port wants the loop before.
    ///
    /// A line is a fill word on its way round. Line `l` of port `p` leaves the last owner with
    /// ARB(p), and `p` wins when it returns. A port of higher priority takes the line if it
    /// arbitrates when the line passes it.
    fn next_winner(&self, first: LoopTime, repeated: LoopTime) -> Option<(LoopTime, usize)> {
        struct Rival {
            port: usize,
            since: LoopTime,
            receives: LoopTime,
        }
        let owner = self.holding.owner;
        let delay = self.ring.delay(owner);
        let mut better: Vec<Rival> = Vec::new();
        let mut best: Option<(LoopTime, usize)> = None;
        let mut left = self.wishing;
        while left != 0 {
            let priority = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(port) = self.by_priority[priority] else { continue };
            let since = self.since(port);
            if since == LoopTime::NEVER {
                continue;
            }
            let receives = if port == owner { LoopTime::NEVER } else { self.holding.receives(&self.ring, port, since) };
            let mut line = if port == owner { since.max(repeated) } else { first.max(receives) + delay };
            if self.holding.peer == Some(port) {
                // The peer may still wait for the CLS of the owner.
                let closed = self.holding.peer_line.close_time().max(self.holding.peer_line.peer_close_time());
                line = line.max(closed + self.word - self.ring.to_receiver(owner, port));
            }
            let is_taken = better.iter().any(|rival| {
                if rival.port == owner {
                    return rival.since <= line;
                }
                let before = port == owner || self.ring.is_inside(owner, rival.port, port);
                rival.receives <= line - delay || (before && rival.since <= line + self.ring.between(owner, rival.port))
            });
            if !is_taken {
                let won = line + self.ring.to_receiver(owner, port);
                best = Some(best.map_or((won, port), |other| other.min((won, port))));
            }
            // All lines carry an ARB of this or a higher priority from the start.
            if receives <= first {
                break;
            }
            better.push(Rival { port, since, receives });
        }
        best
    }

    fn win(&mut self, won: LoopTime, owner: usize) {
        self.apply_fronts();
        self.access.clone_from(&self.access_now);
        self.fronts.clear();
        // Words of the last circuit that are still in the buffer of the winner leave first.
        let last = &self.holding;
        let passes = |from: usize, line: &Line, until: usize| {
            let is_on_way = from == until || self.ring.is_inside(from, owner, until);
            let closed = line.close_time();
            (is_on_way && closed != LoopTime::NEVER).then(|| closed + self.ring.between(from, owner) + self.word)
        };
        let others = match last.peer {
            Some(peer) => [passes(last.owner, &last.owner_line, peer), passes(peer, &last.peer_line, last.owner)],
            None => [passes(last.owner, &last.owner_line, last.owner), None],
        };
        let opened = others.into_iter().flatten().fold(won + self.word, LoopTime::max);
        let wish = std::mem::replace(&mut self.wishes[owner], LoopTime::NEVER);
        if let Some(al_pa) = self.ports[owner].config.al_pa {
            self.wishing &= !(1 << al_pa.priority());
        }
        self.tenancy = Tenancy {
            owner,
            peer: None,
            wish,
            won,
            opened,
            closed: opened,
            left: opened,
            circuits: 0,
            window_ended: false,
        };
        self.signal((owner, owner), wish, won, |x| Primitive::Arb { x });
        self.send_opn(owner, opened);
    }

    /// Reports a word. `word` receives the address of the sender.
    fn signal(&mut self, between: (usize, usize), sent: LoopTime, read: LoopTime, word: impl Fn(AlPa) -> Primitive) {
        if self.reports_signals
            && let Some(own) = self.ports[between.0].config.al_pa
        {
            self.outputs.push_back(Output::Signal(Signal::one(word(own), between, sent, read)));
        }
    }

    /// Reports the words of a transmitter in a circuit.
    fn signals_of(&mut self, line: &Line, between: (usize, usize)) {
        if self.reports_signals {
            self.outputs.extend(Signal::of_line(line, self.word, between).into_iter().map(Output::Signal));
        }
    }

    /// Sends OPN for the first request of the owner, or CLS if there is none.
    fn send_opn(&mut self, owner: usize, time: LoopTime) {
        if self.ports[owner].config.is_fair() {
            self.access[owner] = LoopTime::NEVER;
        }
        let round = self.ring.to_receiver(owner, owner);
        let request = self.ports[owner].queue.front();
        let target = request.map(|request| self.by_priority[usize::from(request.to.priority())]);
        let mut line = Line::default();
        self.tenancy.opened = time;
        self.tenancy.peer = target.flatten();
        if let Some(Request { to, full_duplex, .. }) = request {
            let (y, full_duplex, peer) = (*to, *full_duplex, target.flatten());
            let read = time + peer.map_or(round, |peer| self.ring.between(owner, peer));
            self.signal((owner, peer.unwrap_or(owner)), time, read, |x| match full_duplex {
                true => Primitive::OpenFull { y, x },
                false => Primitive::OpenHalf { y },
            });
        }
        let (state, peer) = match target {
            Some(Some(peer)) => (State::Opening { read: time + self.ring.between(owner, peer) }, Some(peer)),
            Some(None) => {
                let close = time + round + self.word;
                if let Some(request) = self.ports[owner].queue.pop_front() {
                    self.outputs.push_back(Output::NoSuchPort { from: owner, tag: request.tag, time: time + round });
                    let opener = End {
                        is_opener: true,
                        start: time + self.word,
                        receives: request.full_duplex,
                        to_peer: round,
                        ..self.end(owner)
                    };
                    line = Line::refused(self.word, opener, close);
                    self.signals_of(&line, (owner, owner));
                }
                let left = (close + round).max(line.covered());
                (State::Closing { left }, None)
            }
            None => {
                line.close(time, self.word);
                self.signal((owner, owner), time, time + round, |_| Primitive::Close);
                (State::Closing { left: time + round }, None)
            }
        };
        self.holding =
            Holding { owner, peer, owner_line: line, peer_line: Line::default(), ask_from: time + self.word };
        self.state = state;
    }

    /// Computes the circuit when the peer reads OPN.
    fn open(&mut self, read: LoopTime) {
        let (owner, Some(peer)) = (self.holding.owner, self.holding.peer) else {
            return;
        };
        let (start, Some(request)) = (self.tenancy.opened + self.word, self.ports[owner].queue.front()) else {
            return;
        };
        let full_duplex = request.full_duplex;
        let replies = self.ports[owner].config.al_pa.filter(|_| full_duplex);
        let answers = self.ports[peer].queue.iter().filter(|answer| Some(answer.to) == replies);
        let answers: Vec<u16> = answers.flat_map(|answer| answer.frames.iter().copied()).collect();
        let opener = End {
            is_opener: true,
            to_peer: self.ring.between(owner, peer),
            start,
            frames: request.frames.clone(),
            receives: full_duplex,
            closes_itself: true,
            ..self.end(owner)
        };
        let opened = End {
            to_peer: self.ring.to_receiver(peer, owner),
            start: read + self.word,
            frames: answers,
            receives: true,
            closes_itself: self.ports[peer].config.closes_first,
            ..self.end(peer)
        };
        let Circuit { opener, opened } = circuit::run(self.word, opener, opened);
        self.report(owner, peer, None, opener.sent());
        self.report(peer, owner, replies, opened.sent());
        self.signals_of(&opener, (owner, peer));
        self.signals_of(&opened, (peer, owner));
        let closed = opener.close_time();
        let left = closed.max(opener.peer_close_time()).max(opener.covered());
        self.ports[owner].releases = opener.releases().to_vec();
        self.ports[peer].releases = opened.releases().to_vec();
        self.tenancy.circuits += 1;
        self.tenancy.closed = closed;
        let is_first_to_close = closed < opener.peer_close_time() + self.word;
        let may_transfer = self.ports[owner].config.transfers && is_first_to_close;
        self.holding.owner_line = opener;
        self.holding.peer_line = opened;
        self.state = if may_transfer { State::Open { decision: closed, left } } else { State::Closing { left } };
    }

    fn end(&self, port: usize) -> End {
        let Port { config, releases, .. } = &self.ports[port];
        End {
            login_credit: config.login_credit,
            buffers: config.buffers,
            release: config.release,
            releases: releases.clone(),
            ..End::default()
        }
    }

    /// Reports frames and removes them from the queue of the sender: from its first request, or
    /// from all requests to `only`.
    fn report(&mut self, from: usize, to: usize, only: Option<AlPa>, sent: &[Sent]) {
        let mut sent = sent.iter();
        let outputs = &mut self.outputs;
        self.ports[from].queue.retain_mut(|request| {
            if only.is_some_and(|address| address != request.to) {
                return true;
            }
            let count = request.frames.len().min(sent.len());
            for (index, Sent { start, arrival }) in sent.by_ref().take(count).copied().enumerate() {
                let left = request.frames.len() - index - 1;
                outputs.push_back(Output::Frame(LoopFrame { from, to, tag: request.tag, left, start, arrival }));
            }
            request.frames.drain(..count);
            !request.frames.is_empty()
        });
    }

    /// Keeps the loop if another request waits and ARB(F0) has come back.
    fn decide(&mut self, decision: LoopTime, left: LoopTime) {
        self.apply_fronts();
        let question = self.holding.question(&self.ring, self.word);
        let has_more = !self.ports[self.holding.owner].queue.is_empty();
        let is_back = question.back + self.word <= decision;
        // A CLS that is no answer: words of this circuit may still be on their way.
        let round = self.ring.to_receiver(self.holding.owner, self.holding.owner);
        let is_answer = self.holding.owner_line.peer_close_time() >= decision + round + self.word;
        let is_alone =
            has_more && is_answer && is_back && self.holding.is_alone(&self.ring, &question, |port| self.since(port));
        self.state = if is_alone {
            let sent = self.holding.owner_line.fill_from(question.back + self.word);
            let front = self.holding.front(&self.ring, sent);
            State::Transferring { left, front: front.before_transfer(self.ports[self.holding.owner].config.is_fair()) }
        } else {
            State::Closing { left }
        };
    }

    fn transfer(&mut self, left: LoopTime, front: Front) {
        self.fronts.push(front);
        self.tenancy.window_ended = true;
        self.send_opn(self.holding.owner, left + self.word);
    }

    /// The owner repeats again.
    fn leave(&mut self, left: LoopTime) {
        self.apply_fronts();
        let owner = self.holding.owner;
        let question = self.holding.question(&self.ring, self.word);
        let mut late = None;
        if question.back > left {
            late = Some(question);
        } else if self.holding.is_alone(&self.ring, &question, |port| self.since(port)) {
            let sent = self.holding.owner_line.fill_from(question.back + self.word);
            let front = self.holding.front(&self.ring, sent);
            if let Some(time) = front.late_word(&self.ring, |port| self.since(port)) {
                self.holding.peer_line.insert_word(time, self.word);
            }
            self.fronts.push(front);
            self.tenancy.window_ended = true;
        }
        self.tenancy.left = left;
        self.tenancy.closed = self.holding.owner_line.close_time();
        self.outputs.push_back(Output::Tenancy(self.tenancy));
        let first = left + self.word;
        self.state = State::Free { first, repeated: first + self.ring.delay(owner), winner: None, late };
        if !self.ports[owner].queue.is_empty() {
            self.wish(left, owner);
        }
    }
}
