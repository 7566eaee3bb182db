//! `sanloom up` with peers that nobody here wrote: the Linux kernel's FCoE initiator in a virtual machine (see `tests/guest`),
//! its captures read by tshark.

mod bed;
mod carriers;
#[path = "../../../../tests/descriptors.rs"]
mod descriptors;
mod durability;
mod fabric;
mod gateway;
mod hostile;
mod initiator;
mod inject;
mod kernel_target;
mod many_ports;
mod mutate;
#[path = "../../../../tests/peer.rs"]
mod peer;
#[path = "../../../../tests/qemu_io.rs"]
mod qemu_io;
mod recovery;
mod relay;
mod scsi_commands;
#[path = "../../../../tests/started.rs"]
mod started;
mod tools;
mod virtual_ports;
mod vlans;
mod vn2vn;
mod zoning;
