//! A second engine of the loop, word by word: each port is a state machine, each cable a queue of
//! words, and every step moves one word through each port.

use sanloom_fc::arbitrated_loop::{LoopConfig, LoopFrame, LoopPort, LoopTime, Request, Tenancy};
use sanloom_wire::arbitrated_loop::{AlPa, Primitive};
use std::collections::{BTreeSet, VecDeque};

/// States of a port that takes part. ARBITRATING is MONITORING with a wish and an open window.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    Monitoring,
    ArbitrationWon,
    Open,
    Opened,
    XmittedClose,
    ReceivedClose,
    Transfer,
}

/// A word on a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    Signal(Primitive),
    /// Part of the frame with this index in the log; `last` is EOF.
    Frame {
        index: usize,
        last: bool,
    },
}

/// One end of a circuit.
#[derive(Clone, Debug, Default)]
struct Circuit {
    is_opener: bool,
    /// No request was left when the port won.
    has_nothing: bool,
    full_duplex: bool,
    /// Tag, frames left after this one, payload bytes.
    frames: VecDeque<(u64, usize, u16)>,
    had_frames: bool,
    /// Frame being sent: index in the log and words left.
    sending: Option<(usize, u64)>,
    gap: u64,
    sent: usize,
    login_credit: usize,
    ready_received: usize,
    owed: VecDeque<u64>,
    close_sent: Option<u64>,
    close_read: bool,
    close_read_at: u64,
    /// OPN came back.
    refused: bool,
}

#[derive(Clone, Debug)]
struct Port {
    config: LoopPort,
    state: State,
    is_owner: bool,
    elastic: VecDeque<(u64, Word)>,
    current_fill: Primitive,
    last_fill: Primitive,
    idle_due: bool,
    /// Fill word of an owner, and in the gap after its tenancy.
    own_fill: Primitive,
    asked: bool,
    alone: bool,
    wish: Option<u64>,
    access_since: Option<u64>,
    queue: VecDeque<Request>,
    circuit: Circuit,
    releases: Vec<u64>,
    tenancy: Option<Tenancy>,
}

pub struct PlainLoop {
    word: LoopTime,
    ports: Vec<Port>,
    /// Words on the cable behind each port.
    cables: Vec<VecDeque<Word>>,
    step: u64,
    /// Steps of a round without the delay of each port.
    round: Vec<u64>,
    pub frames: Vec<LoopFrame>,
    pub tenancies: Vec<Tenancy>,
    pub refused: Vec<(usize, u64)>,
    /// R_RDY, OPN and CLS with sender and time.
    pub signals: Vec<(LoopTime, usize, Primitive)>,
    /// Changes of state so far.
    pub transitions: BTreeSet<(State, State)>,
}

fn frame_words(payload_bytes: u16) -> u64 {
    9 + u64::from(payload_bytes.div_ceil(4))
}

fn at(word: LoopTime, step: u64) -> LoopTime {
    word.times(step)
}

