//! FSPF: after any sequence of events, every switch has the same records and the routes of the real
//! topology.

mod convergence;
mod fabric;
mod neighbour;
mod records;
