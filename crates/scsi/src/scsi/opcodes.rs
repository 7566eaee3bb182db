//! Table of supported commands. It serves REPORT SUPPORTED OPERATION CODES, REPORT SUPPORTED TASK
//! MANAGEMENT FUNCTIONS, and the sense for unknown commands (SPC).

use super::step::Step;
use super::unit::{answer, check, illegal};
use sanloom_wire::cdb::CDB_BYTES;
use sanloom_wire::cdb::operation::{self as op, action};
use sanloom_wire::scsi::operations::{self, NOT_SUPPORTED, OneCommand, STANDARD, Supported, task_management};
use sanloom_wire::scsi::reservation::{in_action, out_action};
use sanloom_wire::sense::{Sense, SenseCode};

/// Supported command: operation code, service action, and the CDB usage data, a mask of the bits
/// that are evaluated.
struct Known {
    operation: u8,
    action: Option<u8>,
    usage: &'static [u8],
}

const fn plain(operation: u8, usage: &'static [u8]) -> Known {
    Known { operation, action: None, usage }
}

const fn with_action(operation: u8, action: u8, usage: &'static [u8]) -> Known {
    Known { operation, action: Some(action), usage }
}

/// Optional features of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Has {
    /// True if blocks can be unmapped.
    pub(super) thin: bool,
    /// True if the states of target port groups can be set.
    pub(super) port_groups: bool,
}

impl Has {
    fn supports(self, one: &Known) -> bool {
        match one.operation {
            op::UNMAP => self.thin,
            op::MAINTENANCE_OUT => self.port_groups,
            _ => true,
        }
    }
}

/// Protection bits are refused, so the masks omit them. DPO and FUA are evaluated.
const RW_10: &[u8] = &[0, 0x18, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x04];
const RW_12: &[u8] = &[0, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x04];
const RW_16: &[u8] = &[0, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x04];
const CHECK_10: &[u8] = &[0, 0x16, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x04];
const CHECK_12: &[u8] = &[0, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x04];
const CHECK_16: &[u8] = &[0, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x04];
const IMMEDIATE_10: &[u8] = &[0, 0x02, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x04];
const IMMEDIATE_16: &[u8] =
    &[0, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x04];
const IN_16: &[u8] = &[0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04];
const RESERVE_IN: &[u8] = &[0, 0x1f, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04];
const RESERVE_OUT: &[u8] = &[0, 0x1f, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04];
const MAINTENANCE: &[u8] = &[0, 0x3f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04];
const MAINTENANCE_OUT: &[u8] = &[0, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04];
const MAINTENANCE_OPERATIONS: &[u8] = &[0, 0x1f, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x04];
const MAINTENANCE_TASKS: &[u8] = &[0, 0x1f, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04];

