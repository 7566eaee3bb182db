//! Negotiation of operational parameters: the result that either side derives from a value, by the
//! rule of its [`Key`] (RFC 7143, sections 6 and 13).

use super::keys::{Key, Rule, Scope};
use super::parameters::{Digests, Offers, Parameters, own, set};
use sanloom_wire::iscsi::text;
use std::fmt::Write;

/// Answer to a key that this implementation does not recognize.
pub const NOT_UNDERSTOOD: &str = "NotUnderstood";
/// Answer to a key that has no meaning in this session.
pub const IRRELEVANT: &str = "Irrelevant";
/// Answer to a value that is not acceptable.
pub const REJECT: &str = "Reject";

/// Reason for a failed negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NegotiationError {
    /// The peer sent a key twice.
    #[error("a key was offered twice")]
    Twice,
    /// The peer's answer is not one that the offer permits.
    #[error("an answer is not one of the offered values")]
    BadAnswer,
}

/// Negotiation of one session.
#[derive(Clone, Debug)]
pub struct Negotiation {
    offers: Offers,
    discovery: bool,
    parameters: Parameters,
    /// Operational keys that the peer has sent: bit n stands for row n of the table.
    seen: u64,
    /// True once this side has declared its own maximum segment length.
    declared: bool,
}

impl Negotiation {
    /// Starts a negotiation in which nothing is agreed yet.
    pub fn new(offers: Offers) -> Negotiation {
        let parameters = Parameters { receive_bytes: offers.receive_bytes, ..Parameters::default() };
        Negotiation { offers, discovery: false, parameters, seen: 0, declared: false }
    }

    /// Restricts the negotiation to a discovery session, in which keys about tasks are irrelevant.
    pub fn set_discovery(&mut self) {
        self.discovery = true;
    }

    /// Parameters agreed so far.
    pub fn parameters(&self) -> Parameters {
        let mut parameters = self.parameters;
        parameters.first_burst_bytes = parameters.first_burst_bytes.min(parameters.max_burst_bytes);
        parameters
    }

    /// Returns whether the session may begin, that is, whether it has the digests that this side
    /// requires.
    pub fn is_acceptable(&self) -> bool {
        self.offers.has_its_digests(&self.parameters)
    }

    /// Target side: processes one key=value pair of the initiator and appends the answer to `out`.
    ///
    /// # Errors
    /// Returns an error if the key was sent before.
    pub fn answer(&mut self, name: &str, value: &str, out: &mut Vec<u8>) -> Result<(), NegotiationError> {
        let Some((key, rule, scope)) = operational(name) else {
            text::emit(name, NOT_UNDERSTOOD, out);
            return Ok(());
        };
        self.record(key)?;
        if self.discovery && scope == Scope::Normal {
            key.emit(IRRELEVANT, out);
            return Ok(());
        }
        let mut word = String::new();
        match self.result(key, rule, value) {
            Some(Agreed::Number(number)) => {
                set(&mut self.parameters, key, number);
                let _ = write!(word, "{number}");
            }
            Some(Agreed::Flag(flag)) => {
                set(&mut self.parameters, key, flag.into());
                word.push_str(if flag { "Yes" } else { "No" });
            }
            Some(Agreed::Word(chosen, number)) => {
                set(&mut self.parameters, key, number);
                word.push_str(chosen);
            }
            Some(Agreed::Declaration(number)) => {
                set(&mut self.parameters, key, number);
                return Ok(());
            }
            None => word.push_str(REJECT),
        }
        key.emit(&word, out);
        Ok(())
    }

    /// Computes the result of a key for which the other side sent `value`.
    fn result(&self, key: Key, rule: Rule, value: &str) -> Option<Agreed> {
        let own = own(&self.offers, key);
        let in_range = |low, high| text::number(value).filter(|number| (low..=high).contains(number));
        let flag = match value {
            "Yes" => Some(true),
            "No" => Some(false),
            _ => None,
        };
        Some(match rule {
            Rule::Digest => {
                let ours = self.digests(key).words();
                let word = value.split(',').find_map(|word| ours.iter().copied().find(|our| *our == word))?;
                Agreed::Word(word, u32::from(word == "CRC32C"))
            }
            Rule::And => Agreed::Flag(flag? && own == 1),
            Rule::Or => Agreed::Flag(flag? || own == 1),
            Rule::Min(low, high) => Agreed::Number(in_range(low, high)?.min(own)),
            Rule::Max(low, high) => Agreed::Number(in_range(low, high)?.max(own)),
            Rule::Declared(low, high) => Agreed::Declaration(in_range(low, high)?),
            Rule::Marker => Agreed::Flag(false),
            Rule::MarkerInterval => Agreed::Word(IRRELEVANT, 0),
            Rule::Reporting => {
                Agreed::Word(value.split(',').find_map(|word| (word == "RFC3720").then_some("RFC3720"))?, 0)
            }
        })
    }

