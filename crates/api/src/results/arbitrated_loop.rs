//! Results of arbitrated loops.

use serde::{Deserialize, Serialize};

/// One arbitrated loop.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopResult {
    /// Name of the loop.
    pub name: String,
    /// Name of its speed, for example `2GFC`.
    pub rate: String,
    /// Time that a tenancy of its first two ports costs beside its frames, in microseconds.
    pub tenancy_cost_us: f64,
    /// Tenancies: a port has won the arbitration, has sent its frames and has left the loop.
    pub tenancies: u64,
    /// Circuits of these tenancies. A tenancy has several if the port transfers.
    pub circuits: u64,
    /// Share of the time in which a port held the loop, 0 to 1.
    pub held_fraction: f64,
    /// Initialisations of the loop that ended in the measured time.
    pub initialisations: u64,
    /// Time of these initialisations, in seconds.
    pub down_s: f64,
    /// Its ports, in the order of the loop.
    pub ports: Vec<LoopPortResult>,
}

/// One port of an arbitrated loop.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopPortResult {
    /// Port of the host or storage system, for example `server1:0`.
    pub name: String,
    /// Address on the loop (AL_PA) in hexadecimal; empty for a port that does not participate.
    pub al_pa: String,
    /// Tenancies that the port has won.
    pub tenancies: u64,
    /// Share of the time in which the port held the loop, 0 to 1.
    pub held_fraction: f64,
    /// Time from the wish for the loop to the end of the arbitration, in microseconds: mean and
    /// maximum.
    pub arbitration_mean_us: f64,
    /// Longest such time, in microseconds.
    pub arbitration_max_us: f64,
}