impl Port {
    fn al_pa(&self) -> Option<AlPa> {
        self.config.al_pa
    }
    fn arbitrates(&self, now: u64) -> bool {
        self.al_pa().is_some()
            && self.wish.is_some_and(|wish| wish <= now)
            && self.access_since.is_some_and(|since| since <= now)
    }
    /// Fill word to send. An IDLE that could not be sent when it was received goes first.
    fn fill(&mut self, now: u64) -> Word {
        let mut fill = self.current_fill;
        if let Some(x) = self.al_pa().filter(|_| self.arbitrates(now)) {
            let is_weaker = match fill {
                Primitive::Arb { x: other } => other > x,
                _ => true,
            };
            if is_weaker {
                fill = Primitive::Arb { x };
            }
        }
        if std::mem::take(&mut self.idle_due) {
            fill = Primitive::Idle;
        }
        self.last_fill = fill;
        Word::Signal(fill)
    }
    /// Word whose delay ends now.
    fn leave_buffer(&mut self, now: u64) -> Option<Word> {
        let is_due = self.elastic.front().is_some_and(|(due, _)| *due == now);
        if is_due { self.elastic.pop_front().map(|(_, word)| word) } else { None }
    }
    /// Takes over a received fill word.
    fn read_fill(&mut self, now: u64, fill: Primitive) {
        self.current_fill = fill;
        match fill {
            Primitive::ArbF0 if self.asked => {
                self.current_fill = Primitive::Idle;
                self.access_since.get_or_insert(now + 1);
            }
            Primitive::Arb { .. } => self.asked = false,
            Primitive::Idle => {
                self.idle_due |= !self.arbitrates(now) && self.last_fill != Primitive::Idle;
                self.access_since.get_or_insert(now + 1);
            }
            _ => {}
        }
    }
    fn in_use(&self, now: u64) -> usize {
        self.releases.iter().filter(|due| **due > now).count()
    }
    fn is_covered(&self, now: u64) -> bool {
        self.in_use(now) <= usize::from(self.config.buffers - self.config.login_credit)
    }
    fn owe_free_buffers(&mut self, now: u64) {
        let free = usize::from(self.config.buffers) - self.in_use(now);
        self.circuit.owed = std::iter::repeat_n(now + 1, free).collect();
        let mut later: Vec<u64> = self.releases.iter().copied().filter(|due| *due > now).collect();
        later.sort_unstable();
        self.circuit.owed.extend(later);
    }
    fn take_request(&mut self, to: Option<AlPa>) {
        self.circuit.frames.clear();
        for request in self.queue.iter().filter(|request| to.is_none_or(|to| request.to == to)) {
            for (index, payload) in request.frames.iter().enumerate() {
                self.circuit.frames.push_back((request.tag, request.frames.len() - index - 1, *payload));
            }
            if to.is_none() {
                break;
            }
        }
        self.circuit.had_frames = !self.circuit.frames.is_empty();
    }
}

impl PlainLoop {
    /// Cables must be whole words.
    pub fn new(config: &LoopConfig) -> PlainLoop {
        let word = config.rate.word();
        let idle = Word::Signal(Primitive::Idle);
        let ports = config.ports.iter().map(|port| Port {
            config: port.clone(),
            state: State::Monitoring,
            is_owner: false,
            elastic: (0..port.delay_words.into()).map(|due| (due, idle)).collect(),
            current_fill: Primitive::Idle,
            last_fill: Primitive::Idle,
            idle_due: false,
            own_fill: Primitive::Idle,
            asked: false,
            alone: false,
            wish: None,
            access_since: Some(0),
            queue: VecDeque::new(),
            circuit: Circuit::default(),
            releases: Vec::new(),
            tenancy: None,
        });
        let cables = config.ports.iter().map(|port| {
            assert_eq!(port.cable.0 % word.0, 0);
            (0..port.cable.0 / word.0).map(|_| idle).collect()
        });
        let all = config.ports.iter().map(|port| u64::from(port.delay_words) + port.cable.0 / word.0).sum::<u64>();
        PlainLoop {
            word,
            ports: ports.collect(),
            cables: cables.collect(),
            step: 0,
            round: (0..config.ports.len()).map(|port| all - u64::from(config.ports[port].delay_words)).collect(),
            frames: Vec::new(),
            tenancies: Vec::new(),
            refused: Vec::new(),
            signals: Vec::new(),
            transitions: BTreeSet::new(),
        }
    }

    pub fn request(&mut self, port: usize, request: Request) {
        let now = self.step;
        let port = &mut self.ports[port];
        port.queue.push_back(request);
        if !port.is_owner {
            port.wish.get_or_insert(now);
        }
    }

