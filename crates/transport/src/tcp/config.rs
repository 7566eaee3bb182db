//! Settings of a connection, shared by all connections of a host.

use sanloom_scsi::time::Span;

/// Settings of a connection. [`Config::linux`] and [`Config::year_2003`] are complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Largest segment that this end receives and sends, in bytes with TCP options and without
    /// headers: the MTU minus 40.
    pub mss: u16,
    /// Congestion control.
    pub algorithm: Algorithm,
    /// Congestion window at the beginning, in segments (RFC 6928: 10; RFC 3390: 2 to 4).
    pub initial_window: u8,
    /// The window grows with acknowledged bytes (RFC 3465, as in Linux). Otherwise it grows with
    /// acknowledgements, by at most one segment each (RFC 5681, section 3.1).
    pub byte_counting: bool,
    /// SACK is offered (RFC 2018).
    pub sack: bool,
    /// Time stamps are offered (RFC 7323). Each segment has 12 bytes less payload.
    pub timestamps: bool,
    /// Window scaling is offered (RFC 7323). Without it, a window has at most 65,535 bytes.
    pub window_scaling: bool,
    /// ECN is offered (RFC 3168). DCTCP offers it in any case.
    pub ecn: bool,
    /// Bytes that the application may queue and that are not yet acknowledged.
    pub send_buffer: Buffer,
    /// Bytes of payload that the receiver stores, which is the largest window that it offers. Linux
    /// offers half of the memory that `tcp_rmem` allows.
    pub receive_buffer: Buffer,
    /// Retransmission time-out before the first measurement (RFC 6298: 1 s).
    pub rto_initial: Span,
    /// Least value of the variance term of the time-out, as in Linux. The time-out is never
    /// shorter.
    pub rto_min: Span,
    /// Longest time-out, also after doubling.
    pub rto_max: Span,
    /// Time-outs in a row without progress after which the connection ends (Linux: 15).
    pub retries: u8,
    /// Time-outs of a SYN after which the connection ends (Linux: 6).
    pub syn_retries: u8,
    /// Longest time that an acknowledgement waits for a second segment (RFC 9293, section 3.8.6.3).
    pub delayed_ack: Span,
    /// Full segments for each acknowledgement: 1 or 2 (RFC 5681, section 4.2).
    pub ack_every: u8,
    /// A short segment waits while data are unacknowledged (RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// After a time-out of silence, the congestion window restarts at its initial value (RFC 5681,
    /// section 4.1).
    pub idle_restart: bool,
    /// Segments are spread over the round trip.
    pub pacing: Option<Pacing>,
    /// Bytes of payload that leave as one batch (TSO). Zero: each segment leaves alone.
    pub batch: u32,
    /// Time in TIME-WAIT, twice the maximum segment lifetime (Linux: 60 s).
    pub time_wait: Span,
}

/// Congestion control algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// NewReno (RFC 5681, RFC 6582; RFC 6675 with SACK).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic {
        /// A flow that lost below its last maximum gives up more (section 4.7). The RFC wants it
        /// off if a flow is alone on its path.
        fast_convergence: bool,
    },
    /// DCTCP (RFC 8257).
    Dctcp,
}

/// Size of a buffer in bytes. It grows with the need if `max` is larger than `initial`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// Size at the beginning.
    pub initial: u32,
    /// Largest size; at most 2^30, the limit of RFC 7323.
    pub max: u32,
}

/// Rates of pacing, in percent of one congestion window for each smoothed round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    /// Rate in slow start (Linux: 200).
    pub slow_start: u16,
    /// Rate in congestion avoidance (Linux: 120).
    pub avoidance: u16,
}

impl Pacing {
    /// Rates of Linux.
    pub const LINUX: Pacing = Pacing { slow_start: 200, avoidance: 120 };
}

impl Buffer {
    /// A buffer of constant size.
    pub const fn fixed(bytes: u32) -> Buffer {
        Buffer { initial: bytes, max: bytes }
    }
}

impl Config {
    /// Settings of a current Linux host with interfaces of this MTU in bytes: CUBIC, SACK, time
    /// stamps, buffers that grow, batches of 64 KiB.
    pub fn linux(mtu: u16) -> Config {
        Config {
            mss: mtu.saturating_sub(40).max(88),
            algorithm: Algorithm::Cubic { fast_convergence: true },
            initial_window: 10,
            byte_counting: true,
            sack: true,
            timestamps: true,
            window_scaling: true,
            ecn: false,
            send_buffer: Buffer { initial: 16_384, max: 4_194_304 },
            receive_buffer: Buffer { initial: 65_536, max: 3_145_728 },
            rto_initial: Span::from_secs(1),
            rto_min: Span::from_ms(200),
            rto_max: Span::from_secs(120),
            retries: 15,
            syn_retries: 6,
            delayed_ack: Span::from_ms(40),
            ack_every: 2,
            nagle: false,
            idle_restart: true,
            pacing: None,
            batch: 65_535,
            time_wait: Span::from_secs(60),
        }
    }

    /// Settings of a host of 2003: Reno with SACK, an initial window of three segments, growth by
    /// acknowledgements, windows of 64 KiB without scaling, no batches.
    pub fn year_2003(mtu: u16) -> Config {
        Config {
            algorithm: Algorithm::Reno,
            initial_window: 3,
            byte_counting: false,
            timestamps: false,
            window_scaling: false,
            send_buffer: Buffer::fixed(131_072),
            receive_buffer: Buffer::fixed(65_535),
            batch: 0,
            ..Config::linux(mtu)
        }
    }
}