/// All supported commands, by operation code and service action.
const ALL: &[Known] = &[
    plain(op::TEST_UNIT_READY, &[0, 0, 0, 0, 0, 0x04]),
    plain(op::REQUEST_SENSE, &[0, 0x01, 0, 0, 0xff, 0x04]),
    plain(op::READ_6, &[0, 0x1f, 0xff, 0xff, 0xff, 0x04]),
    plain(op::WRITE_6, &[0, 0x1f, 0xff, 0xff, 0xff, 0x04]),
    plain(op::INQUIRY, &[0, 0x01, 0xff, 0xff, 0xff, 0x04]),
    plain(op::MODE_SELECT_6, &[0, 0x11, 0, 0, 0xff, 0x04]),
    plain(op::RESERVE_6, &[0, 0x1f, 0, 0, 0, 0x04]),
    plain(op::RELEASE_6, &[0, 0x1f, 0, 0, 0, 0x04]),
    plain(op::MODE_SENSE_6, &[0, 0x08, 0xff, 0xff, 0xff, 0x04]),
    plain(op::START_STOP_UNIT, &[0, 0x01, 0, 0, 0xf7, 0x04]),
    plain(op::READ_CAPACITY_10, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0x04]),
    plain(op::READ_10, RW_10),
    plain(op::WRITE_10, RW_10),
    plain(op::WRITE_AND_VERIFY_10, CHECK_10),
    plain(op::VERIFY_10, CHECK_10),
    plain(op::PREFETCH_10, IMMEDIATE_10),
    plain(op::SYNCHRONIZE_CACHE_10, IMMEDIATE_10),
    plain(op::WRITE_SAME_10, &[0, 0x18, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x04]),
    plain(op::UNMAP, &[0, 0x01, 0, 0, 0, 0, 0x1f, 0xff, 0xff, 0x04]),
    plain(op::MODE_SELECT_10, &[0, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, 0x04]),
    plain(op::MODE_SENSE_10, &[0, 0x08, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0x04]),
    with_action(op::PERSISTENT_RESERVE_IN, in_action::READ_KEYS, RESERVE_IN),
    with_action(op::PERSISTENT_RESERVE_IN, in_action::READ_RESERVATION, RESERVE_IN),
    with_action(op::PERSISTENT_RESERVE_IN, in_action::REPORT_CAPABILITIES, RESERVE_IN),
    with_action(op::PERSISTENT_RESERVE_IN, in_action::READ_FULL_STATUS, RESERVE_IN),
    with_action(op::PERSISTENT_RESERVE_OUT, out_action::REGISTER, RESERVE_OUT),
    with_action(op::PERSISTENT_RESERVE_OUT, out_action::RESERVE, RESERVE_OUT),
    with_action(op::PERSISTENT_RESERVE_OUT, out_action::RELEASE, RESERVE_OUT),
    with_action(op::PERSISTENT_RESERVE_OUT, out_action::CLEAR, RESERVE_OUT),
    with_action(op::PERSISTENT_RESERVE_OUT, out_action::PREEMPT, RESERVE_OUT),
    with_action(op::PERSISTENT_RESERVE_OUT, out_action::PREEMPT_AND_ABORT, RESERVE_OUT),
    with_action(op::PERSISTENT_RESERVE_OUT, out_action::REGISTER_AND_IGNORE, RESERVE_OUT),
    with_action(op::PERSISTENT_RESERVE_OUT, out_action::REGISTER_AND_MOVE, RESERVE_OUT),
    plain(op::READ_16, RW_16),
    plain(op::COMPARE_AND_WRITE, &[0, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0xff, 0x1f, 0x04]),
    plain(op::WRITE_16, RW_16),
    plain(op::WRITE_AND_VERIFY_16, CHECK_16),
    plain(op::VERIFY_16, CHECK_16),
    plain(op::PREFETCH_16, IMMEDIATE_16),
    plain(op::SYNCHRONIZE_CACHE_16, IMMEDIATE_16),
    plain(
        op::WRITE_SAME_16,
        &[0, 0x19, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x04],
    ),
    with_action(op::SERVICE_ACTION_IN_16, action::READ_CAPACITY_16, IN_16),
    with_action(op::SERVICE_ACTION_IN_16, action::GET_LBA_STATUS, IN_16),
    plain(op::REPORT_LUNS, &[0, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x04]),
    with_action(op::MAINTENANCE_IN, action::REPORT_TARGET_PORT_GROUPS, MAINTENANCE),
    with_action(op::MAINTENANCE_IN, action::REPORT_SUPPORTED_OPERATIONS, MAINTENANCE_OPERATIONS),
    with_action(op::MAINTENANCE_IN, action::REPORT_SUPPORTED_TASK_MANAGEMENT, MAINTENANCE_TASKS),
    with_action(op::MAINTENANCE_OUT, action::SET_TARGET_PORT_GROUPS, MAINTENANCE_OUT),
    plain(op::READ_12, RW_12),
    plain(op::WRITE_12, RW_12),
    plain(op::WRITE_AND_VERIFY_12, CHECK_12),
    plain(op::VERIFY_12, CHECK_12),
];

