//! Login on the initiator's side: [`Login`] (RFC 7143, section 6.3).

use crate::iscsi::chap::{Algorithm, Challenge, Credentials};
use crate::iscsi::framer::len32;
use crate::iscsi::keys::Key;
use crate::iscsi::negotiation::Negotiation;
use crate::iscsi::parameters::{Offers, Parameters};
use crate::time::{Instant, Span};
use sanloom_wire::iscsi::code::{flag, stage};
use sanloom_wire::iscsi::{Head, Header, LoginRequest, LoginResponse, LoginStatus, text};
use std::collections::VecDeque;

/// Maximum number of request-response steps of one login.
const MAX_STEPS: u32 = 32;
/// Maximum text of one answer, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Parameters of a login.
#[derive(Clone, Debug)]
pub struct LoginConfig {
    /// iSCSI name of the initiator.
    pub initiator: String,
    /// iSCSI name of the target; `None` for a discovery session.
    pub target: Option<String>,
    /// ISID: the initiator's part of the session identifier.
    pub isid: [u8; 6],
    /// Parameters that the initiator offers.
    pub offers: Offers,
    /// Credentials with which the initiator authenticates itself.
    pub own: Option<Credentials>,
    /// Credentials that the target has to prove (mutual CHAP).
    pub target_proof: Option<Credentials>,
    /// Random bytes of the challenge to the target.
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
    Done(Established),
    /// The login failed: close the connection.
    Failed(LoginError),
}

/// Result of a successful login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Established {
    /// TSIH: the target's part of the session identifier.
    pub tsih: u16,
    /// Negotiated parameters.
    pub parameters: Parameters,
    /// CmdSN of the first command.
    pub cmd_sn: u32,
    /// MaxCmdSN: the highest command number that may be sent.
    pub max_cmd_sn: u32,
    /// StatSN expected in the next status.
    pub exp_stat_sn: u32,
    /// Portal group tag reported by the target (RFC 7143, section 13.9).
    pub portal_group: Option<u16>,
}

/// Reason for a failed login.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoginError {
    /// The target refused the login with this status.
    #[error("the target refuses the login: {}", status_text(*.0))]
    Refused(LoginStatus),
    /// The target redirected the login to another address.
    #[error("the target redirects the login to {address}")]
    Moved {
        /// Address and port of the other portal.
        address: String,
        /// True for "moved permanently", false for "moved temporarily".
        permanent: bool,
    },
    /// The target's proof is wrong or missing.
    #[error("the CHAP response of the target is wrong or missing")]
    Unproved,
    /// The target requires an authentication for which no credentials are configured.
    #[error("the target requires authentication, and no credentials are configured for it")]
    NoMethod,
    /// The target does not support the digests that this side requires.
    #[error("the target does not support the required digests")]
    NoDigests,
    /// The target violated the protocol.
    #[error("the target violates the protocol: {0}")]
    Protocol(&'static str),
    /// The login was not complete in time.
    #[error("the target does not answer the login")]
    Timeout,
}

/// Status code with its name, such as "0x0201 authentication failure". The class names a code that
/// the standard does not define.
fn status_text(status: LoginStatus) -> String {
    match status.name() {
        Some(name) => format!("{:#06x} {name}", status.0),
        None => format!("{:#06x}, an unknown {}", status.0, status.class_name()),
    }
}

