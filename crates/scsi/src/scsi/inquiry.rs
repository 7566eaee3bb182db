//! INQUIRY: standard data and the vital product data pages (SPC, SBC).

use super::config::{PortConfig, PortName};
use super::step::Step;
use super::unit::{Unit, answer, check};
use sanloom_wire::Wwnn;
use sanloom_wire::scsi::inquiry::{StandardInquiry, text};
use sanloom_wire::scsi::vpd::{self, BlockLimits, Designator, association, page, protocol};
use sanloom_wire::sense::Sense;

/// Peripheral qualifier 3 and device type 1F: no unit can be attached to this LUN.
const NO_UNIT: u8 = 0x7f;
const DIRECT_ACCESS: u8 = 0x00;
/// Byte of the CDB that contains the page code.
const PAGE_BYTE: u16 = 2;

const SUPPORTED: [u8; 7] = [
    page::SUPPORTED,
    page::SERIAL,
    page::IDENTIFICATION,
    page::EXTENDED_INQUIRY,
    page::BLOCK_LIMITS,
    page::BLOCK_CHARACTERISTICS,
    page::PROVISIONING,
];

/// SPC-4 version descriptors of SAM-5, SPC-4 and SBC-3, each without a revision.
const STANDARDS: [u16; 3] = [0x00a0, 0x0460, 0x04c0];
/// Version descriptors of FCP-4 and iSCSI, also without a revision.
const FCP: u16 = 0x0a40;
const ISCSI: u16 = 0x0960;

/// Limits reported by page B0, which the commands enforce.
pub(super) const MAX_COMPARE_BLOCKS: u8 = 0xff;
pub(super) const MAX_UNMAP_DESCRIPTORS: u32 = 256;
// A RAM disk processes a command without interruption: 64 MiB in blocks of 512 bytes take about 20
// ms.
pub(super) const MAX_UNMAP_BLOCKS: u32 = 0x2_0000;
pub(super) const MAX_WRITE_SAME_BLOCKS: u32 = 0x2_0000;

/// Names of a device and its ports.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) wwnn: Wwnn,
    pub(super) ports: Vec<PortConfig>,
}

/// Origin of an INQUIRY.
pub(super) struct Origin {
    /// Number of the port that received it.
    pub(super) port: u16,
    /// True if the ports belong to several target port groups.
    pub(super) several_groups: bool,
}

impl Identity {
    /// Executes INQUIRY.
    pub(super) fn inquiry(&self, from: &Origin, unit: Option<&Unit>, page: Option<u8>, allocation_len: u16) -> Step {
        let peripheral = if unit.is_some() { DIRECT_ACCESS } else { NO_UNIT };
        let mut data = Vec::new();
        match (page, unit) {
            (None, unit) => self.standard(from, peripheral, unit).emit(&mut data),
            (Some(code), unit) => {
                let Some(body) = self.page(from, unit, code) else {
                    return check(Sense::invalid_field_in_cdb(PAGE_BYTE));
                };
                vpd::emit(peripheral, code, &body, &mut data);
            }
        }
        answer(data, u32::from(allocation_len))
    }

    fn standard(&self, from: &Origin, peripheral: u8, unit: Option<&Unit>) -> StandardInquiry {
        const SPC_4: u8 = 6;
        const IMPLICIT_STATES: u8 = 1;
        const EXPLICIT_STATES: u8 = 2;
        let mut standards = STANDARDS.to_vec();
        let fcp = self.ports.iter().any(|port| matches!(port.name, PortName::Fcp(_)));
        let iscsi = self.ports.iter().any(|port| matches!(port.name, PortName::Iscsi { .. }));
        standards.extend([(fcp, FCP), (iscsi, ISCSI)].into_iter().filter(|(here, _)| *here).map(|(_, code)| code));
        StandardInquiry {
            peripheral,
            version: SPC_4,
            port_groups: IMPLICIT_STATES | if from.several_groups { EXPLICIT_STATES } else { 0 },
            multi_port: self.ports.len() > 1,
            vendor: text("SANLOOM"),
            product: text(unit.map_or("", |unit| unit.config.product.as_str())),
            revision: text("0001"),
            standards,
        }
    }

