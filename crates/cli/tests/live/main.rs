//! `sanloom up` with peers that nobody here wrote: the Linux kernel's FCoE initiator in a virtual machine (see `tests/guest`),
//! its captures read by tshark.

mod bed;
mod fabric;
mod initiator;
mod recovery;
mod scsi_commands;
mod virtual_ports;
