//! Protocols on Ethernet: the header and its tag, FCoE, FIP, LLDP with DCBX. The tests use captured
//! bytes, truncations, round trips, and Wireshark as an independent check.

mod golden;
mod samples;
mod survive;
mod tshark;
