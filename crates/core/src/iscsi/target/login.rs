//! A login, from the first byte of a connection to the full feature phase: [`Login`] (RFC 7143, section 6.3).
//!
//! ```text
//!            security: AuthMethod, CHAP          operational: all other keys
//!   first --------------------------> security ------------------------------> operational -----> done
//!     |                                   +--------------- T, NSG = 3 ----------------------------> |
//!     +--- CSG = 1, nobody has to prove anything --------------------------------> operational      |
//!   refused in any stage: a response with the status, then the connection is closed
//! ```

use super::config::{Authentication, Node};
use super::directory::{ConnectionId, Directory, Replaced, SessionKey};
use super::security::Security;
use crate::iscsi::negotiation::Negotiation;
use crate::iscsi::parameters::{Parameters, Wishes};
use crate::time::{Instant, Span};
use sanloom_wire::iscsi::code::{flag, stage};
use sanloom_wire::iscsi::{Head, Header, LoginRequest, LoginResponse, LoginStatus, name, text};
use std::collections::VecDeque;
use std::sync::Arc;

/// Longest text of one step, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Steps of one login.
const MAX_STEPS: u32 = 64;

/// What a login needs to know.
#[derive(Clone, Debug)]
pub struct LoginConfig {
    /// What is offered.
    pub node: Arc<Node>,
    /// Portal that the connection came to.
    pub address: String,
    /// Its portal group.
    pub group: u16,
    /// The connection.
    pub connection: ConnectionId,
    /// Random bytes for the challenge of CHAP.
    pub challenge: [u8; 16],
    /// A login that takes longer is given up.
    pub timeout: Span,
}

/// What happens to a login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A PDU, with its text.
    Pdu {
        /// Header.
        head: Head,
        /// Data segment.
        text: Box<[u8]>,
    },
    /// A PDU whose data segment is longer than any of a login (8 KiB); it was not read, and nothing behind it
    /// will be.
    TooLong(Head),
    /// Time has passed.
    Timeout,
}

/// What a login does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a PDU.
    Send {
        /// Header.
        head: Head,
        /// Data segment.
        text: Box<[u8]>,
    },
    /// The connection is in the full feature phase.
    Done(Box<Established>),
    /// The login failed: close the connection once everything has been sent.
    Close,
}

/// What a login has led to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Established {
    /// What makes the session one.
    pub key: SessionKey,
    /// Its handle.
    pub tsih: u16,
    /// Identifier of the connection.
    pub cid: u16,
    /// What was agreed.
    pub parameters: Parameters,
    /// The next command.
    pub exp_cmd_sn: u32,
    /// The next status.
    pub stat_sn: u32,
    /// A session that this one takes the place of: to be closed.
    pub replaces: Option<Replaced>,
}

/// A login that came to nothing, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal<'a> {
    /// Name of the initiator, as it says.
    pub initiator: Option<&'a str>,
    /// The target that it wants; none for discovery.
    pub target: Option<&'a str>,
    /// What it was told; none where there was nothing to answer.
    pub status: Option<LoginStatus>,
}

/// What the first request said.
#[derive(Clone, Debug)]
struct Leading {
    initiator: String,
    target: Option<u16>,
    isid: [u8; 6],
    cid: u16,
}

/// A login.
#[derive(Debug)]
pub struct Login {
    config: LoginConfig,
    deadline: Instant,
    leading: Option<Leading>,
    /// Where it stands; `None`: before the first request.
    stage: Option<u8>,
    security: Security,
    negotiation: Negotiation,
    /// Text that goes on in the next request.
    collected: Vec<u8>,
    steps: u32,
    stat_sn: u32,
    first: Option<LoginRequest>,
    /// Initiator and target, as the first request names them.
    names: [Option<String>; 2],
    refused: Option<LoginStatus>,
    over: bool,
    outputs: VecDeque<Output>,
}

impl Login {
    /// A connection was accepted at `now`.
    pub fn new(now: Instant, config: LoginConfig) -> Login {
        let deadline = now + config.timeout;
        Login {
            security: Security::new(config.challenge),
            config,
            deadline,
            leading: None,
            stage: None,
            negotiation: Negotiation::new(Wishes::default()),
            collected: Vec::new(),
            steps: 0,
            stat_sn: 0,
            first: None,
            names: [None, None],
            refused: None,
            over: false,
            outputs: VecDeque::new(),
        }
    }

