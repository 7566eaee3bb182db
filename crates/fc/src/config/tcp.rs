//! TCP settings of hosts and storage systems: [`Tcp`].

use super::units::Picos;

/// Settings of all TCP connections of a host or storage system. The defaults are those of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tcp {
    /// Congestion control.
    pub congestion: Congestion,
    /// Receive window in bytes; `None`: it grows with the need from 64 KiB to 3 MiB.
    pub window_bytes: Option<u32>,
    /// Bytes that may be queued and unacknowledged; `None`: they grow with the need from 16 KiB to
    /// 4 MiB.
    pub send_buffer_bytes: Option<u32>,
    /// Congestion window at the beginning, in segments.
    pub initial_window: u8,
    /// Retransmission time-out before the first measurement.
    pub rto_initial: Picos,
    /// Shortest retransmission time-out.
    pub rto_min: Picos,
    /// Longest retransmission time-out.
    pub rto_max: Picos,
    /// Longest time that an acknowledgement waits for a second segment.
    pub delayed_ack: Picos,
    /// True if a short segment waits while data are unacknowledged (Nagle).
    pub nagle: bool,
    /// True if time stamps are offered.
    pub timestamps: bool,
    /// True if SACK is offered.
    pub sack: bool,
    /// True if window scaling is offered. Without it, a window has at most 65,535 bytes.
    pub window_scaling: bool,
    /// True if ECN is offered. DCTCP offers it in any case.
    pub ecn: bool,
    /// True if the congestion window restarts at its initial value after a time-out of silence.
    pub idle_restart: bool,
    /// True if segments are spread over the round trip, at the rates of Linux.
    pub pacing: bool,
    /// Bytes of payload that leave as one batch (TSO); 0: each segment leaves alone.
    pub batch_bytes: u32,
}

/// Congestion control algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Congestion {
    /// NewReno (RFC 5681, RFC 6582; RFC 6675 with SACK).
    Reno,
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// DCTCP (RFC 8257).
    Dctcp,
}

impl Default for Tcp {
    fn default() -> Tcp {
        Tcp {
            congestion: Congestion::Cubic,
            window_bytes: None,
            send_buffer_bytes: None,
            initial_window: 10,
            rto_initial: Picos::from_secs(1),
            rto_min: Picos::from_ms(200),
            rto_max: Picos::from_secs(120),
            delayed_ack: Picos::from_ms(40),
            nagle: false,
            timestamps: true,
            sack: true,
            window_scaling: true,
            ecn: false,
            idle_restart: true,
            pacing: false,
            batch_bytes: 65_535,
        }
    }
}

impl Tcp {
    /// Largest window that the receiver offers, in bytes.
    pub fn largest_window_bytes(&self) -> u32 {
        let window = self.window_bytes.unwrap_or(3 << 20);
        if self.window_scaling { window } else { window.min(65_535) }
    }

    /// Most bytes that the sender may have unacknowledged.
    pub fn largest_send_buffer_bytes(&self) -> u32 {
        self.send_buffer_bytes.unwrap_or(4 << 20)
    }
}
