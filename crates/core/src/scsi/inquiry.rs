//! INQUIRY: standard data and the vital product data pages 00, 80 and 83 (SPC).

use super::config::PortName;
use super::device::{Device, answer};
use super::nexus::NexusId;
use super::step::{Response, Step};
use super::unit::Unit;
use sanloom_wire::sense::Sense;

const VENDOR: &[u8; 8] = b"SANLOOM ";
const PRODUCT: &[u8; 16] = b"VIRTUAL DISK    ";
const REVISION: &[u8; 4] = b"0001";
/// Peripheral qualifier 3 and device type 1F: no unit here, and none can be.
const NO_UNIT: u8 = 0x7f;
const DIRECT_ACCESS: u8 = 0x00;

/// Where the CDB names the page.
const PAGE_BYTE: u16 = 2;
const PAGE_SUPPORTED: u8 = 0x00;
const PAGE_SERIAL: u8 = 0x80;
const PAGE_IDENTIFICATION: u8 = 0x83;

impl Device {
    pub(super) fn inquiry(&self, nexus: NexusId, unit: Option<&Unit>, page: Option<u8>, allocation_len: u16) -> Step {
        let peripheral = if unit.is_some() { DIRECT_ACCESS } else { NO_UNIT };
        let data = match (page, unit) {
            (None, _) => standard(peripheral),
            (Some(PAGE_SUPPORTED), _) => {
                vpd(peripheral, PAGE_SUPPORTED, &[PAGE_SUPPORTED, PAGE_SERIAL, PAGE_IDENTIFICATION])
            }
            (Some(PAGE_SERIAL), Some(unit)) => vpd(peripheral, PAGE_SERIAL, self.serial(unit).as_bytes()),
            (Some(PAGE_IDENTIFICATION), Some(unit)) => {
                vpd(peripheral, PAGE_IDENTIFICATION, &self.identification(nexus, unit))
            }
            _ => return Step::Done(Response::check(Sense::invalid_field_in_cdb(PAGE_BYTE))),
        };
        answer(data, u32::from(allocation_len))
    }

    /// Node name and number: the same through every port.
    fn serial(&self, unit: &Unit) -> String {
        if unit.config.serial.is_empty() {
            format!("{:016x}{:04x}", self.config.wwnn.0, unit.number)
        } else {
            unit.config.serial.clone()
        }
    }

    /// Designators of the unit (NAA 6, built from the node name) and of the port (its port name).
    fn identification(&self, nexus: NexusId, unit: &Unit) -> Vec<u8> {
        const BINARY: u8 = 1;
        const NAA: u8 = 3;
        const PROTOCOL_VALID_TARGET_PORT: u8 = 0x90;
        let naa = self.config.wwnn.0 & !(0xf << 60) | 0x6 << 60;
        let mut data = vec![BINARY, NAA, 0, 16];
        data.extend_from_slice(&naa.to_be_bytes());
        data.extend_from_slice(&u64::from(unit.number).to_be_bytes());
        let port = self.nexuses.get(nexus).and_then(|nexus| self.config.ports.get(usize::from(nexus.port)));
        if let Some(PortName::Fcp(name)) = port.map(|port| &port.name) {
            data.extend_from_slice(&[BINARY, PROTOCOL_VALID_TARGET_PORT | NAA, 0, 8]);
            data.extend_from_slice(&name.0.to_be_bytes());
        }
        data
    }
}

fn standard(peripheral: u8) -> Vec<u8> {
    const VERSION_SPC_4: u8 = 6;
    const HISUP_FORMAT_2: u8 = 0x12;
    const COMMAND_QUEUING: u8 = 0x02;
    const ADDITIONAL_LENGTH: u8 = 36 - 5;
    let mut data = vec![peripheral, 0, VERSION_SPC_4, HISUP_FORMAT_2, ADDITIONAL_LENGTH, 0, 0, COMMAND_QUEUING];
    data.extend_from_slice(VENDOR);
    data.extend_from_slice(PRODUCT);
    data.extend_from_slice(REVISION);
    data
}

fn vpd(peripheral: u8, page: u8, body: &[u8]) -> Vec<u8> {
    let mut data = vec![peripheral, page];
    data.extend_from_slice(&(body.len() as u16).to_be_bytes());
    data.extend_from_slice(body);
    data
}
