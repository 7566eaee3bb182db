//! Reliable connection without payload (IBA volume 1, 9.7).
//!
//! A queue pair has a [`requester`] and a [`responder`]. Both follow the contract of
//! `sanloom_scsi`: `handle`, `poll_output`, `poll_timeout`. Packets carry lengths instead of data.

pub mod packet;
pub mod requester;
pub mod responder;

use sanloom_scsi::time::Span;

/// Agreed parameters of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Payload of a full packet.
    pub mtu: super::packet::Mtu,
    /// First PSN of this direction: 24 bits.
    pub first_psn: u32,
    /// Exponent of the acknowledgement time-out: 4.096 us times 2 to this power. 0 never expires.
    pub timeout: u8,
    /// Repetitions without progress before the queue pair fails: at most 7.
    pub retries: u8,
    /// Repetitions after "receiver not ready"; 7 is unlimited (IBA volume 1, 9.7.5.2.8).
    pub rnr_retries: u8,
    /// Time that the responder asks to wait if it has no receive.
    pub rnr_timer: Span,
    /// Packets in flight without acknowledgement.
    pub window: u32,
    /// A packet in this many asks for an acknowledgement; the last one of a message always does.
    pub ack_every: u32,
    /// Reads that may be outstanding: the responder resources of the peer.
    pub reads: u32,
}

impl Config {
    /// Values of Linux soft RoCE with an MTU of 1024: 128 packets without acknowledgement, an
    /// acknowledgement each 64, 128 reads. The time-out is 4.096 us times 2^14, 67 ms.
    pub const SOFT_ROCE: Config = Config {
        mtu: super::packet::Mtu::B1024,
        first_psn: 0,
        timeout: 14,
        retries: 7,
        rnr_retries: 7,
        rnr_timer: Span::from_us(640),
        window: 128,
        ack_every: 64,
        reads: 128,
    };

    /// Acknowledgement time-out; `None` never expires.
    pub fn ack_timeout(&self) -> Option<Span> {
        (self.timeout > 0).then(|| Span::from_ns(4_096 << self.timeout.min(31)))
    }
}
