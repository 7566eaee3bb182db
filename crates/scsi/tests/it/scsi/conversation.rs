//! Sequences of commands and the responses to a host.

use super::bench::{BLOCK, BLOCKS, Bench, config, host};
use sanloom_scsi::scsi::{
    Device, DeviceConfig, InitiatorName, LunMap, Managed, Masking, NexusId, TaskManagement, UnitConfig,
};
use sanloom_wire::Wwpn;
use sanloom_wire::cdb::{Cdb, status};
use sanloom_wire::lun;
use sanloom_wire::scsi::inquiry::StandardInquiry;
use sanloom_wire::scsi::lba_status::{self, DEALLOCATED, LbaStatus, MAPPED};
use sanloom_wire::scsi::mode::{DESCRIPTOR_SENSE, ModePage, ModeParameters, SOFTWARE_PROTECT, WRITE_CACHE, page};
use sanloom_wire::scsi::transport_id::TransportId;
use sanloom_wire::scsi::unmap::{self, BlockDescriptor};
use sanloom_wire::scsi::vpd::{self, BlockLimits, Designator};
use sanloom_wire::scsi::{capacity::ReadCapacity16, luns, port_groups::PortGroups};
use sanloom_wire::sense::{Sense, SenseCode, SenseKey};

const TUR: Cdb = Cdb::TestUnitReady;

fn inquiry(vpd_page: Option<u8>) -> Cdb {
    Cdb::Inquiry { vpd_page, allocation_len: 255 }
}

fn mode_sense(page: u8) -> Cdb {
    Cdb::ModeSense { long: true, no_descriptor: true, control: 0, page, subpage: 0, allocation_len: 255 }
}

fn mode_select(pages: Vec<ModePage>) -> (Cdb, Vec<u8>) {
    let mut list = Vec::new();
    ModeParameters { medium: 0, device: 0, descriptor: None, pages }.emit(&mut list, true);
    (Cdb::ModeSelect { long: true, page_format: true, save: false, list_len: list.len() as u16 }, list)
}

fn unmap(ranges: &[BlockDescriptor]) -> (Cdb, Vec<u8>) {
    let mut list = Vec::new();
    unmap::emit(ranges, &mut list);
    (Cdb::Unmap { anchor: false, list_len: list.len() as u16 }, list)
}

#[test]
fn a_new_host_gets_one_power_on_attention_per_unit() {
    let mut bench = Bench::new(config());
    let nexus = bench.device.connect(0, host(1));
    assert_eq!(bench.good(nexus, 0, inquiry(None), &[])[0], 0);
    assert_eq!(
        luns::parse(&bench.good(nexus, 0, Cdb::ReportLuns { allocation_len: 256 }, &[])).map(|l| l.len()),
        Ok(2)
    );
    let sense = bench.sense(nexus, 0, TUR, &[]);
    assert_eq!((sense.key, sense.code), (SenseKey::UNIT_ATTENTION, SenseCode::POWER_ON_OR_RESET));
    bench.good(nexus, 0, TUR, &[]);
    let asked = bench.good(nexus, 1, Cdb::RequestSense { descriptor: true, allocation_len: 252 }, &[]);
    let sense = Sense::parse(&asked).expect("sense data");
    assert_eq!((sense.descriptor, sense.code), (true, SenseCode::POWER_ON_OR_RESET));
    bench.good(nexus, 1, TUR, &[]);
}

#[test]
fn masking_gives_every_initiator_its_own_numbers() {
    let of_one = vec![LunMap { lun: 0, unit: 1 }, LunMap { lun: 7, unit: 0 }];
    let masking = Masking::Listed([(InitiatorName::Fcp(Wwpn(0x2000_0000_0000_0001)), of_one)].into());
    let mut bench = Bench::new(DeviceConfig { masking, ..config() });
    let (one, two) = (bench.host(1, 0), bench.host(2, 0));
    let list = luns::parse(&bench.good(one, 0, Cdb::ReportLuns { allocation_len: 256 }, &[])).expect("a list");
    assert_eq!(list, [[0; 8], [0, 7, 0, 0, 0, 0, 0, 0]]);
    bench.good(one, 0, Cdb::Write { lba: 0, blocks: 1, fua: false }, &[5; BLOCK]);
    assert_eq!((bench.disks[0].bytes[0], bench.disks[1].bytes[0]), (0, 5));
    assert_eq!(bench.code(one, 1, TUR, &[]), SenseCode::LUN_NOT_SUPPORTED);
    assert_eq!(bench.good(two, 0, inquiry(None), &[])[0], 0x7f);
    assert_eq!(bench.code(two, 0, TUR, &[]), SenseCode::LUN_NOT_SUPPORTED);
    bench.device.remask(Masking::Open);
    assert_eq!(bench.code(two, 0, TUR, &[]), SenseCode::REPORTED_LUNS_CHANGED);
    bench.good(two, 0, Cdb::ReportLuns { allocation_len: 256 }, &[]);
    bench.good(two, 1, TUR, &[]);
}