impl LoginError {
    /// Returns whether the same login will fail again until the configuration of either side
    /// changes (RFC 7143, section 11.13.5, for statuses).
    pub fn is_lasting(&self) -> bool {
        match self {
            LoginError::Refused(status) => status.is_initiator_error(),
            LoginError::Unproved | LoginError::NoMethod | LoginError::NoDigests => true,
            LoginError::Moved { .. } | LoginError::Protocol(_) | LoginError::Timeout => false,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum State {
    /// The initiator has offered CHAP.
    Method,
    /// The initiator has offered algorithms.
    Algorithm,
    /// The initiator has sent its proof, and this challenge to the target if mutual CHAP is
    /// required.
    Proof(Option<Challenge>),
    Operational,
    Over,
}

/// State machine of one login.
#[derive(Debug)]
pub struct Login {
    config: LoginConfig,
    deadline: Instant,
    state: State,
    negotiation: Negotiation,
    collected: Vec<u8>,
    steps: u32,
    exp_stat_sn: u32,
    portal_group: Option<u16>,
    outputs: VecDeque<Output>,
}

/// Algorithms in the order of the offer. SHA-256 comes last because tgt, among others, takes 7 for
/// SHA-1.
const OFFERED: [Algorithm; 3] = [Algorithm::Sha1, Algorithm::Md5, Algorithm::Sha256];

/// CmdSN of the first command.
const FIRST_CMD_SN: u32 = 1;
const INITIATOR_TAG: u32 = 0;

impl Login {
    /// Starts a login on a connection opened at `now`; the first request is queued as output.
    pub fn new(now: Instant, config: LoginConfig) -> Login {
        let mut negotiation = Negotiation::new(config.offers);
        if config.target.is_none() {
            negotiation.set_discovery();
        }
        let mut login = Login {
            deadline: now + config.timeout,
            state: State::Over,
            negotiation,
            collected: Vec::new(),
            steps: 0,
            exp_stat_sn: 0,
            portal_group: None,
            outputs: VecDeque::new(),
            config,
        };
        login.begin();
        login
    }

    /// Processes one event.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            _ if self.state == State::Over => {}
            Input::Pdu { head, text } => match head.header {
                Header::LoginResponse(response) => {
                    if let Err(error) = self.on_response(&response, &text) {
                        self.fail(error);
                    }
                }
                _ => self.fail(LoginError::Protocol("a PDU other than a login response")),
            },
            Input::Timeout if self.deadline <= now => self.fail(LoginError::Timeout),
            Input::Timeout => {}
        }
    }

    /// Returns the next action for the driver.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Time at which the driver must pass [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.state != State::Over).then_some(self.deadline)
    }

    fn begin(&mut self) {
        let mut out = Vec::new();
        Key::InitiatorName.emit(&self.config.initiator, &mut out);
        match &self.config.target {
            Some(target) => {
                Key::TargetName.emit(target, &mut out);
                Key::SessionType.emit("Normal", &mut out);
            }
            None => Key::SessionType.emit("Discovery", &mut out),
        }
        if self.config.own.is_some() {
            Key::AuthMethod.emit("CHAP", &mut out);
            self.state = State::Method;
            return self.request(stage::SECURITY, None, out);
        }
        Key::AuthMethod.emit("None", &mut out);
        self.state = State::Proof(None);
        self.request(stage::SECURITY, Some(stage::OPERATIONAL), out);
    }

    fn request(&mut self, current: u8, next: Option<u8>, out: Vec<u8>) {
        let transit = next.map_or(0, |next| flag::TRANSIT | next);
        let request = LoginRequest {
            flags: transit | current << 2,
            version_max: 0,
            version_min: 0,
            isid: self.config.isid,
            tsih: 0,
            initiator_tag: INITIATOR_TAG,
            cid: 0,
            cmd_sn: FIRST_CMD_SN,
            exp_stat_sn: self.exp_stat_sn,
        };
        let head = Head { immediate: true, ..Head::with_data(request, len32(out.len())) };
        self.outputs.push_back(Output::Send { head, text: out.into() });
    }

    fn fail(&mut self, error: LoginError) {
        self.state = State::Over;
        self.outputs.push_back(Output::Failed(error));
    }

