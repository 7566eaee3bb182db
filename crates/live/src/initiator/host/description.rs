//! Description of the adapter of a host for the management service of a switch.

use sanloom_fc::nport::Adapter;
use std::fs;
use std::path::Path;

/// Description of the software adapter behind an N_Port for the management service of a switch.
pub fn description(name: &str, serial_number: String) -> Adapter {
    let kernel = |file: &str| {
        let text = fs::read_to_string(Path::new("/proc/sys/kernel").join(file)).unwrap_or_default();
        text.trim().to_owned()
    };
    Adapter {
        manufacturer: "sanloom".to_owned(),
        serial_number,
        model: "FCoE host".to_owned(),
        model_description: "FCoE host in user space".to_owned(),
        driver_version: env!("CARGO_PKG_VERSION").to_owned(),
        os: format!("{} {}", kernel("ostype"), kernel("osrelease")),
        os_device_name: name.to_owned(),
        host_name: kernel("hostname"),
        ..Adapter::default()
    }
}
