//! Arbitrated loop (FC-AL-2, INCITS 332): ordered sets ([`Primitive`]), physical addresses
//! ([`AlPa`]) and the frames of loop initialisation ([`LoopInit`]).

mod address;
mod initialisation;
mod primitive;

pub use address::{AL_PA_COUNT, AddressMap, AlPa};
pub use initialisation::{AcceptsMap, FL_PORT_ID, LoopInit, NL_PORT_ID, PositionMap, Step};
pub use primitive::{ALL_PORTS, Primitive};
