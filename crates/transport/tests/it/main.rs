//! Tests of the transports.

mod infiniband_fabrics;
mod infiniband_links;
mod infiniband_opensm;
mod infiniband_rc;
