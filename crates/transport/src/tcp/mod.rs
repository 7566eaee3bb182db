//! TCP in stream positions, without payload.
//!
//! A [`Connection`] is one end of a connection (RFC 9293). It counts positions of a stream and
//! never holds a byte that is transported. The driver moves [`Segment`]s between two connections:
//!
//! 1. [`Connection::arrive`] for each segment from the network. The answer, if there is one, leaves
//!    before all others.
//! 2. [`Connection::poll_transmit`] until it returns `None`, after each call that changes the
//!    connection.
//! 3. [`Connection::timeout`] at [`Connection::poll_timeout`]. An early call is harmless.
//!
//! The application calls [`Connection::send`], [`Connection::end_record`],
//! [`Connection::consume`] and [`Connection::close`], and reads [`Connection::take_events`].
//!
//! | file | job |
//! |---|---|
//! | `connection` | the calls of the application and the driver |
//! | `arrive` | checks of a segment in each state, handshake, end |
//! | `acknowledge` | ACK positions, SACK blocks, marks; begin and end of loss recovery |
//! | `transmit` | the next segment: lost data, new data, FIN, acknowledgement |
//! | `timers` | time-outs: retransmission, zero window, delayed acknowledgement, TIME-WAIT |
//! | `receive` | order, acknowledgements, offered window, marks |
//! | `scoreboard`, `ranges` | lost and SACKed positions |
//! | `congestion` | Reno, CUBIC and DCTCP |
//! | `encode` | segments as bytes and back |
//! | `rtt` | round-trip time and time-out |

mod acknowledge;
mod arrive;
mod config;
mod congestion;
mod connection;
mod encode;
mod ranges;
mod receive;
mod rtt;
mod scoreboard;
mod segment;
mod state;
mod timers;
mod transmit;

pub use arrive::refuse;
pub use config::{Algorithm, Buffer, Config, Pacing};
pub use connection::Connection;
pub use encode::Flow;
pub use segment::{Block, Ecn, Flags, Sack, Segment, Stamps, SynOptions};
pub use state::{Counters, Events, State};
