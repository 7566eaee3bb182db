//! A login, seen from the initiator: [`Login`] (RFC 7143, section 6.3).

use crate::iscsi::chap::{Algorithm, Challenge, Credentials};
use crate::iscsi::negotiation::Negotiation;
use crate::iscsi::parameters::{Parameters, Wishes};
use crate::time::{Instant, Span};
use sanloom_wire::iscsi::code::{flag, stage};
use sanloom_wire::iscsi::{Head, Header, LoginRequest, LoginResponse, LoginStatus, text};
use std::collections::VecDeque;

/// Steps of one login.
const MAX_STEPS: u32 = 32;
/// Longest text of one answer, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Who logs in, and where.
#[derive(Clone, Debug)]
pub struct LoginConfig {
    /// iSCSI name of the initiator.
    pub initiator: String,
    /// iSCSI name of the target; `None`: discovery.
    pub target: Option<String>,
    /// The initiator's part of the session identifier.
    pub isid: [u8; 6],
    /// What is wanted of the session.
    pub wishes: Wishes,
    /// What we prove to the target.
    pub own: Option<Credentials>,
    /// What the target has to prove.
    pub target_proof: Option<Credentials>,
    /// Random bytes for the challenge to the target.
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
    Done(Established),
    /// The login failed: close the connection.
    Failed(LoginError),
}

/// What a login has led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Established {
    /// The target's part of the session identifier.
    pub tsih: u16,
    /// What was agreed.
    pub parameters: Parameters,
    /// The next command.
    pub cmd_sn: u32,
    /// The last command that may be sent.
    pub max_cmd_sn: u32,
    /// The next status.
    pub exp_stat_sn: u32,
    /// The portal group that the target says it is (RFC 7143, section 13.9).
    pub portal_group: Option<u16>,
}

/// Why a login failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoginError {
    /// The target refuses.
    #[error("the target refuses the login: {0}")]
    Refused(LoginStatus),
    /// Try there.
    #[error("the target is at {address}")]
    Moved {
        /// Address and port.
        address: String,
        /// For ever.
        permanent: bool,
    },
    /// The target does not prove what it has to, or does not even try.
    #[error("the target does not prove who it is")]
    Unproved,
    /// The target wants a proof that we have none for.
    #[error("the target wants another proof than we have")]
    NoMethod,
    /// The target does without digests that we insist on.
    #[error("the target does not agree to the digests that are asked for")]
    NoDigests,
    /// The target broke the protocol.
    #[error("the target does not keep to the protocol: {0}")]
    Protocol(&'static str),
    /// No answer in time.
    #[error("the target does not answer the login")]
    Timeout,
}

impl LoginError {
    /// The same login will fail again, until somebody changes the target or us (RFC 7143, section 11.13.5, for statuses).
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
    /// We have asked for CHAP.
    Method,
    /// We have named algorithms.
    Algorithm,
    /// We have sent our proof, and this challenge.
    Proof(Option<Challenge>),
    Operational,
    Over,
}

/// A login.
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

/// Algorithms in the order of the offer. tgt takes 7 for SHA-1 and is not the only one, so SHA-256 is for those that have nothing
/// else.
const OFFERED: [Algorithm; 3] = [Algorithm::Sha1, Algorithm::Md5, Algorithm::Sha256];

/// Number of the first command.
const FIRST_CMD_SN: u32 = 1;
const INITIATOR_TAG: u32 = 0;