    /// Moves one word through every port.
    pub fn step(&mut self) {
        let count = self.ports.len();
        let received: Vec<Word> = (0..count)
            .map(|port| self.cables[(port + count - 1) % count].pop_front().expect("a cable is never empty"))
            .collect();
        for (port, word) in received.into_iter().enumerate() {
            let before = self.ports[port].state;
            let sent = if self.ports[port].is_owner { self.owner(port, word) } else { self.repeater(port, word) };
            let after = self.ports[port].state;
            if before != after {
                self.transitions.insert((before, after));
            }
            self.cables[port].push_back(sent);
        }
        self.step += 1;
    }

    /// Records a word that is sent now, and returns it.
    fn log(&mut self, index: usize, signal: Primitive) -> Word {
        self.signals.push((at(self.word, self.step), index, signal));
        Word::Signal(signal)
    }

    fn index_of(&self, address: AlPa) -> Option<usize> {
        self.ports.iter().position(|port| port.al_pa() == Some(address))
    }

    fn repeater(&mut self, index: usize, input: Word) -> Word {
        let now = self.step;
        let port = &mut self.ports[index];
        port.elastic.push_back((now + u64::from(port.config.delay_words), input));
        let is_mine = port.al_pa().is_some_and(|x| input == Word::Signal(Primitive::Arb { x }));
        let wins = is_mine && port.state == State::Monitoring && port.arbitrates(now);
        let output = port.leave_buffer(now);
        let sent = match output {
            None => {
                port.asked |= port.own_fill == Primitive::ArbF0;
                Word::Signal(port.own_fill)
            }
            Some(Word::Signal(fill)) if fill.is_fill_word() => {
                port.read_fill(now, fill);
                if port.state == State::Monitoring { port.fill(now) } else { self.circuit_word(index) }
            }
            Some(word) if port.state == State::Monitoring => self.pass(index, word),
            Some(word) => {
                let sent = self.circuit_word(index);
                self.read(index, word);
                sent
            }
        };
        if wins {
            self.win(index);
        }
        self.end_of_opened(index);
        sent
    }

    /// A port that is not in a circuit repeats a word, or is opened by it.
    fn pass(&mut self, index: usize, word: Word) -> Word {
        let now = self.step;
        let opener = match (word, self.ports[index].al_pa()) {
            (Word::Signal(Primitive::OpenFull { y, x }), Some(own)) if y == own => Some(Some(x)),
            (Word::Signal(Primitive::OpenHalf { y }), Some(own)) if y == own => Some(None),
            _ => None,
        };
        let Some(opener) = opener else {
            return word;
        };
        let owner = self.ports.iter().position(|port| port.is_owner).expect("an opener");
        let login_credit = self.ports[owner].config.login_credit.into();
        let port = &mut self.ports[index];
        port.state = State::Opened;
        // ARB of the opener may still be the current fill word.
        port.current_fill = Primitive::ArbFf;
        port.circuit = Circuit { full_duplex: opener.is_some(), login_credit, ..Circuit::default() };
        if opener.is_some() {
            port.take_request(opener);
        }
        port.owe_free_buffers(now);
        port.fill(now)
    }

    fn win(&mut self, index: usize) {
        let now = at(self.word, self.step);
        let port = &mut self.ports[index];
        let wish = at(self.word, port.wish.take().expect("a wish"));
        port.state = State::ArbitrationWon;
        port.is_owner = true;
        port.alone = false;
        port.asked = false;
        port.own_fill = Primitive::ArbF0;
        port.tenancy = Some(Tenancy {
            owner: index,
            peer: None,
            wish,
            won: now,
            opened: now,
            closed: now,
            left: now,
            circuits: 0,
            window_ended: false,
        });
        port.circuit = Circuit { is_opener: true, has_nothing: port.queue.is_empty(), ..Circuit::default() };
    }

