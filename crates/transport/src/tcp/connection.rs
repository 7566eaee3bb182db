//! One end of a connection: the calls of the application, and its state.

use super::config::{Algorithm, Config};
use super::congestion::Congestion;
use super::receive::Receive;
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::state::{Counters, Events, State};
use sanloom_scsi::time::{Instant, Span};
use std::sync::Arc;

/// One end of a TCP connection in stream positions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    pub(super) config: Arc<Config>,
    pub(super) send: Send,
    pub(super) receive: Receive,
    pub(super) congestion: Congestion,
    /// Retransmission, zero window or TIME-WAIT, depending on the state; `NEVER`: not running.
    pub(super) retransmit_at: Instant,
    /// Latest time of a delayed acknowledgement.
    pub(super) ack_at: Instant,
    /// Pacing: earliest time of the next data segment.
    pub(super) pace_at: Instant,
    pub(super) rtt: Rtt,
    pub(super) ignored: u32,
    pub(super) state: State,
    pub(super) events: Events,
    /// Time-outs since the last progress.
    pub(super) retries: u8,
    pub(super) agreed: Agreed,
    /// Data wait for `pace_at`.
    pub(super) is_paced: bool,
    /// A RST is to be sent.
    pub(super) resets: bool,
}

/// Outcome of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Agreed {
    pub(super) sack: bool,
    pub(super) stamps: bool,
    pub(super) ecn: bool,
    pub(super) scaling: bool,
    /// A SYN was sent again.
    pub(super) syn_lost: bool,
}

/// Sending half of a connection. Positions are those of the own stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Send {
    /// SND.UNA: oldest unacknowledged position.
    pub(super) una: u64,
    /// SND.NXT: next position to send.
    pub(super) nxt: u64,
    /// Position after the last byte that the application has queued.
    pub(super) end: u64,
    /// Position after the last complete record.
    pub(super) record: Ahead,
    /// Right edge of the peer's window.
    pub(super) edge: Ahead,
    /// The congestion window was full when this position was next.
    pub(super) limited: Ahead,
    /// No second reduction before this position is acknowledged (RFC 3168, section 6.1.2).
    pub(super) reduced: Ahead,
    /// Position whose acknowledgement ends the measurement of a round trip.
    pub(super) timed: Ahead,
    pub(super) timed_at: Instant,
    /// Time of the last data segment.
    pub(super) sent_at: Instant,
    /// Allocated with the first loss, then kept.
    pub(super) board: Option<Box<Scoreboard>>,
    /// Duplicate acknowledgements in a row.
    pub(super) duplicates: u16,
    /// Largest window that the peer has offered, in bytes.
    pub(super) max_window: u32,
    /// Send buffer in bytes.
    pub(super) buffer: u32,
    /// Largest segment to the peer, TCP options included.
    pub(super) mss: u16,
    /// Window scale of the peer.
    pub(super) scale: u8,
    pub(super) phase: Phase,
    /// The application has closed.
    pub(super) fin: bool,
    /// The next lost segment ignores the congestion window.
    pub(super) forced: bool,
    /// A probe of a zero window is to be sent.
    pub(super) probe: bool,
    /// The next new segment reports a reduction to the peer.
    pub(super) cwr: bool,
    /// A `send` was cut, so the application waits for room.
    pub(super) short: bool,
}

/// A position at or above SND.UNA, stored as the distance from it. A position below counts as
/// SND.UNA itself, so zero also means "none".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ahead(u32);

impl Ahead {
    pub(super) fn set(&mut self, una: u64, position: u64) {
        self.0 = u32::try_from(position.saturating_sub(una)).unwrap_or(u32::MAX);
    }
    pub(super) fn position(self, una: u64) -> u64 {
        una + u64::from(self.0)
    }
    /// Returns true if the position is above SND.UNA.
    pub(super) fn is_ahead(self) -> bool {
        self.0 > 0
    }
}

impl Send {
    /// Right edge of the peer's window.
    pub(super) fn edge(&self) -> u64 {
        self.edge.position(self.una)
    }

    /// Moves SND.UNA up to `ack`.
    pub(super) fn advance(&mut self, ack: u64) {
        let progress = u32::try_from(ack - self.una).unwrap_or(u32::MAX);
        let ahead = [&mut self.record, &mut self.edge, &mut self.limited, &mut self.reduced, &mut self.timed];
        ahead.into_iter().for_each(|ahead| ahead.0 = ahead.0.saturating_sub(progress));
        self.una = ack;
    }
}

/// Phase of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// No loss is known.
    Open,
    /// Fast recovery.
    Fast,
    /// Recovery after a time-out.
    Loss,
}

impl Connection {
    /// Opens a connection actively. The next [`Connection::poll_transmit`] returns the SYN.
    pub fn connect(config: Arc<Config>) -> Connection {
        Connection::new(config, State::SynSent)
    }

    /// Waits for a SYN. A driver creates one such connection for each SYN that it admits.
    pub fn listen(config: Arc<Config>) -> Connection {
        Connection::new(config, State::Listen)
    }

