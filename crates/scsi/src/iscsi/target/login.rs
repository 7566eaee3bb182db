//! Login on the target's side, from the first byte of a connection to the full feature phase:
//! [`Login`] (RFC 7143, section 6.3).
//!
//! ```text
//!          security: AuthMethod, CHAP        operational: all other keys
//!   first -------------------------> security ---------------> operational -----> done
//!     |                                 +------ T, NSG = 3 ------------------------> |
//!     +--- CSG = 1, no authentication required --------------> operational           |
//!   refused in any stage: a response with the status, then the connection is closed
//! ```

use super::config::{Authentication, Node};
use super::directory::{ConnectionId, Directory, Replaced, SessionKey};
use super::security::Security;
use crate::iscsi::framer::len32;
use crate::iscsi::keys::Key;
use crate::iscsi::negotiation::Negotiation;
use crate::iscsi::parameters::{Offers, Parameters};
use crate::time::{Instant, Span};
use sanloom_wire::iscsi::code::{flag, stage};
use sanloom_wire::iscsi::{Head, Header, LoginRequest, LoginResponse, LoginStatus, name, text};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum text of one login step, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Maximum number of request-response steps of one login.
const MAX_STEPS: u32 = 64;

/// Context of a login.
#[derive(Clone, Debug)]
pub struct LoginConfig {
    /// Targets of the node.
    pub node: Arc<Node>,
    /// Address and port of the portal that accepted the connection.
    pub address: String,
    /// Portal group tag of that portal.
    pub group: u16,
    /// Number of the connection.
    pub connection: ConnectionId,
    /// Random bytes for the challenge of CHAP.
    pub challenge: [u8; 16],
    /// Time after which an incomplete login is abandoned.
    pub timeout: Span,
}

/// Event for a login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Complete PDU.
    Pdu {
        /// Parsed header.
        head: Head,
        /// Data segment: key=value pairs.
        text: Box<[u8]>,
    },
    /// Header of a PDU whose data segment exceeds the limit of a login PDU (8 KiB). The driver does
    /// not read the segment or anything after it.
    TooLong(Head),
    /// The deadline of [`Login::poll_timeout`] has passed.
    Timeout,
}

/// Action that a login requests of its driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send this PDU.
    Send {
        /// Header of the PDU.
        head: Head,
        /// Data segment: key=value pairs.
        text: Box<[u8]>,
    },
    /// The connection has entered the full feature phase.
    Done(Box<Established>),
    /// The login failed: close the connection after everything has been sent.
    Close,
}

/// Result of a successful login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Established {
    /// Identity of the session.
    pub key: SessionKey,
    /// Handle of the session (TSIH).
    pub tsih: u16,
    /// Connection identifier chosen by the initiator (CID).
    pub cid: u16,
    /// Negotiated parameters.
    pub parameters: Parameters,
    /// ExpCmdSN: number of the first command.
    pub exp_cmd_sn: u32,
    /// StatSN of the next status.
    pub stat_sn: u32,
    /// Connection of the session that this one replaces; the driver must close it.
    pub replaces: Option<Replaced>,
}

/// Failed login, as far as its details are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal<'a> {
    /// InitiatorName as sent by the initiator, not verified.
    pub initiator: Option<&'a str>,
    /// TargetName of the request; `None` for discovery.
    pub target: Option<&'a str>,
    /// Login status that was sent; `None` if there was no request to answer.
    pub status: Option<LoginStatus>,
}

/// Contents of the first login request.
#[derive(Clone, Debug)]
struct Leading {
    initiator: String,
    target: Option<u16>,
    isid: [u8; 6],
    cid: u16,
}

/// State machine of one login.
#[derive(Debug)]
pub struct Login {
    config: LoginConfig,
    deadline: Instant,
    leading: Option<Leading>,
    /// Current stage (CSG); `None` before the first request.
    stage: Option<u8>,
    security: Security,
    negotiation: Negotiation,
    /// Text of a request that continues in the next PDU (C bit).
    collected: Vec<u8>,
    steps: u32,
    stat_sn: u32,
    first: Option<LoginRequest>,
    /// Names of initiator and target in the first request.
    names: [Option<String>; 2],
    refused: Option<LoginStatus>,
    is_unavailable: bool,
    over: bool,
    outputs: VecDeque<Output>,
}

