//! A connection to a target: [`Link`].

use crate::iscsi::buffers::Spare;
use crate::iscsi::output::Egress;
use sanloom_core::iscsi::framer::{Taken, Want};
use sanloom_core::iscsi::initiator::{
    Broken, Established, Input, Login, LoginConfig, LoginError, Outcome, Output, Place, Session, SessionConfig, login,
};
use sanloom_core::iscsi::{Framer, Parameters};
use sanloom_core::time::Instant;
use sanloom_wire::iscsi::{DEFAULT_SEGMENT_BYTES, Head};
use std::io::{self, IoSliceMut, Read};
use std::net::TcpStream;
use std::sync::Arc;

/// Bytes that are read at once.
const INPUT_BYTES: usize = 256 << 10;

/// The same, of a connection that only logs in: a PDU with as much text as there may be (RFC 7143, section 13.12).
const LOGIN_INPUT_BYTES: usize = 16 << 10;

/// So much data that is still to come goes straight to its buffer.
const DIRECT_BYTES: u32 = 8 << 10;

/// Who speaks to the target.
#[derive(Debug)]
enum Machine {
    Login(Box<Login>),
    Full(Box<Session>),
}

/// What a connection tells its owner.
#[derive(Debug)]
pub(in crate::iscsi) enum Event {
    /// The full feature phase.
    Up,
    /// The login failed, and why.
    Refused(LoginError),
    /// A command or reset has ended.
    Done(u64, Outcome),
    /// The session is over, and why.
    Broken(Broken),
}

/// The buffers of commands, for a connection that moves data.
pub(in crate::iscsi) trait Buffers {
    /// Room for data of a command.
    fn room(&mut self, id: u64, at: usize, len: usize) -> Option<&mut [u8]>;
    /// Data of a command, and where in them they begin.
    fn data(&mut self, id: u64) -> Option<(Arc<Vec<u8>>, u32)>;
    /// Data without room are wanted by nobody; otherwise that must not be.
    fn discards(&self) -> bool {
        false
    }
}

/// A connection.
#[derive(Debug)]
pub(in crate::iscsi) struct Link {
    pub(in crate::iscsi) stream: TcpStream,
    framer: Framer,
    machine: Machine,
    session: SessionConfig,
    pub(in crate::iscsi) output: Egress,
    input: Vec<u8>,
    filled: usize,
    text: Vec<u8>,
    got: u32,
    spare: Spare,
    events: Vec<Event>,
    /// Somebody else goes on where the login ends.
    hands_over: bool,
    established: Option<Established>,
}

impl Link {
    /// A connection that only logs in: [`Self::hand_over`].
    pub(in crate::iscsi) fn for_login(now: Instant, stream: TcpStream, login: LoginConfig) -> Link {
        let input = vec![0; LOGIN_INPUT_BYTES];
        Link { hands_over: true, ..Link::with_input(now, stream, login, SessionConfig::default(), input) }
    }

    /// The connection after its login, what was agreed, and what has come behind the login.
    pub(in crate::iscsi) fn hand_over(self) -> (TcpStream, Option<Established>, Vec<u8>) {
        (self.stream, self.established, self.input[..self.filled].to_vec())
    }

    pub(super) fn new(now: Instant, stream: TcpStream, login: LoginConfig, session: SessionConfig) -> Link {
        Link::with_input(now, stream, login, session, vec![0; INPUT_BYTES])
    }

    fn with_input(now: Instant, stream: TcpStream, login: LoginConfig, session: SessionConfig, input: Vec<u8>) -> Link {
        Link {
            stream,
            framer: Framer::new(DEFAULT_SEGMENT_BYTES),
            machine: Machine::Login(Box::new(Login::new(now, login))),
            session,
            output: Egress::default(),
            input,
            filled: 0,
            text: Vec::new(),
            got: 0,
            spare: Spare::default(),
            events: Vec::new(),
            hands_over: false,
            established: None,
        }
    }