    fn new(config: Arc<Config>, state: State) -> Connection {
        let mut receive = Receive::new(&config);
        receive.scale = if config.window_scaling { Receive::wanted_scale(&config) } else { 0 };
        Connection {
            send: Send {
                una: 0,
                nxt: 0,
                end: 1,
                record: Ahead::default(),
                edge: Ahead::default(),
                limited: Ahead::default(),
                reduced: Ahead::default(),
                timed: Ahead::default(),
                timed_at: Instant::ZERO,
                sent_at: Instant::NEVER,
                board: None,
                duplicates: 0,
                max_window: 0,
                buffer: config.send_buffer.initial.min(1 << 30),
                mss: config.mss,
                scale: 0,
                phase: Phase::Open,
                fin: false,
                forced: false,
                probe: false,
                cwr: false,
                short: false,
            },
            receive,
            congestion: Congestion::new(&config),
            retransmit_at: Instant::NEVER,
            ack_at: Instant::NEVER,
            pace_at: Instant::ZERO,
            rtt: Rtt::default(),
            ignored: 0,
            state,
            events: Events::NONE,
            retries: 0,
            agreed: Agreed::default(),
            is_paced: false,
            resets: false,
            config,
        }
    }

    /// Queues up to `bytes` bytes for sending. Returns the number that fits into the send buffer;
    /// zero after [`Connection::close`]. [`Events::WRITABLE`] follows if the number was cut.
    pub fn send(&mut self, bytes: u64) -> u64 {
        let may_send = matches!(
            self.state,
            State::Established | State::CloseWait | State::SynSent | State::SynReceived | State::Listen
        );
        if self.send.fin || !may_send {
            return 0;
        }
        let accepted = bytes.min(self.send_space());
        self.send.end += accepted;
        self.send.short = accepted < bytes;
        accepted
    }

    /// Bytes that [`Connection::send`] accepts now.
    pub fn send_space(&self) -> u64 {
        let queued = self.send.end - self.send.una.min(self.send.end);
        u64::from(self.send.buffer).saturating_sub(queued)
    }

    /// Ends a record after the bytes that are queued: the segment with its last byte has PSH.
    pub fn end_record(&mut self) {
        self.send.record.set(self.send.una, self.send.end);
    }

    /// Bytes in order that the application can consume.
    pub fn readable(&self) -> u64 {
        u64::from(self.receive.unread)
    }

    /// Consumes up to `bytes` bytes. Returns the number consumed. A window update may follow in
    /// [`Connection::poll_transmit`].
    pub fn consume(&mut self, now: Instant, bytes: u64) -> u64 {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (rtt, config) = (self.rtt.smoothed(), &self.config);
        u64::from(self.receive.consume(now, bytes, rtt, config))
    }

    /// Sends a FIN after the queued bytes. Data of the peer can still be consumed.
    pub fn close(&mut self) {
        if let Some(next) = self.state.closed_by_application() {
            let is_open = self.state != State::SynReceived;
            self.send.fin = true;
            // A FIN follows the handshake, so SYN-RECEIVED changes when its ACK arrives.
            if is_open {
                self.enter(next);
            }
        }
    }

    /// Ends the connection at once, with a RST if the peer knows of it (RFC 9293, section 3.10.5).
    pub fn abort(&mut self) {
        self.resets = self.state.receives() || matches!(self.state, State::SynReceived | State::CloseWait);
        self.enter(State::Closed);
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Events {
        std::mem::take(&mut self.events)
    }

    /// State of the connection.
    pub fn state(&self) -> State {
        self.state
    }
    /// Position after the last byte that arrived in order; the first byte has position 1.
    pub fn received(&self) -> u64 {
        self.receive.nxt
    }
    /// Oldest own position that the peer has not acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.send.una
    }
    /// Congestion window in bytes.
    pub fn congestion_window(&self) -> u32 {
        self.congestion.window()
    }
    /// Slow-start threshold in bytes, or `None` before the first loss.
    pub fn threshold(&self) -> Option<u32> {
        Some(self.congestion.threshold()).filter(|threshold| *threshold < u32::MAX)
    }
    /// Estimated share of marked bytes in units of 2^-20, if DCTCP is in use.
    pub fn marked_share(&self) -> Option<u32> {
        self.congestion.alpha()
    }
    /// Smoothed round-trip time, or `None` before the first sample.
    pub fn round_trip(&self) -> Option<Span> {
        self.rtt.smoothed()
    }
    /// Receive buffer in bytes, as auto-tuning has set it.
    pub fn receive_buffer(&self) -> u32 {
        self.receive.buffer()
    }
    /// Largest payload of a segment to the peer, without SACK blocks.
    pub fn segment_size(&self) -> u32 {
        let stamps = if self.agreed.stamps { 12 } else { 0 };
        u32::from(self.send.mss).saturating_sub(stamps).max(1)
    }

    /// Counters since the connection was opened.
    pub fn counters(&self) -> Counters {
        let board = self.send.board.as_deref();
        Counters {
            retransmissions: board.map_or(0, |board| board.retransmissions),
            timeouts: board.map_or(0, |board| board.timeouts),
            recoveries: board.map_or(0, |board| board.recoveries),
            marks: board.map_or(0, |board| board.marks),
            ignored: self.ignored,
        }
    }

    /// Returns the next time at which [`Connection::timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let pace = if self.is_paced { self.pace_at } else { Instant::NEVER };
        Some(self.retransmit_at.min(self.ack_at).min(pace)).filter(|at| *at < Instant::NEVER)
    }

    pub(super) fn is_dctcp(&self) -> bool {
        self.config.algorithm == Algorithm::Dctcp
    }

    /// Enters a state, and stops the timers that it does not need.
    pub(super) fn enter(&mut self, state: State) {
        if matches!(state, State::Closed | State::TimeWait) {
            (self.retransmit_at, self.ack_at, self.is_paced) = (Instant::NEVER, Instant::NEVER, false);
            if self.state != State::TimeWait && !self.resets {
                self.events.add(Events::CLOSED);
            }
        }
        self.state = state;
    }

    /// Ends the connection because of a RST or a lost peer.
    pub(super) fn fail(&mut self, event: Events) {
        self.enter(State::Closed);
        self.events = event;
    }
}
