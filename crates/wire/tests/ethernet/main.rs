//! What stands on Ethernet: the header and its tag, FCoE, FIP, LLDP with DCBX. Captured bytes, truncations, round trips, and a
//! second opinion.

mod golden;
mod samples;
mod survive;
mod tshark;
