//! Negotiation of operational parameters: one table of all keys, and what either side makes of a value (RFC 7143, sections 6
//! and 13).

use super::parameters::{Parameters, Wishes};
use sanloom_wire::iscsi::text;
use std::fmt::Write;

/// Answer to a key that nobody here knows.
pub const NOT_UNDERSTOOD: &str = "NotUnderstood";
/// Answer to a key that means nothing here.
pub const IRRELEVANT: &str = "Irrelevant";
/// Answer to a value that cannot be taken.
pub const REJECT: &str = "Reject";

/// How the result of a key follows from the values of both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// The first word of the offer that the other side takes.
    Choice,
    /// Yes if both say so.
    And,
    /// Yes if one says so.
    Or,
    /// The smaller of two numbers from `0` to `1`.
    Min(u32, u32),
    /// The larger of two numbers.
    Max(u32, u32),
    /// Each side says what it takes: a number.
    Declared(u32, u32),
    /// Markers, which no stream has any more.
    Marker,
    /// The distance of markers.
    MarkerDistance,
    /// How task management answers, of which there is one way here.
    Reporting,
}

/// A key.
struct Key {
    name: &'static str,
    rule: Rule,
    /// Means something in discovery sessions too.
    discovery: bool,
    get: fn(&Wishes) -> u32,
    set: fn(&mut Parameters, u32),
}

const SEGMENT: (u32, u32) = (512, 0x00ff_ffff);

const fn key(name: &'static str, rule: Rule, get: fn(&Wishes) -> u32, set: fn(&mut Parameters, u32)) -> Key {
    Key { name, rule, discovery: false, get, set }
}

const fn common(name: &'static str, rule: Rule, get: fn(&Wishes) -> u32, set: fn(&mut Parameters, u32)) -> Key {
    Key { name, rule, discovery: true, get, set }
}

/// All operational keys. Those of the choice of digests have the index of the chosen word: 0 none, 1 CRC-32C.
const KEYS: &[Key] = &[
    common("HeaderDigest", Rule::Choice, |_| 0, |p, v| p.header_digest = v == 1),
    common("DataDigest", Rule::Choice, |_| 0, |p, v| p.data_digest = v == 1),
    common(
        "MaxRecvDataSegmentLength",
        Rule::Declared(SEGMENT.0, SEGMENT.1),
        |w| w.receive_bytes,
        |p, v| p.send_bytes = v,
    ),
    key("MaxConnections", Rule::Min(1, 65_535), |_| 1, |p, v| p.max_connections = v as u16),
    key("InitialR2T", Rule::Or, |w| w.initial_r2t.into(), |p, v| p.initial_r2t = v == 1),
    key("ImmediateData", Rule::And, |w| w.immediate_data.into(), |p, v| p.immediate_data = v == 1),
    key("MaxBurstLength", Rule::Min(SEGMENT.0, SEGMENT.1), |w| w.max_burst_bytes, |p, v| p.max_burst_bytes = v),
    key("FirstBurstLength", Rule::Min(SEGMENT.0, SEGMENT.1), |w| w.first_burst_bytes, |p, v| p.first_burst_bytes = v),
    common("DefaultTime2Wait", Rule::Max(0, 3600), |_| 2, |p, v| p.time_to_wait = v as u16),
    common("DefaultTime2Retain", Rule::Min(0, 3600), |_| 0, |p, v| p.time_to_retain = v as u16),
    key(
        "MaxOutstandingR2T",
        Rule::Min(1, 65_535),
        |w| w.max_outstanding_r2t.into(),
        |p, v| p.max_outstanding_r2t = v as u16,
    ),
    key("DataPDUInOrder", Rule::Or, |_| 1, |p, v| p.data_pdu_in_order = v == 1),
    key("DataSequenceInOrder", Rule::Or, |_| 1, |p, v| p.data_sequence_in_order = v == 1),
    common("ErrorRecoveryLevel", Rule::Min(0, 2), |_| 0, |p, v| p.error_recovery_level = v as u8),
    key("TaskReporting", Rule::Reporting, |_| 0, |_, _| {}),
    common("iSCSIProtocolLevel", Rule::Min(0, 31), |_| 1, |p, v| p.protocol_level = v as u8),
    common("IFMarker", Rule::Marker, |_| 0, |_, _| {}),
    common("OFMarker", Rule::Marker, |_| 0, |_, _| {}),
    common("IFMarkInt", Rule::MarkerDistance, |_| 0, |_, _| {}),
    common("OFMarkInt", Rule::MarkerDistance, |_| 0, |_, _| {}),
];

