//! Integration tests of `sanloom-sim`, one module per topic.

mod bundles;
mod capture_wireshark;
mod convergence;
mod error_recovery;
mod frame_path;
mod host_multipath;
mod host_queue;
mod host_recovery;
mod host_servers;
mod labs;
mod machines;
mod metamorphic;
mod no_allocation;
mod results_drops;
mod results_fabric;
mod results_findings;
mod results_numbers;
mod results_repeat;
mod stats_histogram;
mod stats_numbers;
mod trace_timeline;
mod virtual_channels;
mod workload_arrivals;
mod workload_determinism;
mod workload_requests;
mod zone_changes;