    fn page(&self, from: &Origin, unit: Option<&Unit>, code: u8) -> Option<Vec<u8>> {
        if code == page::SUPPORTED {
            return Some(SUPPORTED.to_vec());
        }
        let unit = unit?;
        Some(match code {
            page::SERIAL => self.serial(unit).into_bytes(),
            page::IDENTIFICATION => self.identification(from.port, unit),
            page::EXTENDED_INQUIRY => vpd::extended_inquiry(unit.mode.write_cache).to_vec(),
            page::BLOCK_LIMITS => limits(unit),
            page::BLOCK_CHARACTERISTICS => vpd::block_characteristics().to_vec(),
            page::PROVISIONING => vpd::provisioning(unit.config.thin).to_vec(),
            _ => return None,
        })
    }

    /// Serial number of a unit: node name and number, unless configured otherwise. It is the same
    /// through every port.
    fn serial(&self, unit: &Unit) -> String {
        if unit.config.serial.is_empty() {
            match unit.config.identity {
                None => format!("{:016x}{:04x}", self.wwnn.0, unit.number),
                Some(identity) => format!("{:016x}{identity:016x}", self.wwnn.0),
            }
        } else {
            unit.config.serial.clone()
        }
    }

    /// Designators of the unit (NAA 6, derived from the node name), of the queried port (name,
    /// relative identifier and group), and of the device.
    fn identification(&self, number: u16, unit: &Unit) -> Vec<u8> {
        const NAA: u8 = 3;
        const EUI: u8 = 2;
        const RELATIVE_PORT: u8 = 4;
        const PORT_GROUP: u8 = 5;
        let naa = self.wwnn.0 & !(0xf << 60) | 0x6 << 60;
        let naa = u128::from(naa) << 64 | u128::from(unit.config.identity.unwrap_or(unit.number.into()));
        let mut list = vec![Designator::binary(association::UNIT, NAA, &naa.to_be_bytes())];
        if let Some(port) = self.ports.get(usize::from(number)) {
            let of = match port.name {
                PortName::Fcp(_) => protocol::FCP,
                PortName::Srp(_) => protocol::SRP,
                PortName::Iscsi { .. } => protocol::ISCSI,
            };
            let names = match &port.name {
                PortName::Fcp(name) => [
                    Designator::binary(association::PORT, NAA, &name.0.to_be_bytes()),
                    Designator::binary(association::DEVICE, NAA, &self.wwnn.0.to_be_bytes()),
                ],
                // A 16-byte identifier based on EUI-64 (SPC-4, 7.8.6.5.4).
                PortName::Srp(id) => [
                    Designator::binary(association::PORT, EUI, id),
                    Designator::binary(association::DEVICE, NAA, &self.wwnn.0.to_be_bytes()),
                ],
                PortName::Iscsi { target, portal_group } => [
                    Designator::name(association::PORT, &format!("{target},t,0x{portal_group:04x}")),
                    Designator::name(association::DEVICE, target),
                ],
            };
            let numbers = [(RELATIVE_PORT, number + 1), (PORT_GROUP, port.group)];
            let numbers = numbers
                .map(|(kind, number)| Designator::binary(association::PORT, kind, &u32::from(number).to_be_bytes()));
            list.extend(names.into_iter().chain(numbers).map(|designator| designator.of_protocol(of)));
        }
        let mut body = Vec::new();
        list.iter().for_each(|designator| designator.emit(&mut body));
        body
    }
}

fn limits(unit: &Unit) -> Vec<u8> {
    let thin = |value: u32| if unit.config.thin { value } else { 0 };
    let limits = BlockLimits {
        write_same_nonzero: true,
        max_compare_blocks: MAX_COMPARE_BLOCKS,
        granularity_blocks: 1,
        max_transfer_blocks: unit.config.max_transfer_blocks,
        best_transfer_blocks: 0,
        max_prefetch_blocks: 0,
        max_unmap_blocks: thin(MAX_UNMAP_BLOCKS),
        max_unmap_descriptors: thin(MAX_UNMAP_DESCRIPTORS),
        unmap_granularity_blocks: thin(1),
        max_write_same_blocks: MAX_WRITE_SAME_BLOCKS.into(),
    };
    let mut body = Vec::new();
    limits.emit(&mut body);
    body
}
