//! Integration tests of `sanloom-storage`, one module per topic.

mod cache_controller;
mod cache_models;
mod cache_policies;
mod flash;
mod raid_arrays;
mod raid_layouts;
mod raid_plans;
