//! SCSI target device, command by command, on disks in memory.

mod access;
mod bench;
mod conversation;
mod groups;
mod hostile;
mod model;
mod order;
mod persistence;
mod reservations;
mod units;
