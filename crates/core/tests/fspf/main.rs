//! FSPF: every switch ends with the same records and with the routes of the true topology, whatever links, switches and
//! messages did before.

mod convergence;
mod fabric;
mod neighbour;
mod records;
