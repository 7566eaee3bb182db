//! Host bus adapters that have registered with the management service (FDMI).

use serde::{Deserialize, Serialize};

/// The registered adapters, by switch and name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FdmiView {
    /// One row for each adapter.
    pub adapters: Vec<AdapterRow>,
}

/// A registered adapter. Texts that it has not registered are empty.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AdapterRow {
    /// Switch that stores the registration.
    pub switch: String,
    /// Domain of the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<u8>,
    /// Name of the adapter: that of its first port.
    pub adapter: String,
    /// Host of the lab with that port; empty for other ports.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Node name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// Symbolic node name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub symbolic_node_name: String,
    /// Manufacturer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manufacturer: String,
    /// Serial number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
    /// Model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Description of the model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model_description: String,
    /// Version of the hardware.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hardware_version: String,
    /// Version of the driver.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub driver_version: String,
    /// Version of the option ROM.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub option_rom_version: String,
    /// Version of the firmware.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub firmware_version: String,
    /// Name and version of the operating system.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub os: String,
    /// Longest CT message, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ct_payload: Option<u32>,
    /// Number of ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_ports: Option<u32>,
    /// Ports of the adapter.
    pub ports: Vec<AdapterPortRow>,
}

/// A port of an adapter. Texts that it has not registered are empty.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AdapterPortRow {
    /// World-wide port name.
    pub port_name: String,
    /// Fibre Channel address; empty without a login in the fabric.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub port_id: String,
    /// Node name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// Symbolic port name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub symbolic_port_name: String,
    /// Supported speeds, such as `16G`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supported_speeds: Vec<String>,
    /// Current speed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub speed: String,
    /// Largest frame, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_frame_bytes: Option<u32>,
    /// Name of the device in the operating system.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub os_device_name: String,
    /// Name of the host.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host_name: String,
}
