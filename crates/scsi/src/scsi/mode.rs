//! MODE SENSE and MODE SELECT (SPC): the mode pages of a disk, of which three bits can be changed.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use super::device::Device;
use super::io::IoOp;
use super::step::{Response, Step, TaskId};
use super::unit::{Mode, Unit, answer, check, illegal};
use sanloom_wire::cdb::Cdb;
use sanloom_wire::scsi::mode::{
    BlockDescriptor, DESCRIPTOR_SENSE, DPO_FUA, ModePage, ModeParameters, SOFTWARE_PROTECT, WRITE_CACHE,
    WRITE_PROTECTED, page,
};
use sanloom_wire::sense::{Sense, SenseCode};

/// Page control values of MODE SENSE.
const CHANGEABLE: u8 = 1;
const DEFAULT: u8 = 2;
const SAVED: u8 = 3;
/// Control mode page. Byte 3: tasks may be reordered. Byte 5: tasks aborted by another nexus end
/// with TASK ABORTED (TAS).
const UNRESTRICTED_REORDERING: u8 = 0x10;
const TASK_ABORTED_STATUS: u8 = 0x40;
/// Bytes of the CDB that field pointers refer to.
const FLAGS_BYTE: u16 = 1;
const PAGE_BYTE: u16 = 2;
const SUBPAGE_BYTE: u16 = 3;

/// Returns all pages with the values of `mode`; with `fixed`, also the bits that cannot be changed.
fn pages(mode: Mode, fixed: bool) -> [ModePage; 5] {
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    [
        ModePage::new(page::ERROR_RECOVERY, 12),
        ModePage::new(page::DISCONNECT, 16),
        ModePage::new(page::CACHING, 20).with(2, flag(mode.write_cache, WRITE_CACHE)),
        ModePage::new(page::CONTROL, 12)
            .with(2, flag(mode.descriptor_sense, DESCRIPTOR_SENSE))
            .with(3, flag(fixed, UNRESTRICTED_REORDERING))
            .with(4, flag(mode.software_protect, SOFTWARE_PROTECT))
            .with(5, flag(fixed, TASK_ABORTED_STATUS)),
        ModePage::new(page::EXCEPTIONS, 12),
    ]
}

fn values(unit: &Unit, control: u8) -> [ModePage; 5] {
    match control {
        CHANGEABLE => pages(Mode { write_cache: true, descriptor_sense: true, software_protect: true }, false),
        DEFAULT => pages(Mode::default_of(&unit.config), true),
        _ => pages(unit.mode, true),
    }
}

/// Executes MODE SENSE.
pub(super) fn sense(unit: &Unit, cdb: Cdb) -> Step {
    let Cdb::ModeSense { long, no_descriptor, control, page: code, subpage, allocation_len } = cdb else {
        return check(illegal(SenseCode::INVALID_OPERATION));
    };
    if control == SAVED {
        return check(illegal(SenseCode::SAVING_NOT_SUPPORTED));
    }
    if subpage != 0 && (code != page::ALL || subpage != 0xff) {
        return check(Sense::invalid_field_in_cdb(SUBPAGE_BYTE));
    }
    let pages: Vec<ModePage> =
        values(unit, control).into_iter().filter(|one| code == page::ALL || one.code == code).collect();
    if pages.is_empty() {
        return check(Sense::invalid_field_in_cdb(PAGE_BYTE));
    }
    let protected = if unit.protection().is_some() { WRITE_PROTECTED } else { 0 };
    let descriptor = BlockDescriptor { blocks: unit.config.blocks, block_bytes: unit.config.block_bytes };
    let parameters = ModeParameters {
        medium: 0,
        device: protected | DPO_FUA,
        descriptor: (!no_descriptor).then_some(descriptor),
        pages,
    };
    let mut data = Vec::new();
    parameters.emit(&mut data, long);
    answer(data, allocation_len.into())
}

/// Checks a MODE SELECT before its list has arrived.
pub(super) fn select(page_format: bool, save: bool, list_len: u16) -> Step {
    if !page_format || save {
        return check(Sense::invalid_field_in_cdb(FLAGS_BYTE));
    }
    match list_len {
        0 => Step::Done(Response::GOOD),
        bytes => Step::Parameters { bytes: bytes.into() },
    }
}

/// Returns the mode that results from a MODE SELECT list.
fn selected(unit: &Unit, list: &[u8], long: bool) -> Result<Mode, Sense> {
    let parameters = ModeParameters::parse(list, long).map_err(|_| illegal(SenseCode::PARAMETER_LIST_LENGTH))?;
    if let Some(descriptor) = parameters.descriptor {
        let short = u64::from(u32::try_from(unit.config.blocks).unwrap_or(u32::MAX));
        let same_count = [0, unit.config.blocks, short].contains(&descriptor.blocks);
        if !same_count || ![0, unit.config.block_bytes].contains(&descriptor.block_bytes) {
            return Err(Sense::invalid_field_in_list(if long { 8 } else { 4 }));
        }
    }
    let header = if long { 8 } else { 4 };
    let mut at = header + if parameters.descriptor.is_some() { 8 } else { 0 };
    let mut mode = unit.mode;
    let (current, changeable) = (values(unit, 0), values(unit, CHANGEABLE));
    for given in &parameters.pages {
        let Some(number) = current.iter().position(|one| one.code == given.code) else {
            return Err(Sense::invalid_field_in_list(at));
        };
        let (now, mask) = (&current[number], &changeable[number]);
        if given.savable {
            return Err(Sense::invalid_field_in_list(at));
        }
        if given.bytes.len() != now.bytes.len() {
            return Err(Sense::invalid_field_in_list(at + 1));
        }
        for (byte, offset) in (2..now.bytes.len()).zip(2..) {
            if (given.bytes[byte] ^ now.bytes[byte]) & !mask.bytes[byte] != 0 {
                return Err(Sense::invalid_field_in_list(at + offset));
            }
        }
        match given.code {
            page::CACHING => mode.write_cache = given.bytes[2] & WRITE_CACHE != 0,
            page::CONTROL => {
                mode.descriptor_sense = given.bytes[2] & DESCRIPTOR_SENSE != 0;
                mode.software_protect = given.bytes[4] & SOFTWARE_PROTECT != 0;
            }
            _ => {}
        }
        at = at.saturating_add(u16::try_from(given.bytes.len()).unwrap_or(u16::MAX));
    }
    Ok(mode)
}

impl Device {
    /// Executes MODE SELECT with its list.
    pub(super) fn select_modes(&mut self, task: TaskId, list: &[u8], long: bool) -> Step {
        let unit = &mut self.units[usize::from(task.unit)];
        let mode = match selected(unit, list, long) {
            Ok(mode) => mode,
            Err(sense) => return check(sense),
        };
        let before = std::mem::replace(&mut unit.mode, mode);
        if before == mode {
            return Step::Done(Response::GOOD);
        }
        // Cached data must be durable before the cache is switched off.
        let flush = (before.write_cache && !mode.write_cache).then(|| unit.io(IoOp::Flush, 0, 0, 0, true));
        self.update_plain();
        self.add_attention_for_all(task.unit, Some(task.nexus), SenseCode::MODE_PARAMETERS_CHANGED);
        flush.map_or(Step::Done(Response::GOOD), Step::Io)
    }
}
