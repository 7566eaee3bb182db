//! Integration tests of `sanloom-wire`, one module per topic.

mod arbitrated_loop;
mod entry_points;
mod ethernet;
mod fcip;
mod fuzz_smoke;
mod golden;
mod infiniband;
mod iscsi;
mod iscsi_samples;
mod iscsi_tshark;
mod layout;
mod names;
mod nbd;
mod nbd_samples;
mod pause;
mod roce;
mod round_trip;
mod truncation;
mod tshark;
mod values;
mod zoning_layout;
