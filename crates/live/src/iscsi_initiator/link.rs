//! One connection to a target: [`Link`].

use crate::poll::Interest;
use crate::session::buffers::Spare;
use crate::session::{INPUT_BYTES, Step, Transport};
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::initiator::{
    Broken, Established, Input, Login, LoginConfig, LoginError, Outcome, Output, Place, Session, SessionConfig, login,
};
use sanloom_scsi::time::Instant;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;

/// Size of the input buffer of a connection that only logs in, in bytes. It holds one PDU with the
/// longest text (RFC 7143, section 13.12).
const LOGIN_INPUT_BYTES: usize = 16 << 10;

/// Machine of the current phase.
#[derive(Debug)]
enum Machine {
    Login(Box<Login>),
    Full(Box<Session>),
}

/// Event for the owner of a connection.
#[derive(Debug)]
pub enum Event {
    /// The login is complete.
    Up,
    /// The login failed.
    Refused(LoginError),
    /// This command or reset has ended.
    Done(u64, Outcome),
    /// The session is over.
    Broken(Broken),
}

/// Buffers of the commands of a connection.
pub trait Buffers {
    /// Returns room for `len` bytes of a command's data from offset `at` on; `None` if the command
    /// has no buffer.
    fn room(&mut self, id: u64, at: usize, len: usize) -> Option<&mut [u8]>;
    /// Returns the data of a command, and the offset at which they begin.
    fn data(&mut self, id: u64) -> Option<(Arc<Vec<u8>>, u32)>;
    /// Returns whether received data without room are discarded. Otherwise they end the session.
    fn discards(&self) -> bool {
        false
    }
}

/// A connection of an initiator.
#[derive(Debug)]
pub struct Link {
    pub(crate) transport: Transport,
    machine: Machine,
    session: SessionConfig,
    input: Vec<u8>,
    spare: Spare,
    events: Vec<Event>,
    /// True if the owner takes the connection over at the end of the login.
    hands_over: bool,
    established: Option<Established>,
}

impl Link {
    /// A connection that only logs in; [`hand_over`](Self::hand_over) follows.
    pub fn for_login(now: Instant, stream: TcpStream, login: LoginConfig) -> Link {
        let input = vec![0; LOGIN_INPUT_BYTES];
        Link { hands_over: true, ..Link::with_input(now, stream, login, SessionConfig::default(), input) }
    }

    /// Returns the connection after its login, and the negotiated parameters.
    pub fn hand_over(self) -> (Transport, Option<Established>) {
        (self.transport, self.established)
    }

    /// A connection for a login and a session.
    pub fn new(now: Instant, stream: TcpStream, login: LoginConfig, session: SessionConfig) -> Link {
        Link::with_input(now, stream, login, session, vec![0; INPUT_BYTES])
    }

    fn with_input(now: Instant, stream: TcpStream, login: LoginConfig, session: SessionConfig, input: Vec<u8>) -> Link {
        Link {
            transport: Transport::new(stream),
            machine: Machine::Login(Box::new(Login::new(now, login))),
            session,
            input,
            spare: Spare::default(),
            events: Vec::new(),
            hands_over: false,
            established: None,
        }
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.transport.stream
    }

    /// Events to wait for.
    pub fn interest(&self) -> Interest {
        self.transport.interest(true)
    }

    /// Records that the socket is writable.
    pub fn set_writable(&mut self) {
        self.transport.egress.set_writable();
    }