impl Login {
    /// Starts the login of a connection that was accepted at `now`.
    pub fn new(now: Instant, config: LoginConfig) -> Login {
        let deadline = now + config.timeout;
        Login {
            security: Security::new(config.challenge),
            config,
            deadline,
            leading: None,
            stage: None,
            negotiation: Negotiation::new(Offers::default()),
            collected: Vec::new(),
            steps: 0,
            stat_sn: 0,
            first: None,
            names: [None, None],
            refused: None,
            is_unavailable: false,
            over: false,
            outputs: VecDeque::new(),
        }
    }

    /// Processes one event. `directory` holds all sessions of the node.
    pub fn handle(&mut self, now: Instant, input: Input, directory: &mut Directory) {
        match input {
            _ if self.over => {}
            Input::Pdu { head, text } => match head.header {
                Header::LoginRequest(request) => self.on_request(&request, &text, directory),
                _ => self.on_other(),
            },
            Input::TooLong(head) => match head.header {
                Header::LoginRequest(request) => {
                    self.belongs(&request);
                    self.refuse(&request, LoginStatus::INITIATOR_ERROR, Vec::new());
                }
                _ => self.on_other(),
            },
            Input::Timeout => {
                if self.deadline <= now {
                    self.close();
                }
            }
        }
    }