impl Login {
    /// A connection was opened at `now`; the first request is the first output.
    pub fn new(now: Instant, config: LoginConfig) -> Login {
        let mut negotiation = Negotiation::new(config.wishes);
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

    /// One thing happened.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            _ if self.state == State::Over => {}
            Input::Pdu { head, text } => match head.header {
                Header::LoginResponse(response) => {
                    if let Err(error) = self.on_response(&response, &text) {
                        self.fail(error);
                    }
                }
                _ => self.fail(LoginError::Protocol("another PDU during login")),
            },
            Input::Timeout if self.deadline <= now => self.fail(LoginError::Timeout),
            Input::Timeout => {}
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.state != State::Over).then_some(self.deadline)
    }

    fn begin(&mut self) {
        let mut out = Vec::new();
        text::emit("InitiatorName", &self.config.initiator, &mut out);
        match &self.config.target {
            Some(target) => {
                text::emit("TargetName", target, &mut out);
                text::emit("SessionType", "Normal", &mut out);
            }
            None => text::emit("SessionType", "Discovery", &mut out),
        }
        if self.config.own.is_some() {
            text::emit("AuthMethod", "CHAP", &mut out);
            self.state = State::Method;
            return self.request(stage::SECURITY, None, out);
        }
        text::emit("AuthMethod", "None", &mut out);
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
        let head = Head { immediate: true, ..Head::with_data(request, out.len() as u32) };
        self.outputs.push_back(Output::Send { head, text: out.into() });
    }

    fn fail(&mut self, error: LoginError) {
        self.state = State::Over;
        self.outputs.push_back(Output::Failed(error));
    }

    fn on_response(&mut self, response: &LoginResponse, bytes: &[u8]) -> Result<(), LoginError> {
        self.steps += 1;
        if self.steps > MAX_STEPS || self.collected.len() + bytes.len() > MAX_TEXT_BYTES {
            return Err(LoginError::Protocol("a login without end"));
        }
        self.exp_stat_sn = response.stat_sn.wrapping_add(1);
        self.collected.extend_from_slice(bytes);
        let current = if self.state == State::Operational { stage::OPERATIONAL } else { stage::SECURITY };
        if response.status.is_success() && response.flags & flag::CONTINUE != 0 {
            self.request(current, None, Vec::new());
            return Ok(());
        }
        let collected = std::mem::take(&mut self.collected);
        let pairs = text::parse(&collected).map_err(|_| LoginError::Protocol("text that is none"))?;
        let value = |key| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        let group = value("TargetPortalGroupTag").and_then(text::number).and_then(|tag| u16::try_from(tag).ok());
        self.portal_group = group.or(self.portal_group);
        if response.status.is_redirection() {
            let address = value("TargetAddress").ok_or(LoginError::Protocol("a target that has moved to nowhere"))?;
            // A portal group may stand behind the address.
            let address = address.split(',').next().unwrap_or(address).to_owned();
            let permanent = response.status == LoginStatus::MOVED_PERMANENTLY;
            return Err(LoginError::Moved { address, permanent });
        }
        if !response.status.is_success() {
            return Err(LoginError::Refused(response.status));
        }
        if response.stage() != current {
            return Err(LoginError::Protocol("another stage"));
        }
        let next = (response.flags & flag::TRANSIT != 0).then_some(response.next_stage());
        match self.state.clone() {
            State::Method => {
                if value("AuthMethod") != Some("CHAP") {
                    return Err(LoginError::NoMethod);
                }
                let mut out = Vec::new();
                let list: Vec<String> = OFFERED.iter().map(|one| one.number().to_string()).collect();
                text::emit("CHAP_A", &list.join(","), &mut out);
                self.state = State::Algorithm;
                self.request(stage::SECURITY, None, out);
            }
            State::Algorithm => self.prove(value("CHAP_A"), value("CHAP_I"), value("CHAP_C"))?,
            State::Proof(challenge) => {
                if value("AuthMethod").is_some_and(|method| method != "None") {
                    return Err(LoginError::NoMethod);
                }
                self.check(challenge.as_ref(), value("CHAP_N"), value("CHAP_R"))?;
                match next {
                    Some(stage::OPERATIONAL) => {
                        self.state = State::Operational;
                        let mut out = Vec::new();
                        self.negotiation.offer(&mut out);
                        self.request(stage::OPERATIONAL, Some(stage::FULL_FEATURE), out);
                    }
                    None => self.request(stage::SECURITY, Some(stage::OPERATIONAL), Vec::new()),
                    Some(_) => return Err(LoginError::Protocol("a stage that was not asked for")),
                }
            }
            State::Operational => {
                for (key, value) in &pairs {
                    self.negotiation.take(key, value).map_err(|_| LoginError::Protocol("an answer to no offer"))?;
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

    /// Answers the target's challenge, and sends our own where the target has to prove itself.
    fn prove(&mut self, list: Option<&str>, id: Option<&str>, bytes: Option<&str>) -> Result<(), LoginError> {
        const INCOMPLETE: LoginError = LoginError::Protocol("a challenge that is none");
        let algorithm = list.and_then(Algorithm::choose).ok_or(INCOMPLETE)?;
        let id = id.and_then(text::number).and_then(|id| u8::try_from(id).ok()).ok_or(INCOMPLETE)?;
        let bytes = bytes.and_then(text::binary).ok_or(INCOMPLETE)?;
        let own = self.config.own.clone().ok_or(LoginError::NoMethod)?;
        let mut out = Vec::new();
        text::emit("CHAP_N", &own.name, &mut out);
        let proof = Challenge { algorithm, id, bytes }.answer(&own.secret);
        text::emit("CHAP_R", &text::to_binary(&proof), &mut out);
        let challenge = self.config.target_proof.as_ref().map(|_| {
            let [id, ..] = self.config.challenge;
            Challenge { algorithm, id, bytes: self.config.challenge.to_vec() }
        });
        if let Some(challenge) = &challenge {
            text::emit("CHAP_I", &challenge.id.to_string(), &mut out);
            text::emit("CHAP_C", &text::to_binary(&challenge.bytes), &mut out);
        }
        self.state = State::Proof(challenge);
        self.request(stage::SECURITY, Some(stage::OPERATIONAL), out);
        Ok(())
    }

    /// The target has proved itself, where it has to.
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
        // It need not do so twice.
        self.config.target_proof = None;
        Ok(())
    }
}
