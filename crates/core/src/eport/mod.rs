//! One end of an inter-switch link: the exchange of link parameters (ELP), and whether the link may carry traffic.
//!
//! ```text
//!            link up                        accept, ours or theirs
//!   Down ───────────────▶ Exchanging ──────────────────────────────▶ Up
//!    ▲                      │    ▲                                    │
//!    │ link down            │    │ Retry, or a better ELP             │ Isolate, or a new ELP that
//!    │ (from anywhere)      ▼    │                                    ▼ no longer fits
//!    └──────────────────  Isolated(reason)  ◀─────────────────────────┘
//! ```
//!
//! Both ends send ELP when the link comes up. The request of the switch with the *lower* name is answered with "command in
//! progress", that of the higher one is the one that counts. So there is one exchange, whichever end was faster.
//!
//! What must agree: R_A_TOV and E_D_TOV exactly, class F offered, and a flow control mode that both ends can do. A mode
//! that the other end rejects is followed by the next of [`EPortConfig::flow_control`].
//!
//! An ELP that comes again soon after the link went up is the same one, whose accept was lost, and is accepted again. Any
//! other says that the neighbour began anew: the link goes down and up.
//!
//! The end whose ELP was accepted sends ESC, to agree on FSPF as the routing protocol. It does not wait for the answer: an
//! end that chooses another protocol, or says that it has none in common, isolates the link; one that does not know ESC, or
//! never answers, is taken to route by FSPF as switches without ESC do.
//!
//! A port that is isolated for a reason of ELP, or because the other side isolated it, goes on listening: an ELP that fits
//! brings the link up. Isolated for any other reason, it answers with that reason until somebody says [`Input::Retry`] or
//! the link goes down.
//!
//! Sources: FC-SW (exchange link parameters, exchange switch capabilities); offsets and codes as in [`sanloom_wire::sw_ils`].

mod judge;

use crate::ils::{Outcome, Peer, Request, Send};
use crate::isolation::{Isolation, asks_for_patience};
use crate::time::{Instant, Span};
use judge::Offer;
use sanloom_wire::sw_ils::{
    ClassF, Elp, ElpClass, Esc, EscAcc, EscProtocol, FlowControl, SwAcc, SwIls, SwRjt, SwRjtExplanation, SwRjtReason,
    command,
};
use sanloom_wire::{Message, Wwnn, Wwpn};
use std::collections::VecDeque;

/// What an E_Port is told at its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EPortConfig {
    /// Number of the port within its switch.
    pub port: u16,
    /// Name of the port.
    pub port_name: Wwpn,
    /// Name of its switch.
    pub switch_name: Wwnn,
    /// Resource allocation timeout; the neighbour must have the same, to the millisecond. An ELP that comes within this
    /// time after the link went up, and says the same as before, is a repetition.
    pub r_a_tov: Span,
    /// Error detect timeout; the neighbour must have the same, to the millisecond.
    pub e_d_tov: Span,
    /// Receive buffers of the port, announced to the neighbour.
    pub bb_credit: u32,
    /// Largest data field that the port takes, in bytes, 256 to 2112; the same for all classes.
    pub receive_size_bytes: u16,
    /// Classes of service 1, 2 and 3 that the link carries.
    pub classes: [bool; 3],
    /// Flow control modes that the port can do, the preferred one first.
    pub flow_control: Vec<FlowControl>,
    /// How long to wait before ELP is sent again that nobody answered, or that came at the wrong time.
    pub retry: Span,
    /// Vendor of the switch, for ESC.
    pub vendor: [u8; 8],
}

/// What is at the other end of a link that is up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Neighbour {
    /// Name of the other switch.
    pub switch_name: Wwnn,
    /// Name of its port.
    pub port_name: Wwpn,
    /// Receive buffers of its port: frames that may be under way to it.
    pub bb_credit: u32,
    /// Largest class F data field that it takes, in bytes.
    pub receive_size_bytes: u16,
    /// The mode that both ends use.
    pub flow_control: FlowControl,
    /// R_A_TOV, the same at both ends.
    pub r_a_tov: Span,
    /// E_D_TOV, the same at both ends.
    pub e_d_tov: Span,
    /// The neighbour counts buffer-to-buffer state changes every 2^n frames; 0 for never.
    pub bb_sc_n: u8,
}