    /// One thing happened. `directory` is that of all sessions of the node.
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

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        (!self.over).then_some(self.deadline)
    }

    /// Who was refused, and why, after [`Output::Close`].
    pub fn refusal(&self) -> Refusal<'_> {
        let [initiator, target] = self.names.each_ref().map(Option::as_deref);
        Refusal { initiator, target, status: self.refused }
    }

    fn close(&mut self) {
        self.over = true;
        self.outputs.push_back(Output::Close);
    }

    /// The first request says which number our first response has, and what all others have in common with it. True if this one
    /// has that.
    fn belongs(&mut self, request: &LoginRequest) -> bool {
        if self.first.is_none() {
            self.stat_sn = request.exp_stat_sn;
        }
        let of = |request: &LoginRequest| (request.isid, request.cid, request.initiator_tag);
        of(self.first.get_or_insert(*request)) == of(request)
    }

    /// Another PDU than a login request: refused within a login (RFC 7143, section 4.2.3); before it there is nothing that could be
    /// refused.
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
            // Its proof is still to come; the request to go on is not heard.
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

    /// The first request: who, to which target, for what.
    fn lead(
        &mut self,
        request: &LoginRequest,
        pairs: &[text::Pair<'_>],
        directory: &Directory,
        out: &mut Vec<u8>,
    ) -> Result<(), LoginStatus> {
        let value = |key| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        // Names that are too long are of nobody.
        let named = |key| value(key).filter(|name| name.len() <= name::MAX_NAME_BYTES).map(str::to_owned);
        self.names = [named("InitiatorName"), named("TargetName")];
        let initiator = value("InitiatorName").ok_or(LoginStatus::MISSING_PARAMETER)?;
        if initiator.is_empty() || initiator.len() > name::MAX_NAME_BYTES {
            return Err(LoginStatus::INITIATOR_ERROR);
        }
        let node = self.config.node.clone();
        let target = match value("SessionType").unwrap_or("Normal") {
            "Discovery" => None,
            "Normal" => {
                let wanted = value("TargetName").ok_or(LoginStatus::MISSING_PARAMETER)?;
                let here =
                    |target: &super::Target| target.portals.iter().any(|portal| portal.address == self.config.address);
                let found = node.targets.iter().position(|target| target.name == wanted && here(target));
                Some(found.ok_or(LoginStatus::NOT_FOUND)? as u16)
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
                text::emit("TargetAddress", &redirect.address, &mut text);
                let status = match redirect.permanent {
                    true => LoginStatus::MOVED_PERMANENTLY,
                    false => LoginStatus::MOVED_TEMPORARILY,
                };
                self.refuse(request, status, text);
                return Ok(());
            }
            self.negotiation = Negotiation::new(target.wishes);
            if let Some(alias) = &target.alias {
                text::emit("TargetAlias", alias, out);
            }
        } else {
            self.negotiation.set_discovery();
        }
        text::emit("TargetPortalGroupTag", &self.group(target).to_string(), out);
        let leading = Leading { initiator: initiator.to_owned(), target, isid: request.isid, cid: request.cid };
        let key = self.key(&leading);
        if request.tsih != 0 {
            // One connection is all that a session has.
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

    /// Answers the keys of one step. True if nothing more has to be proved.
    fn negotiate(&mut self, current: u8, pairs: &[text::Pair<'_>], out: &mut Vec<u8>) -> Result<bool, LoginStatus> {
        // Redirected: the answer is on its way.
        if self.over {
            return Ok(false);
        }
        if current == stage::SECURITY {
            self.security.answer(pairs, out)?;
        } else if !self.security.is_satisfied() {
            return Err(LoginStatus::AUTHENTICATION_FAILURE);
        }
        for (key, value) in pairs {
            match *key {
                "InitiatorName" | "InitiatorAlias" | "TargetName" | "SessionType" => {}
                key if Security::is_key(key) => {
                    if current != stage::SECURITY {
                        return Err(LoginStatus::INITIATOR_ERROR);
                    }
                }
                key => self.negotiation.answer(key, value, out).map_err(|_| LoginStatus::INITIATOR_ERROR)?,
            }
        }
        Ok(self.security.is_satisfied())
    }

    fn key(&self, leading: &Leading) -> SessionKey {
        let Leading { initiator, target, isid, .. } = leading;
        SessionKey { target: *target, initiator: initiator.clone(), isid: *isid, group: self.group(*target) }
    }

    /// The portal's group, which may differ from target to target.
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
        let head = Head::with_data(response, text.len() as u32);
        self.outputs.push_back(Output::Send { head, text: text.into() });
    }
}
