//! A SCSI disk as its initiator sees it, against a target that plays what a test has written down.

mod device;
mod paths;
mod probing;
mod recovery;
mod requests;
mod scan;
mod target;
