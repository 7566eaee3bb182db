//! Tests of the transports.

mod infiniband_fabrics;
mod infiniband_opensm;