    fn digests(&self, key: Key) -> Digests {
        if key == Key::HeaderDigest { self.offers.header_digest } else { self.offers.data_digest }
    }

    /// Records that the peer has sent a key.
    fn record(&mut self, key: Key) -> Result<(), NegotiationError> {
        let bit = 1 << key as u32;
        if self.seen & bit != 0 {
            return Err(NegotiationError::Twice);
        }
        self.seen |= bit;
        Ok(())
    }

    /// Appends the target's own declarations, once per login.
    pub fn declare(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.declared, true) {
            Key::MaxRecvDataSegmentLength.emit(&self.offers.receive_bytes.to_string(), out);
        }
    }

    /// Initiator side: appends all keys that it offers.
    pub fn offer(&mut self, out: &mut Vec<u8>) {
        self.declared = true;
        for key in Key::ALL.into_iter().filter(|key| is_offered(*key)) {
            let Some((rule, _, scope)) = key.operational() else { continue };
            if self.discovery && scope == Scope::Normal {
                continue;
            }
            let own = own(&self.offers, key);
            let value = match rule {
                Rule::Digest => self.digests(key).words().join(","),
                Rule::And | Rule::Or => (if own == 1 { "Yes" } else { "No" }).to_owned(),
                _ => own.to_string(),
            };
            key.emit(&value, out);
        }
    }

    /// Initiator side: processes an answer or declaration of the target. Unknown keys are ignored.
    ///
    /// # Errors
    /// Returns an error if the key came twice or the offer does not permit the answer.
    pub fn take(&mut self, name: &str, value: &str) -> Result<(), NegotiationError> {
        let Some((key, rule, _)) = operational(name) else { return Ok(()) };
        self.record(key)?;
        if [NOT_UNDERSTOOD, IRRELEVANT, REJECT].contains(&value) {
            // The target does not negotiate the key, so its default applies.
            return Ok(());
        }
        let own = own(&self.offers, key);
        let agreed = self.result(key, rule, value).ok_or(NegotiationError::BadAnswer)?;
        let number = match (rule, agreed) {
            (_, Agreed::Declaration(number)) => number,
            (Rule::Digest, Agreed::Word(_, number)) => number,
            // The target's result counts if it is consistent with both offers.
            (Rule::And, Agreed::Flag(_)) if value == "Yes" && own == 0 => return Err(NegotiationError::BadAnswer),
            (Rule::Or, Agreed::Flag(_)) if value == "No" && own == 1 => return Err(NegotiationError::BadAnswer),
            (_, Agreed::Flag(_)) => u32::from(value == "Yes"),
            (Rule::Max(..), Agreed::Number(_)) => text::number(value).ok_or(NegotiationError::BadAnswer)?,
            (_, Agreed::Number(number)) if text::number(value) == Some(number) => number,
            (_, Agreed::Number(_)) => return Err(NegotiationError::BadAnswer),
            (_, Agreed::Word(..)) => return Ok(()),
        };
        set(&mut self.parameters, key, number);
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Agreed {
    Number(u32),
    Flag(bool),
    Word(&'static str, u32),
    Declaration(u32),
}

/// Returns the operational key with this name, with its rule and scope.
fn operational(name: &str) -> Option<(Key, Rule, Scope)> {
    let key = Key::named(name)?;
    key.operational().map(|(rule, _, scope)| (key, rule, scope))
}

/// Returns whether an initiator offers an operational key. It does not offer obsolete keys and
/// those for which it has no alternative.
fn is_offered(key: Key) -> bool {
    !matches!(
        key,
        Key::TaskReporting | Key::IscsiProtocolLevel | Key::IfMarker | Key::OfMarker | Key::IfMarkInt | Key::OfMarkInt
    )
}
