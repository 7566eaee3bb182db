//! Integration tests of `sanloom`, one module per topic.

mod commands;
mod control;
mod initiator;
mod iscsi;
mod iscsi_switch;
mod live;
mod readme;
mod sanloom;
mod tutorial;
