//! Arbitrated loops of a lab.

use super::{Node, Picos};

/// An arbitrated loop in a hub or an enclosure. Its ports are ends of links, and words pass them in
/// the order of their numbers. The loop uses the rate of its links.
#[derive(Clone, PartialEq, Debug)]
pub struct ArbitratedLoop {
    /// Name, unique in the lab.
    pub name: String,
    /// Words from the receiver to the transmitter of a port that repeats.
    pub delay_words: u32,
    /// Frames that a port accepts in a circuit before its first R_RDY (login BB_Credit).
    pub login_credit: u16,
    /// Time of each port's firmware for a frame of the initialisation.
    pub firmware: Picos,
    /// Nodes whose ports do not use the access fairness algorithm.
    pub unfair: Vec<Node>,
    /// Nodes whose ports go to TRANSFER instead of closing when no other port arbitrates.
    pub transfers: Vec<Node>,
    /// Nodes whose ports stay private on a loop with an FL_Port: they do not log in to its fabric.
    pub private: Vec<Node>,
}
