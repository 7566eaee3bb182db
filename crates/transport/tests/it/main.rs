//! Tests of the transports.

mod tcp_dctcp;
mod tcp_laws;
mod tcp_network;
