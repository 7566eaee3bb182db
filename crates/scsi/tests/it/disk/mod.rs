//! SCSI disk on the initiator's side, against a target that plays the script of a test.

mod device;
mod paths;
mod probing;
mod recovery;
mod requests;
mod scan;
mod target;