    /// Returns the next action for the driver.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which the driver must pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        (!self.over).then_some(self.deadline)
    }

    /// Refuses the login with the status "service unavailable" (RFC 7143, section 11.13.5), because
    /// the target cannot reach its medium.
    pub fn set_unavailable(&mut self) {
        self.is_unavailable = true;
    }

    /// Details of a refused login, available after [`Output::Close`].
    pub fn refusal(&self) -> Refusal<'_> {
        let [initiator, target] = self.names.each_ref().map(Option::as_deref);
        Refusal { initiator, target, status: self.refused }
    }

    fn close(&mut self) {
        self.over = true;
        self.outputs.push_back(Output::Close);
    }

    /// Returns whether a request belongs to this login. The first request sets the StatSN of the
    /// first response and the fields that all later requests must repeat.
    fn belongs(&mut self, request: &LoginRequest) -> bool {
        if self.first.is_none() {
            self.stat_sn = request.exp_stat_sn;
        }
        let of = |request: &LoginRequest| (request.isid, request.cid, request.initiator_tag);
        of(self.first.get_or_insert(*request)) == of(request)
    }

    /// Handles a PDU other than a login request. During a login it is refused (RFC 7143, section
    /// 4.2.3). Before the first request the connection is closed because there is no request to
    /// answer.
    fn on_other(&mut self) {
        match self.first {
            Some(request) => self.refuse(&request, LoginStatus::INVALID_REQUEST, Vec::new()),
            None => self.close(),
        }
    }

    fn on_request(&mut self, request: &LoginRequest, text: &[u8], directory: &mut Directory) {
        self.steps += 1;
        let outcome = match self.belongs(request) {
            true => self.step(request, text, directory),
            false => Err(LoginStatus::INITIATOR_ERROR),
        };
        if let Err(status) = outcome {
            self.refuse(request, status, Vec::new());
        }
    }

    fn step(&mut self, request: &LoginRequest, text: &[u8], directory: &mut Directory) -> Result<(), LoginStatus> {
        if request.version_min > 0 {
            return Err(LoginStatus::UNSUPPORTED_VERSION);
        }
        if self.is_unavailable {
            return Err(LoginStatus::SERVICE_UNAVAILABLE);
        }
        if self.steps > MAX_STEPS || self.collected.len() + text.len() > MAX_TEXT_BYTES {
            return Err(LoginStatus::OUT_OF_RESOURCES);
        }
        let current = request.stage();
        let goes_on = request.flags & flag::CONTINUE != 0;
        let wants_transit = request.flags & flag::TRANSIT != 0;
        let expected = self.stage.is_none_or(|stage| stage == current);
        if !expected || current > stage::OPERATIONAL || (goes_on && wants_transit) {
            return Err(LoginStatus::INITIATOR_ERROR);
        }
        self.collected.extend_from_slice(text);
        if goes_on {
            self.respond(request, current, None, 0, Vec::new());
            return Ok(());
        }
        let text = std::mem::take(&mut self.collected);
        let pairs = text::parse(&text).map_err(|_| LoginStatus::INITIATOR_ERROR)?;
        let mut out = Vec::new();
        if self.leading.is_none() {
            self.lead(request, &pairs, directory, &mut out)?;
        }
        self.stage = Some(current);
        let secured = self.negotiate(current, &pairs, &mut out)?;
        if wants_transit && !secured {
            // The initiator's proof is still missing, so the transit request is ignored.
            self.respond(request, current, None, 0, out);
            return Ok(());
        }
        let next = wants_transit.then_some(request.next_stage());
        match next {
            None => self.respond(request, current, None, 0, out),
            Some(next @ stage::OPERATIONAL) if current == stage::SECURITY => {
                self.stage = Some(next);
                self.respond(request, current, Some(next), 0, out);
            }
            Some(stage::FULL_FEATURE) => {
                self.negotiation.declare(&mut out);
                self.complete(request, current, directory, out)?;
            }
            Some(_) => return Err(LoginStatus::INITIATOR_ERROR),
        }
        Ok(())
    }

    /// Handles the first request: initiator, target and session type.
    fn lead(
        &mut self,
        request: &LoginRequest,
        pairs: &[text::Pair<'_>],
        directory: &Directory,
        out: &mut Vec<u8>,
    ) -> Result<(), LoginStatus> {
        let value = |key: Key| key.value(pairs);
        // Names that are too long cannot be valid, so they are not recorded.
        let named = |key: Key| value(key).filter(|name| name.len() <= name::MAX_NAME_BYTES).map(str::to_owned);
        self.names = [named(Key::InitiatorName), named(Key::TargetName)];
        let initiator = value(Key::InitiatorName).ok_or(LoginStatus::MISSING_PARAMETER)?;
        if initiator.is_empty() || initiator.len() > name::MAX_NAME_BYTES {
            return Err(LoginStatus::INITIATOR_ERROR);
        }
        let node = self.config.node.clone();
        let target = match value(Key::SessionType).unwrap_or("Normal") {
            "Discovery" => None,
            "Normal" => {
                let requested = value(Key::TargetName).ok_or(LoginStatus::MISSING_PARAMETER)?;
                let here =
                    |target: &super::Target| target.portals.iter().any(|portal| portal.address == self.config.address);
                let found = node.targets.iter().position(|target| target.name == requested && here(target));
                Some(u16::try_from(found.ok_or(LoginStatus::NOT_FOUND)?).map_err(|_| LoginStatus::OUT_OF_RESOURCES)?)
            }
            _ => return Err(LoginStatus::SESSION_TYPE),
        };
        if let Some(target) = target {
            let target = &node.targets[usize::from(target)];
            if !target.access.allows(initiator) {
                return Err(LoginStatus::AUTHORIZATION_FAILURE);
            }
            if let Some(redirect) = &target.redirect {
                let mut text = Vec::new();
                Key::TargetAddress.emit(&redirect.address, &mut text);
                let status = match redirect.permanent {
                    true => LoginStatus::MOVED_PERMANENTLY,
                    false => LoginStatus::MOVED_TEMPORARILY,
                };
                self.refuse(request, status, text);
                return Ok(());
            }
            self.negotiation = Negotiation::new(target.offers);
            if let Some(alias) = &target.alias {
                Key::TargetAlias.emit(alias, out);
            }
        } else {
            self.negotiation.set_discovery();
        }
        Key::TargetPortalGroupTag.emit(&self.group(target).to_string(), out);
        let leading = Leading { initiator: initiator.to_owned(), target, isid: request.isid, cid: request.cid };
        let key = self.key(&leading);
        if request.tsih != 0 {
            // A session supports only one connection.
            return Err(match directory.tsih(&key) {
                Some(tsih) if tsih == request.tsih => LoginStatus::TOO_MANY_CONNECTIONS,
                _ => LoginStatus::NO_SESSION,
            });
        }
        let most = target.map_or(u32::MAX, |target| node.targets[usize::from(target)].max_sessions);
        if directory.tsih(&key).is_none() && directory.count(target) >= most as usize {
            return Err(LoginStatus::OUT_OF_RESOURCES);
        }
        self.security.expect(self.authentication(target).clone());
        self.leading = Some(leading);
        Ok(())
    }

    fn authentication(&self, target: Option<u16>) -> &Authentication {
        match target {
            Some(target) => &self.config.node.targets[usize::from(target)].authentication,
            None => &self.config.node.discovery,
        }
    }

    /// Answers the keys of one step. Returns true if authentication is complete.
    fn negotiate(&mut self, current: u8, pairs: &[text::Pair<'_>], out: &mut Vec<u8>) -> Result<bool, LoginStatus> {
        // The login was redirected and the answer is already queued.
        if self.over {
            return Ok(false);
        }
        if current == stage::SECURITY {
            self.security.answer(pairs, out)?;
        } else if !self.security.is_satisfied() {
            return Err(LoginStatus::AUTHENTICATION_FAILURE);
        }
        for (key, value) in pairs {
            match Key::named(key) {
                Some(Key::InitiatorName | Key::InitiatorAlias | Key::TargetName | Key::SessionType) => {}
                _ if Key::is_security(key) => {
                    if current != stage::SECURITY {
                        return Err(LoginStatus::INITIATOR_ERROR);
                    }
                }
                _ => self.negotiation.answer(key, value, out).map_err(|_| LoginStatus::INITIATOR_ERROR)?,
            }
        }
        Ok(self.security.is_satisfied())
    }

    fn key(&self, leading: &Leading) -> SessionKey {
        let Leading { initiator, target, isid, .. } = leading;
        SessionKey { target: *target, initiator: initiator.clone(), isid: *isid, group: self.group(*target) }
    }

    /// Portal group of this portal, which may differ between targets.
    fn group(&self, target: Option<u16>) -> u16 {
        let target = target.and_then(|target| self.config.node.targets.get(usize::from(target)));
        let portal = target.and_then(|target| target.portals.iter().find(|one| one.address == self.config.address));
        portal.map_or(self.config.group, |portal| portal.group)
    }

    fn complete(
        &mut self,
        request: &LoginRequest,
        current: u8,
        directory: &mut Directory,
        out: Vec<u8>,
    ) -> Result<(), LoginStatus> {
        if !self.negotiation.is_acceptable() {
            return Err(LoginStatus::INITIATOR_ERROR);
        }
        let leading = self.leading.take().ok_or(LoginStatus::INITIATOR_ERROR)?;
        let key = self.key(&leading);
        let (tsih, replaces) = directory.enter(key.clone(), self.config.connection);
        self.respond(request, current, Some(stage::FULL_FEATURE), tsih, out);
        self.over = true;
        self.outputs.push_back(Output::Done(Box::new(Established {
            key,
            tsih,
            cid: leading.cid,
            parameters: self.negotiation.parameters(),
            exp_cmd_sn: request.cmd_sn,
            stat_sn: self.stat_sn,
            replaces,
        })));
        Ok(())
    }

    fn refuse(&mut self, request: &LoginRequest, status: LoginStatus, text: Vec<u8>) {
        if self.over {
            return;
        }
        self.refused = Some(status);
        self.send(request, 0, 0, status, text);
        self.close();
    }

    fn respond(&mut self, request: &LoginRequest, current: u8, next: Option<u8>, tsih: u16, text: Vec<u8>) {
        if self.over {
            return;
        }
        let transit = next.map_or(0, |next| flag::TRANSIT | next);
        self.send(request, transit | current << 2, tsih, LoginStatus::SUCCESS, text);
    }

    fn send(&mut self, request: &LoginRequest, flags: u8, tsih: u16, status: LoginStatus, text: Vec<u8>) {
        let response = LoginResponse {
            flags,
            version_max: 0,
            version_active: 0,
            isid: request.isid,
            tsih,
            initiator_tag: request.initiator_tag,
            stat_sn: self.stat_sn,
            exp_cmd_sn: request.cmd_sn,
            max_cmd_sn: request.cmd_sn,
            status,
        };
        self.stat_sn = self.stat_sn.wrapping_add(1);
        let head = Head::with_data(response, len32(text.len()));
        self.outputs.push_back(Output::Send { head, text: text.into() });
    }
}
