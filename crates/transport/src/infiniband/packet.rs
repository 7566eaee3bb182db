//! Sizes of packets on the line (IBA volume 1, chapters 5 and 7 to 9).

/// Bytes of the local route header.
pub const LRH: u32 = 8;
/// Bytes of the global route header.
pub const GRH: u32 = 40;
/// Bytes of the base transport header.
pub const BTH: u32 = 12;
/// Bytes of the datagram header.
pub const DETH: u32 = 8;
/// Bytes of the RDMA header.
pub const RETH: u32 = 16;
/// Bytes of the ACK header.
pub const AETH: u32 = 4;
/// Bytes of immediate data.
pub const IMMEDIATE: u32 = 4;
/// Bytes of the invariant CRC.
pub const ICRC: u32 = 4;
/// Bytes of the variant CRC.
pub const VCRC: u32 = 2;
/// Start and end symbols of a packet.
pub const DELIMITERS: u32 = 2;
/// Bytes of a credit block.
pub const BLOCK: u32 = 64;

/// Maximum transfer unit: bytes of payload of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mtu {
    /// 256 bytes.
    B256,
    /// 512 bytes.
    B512,
    /// 1024 bytes.
    B1024,
    /// 2048 bytes.
    B2048,
    /// 4096 bytes.
    B4096,
}

impl Mtu {
    /// All sizes, ascending.
    pub const ALL: [Mtu; 5] = [Mtu::B256, Mtu::B512, Mtu::B1024, Mtu::B2048, Mtu::B4096];

    /// Bytes of payload.
    pub const fn bytes(self) -> u32 {
        match self {
            Mtu::B256 => 256,
            Mtu::B512 => 512,
            Mtu::B1024 => 1024,
            Mtu::B2048 => 2048,
            Mtu::B4096 => 4096,
        }
    }

    /// Credit blocks of a middle packet of a message.
    pub const fn blocks(self) -> u64 {
        blocks(bytes(0, self.bytes())) as u64
    }

    /// Packets of a message; an empty message has one.
    pub const fn packets(self, length: u32) -> u32 {
        if length == 0 { 1 } else { length.div_ceil(self.bytes()) }
    }
}

/// Bytes from LRH to VCRC of a local packet with `extended` bytes of headers after the BTH. The
/// payload is padded to words of 4 bytes.
pub const fn bytes(extended: u32, payload: u32) -> u32 {
    LRH + BTH + extended + payload.next_multiple_of(4) + ICRC + VCRC
}

/// Bytes of the same packet on the line, with its start and end symbols.
pub const fn line_bytes(extended: u32, payload: u32) -> u32 {
    bytes(extended, payload) + DELIMITERS
}

/// Credit blocks of a packet of this many bytes: the packet without delimiters, rounded up.
pub const fn blocks(bytes: u32) -> u32 {
    bytes.div_ceil(BLOCK)
}
