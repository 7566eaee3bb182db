//! Text keys of logins and text requests: one table with the name, kind, default and negotiation
//! rule of each (RFC 7143, sections 6 and 13; section 12 for the security keys).

use sanloom_wire::iscsi::text;

/// Rule by which the result of an operational key follows from the values of both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The first digest of the offer that the other side supports. As a number, 0 is none and 1 is
    /// CRC-32C.
    Digest,
    /// Yes if both sides offer Yes. As a number, Yes is 1.
    And,
    /// Yes if either side offers Yes.
    Or,
    /// The smaller of two numbers in this range.
    Min(u32, u32),
    /// The larger of two numbers in this range.
    Max(u32, u32),
    /// Each side declares its own number in this range; there is no common result.
    Declared(u32, u32),
    /// Markers, which RFC 7143 has removed.
    Marker,
    /// Interval of markers, obsolete like them.
    MarkerInterval,
    /// TaskReporting, for which only one value is supported here.
    Reporting,
}

/// Sessions in which an operational key has a meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Normal sessions only; in a discovery session the answer is "Irrelevant".
    Normal,
    /// Discovery sessions, too.
    All,
}

/// Kind of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Operational parameter: the rule, the value without negotiation, and the sessions.
    Operational(Rule, u32, Scope),
    /// Name or address that one side declares at login or in the answer to SendTargets.
    Declaration,
    /// Key of the security stage.
    Security,
    /// Request of the full feature phase.
    Request,
}

use Kind::{Declaration, Operational, Request, Security};
use Rule::{And, Declared, Digest, Marker, MarkerInterval, Max, Min, Or, Reporting};
use Scope::{All, Normal};

/// Defines [`Key`] from its rows: variant, name and kind.
macro_rules! keys {
    ($($key:ident = $name:literal: $kind:expr;)*) => {
        /// Key that this implementation recognizes.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[allow(missing_docs)] // the names are the standard's own
        pub enum Key {
            $($key,)*
        }

        impl Key {
            /// All keys. An initiator offers the operational ones in this order.
            pub const ALL: [Key; [$(Key::$key),*].len()] = [$(Key::$key),*];

            /// Name in the text.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Key::$key => $name,)*
                }
            }

            /// Kind, with the negotiation rule of an operational key.
            pub const fn kind(self) -> Kind {
                match self {
                    $(Key::$key => $kind,)*
                }
            }
        }
    };
}

/// Smallest and largest length of a segment or burst, in bytes.
const MIN_BYTES: u32 = 512;
const MAX_BYTES: u32 = (1 << 24) - 1;

keys! {
    HeaderDigest = "HeaderDigest": Operational(Digest, 0, All);
    DataDigest = "DataDigest": Operational(Digest, 0, All);
    MaxRecvDataSegmentLength = "MaxRecvDataSegmentLength": Operational(Declared(MIN_BYTES, MAX_BYTES), 8192, All);
    InitialR2T = "InitialR2T": Operational(Or, 1, Normal);
    ImmediateData = "ImmediateData": Operational(And, 1, Normal);
    MaxBurstLength = "MaxBurstLength": Operational(Min(MIN_BYTES, MAX_BYTES), 262_144, Normal);
    FirstBurstLength = "FirstBurstLength": Operational(Min(MIN_BYTES, MAX_BYTES), 65_536, Normal);
    DefaultTime2Wait = "DefaultTime2Wait": Operational(Max(0, 3600), 2, All);
    DefaultTime2Retain = "DefaultTime2Retain": Operational(Min(0, 3600), 20, All);
    MaxOutstandingR2T = "MaxOutstandingR2T": Operational(Min(1, 65_535), 1, Normal);
    ErrorRecoveryLevel = "ErrorRecoveryLevel": Operational(Min(0, 2), 0, All);
    MaxConnections = "MaxConnections": Operational(Min(1, 65_535), 1, Normal);
    DataPduInOrder = "DataPDUInOrder": Operational(Or, 1, Normal);
    DataSequenceInOrder = "DataSequenceInOrder": Operational(Or, 1, Normal);
    TaskReporting = "TaskReporting": Operational(Reporting, 0, Normal);
    IscsiProtocolLevel = "iSCSIProtocolLevel": Operational(Min(0, 31), 1, All);
    IfMarker = "IFMarker": Operational(Marker, 0, All);
    OfMarker = "OFMarker": Operational(Marker, 0, All);
    IfMarkInt = "IFMarkInt": Operational(MarkerInterval, 0, All);
    OfMarkInt = "OFMarkInt": Operational(MarkerInterval, 0, All);
    InitiatorName = "InitiatorName": Declaration;
    InitiatorAlias = "InitiatorAlias": Declaration;
    TargetName = "TargetName": Declaration;
    TargetAlias = "TargetAlias": Declaration;
    TargetAddress = "TargetAddress": Declaration;
    TargetPortalGroupTag = "TargetPortalGroupTag": Declaration;
    SessionType = "SessionType": Declaration;
    AuthMethod = "AuthMethod": Security;
    ChapAlgorithm = "CHAP_A": Security;
    ChapIdentifier = "CHAP_I": Security;
    ChapChallenge = "CHAP_C": Security;
    ChapName = "CHAP_N": Security;
    ChapResponse = "CHAP_R": Security;
    SendTargets = "SendTargets": Request;
}