/// Byte of a CDB that contains the length, for the field pointer.
pub(super) fn length_byte(operation: u8) -> u16 {
    match (operation, operation >> 5) {
        (op::COMPARE_AND_WRITE, _) => 13,
        (_, 0) => 4,
        (_, 1 | 2) => 7,
        (_, 5) => 6,
        _ => 10,
    }
}

/// Returns the byte of the CDB that requests auto contingent allegiance (NACA in the control byte),
/// which is not supported.
pub(super) fn aca_byte(cdb: &[u8; CDB_BYTES]) -> Option<u16> {
    let control = match cdb[0] >> 5 {
        0 => 5,
        1 | 2 => 9,
        4 => 15,
        5 => 11,
        _ => return None,
    };
    (cdb[usize::from(control)] & 4 != 0).then_some(control)
}

/// Sense for a CDB that cannot be parsed: a known operation with an unsupported field, or an
/// unknown operation.
pub(super) fn unsupported(cdb: &[u8; CDB_BYTES], has: Has) -> Sense {
    let known = |one: &&Known| one.operation == cdb[0];
    let Some(first) = ALL.iter().find(known).filter(|one| has.supports(one)) else {
        return illegal(SenseCode::INVALID_OPERATION);
    };
    match (cdb[0], first.action) {
        (op::INQUIRY | op::REPORT_LUNS, _) => Sense::invalid_field_in_cdb(2),
        _ => Sense::invalid_field_in_cdb(1),
    }
}

/// Executes REPORT SUPPORTED OPERATION CODES.
pub(super) fn report(options: u8, operation: u8, action: u16, timeouts: bool, has: Has, allocation_len: u32) -> Step {
    const OPTIONS_BYTE: u16 = 2;
    const ACTION_BYTE: u16 = 4;
    let known = || ALL.iter().filter(move |one| has.supports(one));
    let mut data = Vec::new();
    if options == 0 {
        let all: Vec<Supported> = known()
            .map(|one| Supported {
                operation: one.operation,
                action: one.action.map(u16::from),
                cdb_bytes: one.usage.len() as u16,
            })
            .collect();
        operations::emit_all(&all, timeouts, &mut data);
        return answer(data, allocation_len);
    }
    let has_actions = known().any(|one| one.operation == operation && one.action.is_some());
    match (options, has_actions) {
        (1, true) => return check(Sense::invalid_field_in_cdb(OPTIONS_BYTE)),
        (2, false) if known().any(|one| one.operation == operation) => {
            return check(Sense::invalid_field_in_cdb(ACTION_BYTE));
        }
        (1..=3, _) => {}
        _ => return check(Sense::invalid_field_in_cdb(OPTIONS_BYTE)),
    }
    let is_it = |one: &&Known| one.operation == operation && one.action.is_none_or(|of| u16::from(of) == action);
    let one = match known().find(is_it) {
        Some(one) => {
            let mut usage = one.usage.to_vec();
            usage[0] = operation;
            if let Some(of) = one.action {
                // The service action is fixed, so its five bits contain its value instead of a
                // mask.
                usage[1] = usage[1] & 0xe0 | of;
            }
            OneCommand { support: STANDARD, usage }
        }
        None => OneCommand { support: NOT_SUPPORTED, usage: Vec::new() },
    };
    one.emit(timeouts, &mut data);
    answer(data, allocation_len)
}

/// Executes REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS.
pub(super) fn report_task_management(extended: bool, allocation_len: u32) -> Step {
    const LENGTH_BYTE: u16 = 6;
    if allocation_len < 4 {
        return check(Sense::invalid_field_in_cdb(LENGTH_BYTE));
    }
    let functions = task_management::ABORT_TASK
        | task_management::ABORT_TASK_SET
        | task_management::CLEAR_ACA
        | task_management::CLEAR_TASK_SET
        | task_management::LUN_RESET
        | task_management::TARGET_RESET
        | task_management::I_T_NEXUS_RESET;
    let mut data = Vec::new();
    operations::emit_task_management(functions, extended, &mut data);
    answer(data, allocation_len)
}