/// Something that happened to an E_Port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The link came up. A link that was up goes down first.
    LinkUp,
    /// The link went down.
    LinkDown,
    /// ELP or ESC of the neighbour.
    Request {
        /// The exchange.
        request: Request,
        /// The request.
        message: SwIls,
    },
    /// How a request of this machine ended.
    Outcome {
        /// From [`Send::Request`].
        tag: u32,
        /// The end.
        outcome: Outcome,
    },
    /// The time that [`EPort::poll_timeout`] named has come; too early is harmless.
    Timeout,
    /// Another machine cannot live with the neighbour: domains, zones, paths.
    Isolate(Isolation),
    /// Try again, although the port is isolated. At a port that is not isolated it does nothing.
    Retry,
}

/// Something that an E_Port wants done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a message over the link, also while the port is isolated.
    Send(Send),
    /// The link may carry traffic of the fabric.
    Up(Neighbour),
    /// The link that was up is no longer; before every other end of [`Output::Up`].
    Down,
    /// The port is isolated.
    Isolated(Isolation),
}

/// Where an E_Port stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// No link.
    Down,
    /// A link, and parameters under way.
    Exchanging,
    /// A link that may carry traffic.
    Up(Neighbour),
    /// A link that may not.
    Isolated(Isolation),
}

/// One end of an inter-switch link. See the [module](self).
#[derive(Debug)]
pub struct EPort {
    config: EPortConfig,
    state: State,
    /// Index of the flow control mode that our requests offer.
    mode: usize,
    /// The request of ours that counts, ELP until the link is up and ESC from then on; answers to others come too late.
    asked: Option<u32>,
    next_tag: u32,
    /// When to send it again.
    again_at: Option<Instant>,
    /// The parameters that brought the link up, and until when their repetition is one.
    agreed: Option<(Elp, Instant)>,
    outputs: VecDeque<Output>,
    rejected: u64,
}

impl EPort {
    /// A port without a link.
    pub fn new(config: EPortConfig) -> EPort {
        EPort {
            config,
            state: State::Down,
            mode: 0,
            asked: None,
            next_tag: 0,
            again_at: None,
            agreed: None,
            outputs: VecDeque::new(),
            rejected: 0,
        }
    }

