//! One end of an inter-switch link: the exchange of link parameters (ELP), and the decision whether
//! the link may carry traffic.
//!
//! ```text
//!            link up                        accept, ours or theirs
//!   Down ───────────────▶ Exchanging ──────────────────────────────▶ Up
//!    ▲                      │    ▲                                    │
//!    │ link down            │    │ Retry, or a better ELP             │ Isolate, or a new ELP that
//!    │ (from anywhere)      ▼    │                                    ▼ is no longer compatible
//!    └──────────────────  Isolated(reason)  ◀─────────────────────────┘
//! ```
//!
//! Both ends send ELP when the link comes up. The request of the switch with the *lower* name is
//! rejected with "command in progress"; the request of the other switch counts. So there is one
//! exchange regardless of which end was faster.
//!
//! R_A_TOV and E_D_TOV must be equal, class F must be offered, and both ends must support a common
//! flow control mode. If the other end rejects a mode, the next one of
//! [`EPortConfig::flow_control`] is tried.
//!
//! An ELP repeated soon after the link came up is a retransmission after a lost accept, and is
//! accepted again. Any other ELP means that the neighbour restarted: the link goes down and up.
//!
//! The end whose ELP was accepted sends ESC to agree on FSPF as the routing protocol. It does not
//! wait for the reply. The link is isolated if the other end selects another protocol, or rejects
//! ESC because there is no common one. If it does not support ESC or never replies, it is assumed
//! to use FSPF, as switches without ESC do.
//!
//! A port that is isolated because of ELP, or by the other side, still processes ELP: a compatible
//! one brings the link up. A port isolated for any other reason rejects requests with that reason
//! until [`Input::Retry`] or link down.
//!
//! Sources: FC-SW (exchange link parameters, exchange switch capabilities); offsets and codes as in
//! [`sanloom_wire::sw_ils`].

mod offer;

use crate::ils::{Outcome, Peer, Request, Send};
use crate::isolation::{Isolation, is_temporary};
use offer::Offer;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::sw_ils::{
    ClassF, Elp, ElpClass, Esc, EscAcc, EscProtocol, FlowControl, SwAcc, SwIls, SwRjt, SwRjtExplanation, SwRjtReason,
    command,
};
use sanloom_wire::{Message, Wwnn, Wwpn};
use std::collections::VecDeque;

/// Initial configuration of an E_Port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EPortConfig {
    /// Port number within its switch.
    pub port: u16,
    /// World-wide port name.
    pub port_name: Wwpn,
    /// World-wide name of the switch.
    pub switch_name: Wwnn,
    /// Resource allocation timeout; the neighbour must have the same, to the millisecond. An
    /// identical ELP within this time after the link came up counts as a retransmission.
    pub r_a_tov: Span,
    /// Error detect timeout; the neighbour must have the same, to the millisecond.
    pub e_d_tov: Span,
    /// Receive buffers of the port, announced to the neighbour.
    pub bb_credit: u32,
    /// BB_SC_N of the port, announced to the neighbour; 0: no credit recovery.
    pub bb_sc_n: u8,
    /// Largest data field that the port accepts, in bytes, 256 to 2112; the same for all classes.
    pub receive_size_bytes: u16,
    /// Classes of service 1, 2 and 3 that the link carries.
    pub classes: [bool; 3],
    /// Supported flow control modes, the preferred one first.
    pub flow_control: Vec<FlowControl>,
    /// Delay before repeating an ELP that got no reply or arrived at the wrong time.
    pub retry: Span,
    /// Vendor identification of the switch, for ESC.
    pub vendor: [u8; 8],
}

/// Parameters of the neighbour on a link that is up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Neighbour {
    /// World-wide name of the other switch.
    pub switch_name: Wwnn,
    /// World-wide name of its port.
    pub port_name: Wwpn,
    /// Receive buffers of its port: the number of frames that may be in flight to it.
    pub bb_credit: u32,
    /// Largest class F data field that it accepts, in bytes.
    pub receive_size_bytes: u16,
    /// Flow control mode that both ends use.
    pub flow_control: FlowControl,
    /// R_A_TOV, the same at both ends.
    pub r_a_tov: Span,
    /// E_D_TOV, the same at both ends.
    pub e_d_tov: Span,
    /// Buffer-to-buffer state changes follow every 2^n frames in both directions; 0 means never.
    pub bb_sc_n: u8,
}

/// Event for an E_Port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// The link came up. A link that was already up goes down first.
    LinkUp,
    /// The link went down.
    LinkDown,
    /// ELP or ESC from the neighbour.
    Request {
        /// Sender, needed for the reply.
        request: Request,
        /// Content of the request.
        message: SwIls,
    },
    /// Result of a request sent by this machine.
    Outcome {
        /// Tag from [`Send::Request`].
        tag: u32,
        /// Reply, or none.
        outcome: Outcome,
    },
    /// The deadline of [`EPort::poll_timeout`] was reached. An early call is harmless.
    Timeout,
    /// Another machine rejects the neighbour because of domains, zones or paths.
    Isolate(Isolation),
    /// Retry after an isolation. Ignored if the port is not isolated.
    Retry,
}

