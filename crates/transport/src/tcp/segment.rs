//! A TCP segment as a value: positions and flags instead of bytes.

/// One TCP segment, or a batch of them that a host handles as one unit (TSO, GRO).
///
/// Positions count from the SYN of the sender, which has position 0. The first byte of data has
/// position 1, and the FIN has the position after the last byte. An encoder adds the initial
/// sequence number and truncates to 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Position of the first byte, of the SYN, or of the next byte if the segment is empty.
    pub position: u64,
    /// Next position that the sender expects from its peer. Valid with [`Flags::ACK`].
    pub ack: u64,
    /// SACK option (RFC 2018).
    pub sack: Sack,
    /// Bytes of payload. A batch has more than `unit`.
    pub length: u32,
    /// Bytes of payload of each segment of a batch; the last one may be shorter.
    pub unit: u16,
    /// Window field as it is on the wire: bytes, shifted right by the window scale of the sender
    /// unless the segment has [`Flags::SYN`] (RFC 7323, section 2.2).
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Time stamps option (RFC 7323, section 3).
    pub stamps: Option<Stamps>,
    /// Options of a segment with [`Flags::SYN`].
    pub options: Option<SynOptions>,
}

/// Control bits of a segment (RFC 9293, section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(u8);

/// ECN field of an IP header (RFC 3168, section 5). ECT(1) does not occur.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// The packet is dropped instead of marked.
    #[default]
    NotEct,
    /// ECT(0): the packet may be marked.
    Ect,
    /// Congestion experienced: a switch has marked the packet.
    Ce,
}

/// Range of received positions above the ACK position, end excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// First position of the block.
    pub start: u64,
    /// Position after the block.
    pub end: u64,
}

/// Blocks of a SACK option. The first one holds the newest segment (RFC 2018, section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sack {
    blocks: [Block; 4],
    count: u8,
}

/// Time stamps option (RFC 7323, section 3). Values count microseconds and wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamps {
    /// Time at which the segment was sent.
    pub value: u32,
    /// Newest value received from the peer; zero without [`Flags::ACK`].
    pub echo: u32,
}

/// Options that only a SYN carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SynOptions {
    /// Largest segment that the sender can receive, in bytes with TCP options and without headers
    /// (RFC 9293, section 3.7.1).
    pub mss: u16,
    /// Window scale as a shift, at most 14 (RFC 7323, section 2).
    pub scale: Option<u8>,
    /// SACK permitted (RFC 2018, section 2).
    pub sack: bool,
}

impl Flags {
    /// No bit is set.
    pub const NONE: Flags = Flags(0);
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise positions.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// A record ends with this segment.
    pub const PSH: Flags = Flags(0x08);
    /// The ACK position is valid.
    pub const ACK: Flags = Flags(0x10);
    /// Echo of a congestion mark (RFC 3168, section 6.1.3).
    pub const ECE: Flags = Flags(0x40);
    /// The congestion window was reduced because of an echo (RFC 3168, section 6.1.2).
    pub const CWR: Flags = Flags(0x80);

    /// Creates flags from the low byte of the bits on the wire.
    pub const fn from_bits(bits: u8) -> Flags {
        Flags(bits)
    }
    /// Bits as they are on the wire.
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// Returns true if all bits of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// Returns the flags with the bits of `other`.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    /// Returns the flags without the bits of `other`.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

impl Sack {
    /// Maximum number of blocks without time stamps; three fit beside them.
    pub const MAX: usize = 4;

    /// Adds a block, unless the option is full.
    pub fn push(&mut self, block: Block) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = block;
            self.count += 1;
        }
    }
    /// Blocks of the option.
    pub fn blocks(&self) -> &[Block] {
        self.blocks.get(..usize::from(self.count)).unwrap_or(&self.blocks)
    }
    /// Returns true if the segment has no SACK option.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Segment {
    /// Number of segments on the wire.
    pub fn count(&self) -> u32 {
        self.length.div_ceil(u32::from(self.unit).max(1)).max(1)
    }
    /// Positions that the segment occupies: payload, SYN and FIN.
    pub fn span(&self) -> u64 {
        let controls = u64::from(self.flags.has(Flags::SYN)) + u64::from(self.flags.has(Flags::FIN));
        u64::from(self.length) + controls
    }
    /// Position after the segment, saturating.
    pub fn end(&self) -> u64 {
        self.position.saturating_add(self.span())
    }
    /// Bytes of TCP options on the wire, padded to a multiple of four.
    pub fn option_bytes(&self) -> u32 {
        let syn = self.options.map_or(0, |options| {
            // SACK permitted takes the place of the padding of time stamps.
            let sack = options.sack && self.stamps.is_none();
            4 + 4 * u32::from(options.scale.is_some()) + 4 * u32::from(sack)
        });
        let stamps = if self.stamps.is_some() { 12 } else { 0 };
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * u32::from(self.sack.count) };
        syn + stamps + sack
    }
    /// Segments of a batch as they are on the wire, in order.
    ///
    /// PSH and FIN are on the last one and CWR on the first one, as adapters do it.
    pub fn parts(&self) -> impl Iterator<Item = Segment> + use<> {
        let (whole, count) = (*self, self.count());
        (0..count).map(move |index| {
            let at = index * u32::from(whole.unit);
            let mut part = whole;
            part.position = whole.position.saturating_add(u64::from(at));
            part.length = if count == 1 { whole.length } else { (whole.length - at).min(u32::from(whole.unit)) };
            if index + 1 < count {
                part.flags = part.flags.without(Flags::PSH.with(Flags::FIN));
            }
            if index > 0 {
                part.flags = part.flags.without(Flags::CWR);
            }
            part
        })
    }
}