/// Somebody knows this key.
pub fn is_key(name: &str) -> bool {
    KEYS.iter().any(|key| key.name == name)
}

/// What the initiator offers and the target answers by itself where the other said nothing.
const OFFERED: &[&str] = &[
    "HeaderDigest",
    "DataDigest",
    "MaxRecvDataSegmentLength",
    "InitialR2T",
    "ImmediateData",
    "MaxBurstLength",
    "FirstBurstLength",
    "DefaultTime2Wait",
    "DefaultTime2Retain",
    "MaxOutstandingR2T",
    "ErrorRecoveryLevel",
    "MaxConnections",
    "DataPDUInOrder",
    "DataSequenceInOrder",
];

/// Why a negotiation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NegotiationError {
    /// A key came twice.
    #[error("a key was offered twice")]
    Twice,
    /// An answer is none that the offer allows.
    #[error("an answer is not among what was offered")]
    BadAnswer,
}

/// A negotiation of one session.
#[derive(Clone, Debug)]
pub struct Negotiation {
    wishes: Wishes,
    discovery: bool,
    parameters: Parameters,
    /// Keys that the peer has sent, one bit for each of the table.
    seen: u32,
    /// Our own segment length was said.
    declared: bool,
}

impl Negotiation {
    /// Nothing is agreed yet.
    pub fn new(wishes: Wishes) -> Negotiation {
        let parameters = Parameters { receive_bytes: wishes.receive_bytes, ..Parameters::default() };
        Negotiation { wishes, discovery: false, parameters, seen: 0, declared: false }
    }

    /// The session is for discovery: keys about tasks mean nothing.
    pub fn set_discovery(&mut self) {
        self.discovery = true;
    }

    /// What is agreed so far.
    pub fn parameters(&self) -> Parameters {
        let mut parameters = self.parameters;
        parameters.first_burst_bytes = parameters.first_burst_bytes.min(parameters.max_burst_bytes);
        parameters
    }

    /// The session may begin: it has the digests that we insist on.
    pub fn is_acceptable(&self) -> bool {
        self.wishes.has_its_digests(&self.parameters)
    }

    /// The target's side: answers a pair of the initiator, in `out`.
    ///
    /// # Errors
    /// When the key was there before.
    pub fn answer(&mut self, name: &str, value: &str, out: &mut Vec<u8>) -> Result<(), NegotiationError> {
        let Some(index) = KEYS.iter().position(|key| key.name == name) else {
            text::emit(name, NOT_UNDERSTOOD, out);
            return Ok(());
        };
        let bit = 1 << index;
        if self.seen & bit != 0 {
            return Err(NegotiationError::Twice);
        }
        self.seen |= bit;
        let key = &KEYS[index];
        if self.discovery && !key.discovery {
            text::emit(name, IRRELEVANT, out);
            return Ok(());
        }
        let mut word = String::new();
        match self.result(key, value) {
            Some(Agreed::Number(number)) => {
                (key.set)(&mut self.parameters, number);
                let _ = write!(word, "{number}");
            }
            Some(Agreed::Flag(flag)) => {
                (key.set)(&mut self.parameters, flag.into());
                word.push_str(if flag { "Yes" } else { "No" });
            }
            Some(Agreed::Word(chosen, number)) => {
                (key.set)(&mut self.parameters, number);
                word.push_str(chosen);
            }
            Some(Agreed::Declaration(number)) => {
                (key.set)(&mut self.parameters, number);
                return Ok(());
            }
            None => word.push_str(REJECT),
        }
        text::emit(name, &word, out);
        Ok(())
    }

