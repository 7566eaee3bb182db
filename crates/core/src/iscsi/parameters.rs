//! What the two sides of a session have agreed on (RFC 7143, section 13): [`Parameters`].

use sanloom_wire::iscsi::DEFAULT_SEGMENT_BYTES;

/// Agreed values, and what each side has declared. The default is what holds where nothing is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// CRC-32C behind headers.
    pub header_digest: bool,
    /// CRC-32C behind data segments.
    pub data_digest: bool,
    /// Longest data segment that we take, in bytes.
    pub receive_bytes: u32,
    /// Longest data segment that the peer takes, in bytes.
    pub send_bytes: u32,
    /// Data come only when they are asked for, but for immediate data.
    pub initial_r2t: bool,
    /// Data may come with the command.
    pub immediate_data: bool,
    /// Longest sequence of solicited data, in bytes.
    pub max_burst_bytes: u32,
    /// Most unsolicited data of a command, immediate ones counted, in bytes.
    pub first_burst_bytes: u32,
    /// R2Ts of one task that may be open.
    pub max_outstanding_r2t: u16,
    /// Connections of the session.
    pub max_connections: u16,
    /// Seconds to wait before a lost session is tried again.
    pub time_to_wait: u16,
    /// Seconds for which tasks of a lost connection are kept.
    pub time_to_retain: u16,
    /// What is done about errors.
    pub error_recovery_level: u8,
    /// PDUs of a sequence come in order.
    pub data_pdu_in_order: bool,
    /// Sequences of a command come in order.
    pub data_sequence_in_order: bool,
    /// Version of the protocol: 1 is RFC 7143, 2 adds RFC 7144.
    pub protocol_level: u8,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            header_digest: false,
            data_digest: false,
            receive_bytes: DEFAULT_SEGMENT_BYTES,
            send_bytes: DEFAULT_SEGMENT_BYTES,
            initial_r2t: true,
            immediate_data: true,
            max_burst_bytes: 262_144,
            first_burst_bytes: 65_536,
            max_outstanding_r2t: 1,
            max_connections: 1,
            time_to_wait: 2,
            time_to_retain: 20,
            error_recovery_level: 0,
            data_pdu_in_order: true,
            data_sequence_in_order: true,
            protocol_level: 1,
        }
    }
}

/// What one side wants, before anything is agreed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wishes {
    /// Which header digests are taken.
    pub header_digest: Digests,
    /// Which data digests are taken.
    pub data_digest: Digests,
    /// Longest data segment that we take, in bytes: 512 to 2^24 - 1.
    pub receive_bytes: u32,
    /// We want R2T for all data but immediate ones.
    pub initial_r2t: bool,
    /// We take immediate data.
    pub immediate_data: bool,
    /// Longest sequence of solicited data, in bytes: 512 to 2^24 - 1.
    pub max_burst_bytes: u32,
    /// Most unsolicited data, in bytes: 512 to 2^24 - 1.
    pub first_burst_bytes: u32,
    /// R2Ts of one task that may be open: 1 to 65535.
    pub max_outstanding_r2t: u16,
}

/// Which digests one side takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Digests {
    /// None.
    Never,
    /// CRC-32C or none, as the other side likes.
    #[default]
    Either,
    /// CRC-32C, and no session without.
    Always,
}

impl Digests {
    /// The words of the negotiation, the favourite first.
    pub const fn words(self) -> &'static [&'static str] {
        match self {
            Digests::Never => &["None"],
            Digests::Either => &["None", "CRC32C"],
            Digests::Always => &["CRC32C"],
        }
    }

    /// What was agreed is enough.
    const fn allows(self, agreed: bool) -> bool {
        agreed || !matches!(self, Digests::Always)
    }
}

impl Wishes {
    /// What was agreed has the digests without which there is to be no session, however it came to be: a key that the other side
    /// rejects, or never sends, leaves it without.
    pub const fn has_its_digests(&self, agreed: &Parameters) -> bool {
        self.header_digest.allows(agreed.header_digest) && self.data_digest.allows(agreed.data_digest)
    }
}

impl Default for Wishes {
    fn default() -> Wishes {
        Wishes {
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
