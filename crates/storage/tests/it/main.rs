//! Integration tests of `sanloom-storage`, one module per topic.

mod cache_controller;
mod cache_models;
mod cache_policies;
mod disk_cache;
mod disk_calibrate;
mod disk_demerit;
mod disk_file;
mod disk_import;
mod disk_limits;
mod disk_load;
mod disk_naive;
mod disk_presets;
mod disk_schedule;
mod disk_traces;
mod flash;
mod raid_arrays;
mod raid_layouts;
mod raid_plans;
mod support;
mod trace_validate;
