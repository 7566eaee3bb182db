//! Parameters that the two sides of a session have agreed on (RFC 7143, section 13):
//! [`Parameters`].

use super::framer::Layout;
use super::keys::Key;

/// Negotiated values and the declarations of each side. `Default` holds the values that apply
/// without negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// CRC-32C after each header.
    pub header_digest: bool,
    /// CRC-32C after each data segment.
    pub data_digest: bool,
    /// Longest data segment that this side accepts, in bytes.
    pub receive_bytes: u32,
    /// Longest data segment that the peer accepts, in bytes.
    pub send_bytes: u32,
    /// If true, data other than immediate data are sent only in response to an R2T.
    pub initial_r2t: bool,
    /// If true, data may be sent in the same PDU as the command.
    pub immediate_data: bool,
    /// Longest sequence of solicited data, in bytes.
    pub max_burst_bytes: u32,
    /// Maximum amount of unsolicited data of a command in bytes, including immediate data.
    pub first_burst_bytes: u32,
    /// Maximum number of open R2Ts per task.
    pub max_outstanding_r2t: u16,
    /// Maximum number of connections per session.
    pub max_connections: u16,
    /// Seconds to wait before a lost session is re-established.
    pub time_to_wait: u16,
    /// Seconds for which tasks of a lost connection are retained.
    pub time_to_retain: u16,
    /// ErrorRecoveryLevel, 0 to 2; 0 means that an error ends the session.
    pub error_recovery_level: u8,
    /// True if the PDUs of a sequence arrive in order.
    pub data_pdu_in_order: bool,
    /// True if the sequences of a command arrive in order.
    pub data_sequence_in_order: bool,
    /// iSCSIProtocolLevel: 1 is RFC 7143, 2 adds RFC 7144.
    pub protocol_level: u8,
}

impl Parameters {
    /// Digests of the connection.
    pub const fn layout(&self) -> Layout {
        Layout { header_digest: self.header_digest, data_digest: self.data_digest }
    }
}

impl Default for Parameters {
    fn default() -> Parameters {
        const fn flag(key: Key) -> bool {
            key.default_value() == 1
        }
        Parameters {
            header_digest: flag(Key::HeaderDigest),
            data_digest: flag(Key::DataDigest),
            receive_bytes: Key::MaxRecvDataSegmentLength.default_value(),
            send_bytes: Key::MaxRecvDataSegmentLength.default_value(),
            initial_r2t: flag(Key::InitialR2T),
            immediate_data: flag(Key::ImmediateData),
            max_burst_bytes: Key::MaxBurstLength.default_value(),
            first_burst_bytes: Key::FirstBurstLength.default_value(),
            max_outstanding_r2t: small(Key::MaxOutstandingR2T.default_value()),
            max_connections: small(Key::MaxConnections.default_value()),
            time_to_wait: small(Key::DefaultTime2Wait.default_value()),
            time_to_retain: small(Key::DefaultTime2Retain.default_value()),
            error_recovery_level: byte(Key::ErrorRecoveryLevel.default_value()),
            data_pdu_in_order: flag(Key::DataPduInOrder),
            data_sequence_in_order: flag(Key::DataSequenceInOrder),
            protocol_level: byte(Key::IscsiProtocolLevel.default_value()),
        }
    }
}

/// Value that this side offers for an operational key. For a key without a choice, it is the only
/// value that this implementation supports.
pub(super) fn own(offers: &Offers, key: Key) -> u32 {
    const TIME_TO_WAIT: u32 = 2;
    match key {
        Key::MaxRecvDataSegmentLength => offers.receive_bytes,
        Key::InitialR2T => offers.initial_r2t.into(),
        Key::ImmediateData => offers.immediate_data.into(),
        Key::MaxBurstLength => offers.max_burst_bytes,
        Key::FirstBurstLength => offers.first_burst_bytes,
        Key::MaxOutstandingR2T => offers.max_outstanding_r2t.into(),
        Key::DefaultTime2Wait => TIME_TO_WAIT,
        Key::MaxConnections | Key::DataPduInOrder | Key::DataSequenceInOrder | Key::IscsiProtocolLevel => 1,
        _ => 0,
    }
}