/// Prefix of the keys of CHAP. Another key with this prefix also belongs to the security stage.
const CHAP_PREFIX: &str = "CHAP_";

impl Key {
    /// Returns the key with this name.
    pub fn named(name: &str) -> Option<Key> {
        Key::ALL.into_iter().find(|key| key.name() == name)
    }

    /// Negotiation rule, default and scope of an operational key.
    pub const fn operational(self) -> Option<(Rule, u32, Scope)> {
        match self.kind() {
            Operational(rule, default, scope) => Some((rule, default, scope)),
            _ => None,
        }
    }

    /// Value of an operational key that applies without negotiation.
    pub const fn default_value(self) -> u32 {
        match self.kind() {
            Operational(_, default, _) => default,
            _ => 0,
        }
    }

    /// Returns whether a name belongs to the security stage.
    pub fn is_security(name: &str) -> bool {
        name.starts_with(CHAP_PREFIX) || Key::named(name).is_some_and(|key| key.kind() == Security)
    }

    /// Appends the key with this value.
    pub fn emit(self, value: &str, out: &mut Vec<u8>) {
        text::emit(self.name(), value, out);
    }

    /// Returns the first value of the key.
    pub fn value<'a>(self, pairs: &[text::Pair<'a>]) -> Option<&'a str> {
        pairs.iter().find(|(name, _)| *name == self.name()).map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iscsi::Parameters;
    use crate::iscsi::parameters::set;

    #[test]
    fn a_name_belongs_to_one_key() {
        for key in Key::ALL {
            assert_eq!(Key::named(key.name()), Some(key));
            assert!(key.name().len() <= text::MAX_KEY_BYTES);
        }
    }

    #[test]
    fn a_default_is_in_the_range_of_its_key() {
        for (key, rule, default) in
            Key::ALL.into_iter().filter_map(|key| key.operational().map(|(r, d, _)| (key, r, d)))
        {
            let in_range = match rule {
                Min(low, high) | Max(low, high) | Declared(low, high) => (low..=high).contains(&default),
                Digest | And | Or | Marker => default <= 1,
                MarkerInterval | Reporting => default == 0,
            };
            assert!(in_range, "{key:?}");
        }
    }

    /// A reset of every field to the default of its key changes nothing.
    #[test]
    fn parameters_without_negotiation_have_the_defaults() {
        let mut parameters = Parameters::default();
        Key::ALL.into_iter().for_each(|key| set(&mut parameters, key, key.default_value()));
        assert_eq!(parameters, Parameters::default());
        assert_eq!((parameters.max_burst_bytes, parameters.time_to_retain), (262_144, 20));
        assert_eq!((parameters.initial_r2t, parameters.send_bytes), (true, 8192));
    }
}