    /// Word of a port that has won, before and with its OPN.
    fn open(&mut self, index: usize) -> Word {
        let now = self.step;
        let time = at(self.word, now);
        let port = &mut self.ports[index];
        if port.elastic.iter().any(|(_, word)| !matches!(word, Word::Signal(fill) if fill.is_fill_word())) {
            return match port.leave_buffer(now) {
                Some(Word::Signal(fill)) if fill.is_fill_word() => {
                    Word::Signal(Primitive::Arb { x: port.al_pa().expect("an address") })
                }
                Some(word) => word,
                None => unreachable!("the elastic buffer has a word for each step"),
            };
        }
        port.elastic.clear();
        if port.config.fair && port.al_pa() != Some(AlPa::FL_PORT) {
            port.access_since = None;
        }
        let Some(request) = port.queue.front().filter(|_| !port.circuit.has_nothing) else {
            port.state = State::XmittedClose;
            port.circuit.close_sent = Some(now);
            port.tenancy.as_mut().expect("a tenancy").opened = time;
            return self.log(index, Primitive::Close);
        };
        let (y, full_duplex) = (request.to, request.full_duplex);
        let peer = self.index_of(y);
        let login_credit = peer.map_or(0, |peer| self.ports[peer].config.login_credit.into());
        let port = &mut self.ports[index];
        port.state = State::Open;
        port.own_fill = Primitive::ArbF0;
        port.asked = false;
        port.alone = false;
        port.circuit = Circuit { is_opener: true, full_duplex, login_credit, ..Circuit::default() };
        port.take_request(None);
        if full_duplex {
            port.owe_free_buffers(now);
        }
        let tenancy = port.tenancy.as_mut().expect("a tenancy");
        (tenancy.opened, tenancy.peer) = (time, peer);
        tenancy.circuits += u32::from(peer.is_some());
        let x = port.al_pa().expect("an address");
        self.log(index, if full_duplex { Primitive::OpenFull { y, x } } else { Primitive::OpenHalf { y } })
    }

    fn owner(&mut self, index: usize, input: Word) -> Word {
        let now = self.step;
        let sent = match self.ports[index].state {
            State::ArbitrationWon => self.open(index),
            State::Transfer if self.ports[index].circuit.close_read && self.ports[index].is_covered(now - 1) => {
                self.open(index)
            }
            _ => self.circuit_word(index),
        };
        let port = &mut self.ports[index];
        port.asked |= sent == Word::Signal(Primitive::ArbF0);
        match input {
            Word::Signal(Primitive::ArbF0) if port.asked => {
                port.own_fill = Primitive::Idle;
                port.alone = true;
                port.access_since.get_or_insert(now + 1);
                port.tenancy.as_mut().expect("a tenancy").window_ended = true;
            }
            Word::Signal(Primitive::Arb { x }) if Some(x) != port.al_pa() => port.asked = false,
            Word::Signal(Primitive::OpenFull { y, .. } | Primitive::OpenHalf { y })
                if port.queue.front().is_some_and(|request| request.to == y) =>
            {
                port.circuit.refused = true;
                let request = port.queue.pop_front().expect("the request");
                self.refused.push((index, request.tag));
            }
            Word::Signal(fill) if fill.is_fill_word() => {}
            word => self.read(index, word),
        }
        let port = &mut self.ports[index];
        let is_over = port.circuit.close_sent.is_some() && port.circuit.close_read && port.is_covered(now);
        let is_answer =
            port.circuit.close_sent.is_none_or(|sent| port.circuit.close_read_at > sent + self.round[index]);
        if is_over && (port.state != State::Transfer || !is_answer) {
            port.state = State::Monitoring;
            port.is_owner = false;
            let mut tenancy = port.tenancy.take().expect("a tenancy");
            tenancy.left = at(self.word, now);
            tenancy.closed = at(self.word, port.circuit.close_sent.expect("CLS"));
            if !port.queue.is_empty() {
                port.wish = Some(now);
            }
            self.tenancies.push(tenancy);
        }
        sent
    }

