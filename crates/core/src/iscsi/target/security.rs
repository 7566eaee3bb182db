//! The security stage of a login, seen from the target: [`Security`] (RFC 7143, section 12).

use super::config::Authentication;
use crate::iscsi::chap::{Algorithm, Challenge, Credentials};
use sanloom_wire::iscsi::{LoginStatus, text};

#[derive(Clone, PartialEq, Eq, Debug)]
enum State {
    /// No method is agreed on.
    Method,
    /// CHAP; its algorithm is to come.
    Algorithm,
    /// We have sent a challenge.
    Challenged(Challenge),
    /// Nothing more is to be proved.
    Satisfied,
}

/// Asks for a proof, and gives one where it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Security {
    state: State,
    expected: Authentication,
    challenge: [u8; 16],
}

impl Security {
    /// With random bytes for one challenge.
    pub(super) fn new(challenge: [u8; 16]) -> Security {
        Security { state: State::Method, expected: Authentication::default(), challenge }
    }

    /// Who has to prove itself.
    pub(super) fn expect(&mut self, expected: Authentication) {
        self.expected = expected;
    }

    /// Nothing has to be proved, or everything was.
    pub(super) fn is_satisfied(&self) -> bool {
        self.state == State::Satisfied || self.expected.initiators.is_empty()
    }

    /// A key of this stage.
    pub(super) fn is_key(key: &str) -> bool {
        key == "AuthMethod" || key.starts_with("CHAP_")
    }

    /// Answers what the initiator says about itself.
    pub(super) fn answer(&mut self, pairs: &[text::Pair<'_>], out: &mut Vec<u8>) -> Result<(), LoginStatus> {
        let value = |key| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        if let Some(methods) = value("AuthMethod") {
            self.choose_method(methods, out)?;
        }
        if let Some(list) = value("CHAP_A") {
            if self.state != State::Algorithm {
                return Err(LoginStatus::INITIATOR_ERROR);
            }
            let algorithm = Algorithm::choose(list).ok_or(LoginStatus::AUTHENTICATION_FAILURE)?;
            let [id, ..] = self.challenge;
            let challenge = Challenge { algorithm, id, bytes: self.challenge.to_vec() };
            text::emit("CHAP_A", &algorithm.number().to_string(), out);
            text::emit("CHAP_I", &id.to_string(), out);
            text::emit("CHAP_C", &text::to_binary(&challenge.bytes), out);
            self.state = State::Challenged(challenge);
        }
        if let Some(response) = value("CHAP_R") {
            let State::Challenged(challenge) = &self.state else { return Err(LoginStatus::INITIATOR_ERROR) };
            let name = value("CHAP_N").ok_or(LoginStatus::MISSING_PARAMETER)?;
            let response = text::binary(response).ok_or(LoginStatus::INITIATOR_ERROR)?;
            // Several may have one name where several targets are behind it. An unknown name takes as long as a wrong secret.
            let fits = |one: &Credentials| challenge.accepts(&one.secret, &response) & (one.name == name);
            if !self.expected.initiators.iter().fold(false, |known, one| known | fits(one)) {
                return Err(LoginStatus::AUTHENTICATION_FAILURE);
            }
            let theirs = match (value("CHAP_I"), value("CHAP_C")) {
                (None, None) => None,
                (Some(id), Some(bytes)) => Some((id, bytes)),
                _ => return Err(LoginStatus::MISSING_PARAMETER),
            };
            if let Some((id, bytes)) = theirs {
                let id = text::number(id).and_then(|id| u8::try_from(id).ok()).ok_or(LoginStatus::INITIATOR_ERROR)?;
                let bytes = text::binary(bytes).ok_or(LoginStatus::INITIATOR_ERROR)?;
                // Our own challenge sent back would make us prove the initiator's case.
                if bytes == challenge.bytes {
                    return Err(LoginStatus::AUTHENTICATION_FAILURE);
                }
                let own = self.expected.own.as_ref().ok_or(LoginStatus::AUTHENTICATION_FAILURE)?;
                let proof = Challenge { algorithm: challenge.algorithm, id, bytes }.answer(&own.secret);
                text::emit("CHAP_N", &own.name, out);
                text::emit("CHAP_R", &text::to_binary(&proof), out);
            }
            self.state = State::Satisfied;
        }
        Ok(())
    }

    fn choose_method(&mut self, methods: &str, out: &mut Vec<u8>) -> Result<(), LoginStatus> {
        if self.state != State::Method {
            return Err(LoginStatus::INITIATOR_ERROR);
        }
        let required = !self.expected.initiators.is_empty();
        let offered = |method| methods.split(',').any(|word| word == method);
        let (method, state) = match required {
            true if offered("CHAP") => ("CHAP", State::Algorithm),
            false if offered("None") => ("None", State::Satisfied),
            _ => return Err(LoginStatus::AUTHENTICATION_FAILURE),
        };
        text::emit("AuthMethod", method, out);
        self.state = state;
        Ok(())
    }
}