    /// Returns whether the login is complete.
    pub fn is_up(&self) -> bool {
        matches!(self.machine, Machine::Full(_))
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Negotiated parameters, after the login.
    pub fn parameters(&self) -> Option<Parameters> {
        match &self.machine {
            Machine::Login(_) => None,
            Machine::Full(session) => Some(*session.parameters()),
        }
    }

    /// Portal group that the target declared at the login.
    pub fn portal_group(&self) -> Option<u16> {
        self.established.as_ref().and_then(|established| established.portal_group)
    }

    /// Time of the last PDU from the target, after the login.
    pub fn last_received(&self) -> Option<Instant> {
        match &self.machine {
            Machine::Login(_) => None,
            Machine::Full(session) => Some(session.heard()),
        }
    }

    /// Time at which [`timeout`](Self::timeout) must be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.machine {
            Machine::Login(login) => login.poll_timeout(),
            Machine::Full(session) => session.poll_timeout(),
        }
    }

    /// Handles an expired deadline.
    pub fn timeout(&mut self, now: Instant, buffers: &mut impl Buffers) {
        match &mut self.machine {
            Machine::Login(login) => login.handle(now, login::Input::Timeout),
            Machine::Full(session) => session.handle(now, Input::Timeout),
        }
        self.drain(now, buffers);
    }

    /// Passes an input to the session. Without a session it is discarded.
    pub fn input(&mut self, now: Instant, input: Input, buffers: &mut impl Buffers) {
        if let Machine::Full(session) = &mut self.machine {
            session.handle(now, input);
        }
        self.drain(now, buffers);
    }

    /// Reads once and processes the input. Returns whether the socket may have more.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn read(&mut self, now: Instant, buffers: &mut impl Buffers) -> io::Result<bool> {
        let Transport { stream, reader, .. } = &mut self.transport;
        let place = place(&self.machine);
        let room = reader.direct(place).and_then(|(id, at, len)| buffers.room(id, at, len));
        let arrived = match room {
            Some(room) => reader.read_direct(stream, room, &mut self.input),
            None => reader.read(stream, &mut self.input),
        };
        let Some(arrived) = arrived? else { return Ok(false) };
        let input = std::mem::take(&mut self.input);
        self.process(now, &input[..arrived.bytes], buffers);
        self.input = input;
        Ok(arrived.is_full)
    }

    fn process(&mut self, now: Instant, mut bytes: &[u8], buffers: &mut impl Buffers) {
        loop {
            match self.transport.reader.next(&mut bytes, place(&self.machine)) {
                Step::Starved => return,
                Step::Header(head) => match &mut self.machine {
                    Machine::Login(_) if head.data_bytes > 0 => continue,
                    Machine::Login(login) => login.handle(now, login::Input::Pdu { head, text: Box::default() }),
                    Machine::Full(session) => session.handle(now, Input::Header(head)),
                },
                Step::Data { id, at, piece } => {
                    let discards = buffers.discards();
                    match buffers.room(id, at, piece.len()) {
                        Some(room) => room.copy_from_slice(piece),
                        None if discards => {}
                        None => self.lost_buffer(id),
                    }
                    continue;
                }
                Step::Text { head, data, intact } => match &mut self.machine {
                    Machine::Login(login) => login.handle(now, login::Input::Pdu { head, text: data }),
                    Machine::Full(session) => session.handle(now, Input::Text { data, intact }),
                },
                Step::Segment { intact } => {
                    if let Machine::Full(session) = &mut self.machine {
                        session.handle(now, Input::Segment { intact });
                    }
                }
                Step::Broken(why, _) => {
                    tracing::warn!(%why, "target");
                    return self.events.push(Event::Broken(Broken::Protocol));
                }
            }
            self.drain(now, buffers);
            if self.hands_over && self.is_up() {
                return self.transport.reader.unread().keep(bytes);
            }
        }
    }

    /// Ends the session, because data of a command have no buffer. Otherwise the command would end
    /// as if it had transferred them.
    fn lost_buffer(&mut self, command: u64) {
        tracing::error!(command, "the buffer of a command is missing; the session ends");
        self.events.push(Event::Broken(Broken::Protocol));
    }

    /// Executes the outputs of the machine.
    pub fn drain(&mut self, now: Instant, buffers: &mut impl Buffers) {
        loop {
            let egress = &mut self.transport.egress;
            match &mut self.machine {
                Machine::Login(login) => match login.poll_output() {
                    None => return,
                    Some(login::Output::Send { head, text }) => egress.push(&head, text),
                    Some(login::Output::Failed(error)) => self.events.push(Event::Refused(error)),
                    Some(login::Output::Done(established)) => {
                        self.transport.agree(&established.parameters);
                        self.established = Some(established);
                        self.machine = Machine::Full(Box::new(Session::new(now, established, self.session)));
                        self.events.push(Event::Up);
                    }
                },
                Machine::Full(session) => match session.poll_output() {
                    None => return,
                    Some(Output::Send { head, data }) => egress.push(&head, data),
                    Some(Output::Data { head, .. }) if head.data_bytes == 0 => egress.push(&head, Box::default()),
                    Some(Output::Data { id, head, at }) => match buffers.data(id) {
                        Some((data, begin)) => egress.push_data(&head, data, begin + at),
                        None => self.lost_buffer(id),
                    },
                    Some(Output::Done { id, outcome }) => self.events.push(Event::Done(id, outcome)),
                    Some(Output::Broken(why)) => self.events.push(Event::Broken(why)),
                },
            }
        }
    }

    /// Sends as much as the socket accepts.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn flush(&mut self) -> io::Result<()> {
        self.transport.flush(&mut self.spare)
    }
}

/// Destination of the current data segment.
fn place(machine: &Machine) -> Place {
    match machine {
        Machine::Login(_) => Place::Text,
        Machine::Full(session) => session.place(),
    }
}