    fn on_response(&mut self, response: &LoginResponse, bytes: &[u8]) -> Result<(), LoginError> {
        self.steps += 1;
        if self.steps > MAX_STEPS || self.collected.len() + bytes.len() > MAX_TEXT_BYTES {
            return Err(LoginError::Protocol("too many login steps"));
        }
        self.exp_stat_sn = response.stat_sn.wrapping_add(1);
        self.collected.extend_from_slice(bytes);
        let current = if self.state == State::Operational { stage::OPERATIONAL } else { stage::SECURITY };
        if response.status.is_success() && response.flags & flag::CONTINUE != 0 {
            self.request(current, None, Vec::new());
            return Ok(());
        }
        let collected = std::mem::take(&mut self.collected);
        let pairs = text::parse(&collected).map_err(|_| LoginError::Protocol("invalid text"))?;
        let value = |key: Key| key.value(&pairs);
        let group = value(Key::TargetPortalGroupTag).and_then(text::number).and_then(|tag| u16::try_from(tag).ok());
        self.portal_group = group.or(self.portal_group);
        if response.status.is_redirection() {
            let address = value(Key::TargetAddress).ok_or(LoginError::Protocol("a redirection without an address"))?;
            // The address may be followed by a portal group tag.
            let address = address.split(',').next().unwrap_or(address).to_owned();
            let permanent = response.status == LoginStatus::MOVED_PERMANENTLY;
            return Err(LoginError::Moved { address, permanent });
        }
        if !response.status.is_success() {
            return Err(LoginError::Refused(response.status));
        }
        if response.stage() != current {
            return Err(LoginError::Protocol("a response of another stage"));
        }
        let next = (response.flags & flag::TRANSIT != 0).then_some(response.next_stage());
        match self.state.clone() {
            State::Method => {
                if value(Key::AuthMethod) != Some("CHAP") {
                    return Err(LoginError::NoMethod);
                }
                let mut out = Vec::new();
                let list: Vec<String> = OFFERED.iter().map(|one| one.number().to_string()).collect();
                Key::ChapAlgorithm.emit(&list.join(","), &mut out);
                self.state = State::Algorithm;
                self.request(stage::SECURITY, None, out);
            }
            State::Algorithm => {
                self.prove(value(Key::ChapAlgorithm), value(Key::ChapIdentifier), value(Key::ChapChallenge))?
            }
            State::Proof(challenge) => {
                if value(Key::AuthMethod).is_some_and(|method| method != "None") {
                    return Err(LoginError::NoMethod);
                }
                self.check(challenge.as_ref(), value(Key::ChapName), value(Key::ChapResponse))?;
                match next {
                    Some(stage::OPERATIONAL) => {
                        self.state = State::Operational;
                        let mut out = Vec::new();
                        self.negotiation.offer(&mut out);
                        self.request(stage::OPERATIONAL, Some(stage::FULL_FEATURE), out);
                    }
                    None => self.request(stage::SECURITY, Some(stage::OPERATIONAL), Vec::new()),
                    Some(_) => return Err(LoginError::Protocol("a stage that was not requested")),
                }
            }
            State::Operational => {
                for (key, value) in &pairs {
                    self.negotiation
                        .take(key, value)
                        .map_err(|_| LoginError::Protocol("an answer that was not offered"))?;
                }
                if next != Some(stage::FULL_FEATURE) {
                    self.request(stage::OPERATIONAL, Some(stage::FULL_FEATURE), Vec::new());
                    return Ok(());
                }
                if !self.negotiation.is_acceptable() {
                    return Err(LoginError::NoDigests);
                }
                self.state = State::Over;
                self.outputs.push_back(Output::Done(Established {
                    tsih: response.tsih,
                    parameters: self.negotiation.parameters(),
                    cmd_sn: FIRST_CMD_SN,
                    max_cmd_sn: response.max_cmd_sn,
                    exp_stat_sn: self.exp_stat_sn,
                    portal_group: self.portal_group,
                }));
            }
            State::Over => {}
        }
        Ok(())
    }

    /// Answers the target's challenge. Sends a challenge to the target if mutual CHAP is required.
    fn prove(&mut self, list: Option<&str>, id: Option<&str>, bytes: Option<&str>) -> Result<(), LoginError> {
        const INCOMPLETE: LoginError = LoginError::Protocol("an invalid CHAP challenge");
        let algorithm = list.and_then(Algorithm::choose).ok_or(INCOMPLETE)?;
        let id = id.and_then(text::number).and_then(|id| u8::try_from(id).ok()).ok_or(INCOMPLETE)?;
        let bytes = bytes.and_then(text::binary).ok_or(INCOMPLETE)?;
        let own = self.config.own.clone().ok_or(LoginError::NoMethod)?;
        let mut out = Vec::new();
        Key::ChapName.emit(&own.name, &mut out);
        let proof = Challenge { algorithm, id, bytes }.answer(&own.secret);
        Key::ChapResponse.emit(&text::to_binary(&proof), &mut out);
        let challenge = self.config.target_proof.as_ref().map(|_| {
            let [id, ..] = self.config.challenge;
            Challenge { algorithm, id, bytes: self.config.challenge.to_vec() }
        });
        if let Some(challenge) = &challenge {
            Key::ChapIdentifier.emit(&challenge.id.to_string(), &mut out);
            Key::ChapChallenge.emit(&text::to_binary(&challenge.bytes), &mut out);
        }
        self.state = State::Proof(challenge);
        self.request(stage::SECURITY, Some(stage::OPERATIONAL), out);
        Ok(())
    }

    /// Verifies the target's proof, if one is required.
    fn check(
        &mut self,
        challenge: Option<&Challenge>,
        name: Option<&str>,
        proof: Option<&str>,
    ) -> Result<(), LoginError> {
        let Some(expected) = &self.config.target_proof else { return Ok(()) };
        let (Some(challenge), Some(name), Some(proof)) = (challenge, name, proof.and_then(text::binary)) else {
            return Err(LoginError::Unproved);
        };
        let proved = name == expected.name && challenge.accepts(&expected.secret, &proof);
        if !proved {
            return Err(LoginError::Unproved);
        }
        // The target has to prove itself only once.
        self.config.target_proof = None;
        Ok(())
    }
}