/// Stores the result of an operational key, which is in the range of the key. A declared segment
/// length is that of the peer.
pub(super) fn set(parameters: &mut Parameters, key: Key, value: u32) {
    let flag = value == 1;
    match key {
        Key::HeaderDigest => parameters.header_digest = flag,
        Key::DataDigest => parameters.data_digest = flag,
        Key::MaxRecvDataSegmentLength => parameters.send_bytes = value,
        Key::InitialR2T => parameters.initial_r2t = flag,
        Key::ImmediateData => parameters.immediate_data = flag,
        Key::MaxBurstLength => parameters.max_burst_bytes = value,
        Key::FirstBurstLength => parameters.first_burst_bytes = value,
        Key::DefaultTime2Wait => parameters.time_to_wait = small(value),
        Key::DefaultTime2Retain => parameters.time_to_retain = small(value),
        Key::MaxOutstandingR2T => parameters.max_outstanding_r2t = small(value),
        Key::ErrorRecoveryLevel => parameters.error_recovery_level = byte(value),
        Key::MaxConnections => parameters.max_connections = small(value),
        Key::DataPduInOrder => parameters.data_pdu_in_order = flag,
        Key::DataSequenceInOrder => parameters.data_sequence_in_order = flag,
        Key::IscsiProtocolLevel => parameters.protocol_level = byte(value),
        _ => {}
    }
}

/// A number for a field of 16 bits.
#[allow(clippy::cast_possible_truncation)] // the range of each key is checked before
const fn small(number: u32) -> u16 {
    debug_assert!(number <= u16::MAX as u32, "the range of the key exceeds its field");
    number as u16
}

/// A number for a field of 8 bits.
#[allow(clippy::cast_possible_truncation)] // the range of each key is checked before
const fn byte(number: u32) -> u8 {
    debug_assert!(number <= u8::MAX as u32, "the range of the key exceeds its field");
    number as u8
}

/// Values that one side offers before anything is agreed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offers {
    /// Header digests that this side accepts.
    pub header_digest: Digests,
    /// Data digests that this side accepts.
    pub data_digest: Digests,
    /// Longest data segment that this side accepts, in bytes: 512 to 2^24 - 1.
    pub receive_bytes: u32,
    /// If true, this side requires an R2T for all data other than immediate data.
    pub initial_r2t: bool,
    /// If true, this side supports immediate data.
    pub immediate_data: bool,
    /// Longest sequence of solicited data, in bytes: 512 to 2^24 - 1.
    pub max_burst_bytes: u32,
    /// Maximum amount of unsolicited data of a command, in bytes: 512 to 2^24 - 1.
    pub first_burst_bytes: u32,
    /// Maximum number of open R2Ts per task: 1 to 65535.
    pub max_outstanding_r2t: u16,
}

/// Digests that one side accepts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Digests {
    /// No digest.
    Never,
    /// CRC-32C or none, as the other side prefers.
    #[default]
    Either,
    /// CRC-32C is required; without it there is no session.
    Always,
}

impl Digests {
    /// Words offered in the negotiation, in order of preference.
    pub const fn words(self) -> &'static [&'static str] {
        match self {
            Digests::Never => &["None"],
            Digests::Either => &["None", "CRC32C"],
            Digests::Always => &["CRC32C"],
        }
    }

    /// Returns whether the agreed digest setting is acceptable.
    const fn allows(self, agreed: bool) -> bool {
        agreed || !matches!(self, Digests::Always)
    }
}

impl Offers {
    /// Returns whether the agreed parameters include every digest that this side requires. The
    /// check is needed because a key that the peer rejects or never sends leaves its digest off.
    pub const fn has_its_digests(&self, agreed: &Parameters) -> bool {
        self.header_digest.allows(agreed.header_digest) && self.data_digest.allows(agreed.data_digest)
    }
}

impl Default for Offers {
    fn default() -> Offers {
        Offers {
            header_digest: Digests::Either,
            data_digest: Digests::Either,
            receive_bytes: 262_144,
            initial_r2t: false,
            immediate_data: true,
            max_burst_bytes: 1_048_576,
            first_burst_bytes: 262_144,
            max_outstanding_r2t: 8,
        }
    }
}