#[test]
fn masking_of_one_transport_hides_nothing_from_the_other() {
    let iqn = |name: &str| TransportId::iscsi(&format!("iqn.2026-11.net.example:{name}"), Some([0; 6]));
    let ids = [host(1), host(2), iqn("one"), iqn("two")];
    let fcp = (InitiatorName::from(&ids[0]), vec![LunMap { lun: 0, unit: 0 }]);
    let iscsi = (InitiatorName::from(&ids[2]), vec![LunMap { lun: 1, unit: 1 }]);
    let sees = |device: &Device, nexuses: &[NexusId]| -> Vec<String> {
        let at = |nexus, lun| device.unit(nexus, lun::to_bytes(lun).expect("a number")).is_some();
        nexuses
            .iter()
            .map(|&nexus| [0, 1].iter().map(|&lun| if at(nexus, lun) { 'x' } else { '-' }).collect())
            .collect()
    };
    let cases = [
        (Masking::Open, ["xx", "xx", "xx", "xx"]),
        (Masking::Listed([fcp.clone()].into()), ["x-", "--", "xx", "xx"]),
        (Masking::Listed([iscsi.clone()].into()), ["xx", "xx", "-x", "--"]),
        (Masking::Listed([fcp, iscsi].into()), ["x-", "--", "-x", "--"]),
    ];
    for (masking, expected) in &cases {
        let mut bench = Bench::new(DeviceConfig { masking: masking.clone(), ..config() });
        let nexuses = ids.clone().map(|id| bench.device.connect(0, id));
        assert_eq!(sees(&bench.device, &nexuses), expected, "{masking:?}");
        for (masking, expected) in &cases {
            bench.device.remask(masking.clone());
            assert_eq!(sees(&bench.device, &nexuses), expected, "{masking:?}");
        }
    }
}

#[test]
fn every_listed_vpd_page_can_be_read() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 1);
    let standard = StandardInquiry::parse(&bench.good(nexus, 0, inquiry(None), &[])).expect("inquiry data");
    assert_eq!((standard.version, standard.multi_port, standard.port_groups), (6, true, 1));
    let supported = bench.good(nexus, 0, inquiry(Some(0)), &[]);
    for &code in &supported[4..] {
        let data = bench.good(nexus, 0, inquiry(Some(code)), &[]);
        assert_eq!(vpd::parse(&data).map(|(code, _)| code), Ok(code));
    }
    assert_eq!(supported[4..], [0, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2]);
    let data = bench.good(nexus, 0, inquiry(Some(0x83)), &[]);
    let designators = Designator::parse_list(&data[4..]).expect("designators");
    let relative = designators.iter().find(|one| one.kind == 4).expect("relative port");
    assert_eq!(relative.bytes, [0, 0, 0, 2]);
    let other = bench.good(nexus, 1, inquiry(Some(0x83)), &[]);
    assert_ne!(data, other, "two units must not be mistaken for two paths to one");
    let limits = BlockLimits::parse(&bench.good(nexus, 0, inquiry(Some(0xb0)), &[])[4..]).expect("limits");
    assert_eq!((limits.max_compare_blocks, limits.max_unmap_descriptors), (255, 256));
    let plain = BlockLimits::parse(&bench.good(nexus, 1, inquiry(Some(0xb0)), &[])[4..]).expect("limits");
    assert_eq!(plain.max_unmap_blocks, 0);
    let sense = bench.sense(nexus, 0, inquiry(Some(0xc0)), &[]);
    assert_eq!((sense.code, sense.key_specific), (SenseCode::INVALID_FIELD_IN_CDB, [0xc0, 0, 2]));
}