    /// The result of a key, for which the other side sent `value`.
    fn result(&self, key: &Key, value: &str) -> Option<Agreed> {
        let own = (key.get)(&self.wishes);
        let in_range = |low, high| text::number(value).filter(|number| (low..=high).contains(number));
        let flag = match value {
            "Yes" => Some(true),
            "No" => Some(false),
            _ => None,
        };
        Some(match key.rule {
            Rule::Choice => {
                let ours = self.digest_words(key.name);
                let word = value.split(',').find_map(|word| ours.iter().copied().find(|our| *our == word))?;
                Agreed::Word(word, u32::from(word == "CRC32C"))
            }
            Rule::And => Agreed::Flag(flag? && own == 1),
            Rule::Or => Agreed::Flag(flag? || own == 1),
            Rule::Min(low, high) => Agreed::Number(in_range(low, high)?.min(own)),
            Rule::Max(low, high) => Agreed::Number(in_range(low, high)?.max(own)),
            Rule::Declared(low, high) => Agreed::Declaration(in_range(low, high)?),
            Rule::Marker => Agreed::Flag(false),
            Rule::MarkerDistance => Agreed::Word(IRRELEVANT, 0),
            Rule::Reporting => {
                Agreed::Word(value.split(',').find_map(|word| (word == "RFC3720").then_some("RFC3720"))?, 0)
            }
        })
    }

    fn digest_words(&self, name: &str) -> &'static [&'static str] {
        if name == "HeaderDigest" { self.wishes.header_digest.words() } else { self.wishes.data_digest.words() }
    }

    /// The target's own declarations, once.
    pub fn declare(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.declared, true) {
            text::emit("MaxRecvDataSegmentLength", &self.wishes.receive_bytes.to_string(), out);
        }
    }

    /// The initiator's side: everything that it offers.
    pub fn offer(&mut self, out: &mut Vec<u8>) {
        self.declared = true;
        for name in OFFERED {
            let Some(key) = KEYS.iter().find(|key| key.name == *name).filter(|key| !self.discovery || key.discovery)
            else {
                continue;
            };
            let own = (key.get)(&self.wishes);
            let value = match key.rule {
                Rule::Choice => self.digest_words(name).join(","),
                Rule::And | Rule::Or => (if own == 1 { "Yes" } else { "No" }).to_owned(),
                _ => own.to_string(),
            };
            text::emit(name, &value, out);
        }
    }

    /// The initiator's side: an answer or declaration of the target. Keys that are none of these are left alone.
    ///
    /// # Errors
    /// When the target answered what was not offered.
    pub fn take(&mut self, name: &str, value: &str) -> Result<(), NegotiationError> {
        let Some(index) = KEYS.iter().position(|key| key.name == name) else { return Ok(()) };
        let bit = 1 << index;
        if self.seen & bit != 0 {
            return Err(NegotiationError::Twice);
        }
        self.seen |= bit;
        if [NOT_UNDERSTOOD, IRRELEVANT, REJECT].contains(&value) {
            // What holds without a word of anybody.
            return Ok(());
        }
        let key = &KEYS[index];
        let own = (key.get)(&self.wishes);
        let agreed = self.result(key, value).ok_or(NegotiationError::BadAnswer)?;
        let number = match (key.rule, agreed) {
            (_, Agreed::Declaration(number)) => number,
            (Rule::Choice, Agreed::Word(_, number)) => number,
            // The result is what the target says, if it follows from both.
            (Rule::And, Agreed::Flag(_)) if value == "Yes" && own == 0 => return Err(NegotiationError::BadAnswer),
            (Rule::Or, Agreed::Flag(_)) if value == "No" && own == 1 => return Err(NegotiationError::BadAnswer),
            (_, Agreed::Flag(_)) => u32::from(value == "Yes"),
            (Rule::Max(..), Agreed::Number(_)) => text::number(value).ok_or(NegotiationError::BadAnswer)?,
            (_, Agreed::Number(number)) if text::number(value) == Some(number) => number,
            (_, Agreed::Number(_)) => return Err(NegotiationError::BadAnswer),
            (_, Agreed::Word(..)) => return Ok(()),
        };
        (key.set)(&mut self.parameters, number);
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
