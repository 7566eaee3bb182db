//! iSCSI over TCP of the Ethernet plane.

mod bed;
mod machines;
mod world;
