//! `sanloom up` with third-party peers: the Linux kernel's FCoE initiator in a virtual machine (see
//! `tests/guest`), and captures decoded by tshark.

mod bed;
mod carriers;
mod durability;
mod fabric;
mod fcip;
mod fcip_packets;
mod gateway;
mod hostile;
mod initiator;
mod inject;
mod kernel_target;
mod many_ports;
mod mutate;
mod recovery;
mod relay;
mod scsi_commands;
mod service;
mod srp;
mod tools;
mod virtual_ports;
mod vlans;
mod vn2vn;
mod zoning;
