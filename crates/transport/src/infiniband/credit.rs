//! Credit of a virtual lane in absolute 12-bit block counters (IBA volume 1, 7.9.4).

/// Modulus of the counters.
const MODULUS: u16 = 4096;
/// Most free blocks that a receiver announces: 128 KiB.
pub const MAX_BLOCKS: u16 = 2048;

/// Flow-control packet of a virtual lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CreditUpdate {
    /// Total blocks sent by the sender of this packet, modulo 4096.
    pub fctbs: u16,
    /// Limit of the blocks that the receiver of this packet may have sent, modulo 4096.
    pub fccl: u16,
}

/// Sending end of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CreditSender {
    sent: u16,
    limit: u16,
}

/// Receiving end of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CreditReceiver {
    received: u16,
    free: u16,
    size: u16,
}

impl CreditSender {
    /// Blocks that may be sent now.
    pub const fn available(&self) -> u16 {
        let left = self.limit.wrapping_sub(self.sent) % MODULUS;
        if left > MAX_BLOCKS { 0 } else { left }
    }

    /// Sends a packet of this many blocks if they fit, and returns whether it was sent.
    pub fn send(&mut self, blocks: u16) -> bool {
        if blocks > self.available() {
            return false;
        }
        self.sent = (self.sent + blocks) % MODULUS;
        true
    }

    /// Applies the limit of an update. An older limit never replaces a newer one, because the wire
    /// keeps order.
    pub fn receive(&mut self, update: CreditUpdate) {
        self.limit = update.fccl % MODULUS;
    }

    /// Total blocks sent, for the next update.
    pub const fn fctbs(&self) -> u16 {
        self.sent
    }
}

impl CreditReceiver {
    /// Buffer of this many blocks, at most [`MAX_BLOCKS`].
    pub const fn new(blocks: u16) -> CreditReceiver {
        let size = if blocks > MAX_BLOCKS { MAX_BLOCKS } else { blocks };
        CreditReceiver { received: 0, free: size, size }
    }

    /// Stores a packet; returns false if it does not fit, which is a violation of the sender, and
    /// the packet is discarded.
    pub fn store(&mut self, blocks: u16) -> bool {
        self.received = (self.received + blocks % MODULUS) % MODULUS;
        if blocks > self.free {
            return false;
        }
        self.free -= blocks;
        true
    }

    /// Frees the buffer of a packet.
    pub fn release(&mut self, blocks: u16) {
        self.free = (self.free + blocks).min(self.size);
    }

    /// Applies the total of the other end. Blocks of packets that the wire lost count as received,
    /// so that their credit returns.
    pub fn receive(&mut self, update: CreditUpdate) {
        self.received = update.fctbs % MODULUS;
    }

    /// Counts blocks that the wire has lost, as a total of the other end shows them.
    pub const fn lost(&mut self, blocks: u16) {
        self.received = (self.received + blocks % MODULUS) % MODULUS;
    }

    /// Limit for the other end.
    pub const fn fccl(&self) -> u16 {
        (self.received + self.free) % MODULUS
    }
}