    /// One thing happened.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::LinkUp => {
                self.leave();
                self.begin();
            }
            Input::LinkDown => self.leave(),
            Input::Request { request, message } => self.request(now, request, message),
            Input::Outcome { tag, outcome } => self.outcome(now, tag, outcome),
            Input::Timeout => {
                if self.again_at.is_some_and(|at| at <= now) {
                    match self.state {
                        State::Up(_) => self.offer_protocol(),
                        _ => self.begin(),
                    }
                }
            }
            Input::Isolate(reason) => {
                if self.state != State::Down {
                    self.isolate(reason);
                }
            }
            Input::Retry => {
                if matches!(self.state, State::Isolated(_)) {
                    self.begin();
                }
            }
        }
    }

    /// What the port wants done, in this order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.again_at
    }

    /// Where the port stands.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Requests of the neighbour that were rejected because they make no sense or do not fit.
    pub fn requests_rejected(&self) -> u64 {
        self.rejected
    }

    /// Sends ELP, from the preferred flow control mode on.
    fn begin(&mut self) {
        self.state = State::Exchanging;
        self.mode = 0;
        self.ask();
    }

    fn ask(&mut self) {
        let Some(flow_control) = self.config.flow_control.get(self.mode).copied() else {
            return self.isolate(Isolation::FlowControl);
        };
        let elp = self.parameters(flow_control);
        self.request_answer(SwIls::Elp(Box::new(elp)));
    }

    /// Sends ESC: our only protocol.
    fn offer_protocol(&mut self) {
        let vendor = self.config.vendor;
        let protocols = vec![EscProtocol { vendor, id: EscProtocol::FSPF }];
        self.request_answer(SwIls::Esc(Esc { vendor, protocols }));
    }

    fn request_answer(&mut self, request: SwIls) {
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        self.asked = Some(tag);
        self.again_at = None;
        self.send(Send::Request { to: Peer::Link(self.config.port), message: request.into(), tag });
    }

    /// The link is gone.
    fn leave(&mut self) {
        self.end_of_up();
        self.state = State::Down;
    }

    fn isolate(&mut self, reason: Isolation) {
        self.end_of_up();
        if self.state != State::Isolated(reason.clone()) {
            self.state = State::Isolated(reason.clone());
            self.outputs.push_back(Output::Isolated(reason));
        }
    }

    fn end_of_up(&mut self) {
        self.asked = None;
        self.again_at = None;
        self.agreed = None;
        if matches!(self.state, State::Up(_)) {
            self.state = State::Exchanging;
            self.outputs.push_back(Output::Down);
        }
    }

    fn request(&mut self, now: Instant, request: Request, message: SwIls) {
        match message {
            SwIls::Elp(elp) => self.offered(now, request, *elp),
            SwIls::Esc(esc) => self.choose_protocol(request, &esc),
            _ => self.reject(request, SwRjt::new(SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED)),
        }
    }

    /// The neighbour sent ELP.
    fn offered(&mut self, now: Instant, request: Request, elp: Elp) {
        match &self.state {
            State::Down => {
                let early = SwRjtExplanation::LINK_PARAMETERS_NOT_ESTABLISHED;
                return self.reject(request, SwRjt::new(SwRjtReason::UNABLE, early));
            }
            State::Isolated(reason) if !reason.is_of_link_parameters() && *reason != Isolation::OtherSide => {
                let reject = reason.reject();
                return self.reject(request, reject);
            }
            State::Exchanging if self.asked.is_some() && elp.switch_name < self.config.switch_name => {
                let ours_counts = SwRjtExplanation::COMMAND_IN_PROGRESS;
                let reject = SwRjt::new(SwRjtReason::UNABLE, ours_counts).into();
                return self.answer(request, reject);
            }
            _ => {}
        }
        match self.judge(&elp) {
            Offer::Fits(neighbour) => {
                let repeated = self.agreed.as_ref().is_some_and(|(agreed, until)| *agreed == elp && now <= *until);
                let accept = self.parameters(elp.flow_control);
                if !repeated {
                    self.end_of_up();
                }
                self.answer(request, SwIls::SwAcc(SwAcc::Elp(Box::new(accept))));
                if !repeated {
                    self.up(now, elp, neighbour);
                }
            }
            // The other end may know another mode: whether there is one that fits is not known before both have asked.
            Offer::Not(Isolation::FlowControl) if self.state == State::Exchanging => {
                self.reject(request, Isolation::FlowControl.reject());
                if self.asked.is_none() {
                    self.ask();
                }
            }
            Offer::Not(reason) => {
                self.reject(request, reason.reject());
                self.isolate(reason);
            }
        }
    }

    fn outcome(&mut self, now: Instant, tag: u32, outcome: Outcome) {
        if self.asked != Some(tag) {
            return;
        }
        self.asked = None;
        if matches!(self.state, State::Up(_)) {
            return self.protocol_chosen(now, outcome);
        }
        let Outcome::Answered(Message::SwIls(answer)) = outcome else {
            self.again_at = Some(now + self.config.retry);
            return;
        };
        match *answer {
            SwIls::SwAcc(SwAcc::Elp(elp)) => match self.judge(&elp) {
                Offer::Fits(neighbour) if self.config.flow_control.get(self.mode) == Some(&elp.flow_control) => {
                    self.up(now, *elp, neighbour);
                    self.offer_protocol();
                }
                Offer::Fits(_) => self.isolate(Isolation::FlowControl),
                Offer::Not(reason) => self.isolate(reason),
            },
            SwIls::SwRjt(reject) if asks_for_patience(reject) => self.again_at = Some(now + self.config.retry),
            SwIls::SwRjt(reject) => match Isolation::from_reject(command::ELP, reject) {
                Isolation::FlowControl => {
                    self.mode += 1;
                    self.ask();
                }
                reason => self.isolate(reason),
            },
            _ => self.again_at = Some(now + self.config.retry),
        }
    }

    fn up(&mut self, now: Instant, elp: Elp, neighbour: Neighbour) {
        self.asked = None;
        self.again_at = None;
        self.agreed = Some((elp, now + self.config.r_a_tov));
        self.state = State::Up(neighbour);
        self.outputs.push_back(Output::Up(neighbour));
    }

    /// How our ESC ended.
    fn protocol_chosen(&mut self, now: Instant, outcome: Outcome) {
        let Outcome::Answered(Message::SwIls(answer)) = outcome else { return };
        match *answer {
            SwIls::SwAcc(SwAcc::Esc(accept)) if accept.protocol.id != EscProtocol::FSPF => {
                self.isolate(Isolation::EscMismatch);
            }
            SwIls::SwRjt(reject) if asks_for_patience(reject) => self.again_at = Some(now + self.config.retry),
            // Whoever does not know ESC says so with another reason, and routes by FSPF.
            SwIls::SwRjt(reject) if reject == Isolation::EscMismatch.reject() => self.isolate(Isolation::EscMismatch),
            SwIls::SwRjt(reject) if reject.explanation == SwRjtExplanation::E_PORT_ISOLATED => {
                self.isolate(Isolation::OtherSide);
            }
            _ => {}
        }
    }

    /// ESC: the only routing protocol here is FSPF.
    fn choose_protocol(&mut self, request: Request, esc: &Esc) {
        if !matches!(self.state, State::Up(_)) {
            let early = SwRjtExplanation::LINK_PARAMETERS_NOT_ESTABLISHED;
            return self.reject(request, SwRjt::new(SwRjtReason::UNABLE, early));
        }
        match esc.protocols.iter().find(|protocol| protocol.id == EscProtocol::FSPF) {
            Some(&protocol) => {
                let accept = EscAcc { vendor: self.config.vendor, protocol };
                self.answer(request, SwIls::SwAcc(SwAcc::Esc(accept)));
            }
            None => {
                self.reject(request, Isolation::EscMismatch.reject());
                self.isolate(Isolation::EscMismatch);
            }
        }
    }

    /// What we say of ourselves.
    fn parameters(&self, flow_control: FlowControl) -> Elp {
        let receive_size_bytes = self.config.receive_size_bytes;
        Elp {
            revision: 3,
            flags: 0,
            bb_sc_n: 0,
            r_a_tov_ms: judge::milliseconds(self.config.r_a_tov),
            e_d_tov_ms: judge::milliseconds(self.config.e_d_tov),
            port_name: self.config.port_name,
            switch_name: self.config.switch_name,
            class_f: ClassF {
                flags: [ClassF::VALID, 0, 0, 0, 0, 0],
                receive_size_bytes,
                concurrent_sequences: 1,
                end_to_end_credit: 1,
                open_sequences: 1,
            },
            classes: self.config.classes.map(|offered| match offered {
                true => ElpClass { flags: ElpClass::VALID | ElpClass::SEQUENTIAL_DELIVERY, receive_size_bytes },
                false => ElpClass::default(),
            }),
            flow_control,
            bb_credit: self.config.bb_credit,
            flow_parameters: [0; 16].into(),
        }
    }

    fn reject(&mut self, request: Request, reject: SwRjt) {
        self.rejected += 1;
        self.answer(request, reject.into());
    }

    fn answer(&mut self, request: Request, answer: SwIls) {
        self.send(Send::Answer { request, message: answer.into() });
    }

    fn send(&mut self, send: Send) {
        self.outputs.push_back(Output::Send(send));
    }
}