/// Action or event for the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a message over the link; the port may be isolated.
    Send(Send),
    /// The link may carry traffic of the fabric.
    Up(Neighbour),
    /// The link is no longer up; emitted before every other consequence of the end of
    /// [`Output::Up`].
    Down,
    /// The port was isolated for this reason.
    Isolated(Isolation),
}

/// State of an E_Port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// No link.
    Down,
    /// Link present, parameter exchange in progress.
    Exchanging,
    /// Link that may carry traffic.
    Up(Neighbour),
    /// Link that must not carry traffic.
    Isolated(Isolation),
}

/// One end of an inter-switch link. See the [module](self).
#[derive(Debug)]
pub struct EPort {
    config: EPortConfig,
    state: State,
    /// Index of the flow control mode offered in requests.
    mode: usize,
    /// Tag of the current request: ELP until the link is up, then ESC. Replies to other requests
    /// are too late.
    pending_tag: Option<u32>,
    next_tag: u32,
    /// Time to repeat the request.
    retry_at: Option<Instant>,
    /// ELP that brought the link up, and the time until which an identical one counts as a
    /// retransmission.
    agreed: Option<(Elp, Instant)>,
    outputs: VecDeque<Output>,
    rejected: u64,
}

impl EPort {
    /// Returns a port without a link.
    pub fn new(config: EPortConfig) -> EPort {
        EPort {
            config,
            state: State::Down,
            mode: 0,
            pending_tag: None,
            next_tag: 0,
            retry_at: None,
            agreed: None,
            outputs: VecDeque::new(),
            rejected: 0,
        }
    }