    /// The full feature phase.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.machine, Machine::Full(_))
    }

    /// What has happened since the last call.
    pub(in crate::iscsi) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// What was agreed, once a login is over.
    pub(super) fn parameters(&self) -> Option<Parameters> {
        match &self.machine {
            Machine::Login(_) => None,
            Machine::Full(session) => Some(*session.parameters()),
        }
    }

    /// The portal group that the target has said it is, at the login.
    pub(super) fn portal_group(&self) -> Option<u16> {
        self.established.as_ref().and_then(|established| established.portal_group)
    }

    /// When the target was heard last, once a login is over.
    pub(super) fn heard(&self) -> Option<Instant> {
        match &self.machine {
            Machine::Login(_) => None,
            Machine::Full(session) => Some(session.heard()),
        }
    }

    pub(in crate::iscsi) fn poll_timeout(&self) -> Option<Instant> {
        match &self.machine {
            Machine::Login(login) => login.poll_timeout(),
            Machine::Full(session) => session.poll_timeout(),
        }
    }

    pub(in crate::iscsi) fn timeout(&mut self, now: Instant, buffers: &mut impl Buffers) {
        match &mut self.machine {
            Machine::Login(login) => login.handle(now, login::Input::Timeout),
            Machine::Full(session) => session.handle(now, Input::Timeout),
        }
        self.drain(now, buffers);
    }

    /// Something for the session; nothing before there is one.
    pub(super) fn tell(&mut self, now: Instant, input: Input, buffers: &mut impl Buffers) {
        if let Machine::Full(session) = &mut self.machine {
            session.handle(now, input);
        }
        self.drain(now, buffers);
    }

    /// Reads once. False if there was less than there was room for.
    pub(in crate::iscsi) fn read(&mut self, now: Instant, buffers: &mut impl Buffers) -> io::Result<bool> {
        if let (Want::Data(left), Place::Buffer { id, at }, 0) = (self.framer.want(), self.place(), self.filled)
            && left >= DIRECT_BYTES
            && let Some(room) = buffers.room(id, (at + self.got) as usize, left as usize)
        {
            let got = match self.stream.read_vectored(&mut [IoSliceMut::new(room), IoSliceMut::new(&mut self.input)]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(got) => got,
                Err(error) => return nothing_yet(error),
            };
            let direct = got.min(left as usize);
            let taken = self.framer.data(&room[..direct]);
            self.got += direct as u32;
            self.taken(now, taken, buffers);
            self.process_input(now, got - direct, buffers);
            return Ok(got == left as usize + self.input.len());
        }
        let room = self.input.len() - self.filled;
        match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => {
                self.process_input(now, self.filled + got, buffers);
                Ok(got == room)
            }
            Err(error) => nothing_yet(error),
        }
    }

    /// Follows what stands at the beginning of the input, and keeps what is left.
    fn process_input(&mut self, now: Instant, filled: usize, buffers: &mut impl Buffers) {
        let mut input = std::mem::take(&mut self.input);
        let used = self.process(now, &input[..filled], buffers);
        input.copy_within(used..filled, 0);
        self.filled = filled - used;
        self.input = input;
    }

    /// Follows what has come. How many bytes were used.
    fn process(&mut self, now: Instant, bytes: &[u8], buffers: &mut impl Buffers) -> usize {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let taken = match self.framer.want() {
                Want::Bytes(needed) => {
                    let Some(piece) = rest.get(..needed) else { return used };
                    used += needed;
                    self.framer.take(piece)
                }
                Want::Data(_) if rest.is_empty() => return used,
                Want::Data(left) => {
                    let piece = &rest[..rest.len().min(left as usize)];
                    match self.place() {
                        Place::Text => self.text.extend_from_slice(piece),
                        Place::Buffer { id, at } => {
                            let discards = buffers.discards();
                            match buffers.room(id, (at + self.got) as usize, piece.len()) {
                                Some(room) => room.copy_from_slice(piece),
                                None if discards => {}
                                None => self.lost(id),
                            }
                        }
                        Place::Skip => {}
                    }
                    used += piece.len();
                    self.got += piece.len() as u32;
                    self.framer.data(piece)
                }
            };
            if !self.taken(now, taken, buffers) {
                return bytes.len();
            }
            if self.hands_over && self.is_up() {
                return used;
            }
        }
    }

    /// What the framer has found. False: the rest means nothing.
    fn taken(&mut self, now: Instant, taken: Taken, buffers: &mut impl Buffers) -> bool {
        match taken {
            Taken::More => {}
            Taken::Broken(why) => {
                tracing::warn!(%why, "target");
                self.events.push(Event::Broken(Broken::Protocol));
                return false;
            }
            Taken::Header => {
                self.got = 0;
                self.text.clear();
                if let Ok(head) = Head::parse(&self.framer.bhs().0) {
                    self.on_header(now, head, buffers);
                }
            }
            Taken::Segment { intact } => self.on_segment(now, intact, buffers),
        }
        true
    }

    /// Data have nowhere to be: better no session than a command that has not done what it says.
    fn lost(&mut self, command: u64) {
        tracing::error!(command, "a command without its buffer");
        self.events.push(Event::Broken(Broken::Protocol));
    }

    fn place(&self) -> Place {
        match &self.machine {
            Machine::Login(_) => Place::Text,
            Machine::Full(session) => session.place(),
        }
    }

    fn on_header(&mut self, now: Instant, head: Head, buffers: &mut impl Buffers) {
        match &mut self.machine {
            Machine::Login(_) if head.data_bytes > 0 => {}
            Machine::Login(login) => login.handle(now, login::Input::Pdu { head, text: Box::default() }),
            Machine::Full(session) => session.handle(now, Input::Header(head)),
        }
        self.drain(now, buffers);
    }

    fn on_segment(&mut self, now: Instant, intact: bool, buffers: &mut impl Buffers) {
        let text: Box<[u8]> = std::mem::take(&mut self.text).into();
        match &mut self.machine {
            Machine::Login(login) => {
                if let Ok(head) = Head::parse(&self.framer.bhs().0) {
                    login.handle(now, login::Input::Pdu { head, text });
                }
            }
            Machine::Full(session) if session.place() == Place::Text => {
                session.handle(now, Input::Text { data: text, intact });
            }
            Machine::Full(session) => session.handle(now, Input::Segment { intact }),
        }
        self.drain(now, buffers);
    }

    /// Carries what the machine says.
    pub(in crate::iscsi) fn drain(&mut self, now: Instant, buffers: &mut impl Buffers) {
        loop {
            match &mut self.machine {
                Machine::Login(login) => match login.poll_output() {
                    None => return,
                    Some(login::Output::Send { head, text }) => self.output.push(&head, text),
                    Some(login::Output::Failed(error)) => self.events.push(Event::Refused(error)),
                    Some(login::Output::Done(established)) => {
                        let p = established.parameters;
                        self.framer.agree(p.header_digest, p.data_digest, p.receive_bytes);
                        self.output.agree(p.header_digest, p.data_digest);
                        self.established = Some(established);
                        self.machine = Machine::Full(Box::new(Session::new(now, established, self.session)));
                        self.events.push(Event::Up);
                    }
                },
                Machine::Full(session) => match session.poll_output() {
                    None => return,
                    Some(Output::Send { head, data }) => self.output.push(&head, data),
                    Some(Output::Data { head, .. }) if head.data_bytes == 0 => self.output.push(&head, Box::default()),
                    Some(Output::Data { id, head, at }) => match buffers.data(id) {
                        Some((data, begin)) => self.output.push_data(&head, data, begin + at),
                        None => self.lost(id),
                    },
                    Some(Output::Done { id, outcome }) => self.events.push(Event::Done(id, outcome)),
                    Some(Output::Broken(why)) => self.events.push(Event::Broken(why)),
                },
            }
        }
    }

    /// Sends what the socket takes.
    pub(in crate::iscsi) fn flush(&mut self) -> io::Result<()> {
        self.output.flush(&mut self.stream, &mut self.spare)
    }
}

fn nothing_yet(error: io::Error) -> io::Result<bool> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
        _ => Err(error),
    }
}
