//! Integration tests of `sanloom-lab`, one module per topic.

mod bad;
mod examples;
mod fault_ports;
mod fcip_windows;
mod hostile;
mod import;
mod json_schema;
mod topology;
mod topology_gateways;
mod topology_ipoib;
mod topology_storage;
mod topology_trunks;
mod virtual_disks;
mod zone_edits;
