//! Integration tests of `sanloom-storage`, one module per topic.

mod disk_cache;
mod disk_demerit;
mod disk_limits;
mod disk_load;
mod disk_naive;
mod disk_presets;
mod disk_schedule;
mod disk_traces;
mod support;
mod trace_validate;
