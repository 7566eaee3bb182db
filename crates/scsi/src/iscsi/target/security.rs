//! Security stage of a login on the target's side: [`Security`] (RFC 7143, section 12).

use super::config::Authentication;
use crate::iscsi::chap::{Algorithm, Challenge, Credentials};
use crate::iscsi::keys::Key;
use sanloom_wire::iscsi::{LoginStatus, text};

#[derive(Clone, PartialEq, Eq, Debug)]
enum State {
    /// No authentication method is agreed yet.
    Method,
    /// CHAP is agreed; its algorithm is still open.
    Algorithm,
    /// The target has sent this challenge.
    Challenged(Challenge),
    /// No further proof is required.
    Satisfied,
}

/// Verifies the initiator, and proves the target's identity if the initiator requires it.
#[derive(Clone, Debug)]
pub(super) struct Security {
    state: State,
    expected: Authentication,
    challenge: [u8; 16],
}

impl Security {
    /// Starts with random bytes for one challenge.
    pub(super) fn new(challenge: [u8; 16]) -> Security {
        Security { state: State::Method, expected: Authentication::default(), challenge }
    }

    /// Sets the required authentication.
    pub(super) fn expect(&mut self, expected: Authentication) {
        self.expected = expected;
    }

    /// Returns whether authentication is complete or not required.
    pub(super) fn is_satisfied(&self) -> bool {
        self.state == State::Satisfied || self.expected.initiators.is_empty()
    }

    /// Processes the initiator's security keys and appends the answers to `out`.
    pub(super) fn answer(&mut self, pairs: &[text::Pair<'_>], out: &mut Vec<u8>) -> Result<(), LoginStatus> {
        let value = |key: Key| key.value(pairs);
        if let Some(methods) = value(Key::AuthMethod) {
            self.choose_method(methods, out)?;
        }
        if let Some(list) = value(Key::ChapAlgorithm) {
            if self.state != State::Algorithm {
                return Err(LoginStatus::INITIATOR_ERROR);
            }
            let algorithm = Algorithm::choose(list).ok_or(LoginStatus::AUTHENTICATION_FAILURE)?;
            let [id, ..] = self.challenge;
            let challenge = Challenge { algorithm, id, bytes: self.challenge.to_vec() };
            Key::ChapAlgorithm.emit(&algorithm.number().to_string(), out);
            Key::ChapIdentifier.emit(&id.to_string(), out);
            Key::ChapChallenge.emit(&text::to_binary(&challenge.bytes), out);
            self.state = State::Challenged(challenge);
        }
        if let Some(response) = value(Key::ChapResponse) {
            let State::Challenged(challenge) = &self.state else { return Err(LoginStatus::INITIATOR_ERROR) };
            let name = value(Key::ChapName).ok_or(LoginStatus::MISSING_PARAMETER)?;
            let response = text::binary(response).ok_or(LoginStatus::INITIATOR_ERROR)?;
            // Several credentials may share a name where several targets are behind one. An unknown
            // name takes as long as a wrong secret.
            let fits = |one: &Credentials| challenge.accepts(&one.secret, &response) & (one.name == name);
            if !self.expected.initiators.iter().fold(false, |known, one| known | fits(one)) {
                return Err(LoginStatus::AUTHENTICATION_FAILURE);
            }
            let mutual = match (value(Key::ChapIdentifier), value(Key::ChapChallenge)) {
                (None, None) => None,
                (Some(id), Some(bytes)) => Some((id, bytes)),
                _ => return Err(LoginStatus::MISSING_PARAMETER),
            };
            if let Some((id, bytes)) = mutual {
                let id = text::number(id).and_then(|id| u8::try_from(id).ok()).ok_or(LoginStatus::INITIATOR_ERROR)?;
                let bytes = text::binary(bytes).ok_or(LoginStatus::INITIATOR_ERROR)?;
                // An initiator that returns the target's own challenge would obtain the very
                // response that the target expects (reflection attack).
                if bytes == challenge.bytes {
                    return Err(LoginStatus::AUTHENTICATION_FAILURE);
                }
                let own = self.expected.own.as_ref().ok_or(LoginStatus::AUTHENTICATION_FAILURE)?;
                let proof = Challenge { algorithm: challenge.algorithm, id, bytes }.answer(&own.secret);
                Key::ChapName.emit(&own.name, out);
                Key::ChapResponse.emit(&text::to_binary(&proof), out);
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
        Key::AuthMethod.emit(method, out);
        self.state = state;
        Ok(())
    }
}