#[test]
fn capacity_and_port_groups_are_reported_and_a_resize_causes_an_attention() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let data = bench.good(nexus, 0, Cdb::ReadCapacity16 { allocation_len: 32 }, &[]);
    let capacity = ReadCapacity16::parse(&data).expect("capacity");
    assert_eq!((capacity.last_lba, capacity.thin, capacity.zeroes), (BLOCKS - 1, true, true));
    let cdb = Cdb::ReportTargetPortGroups { extended: false, allocation_len: 256 };
    let groups = PortGroups::parse(&bench.good(nexus, 0, cdb, &[])).expect("groups").groups;
    assert_eq!((groups.len(), groups[0].ports.as_slice()), (1, &[1, 2][..]));
    bench.device.resize(0, 2 * BLOCKS);
    assert_eq!(bench.code(nexus, 0, TUR, &[]), SenseCode::CAPACITY_CHANGED);
    let data = bench.good(nexus, 0, Cdb::ReadCapacity10, &[]);
    assert_eq!(data, [0, 0, 0, 127, 0, 0, 2, 0]);
}

#[test]
fn unmapped_blocks_are_reported_as_deallocated() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    bench.good(nexus, 0, Cdb::Write { lba: 0, blocks: 8, fua: false }, &[1; 8 * BLOCK]);
    let (cdb, list) = unmap(&[BlockDescriptor { lba: 2, blocks: 2 }, BlockDescriptor { lba: 6, blocks: 1 }]);
    bench.good(nexus, 0, cdb, &list);
    assert_eq!(bench.ios.len(), 2);
    for (lba, blocks, provisioning) in [(0, 2, MAPPED), (2, 2, DEALLOCATED), (3, 1, DEALLOCATED), (4, 2, MAPPED)] {
        let data = bench.good(nexus, 0, Cdb::GetLbaStatus { lba, allocation_len: 24 }, &[]);
        assert_eq!(lba_status::parse(&data), Ok(vec![LbaStatus { lba, blocks, provisioning }]));
    }
    let data = bench.good(nexus, 1, Cdb::GetLbaStatus { lba: 60, allocation_len: 24 }, &[]);
    assert_eq!(lba_status::parse(&data), Ok(vec![LbaStatus { lba: 60, blocks: 4, provisioning: MAPPED }]));
    let (cdb, list) = unmap(&[BlockDescriptor { lba: 0, blocks: 1 }, BlockDescriptor { lba: BLOCKS, blocks: 1 }]);
    assert_eq!(bench.code(nexus, 0, cdb, &list), SenseCode::LBA_OUT_OF_RANGE);
    assert!(bench.disks[0].mapped[0], "nothing is given back when a range is wrong");
    assert_eq!(bench.code(nexus, 1, cdb, &list), SenseCode::INVALID_OPERATION);
}

#[test]
fn a_cache_is_flushed_before_it_is_switched_off() {
    let mut bench = Bench::new(config());
    let (nexus, other) = (bench.host(1, 0), bench.host(2, 1));
    let fua_of = |bench: &mut Bench, unit, fua| {
        bench.good(nexus, unit, Cdb::Write { lba: 0, blocks: 1, fua }, &[1; BLOCK]);
        bench.ios[0].fua
    };
    assert_eq!(
        [fua_of(&mut bench, 0, false), fua_of(&mut bench, 0, true), fua_of(&mut bench, 1, false)],
        [false, true, true]
    );
    let flush = Cdb::SynchronizeCache { lba: 0, blocks: 0, immediate: false };
    bench.good(nexus, 0, flush, &[]);
    bench.good(nexus, 1, flush, &[]);
    assert_eq!((bench.disks[0].flushes, bench.disks[1].flushes), (1, 0));
    let (cdb, list) = mode_select(vec![ModePage::new(page::CACHING, 20)]);
    bench.good(nexus, 0, cdb, &list);
    assert_eq!(bench.disks[0].flushes, 2, "nothing is forgotten with the cache");
    assert!(fua_of(&mut bench, 0, false));
    assert_eq!(bench.code(other, 0, TUR, &[]), SenseCode::MODE_PARAMETERS_CHANGED);
    bench.good(nexus, 0, TUR, &[]);
    let data = bench.good(other, 0, mode_sense(page::CACHING), &[]);
    assert_eq!(ModeParameters::parse(&data, true).expect("modes").pages[0].bytes[2] & WRITE_CACHE, 0);
}