    /// Reads a word that is not a fill word in a circuit.
    fn read(&mut self, index: usize, word: Word) {
        let now = self.step;
        let port = &mut self.ports[index];
        match word {
            Word::Signal(Primitive::RRdy) => port.circuit.ready_received += 1,
            Word::Signal(Primitive::Close) => {
                port.circuit.close_read = true;
                port.circuit.close_read_at = now;
                if port.circuit.close_sent.is_none() {
                    port.state = State::ReceivedClose;
                }
            }
            Word::Frame { index: frame, last: true } => {
                let due = now + 1 + port.config.release.0 / self.word.0;
                port.releases.push(due);
                port.circuit.owed.push_back(due);
                self.frames[frame].to = index;
                self.frames[frame].arrival = at(self.word, now + 1);
            }
            Word::Frame { .. } => {}
            Word::Signal(other) => panic!("{other} in a circuit"),
        }
    }

    fn end_of_opened(&mut self, index: usize) {
        let port = &mut self.ports[index];
        let in_circuit = matches!(port.state, State::Opened | State::XmittedClose | State::ReceivedClose);
        if !port.is_owner && in_circuit && port.circuit.close_sent.is_some() && port.circuit.close_read {
            port.state = State::Monitoring;
        }
    }

    /// Next word of a port in a circuit.
    fn circuit_word(&mut self, index: usize) -> Word {
        let word = self.word_without_fill(index);
        if let Some(Word::Signal(signal)) = word {
            self.log(index, signal);
        }
        let port = &mut self.ports[index];
        let own_fill = Word::Signal(port.own_fill);
        word.unwrap_or_else(|| if port.is_owner { own_fill } else { port.fill(self.step) })
    }

    fn word_without_fill(&mut self, index: usize) -> Option<Word> {
        let (now, word) = (self.step, self.word);
        let port = &mut self.ports[index];
        let covered = port.is_owner || port.is_covered(now);
        let circuit = &mut port.circuit;
        if let Some((frame, left)) = circuit.sending {
            circuit.sending = (left > 1).then_some((frame, left - 1));
            if left == 1 {
                circuit.gap = 6;
            }
            return Some(Word::Frame { index: frame, last: left == 1 });
        }
        let is_gap = circuit.gap > 0;
        circuit.gap = circuit.gap.saturating_sub(1);
        if circuit.close_sent.is_some() {
            return None;
        }
        let has_credit = circuit.sent < circuit.login_credit.max(circuit.ready_received);
        if !is_gap
            && has_credit
            && let Some((tag, left, payload)) = circuit.frames.pop_front()
        {
            circuit.sent += 1;
            let frame = self.frames.len();
            circuit.sending = Some((frame, frame_words(payload) - 1));
            let start = at(word, now);
            self.frames.push(LoopFrame { from: index, to: index, tag, left, start, arrival: start });
            let request = port.queue.iter().position(|request| request.tag == tag).expect("the request");
            port.queue[request].frames.remove(0);
            if left == 0 {
                port.queue.remove(request);
            }
            return Some(Word::Frame { index: frame, last: false });
        }
        let is_done = circuit.frames.is_empty();
        let by_itself =
            if circuit.is_opener { is_done } else { port.config.closes_first && is_done && circuit.had_frames };
        let by_peer = circuit.close_read && (is_done || !has_credit);
        if !is_gap && covered && (by_itself || by_peer || circuit.refused) {
            circuit.close_sent = Some(now);
            let keeps = port.is_owner && port.config.transfers && port.alone;
            let has_peer = port.tenancy.is_some_and(|tenancy| tenancy.peer.is_some());
            port.state = if keeps && has_peer && !port.queue.is_empty() && !circuit.close_read {
                State::Transfer
            } else {
                State::XmittedClose
            };
            return Some(Word::Signal(Primitive::Close));
        }
        if circuit.owed.front().is_some_and(|due| *due <= now) && (!circuit.is_opener || circuit.full_duplex) {
            circuit.owed.pop_front();
            return Some(Word::Signal(Primitive::RRdy));
        }
        None
    }
}
