//! Registration of the own adapter at the HBA management service (FC-GS, FDMI).
//!
//! ```text
//!   ready --> PLOGI (FFFFFA) --> RHBA --> RPA
//! ```
//!
//! The registration does not delay discovery. A service that rejects a step, or does not reply, is
//! left alone until the port registers with the fabric again.

use super::exchanges::Exchanges;
use super::identity::Identity;
use super::pending::Purpose;
use sanloom_scsi::time::Instant;
use sanloom_wire::FcId;
use sanloom_wire::els::Els;
use sanloom_wire::fdmi::{Attribute, FdmiRequest, hba_attribute, port_attribute};

/// Description of an adapter with one port. Empty texts and zeros are not registered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Adapter {
    /// Manufacturer.
    pub manufacturer: String,
    /// Serial number.
    pub serial_number: String,
    /// Model.
    pub model: String,
    /// Description of the model.
    pub model_description: String,
    /// Version of the driver.
    pub driver_version: String,
    /// Version of the firmware.
    pub firmware_version: String,
    /// Name and version of the operating system.
    pub os: String,
    /// Supported speeds, a bit for each ([`sanloom_wire::fdmi::port_speed`]).
    pub speeds: u32,
    /// Current speed, one bit.
    pub speed: u32,
    /// Name of the device of the port in the operating system.
    pub os_device_name: String,
    /// Name of the host.
    pub host_name: String,
}

/// Step of the registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AdapterStep {
    Login,
    Hba,
    Port,
}

impl AdapterStep {
    /// Returns the step after a successful one.
    pub(super) fn next(self) -> Option<AdapterStep> {
        match self {
            AdapterStep::Login => Some(AdapterStep::Hba),
            AdapterStep::Hba => Some(AdapterStep::Port),
            AdapterStep::Port => None,
        }
    }
}

/// Sends the request of a step, if the port describes its adapter.
pub(super) fn begin(now: Instant, step: AdapterStep, exchanges: &mut Exchanges) {
    let Some(adapter) = &exchanges.identity.adapter else { return };
    let purpose = Purpose::Adapter(step);
    let request = match step {
        AdapterStep::Login => {
            let (plogi, timeout) = (exchanges.identity.plogi_parameters(), exchanges.identity.reply_timeout());
            return exchanges.request(now, FcId::MANAGEMENT_SERVER, timeout, purpose, Els::Plogi(plogi));
        }
        AdapterStep::Hba => hba(adapter, &exchanges.identity),
        AdapterStep::Port => port(adapter, &exchanges.identity),
    };
    exchanges.request_management(now, purpose, request);
}

/// The adapter has the name of its port, as with libfc.
fn hba(adapter: &Adapter, identity: &Identity) -> FdmiRequest {
    use hba_attribute::*;
    let mut attributes = vec![Attribute::of_name(NODE_NAME, identity.config.wwnn.0)];
    for (kind, value) in [
        (MANUFACTURER, &adapter.manufacturer),
        (SERIAL_NUMBER, &adapter.serial_number),
        (MODEL, &adapter.model),
        (MODEL_DESCRIPTION, &adapter.model_description),
        (DRIVER_VERSION, &adapter.driver_version),
        (FIRMWARE_VERSION, &adapter.firmware_version),
        (OS, &adapter.os),
        (SYMBOLIC_NODE_NAME, &identity.config.symbolic_name),
    ] {
        attributes.extend(Attribute::of_text(kind, value));
    }
    attributes.push(Attribute::of_number(PORTS, 1));
    let hba = identity.config.wwpn;
    FdmiRequest::Rhba { hba, ports: vec![hba], attributes }
}

fn port(adapter: &Adapter, identity: &Identity) -> FdmiRequest {
    use port_attribute::*;
    let config = &identity.config;
    let mut attributes = Vec::new();
    for (kind, speeds) in [(SUPPORTED_SPEEDS, adapter.speeds), (SPEED, adapter.speed)] {
        attributes.extend((speeds != 0).then(|| Attribute::of_number(kind, speeds)));
    }
    attributes.push(Attribute::of_number(MAX_FRAME_SIZE, config.receive_size_bytes.into()));
    attributes.extend(Attribute::of_text(OS_DEVICE_NAME, &adapter.os_device_name));
    attributes.extend(Attribute::of_text(HOST_NAME, &adapter.host_name));
    attributes.push(Attribute::of_name(NODE_NAME, config.wwnn.0));
    attributes.push(Attribute::of_name(PORT_NAME, config.wwpn.0));
    attributes.extend(Attribute::of_text(SYMBOLIC_NAME, &config.symbolic_name));
    attributes.push(Attribute::of_number(PORT_ID, identity.port_id.to_u32()));
    FdmiRequest::Rpa { port: config.wwpn, attributes }
}
