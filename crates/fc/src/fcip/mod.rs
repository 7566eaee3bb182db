//! FCIP (RFC 3821): an E_Port to E_Port link over a TCP connection. A port of a switch that has
//! such a link is a VE_Port.
//!
//! ```text
//!   TCP -> Framer -> special frames, keep-alive -> Tunnel -> link up, link down
//!          frames  -> Tunnel::admit (age) -> the switch
//! ```
//!
//! [`Framer`] finds the frames in the bytes of a connection and finds them again after damage.
//! [`Tunnel`] decides about connections: special frames, names, keep-alive. Data frames never enter
//! it; a driver asks [`Tunnel::admit`] for each of them.

mod framer;
mod tunnel;

pub use framer::{Framer, RESYNC_LIMIT_BYTES, Step};
pub use tunnel::{
    Admission, ConnectionId, Ending, Input, OPENING_LIMIT, Output, Phase, RETRY, Role, Tunnel, TunnelConfig,
    TunnelCounters,
};