    /// Processes one input.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::LinkUp => {
                self.leave();
                self.start();
            }
            Input::LinkDown => self.leave(),
            Input::Request { request, message } => self.request(now, request, message),
            Input::Outcome { tag, outcome } => self.outcome(now, tag, outcome),
            Input::Timeout => {
                if self.retry_at.is_some_and(|at| at <= now) {
                    match self.state {
                        State::Up(_) => self.send_esc(),
                        _ => self.start(),
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
                    self.start();
                }
            }
        }
        self.check();
    }

    /// Checks the relations between the fields, in debug builds.
    fn check(&self) {
        let is_up = matches!(self.state, State::Up(_));
        debug_assert_eq!(self.agreed.is_some(), is_up, "a link has agreed parameters while it is up");
        debug_assert!(self.pending_tag.is_none() || self.retry_at.is_none(), "a request is repeated before its reply");
        debug_assert!(
            self.pending_tag.is_none() || is_up || self.state == State::Exchanging,
            "a request is in flight in state {:?}",
            self.state
        );
    }

    /// Returns the next output; process outputs in this order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which to pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Current state of the port.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Number of rejected requests of the neighbour, either invalid or incompatible.
    pub fn requests_rejected(&self) -> u64 {
        self.rejected
    }

    /// Sends ELP, starting with the preferred flow control mode.
    fn start(&mut self) {
        self.state = State::Exchanging;
        self.mode = 0;
        self.send_elp();
    }

    fn send_elp(&mut self) {
        let Some(flow_control) = self.config.flow_control.get(self.mode).copied() else {
            return self.isolate(Isolation::FlowControl);
        };
        let elp = self.parameters(flow_control);
        self.send_request(SwIls::Elp(Box::new(elp)));
    }

    /// Sends ESC with FSPF as the only protocol.
    fn send_esc(&mut self) {
        let vendor = self.config.vendor;
        let protocols = vec![EscProtocol { vendor, id: EscProtocol::FSPF }];
        self.send_request(SwIls::Esc(Esc { vendor, protocols }));
    }

    fn send_request(&mut self, request: SwIls) {
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        self.pending_tag = Some(tag);
        self.retry_at = None;
        self.send(Send::Request { to: Peer::Link(self.config.port), message: request.into(), tag });
    }

    /// Ends the link.
    fn leave(&mut self) {
        self.end_agreement();
        self.state = State::Down;
    }

    fn isolate(&mut self, reason: Isolation) {
        self.end_agreement();
        if self.state != State::Isolated(reason.clone()) {
            self.state = State::Isolated(reason.clone());
            self.outputs.push_back(Output::Isolated(reason));
        }
    }

    fn end_agreement(&mut self) {
        self.pending_tag = None;
        self.retry_at = None;
        self.agreed = None;
        if matches!(self.state, State::Up(_)) {
            self.state = State::Exchanging;
            self.outputs.push_back(Output::Down);
        }
    }

    fn request(&mut self, now: Instant, request: Request, message: SwIls) {
        match message {
            SwIls::Elp(elp) => self.on_elp(now, request, *elp),
            SwIls::Esc(esc) => self.choose_protocol(request, &esc),
            _ => self.reject(request, SwRjt::new(SwRjtReason::NOT_SUPPORTED, SwRjtExplanation::NOT_SUPPORTED)),
        }
    }

    /// Handles ELP from the neighbour.
    fn on_elp(&mut self, now: Instant, request: Request, elp: Elp) {
        match &self.state {
            State::Down => {
                let early = SwRjtExplanation::LINK_PARAMETERS_NOT_ESTABLISHED;
                return self.reject(request, SwRjt::new(SwRjtReason::UNABLE, early));
            }
            State::Isolated(reason) if !reason.is_of_link_parameters() && *reason != Isolation::OtherSide => {
                let reject = reason.reject();
                return self.reject(request, reject);
            }
            State::Exchanging if self.pending_tag.is_some() && elp.switch_name < self.config.switch_name => {
                let ours_counts = SwRjtExplanation::COMMAND_IN_PROGRESS;
                let reject = SwRjt::new(SwRjtReason::UNABLE, ours_counts).into();
                return self.answer(request, reject);
            }
            _ => {}
        }
        match self.evaluate(&elp) {
            Offer::Compatible(neighbour) => {
                let repeated = self.agreed.as_ref().is_some_and(|(agreed, until)| *agreed == elp && now <= *until);
                let accept = self.parameters(elp.flow_control);
                if !repeated {
                    self.end_agreement();
                }
                self.answer(request, SwIls::SwAcc(SwAcc::Elp(Box::new(accept))));
                if !repeated {
                    self.up(now, elp, neighbour);
                }
            }
            // The other end may support another mode. A common mode can be determined only after
            // both ends have sent ELP.
            Offer::Incompatible(Isolation::FlowControl) if self.state == State::Exchanging => {
                self.reject(request, Isolation::FlowControl.reject());
                if self.pending_tag.is_none() {
                    self.send_elp();
                }
            }
            Offer::Incompatible(reason) => {
                self.reject(request, reason.reject());
                self.isolate(reason);
            }
        }
    }

    fn outcome(&mut self, now: Instant, tag: u32, outcome: Outcome) {
        if self.pending_tag != Some(tag) {
            return;
        }
        self.pending_tag = None;
        if matches!(self.state, State::Up(_)) {
            return self.protocol_chosen(now, outcome);
        }
        let Outcome::Answered(Message::SwIls(answer)) = outcome else {
            self.retry_at = Some(now + self.config.retry);
            return;
        };
        match *answer {
            SwIls::SwAcc(SwAcc::Elp(elp)) => match self.evaluate(&elp) {
                Offer::Compatible(neighbour) if self.config.flow_control.get(self.mode) == Some(&elp.flow_control) => {
                    self.up(now, *elp, neighbour);
                    self.send_esc();
                }
                Offer::Compatible(_) => self.isolate(Isolation::FlowControl),
                Offer::Incompatible(reason) => self.isolate(reason),
            },
            SwIls::SwRjt(reject) if is_temporary(reject) => self.retry_at = Some(now + self.config.retry),
            SwIls::SwRjt(reject) => match Isolation::from_reject(command::ELP, reject) {
                Isolation::FlowControl => {
                    self.mode += 1;
                    self.send_elp();
                }
                reason => self.isolate(reason),
            },
            _ => self.retry_at = Some(now + self.config.retry),
        }
    }

    fn up(&mut self, now: Instant, elp: Elp, neighbour: Neighbour) {
        self.pending_tag = None;
        self.retry_at = None;
        self.agreed = Some((elp, now + self.config.r_a_tov));
        self.state = State::Up(neighbour);
        self.outputs.push_back(Output::Up(neighbour));
    }

    /// Handles the reply to ESC.
    fn protocol_chosen(&mut self, now: Instant, outcome: Outcome) {
        let Outcome::Answered(Message::SwIls(answer)) = outcome else { return };
        match *answer {
            SwIls::SwAcc(SwAcc::Esc(accept)) if accept.protocol.id != EscProtocol::FSPF => {
                self.isolate(Isolation::EscMismatch);
            }
            SwIls::SwRjt(reject) if is_temporary(reject) => self.retry_at = Some(now + self.config.retry),
            // A switch without ESC support rejects it with another reason, and uses FSPF.
            SwIls::SwRjt(reject) if reject == Isolation::EscMismatch.reject() => self.isolate(Isolation::EscMismatch),
            SwIls::SwRjt(reject) if reject.explanation == SwRjtExplanation::E_PORT_ISOLATED => {
                self.isolate(Isolation::OtherSide);
            }
            _ => {}
        }
    }

    /// Handles ESC: FSPF is the only supported routing protocol.
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

    /// ELP of this port.
    fn parameters(&self, flow_control: FlowControl) -> Elp {
        let receive_size_bytes = self.config.receive_size_bytes;
        Elp {
            revision: 3,
            flags: 0,
            bb_sc_n: self.config.bb_sc_n,
            r_a_tov_ms: offer::milliseconds(self.config.r_a_tov),
            e_d_tov_ms: offer::milliseconds(self.config.e_d_tov),
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