#[test]
fn changeable_modes_have_their_effect() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let control = |bench: &mut Bench| {
        let data = bench.good(nexus, 1, mode_sense(page::CONTROL), &[]);
        ModeParameters::parse(&data, true).expect("modes").pages.remove(0)
    };
    let page = control(&mut bench).with(2, DESCRIPTOR_SENSE).with(4, SOFTWARE_PROTECT);
    let (cdb, list) = mode_select(vec![page]);
    bench.good(nexus, 1, cdb, &list);
    let sense = bench.sense(nexus, 1, Cdb::Write { lba: 0, blocks: 1, fua: false }, &[0; BLOCK]);
    assert_eq!((sense.descriptor, sense.code), (true, SenseCode::SOFTWARE_WRITE_PROTECTED));
    bench.good(nexus, 1, Cdb::Read { lba: 0, blocks: 1, fua: false }, &[]);
    assert!(matches!(bench.device.manage(nexus, Some(1), TaskManagement::LunReset), Managed::Complete(Some(_))));
    assert_eq!(bench.code(nexus, 1, TUR, &[]), SenseCode::LUN_RESET);
    bench.good(nexus, 1, Cdb::Write { lba: 0, blocks: 1, fua: false }, &[0; BLOCK]);
    let fixed = control(&mut bench).with(5, 0);
    let (cdb, list) = mode_select(vec![fixed]);
    let sense = bench.sense(nexus, 1, cdb, &list);
    assert_eq!((sense.code, sense.key_specific), (SenseCode::INVALID_FIELD_IN_LIST, [0x80, 0, 13]));
    assert_eq!(bench.code(nexus, 1, cdb, &list[..10]), SenseCode::PARAMETER_LIST_LENGTH);
    let saved =
        Cdb::ModeSense { long: false, no_descriptor: false, control: 3, page: 8, subpage: 0, allocation_len: 9 };
    assert_eq!(bench.code(nexus, 1, saved, &[]), SenseCode::SAVING_NOT_SUPPORTED);
}

#[test]
fn a_stopped_unit_is_not_ready_until_it_is_started() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let stop = |start| Cdb::StartStopUnit { immediate: false, power: 0, no_flush: false, load_eject: false, start };
    bench.good(nexus, 0, stop(false), &[]);
    assert_eq!(bench.disks[0].flushes, 1);
    for cdb in [TUR, Cdb::Read { lba: 0, blocks: 1, fua: false }] {
        assert_eq!(bench.code(nexus, 0, cdb, &[]), SenseCode::NOT_READY_INITIALIZING);
    }
    bench.good(nexus, 0, stop(true), &[]);
    bench.good(nexus, 0, TUR, &[]);
}

#[test]
fn a_reserve_6_reservation_ends_with_its_nexus() {
    let mut bench = Bench::new(config());
    let (one, two) = (bench.host(1, 0), bench.host(2, 0));
    bench.good(one, 0, Cdb::Reserve6, &[]);
    bench.good(one, 0, Cdb::Reserve6, &[]);
    for cdb in [TUR, Cdb::Reserve6, Cdb::Read { lba: 0, blocks: 1, fua: false }] {
        assert_eq!(bench.run(two, 0, cdb, &[]).status, status::RESERVATION_CONFLICT, "{cdb}");
    }
    bench.good(two, 0, Cdb::Release6, &[]);
    assert_eq!(bench.run(two, 0, TUR, &[]).status, status::RESERVATION_CONFLICT, "only the holder releases");
    bench.device.disconnect(one);
    bench.good(two, 0, TUR, &[]);
}

#[test]
fn a_write_protected_unit_reports_it() {
    let mut bench = Bench::new(DeviceConfig {
        units: vec![UnitConfig { read_only: true, ..config().units[0].clone() }],
        ..config()
    });
    let nexus = bench.host(1, 0);
    for cdb in [
        Cdb::Write { lba: 0, blocks: 1, fua: false },
        Cdb::WriteSame { lba: 0, blocks: 1, unmap: false, anchor: false, no_data: true },
        Cdb::CompareAndWrite { lba: 0, blocks: 1, fua: false },
        Cdb::Unmap { anchor: false, list_len: 24 },
    ] {
        let sense = bench.sense(nexus, 0, cdb, &[0; 2 * BLOCK]);
        assert_eq!((sense.key, sense.code), (SenseKey::DATA_PROTECT, SenseCode::WRITE_PROTECTED), "{cdb}");
    }
    assert_eq!(bench.good(nexus, 0, mode_sense(page::ALL), &[])[3] & 0x80, 0x80);
    bench.good(nexus, 0, Cdb::Read { lba: 0, blocks: 1, fua: false }, &[]);
}
