//! iSCSI over TCP of the Ethernet plane.

mod bed;
mod faults;
mod machines;
mod receive;
mod world;
