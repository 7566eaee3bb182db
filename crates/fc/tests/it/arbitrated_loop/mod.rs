//! The arbitrated loop: both engines, the table of tenancies, fairness, credits and initialisation.

mod agreement;
mod initialisation;
mod plain;
mod shares;
mod states;
mod timing;
mod util;
