//! Tests of the transports.

mod infiniband_cm;
mod infiniband_fabrics;
mod infiniband_links;
mod infiniband_opensm;
mod infiniband_rc;
mod tcp_dctcp;
mod tcp_encode;
mod tcp_incast;
mod tcp_laws;
mod tcp_memory;
mod tcp_network;
mod tcp_properties;
mod tcp_rules;
mod tcp_states;
