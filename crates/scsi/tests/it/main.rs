//! Integration tests of `sanloom-scsi`, one module per topic.

mod disk;
mod entry_points;
mod forward;
mod fuzz_smoke;
mod iscsi;
mod map;
mod nbd;
mod out_of_band;
mod scsi;
mod srp;
mod volume;
