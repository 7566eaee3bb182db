//! Fibre Channel arbitrated loop (FC-AL-2, INCITS 332, with amendment 2), sans-IO and in whole
//! words.
//!
//! [`initialise`] computes the loop master, the addresses and the position map. [`Loop`] then
//! carries the frames of its ports, tenancy by tenancy: it computes the winner of an arbitration
//! and the times of a circuit, so a loop of 126 ports costs no event per port and tenancy. An
//! arbitration looks at the ports that want the loop, and the end of an access window at all ports.
//!
//! # Rules
//!
//! The rules follow FC-AL-2 (clause 8 for the port state machine), as far as two public summaries
//! describe it: the Seagate Fibre Channel Interface manual 77767496 (sections 8.2 to 8.4, figure
//! 12) and the Hitachi DK32EJ manual (section 3.3). Zhu et al., *SANSim*, section on the FC-AL
//! module, divides the port in the same way: a state machine, an Alternative BB_Credit manager and
//! the rest. Rules that none of these sources states are marked as assumptions.
//!
//! - **Delay.** A port that repeats or answers delays each word by its own delay: at most 6 words
//!   in FC-AL (assumption), 12 since amendment 2 of FC-AL-2. The owner of the loop reads words at
//!   its receiver, without its delay (assumption). A port acts on a word with the next word that it
//!   sends.
//! - **Elastic buffer.** A winner removes the fill words in its buffer, and sends other words in it
//!   before OPN. An owner that leaves fills its buffer with its own fill word (assumption).
//! - **Arbitration.** An arbitrating port replaces IDLE, ARB(F0), ARB(FF) and the ARB of a lower
//!   priority. It wins when its own ARB comes back. ARB travels during the tenancy before, so the
//!   winner is known within a round after the close. A port that has begun to arbitrate wins, even
//!   if its frames have left in a circuit of another port meanwhile; it then sends CLS.
//! - **Fairness.** A fair port that opens a circuit closes its access window. An owner sends
//!   ARB(F0). If that comes back, the owner sends IDLE, which opens the window of each port that it
//!   passes. A port that arbitrates replaces IDLE at once. The minimum number of IDLEs is not
//!   modelled (assumption: one). The opened port sends it as its next fill word. AL_PA 00 is never
//!   fair.
//! - **Alternative BB_Credit.** At OPN each sender has the login credit of its peer. The peer sends
//!   one R_RDY per free buffer, of which the first (login credit) give no further credit. A port
//!   leaves a circuit only when its free buffers cover its login credit, because the next OPN may
//!   arrive at once (assumption about the delay of a departure).
//! - **Fill words.** Six words follow each frame. R_RDY may take their place (assumption). An
//!   opened port forgets the fill word that it received before OPN, because that is often the ARB
//!   of the opener (assumption).
//!
//! # Closing
//!
//! The opener sends CLS when its request is sent. The opened port sends the frames that it had for
//! the opener when OPN arrived (full duplex only), as far as credit goes, and answers with CLS.
//! With [`LoopPort::closes_first`] it sends CLS after its own last frame. The opener then sends
//! what its credit permits, and the rest of its request waits for another tenancy. With
//! [`LoopPort::transfers`] an opener with further requests keeps the loop if ARB(F0) has come back
//! since its OPN. If the peer closes at the same time, the opener leaves all the same, because
//! words of the circuit may still be on their way (assumption). A port that begins to arbitrate
//! after that waits for one more circuit.

mod circuit;
mod config;
mod engine;
mod initialisation;
mod ring;
mod signals;
mod tenancy;
mod time;

pub use config::{LoopConfig, LoopConfigError, LoopPort};
pub use engine::{Loop, LoopFrame, Output, Request};
pub use initialisation::{AL_TIME, Candidate, InitFrame, Initialised, LP_TOV, LipCause, initialise, outages};
pub use signals::Signal;
pub use tenancy::Tenancy;
pub use time::{LoopRate, LoopTime};
