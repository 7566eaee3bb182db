//! Supported commands, and errors in the fields of their CDBs.

use super::bench::{BLOCK, BLOCKS, Bench, config};
use sanloom_scsi::scsi::{DeviceConfig, UnitConfig};
use sanloom_wire::cdb::{Cdb, operation, status};
use sanloom_wire::scsi::operations::{self, NOT_SUPPORTED, OneCommand, STANDARD};
use sanloom_wire::sense::SenseCode;
use std::collections::BTreeSet;

fn report_all_operations() -> Cdb {
    Cdb::ReportSupportedOperations { timeouts: false, options: 0, operation: 0, action: 0, allocation_len: 4096 }
}

fn report_one_operation(operation: u8, action: u16) -> Cdb {
    Cdb::ReportSupportedOperations { timeouts: false, options: 3, operation, action, allocation_len: 4096 }
}

#[test]
fn reported_operations_are_the_supported_ones() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let all = operations::parse_all(&bench.good(nexus, 0, report_all_operations(), &[])).expect("a list");
    let codes: BTreeSet<u8> = all.iter().map(|one| one.operation).collect();
    assert_eq!(all.len(), all.iter().collect::<BTreeSet<_>>().len(), "nothing twice");
    for code in 0..=255 {
        let mut cdb = [0; 16];
        cdb[0] = code;
        let response = bench.run_bytes(nexus, 0, cdb, &[]);
        let unknown = response.sense.is_some_and(|sense| sense.code == SenseCode::INVALID_OPERATION);
        assert_eq!(unknown, !codes.contains(&code), "{code:02x} {:?}", operation::name(code));
    }
    for one in &all {
        let action = one.action.unwrap_or(0);
        let data = bench.good(nexus, 0, report_one_operation(one.operation, action), &[]);
        let report = OneCommand::parse(&data).expect("usage");
        assert_eq!((report.support, report.usage.len()), (STANDARD, usize::from(one.cdb_bytes)));
        assert_eq!(report.usage[0], one.operation);
        assert_eq!(u16::from(report.usage[1] & 0x1f) == action, one.action.is_some() || report.usage[1] & 0x1f == 0);
    }
    let data = bench.good(nexus, 0, report_one_operation(operation::SERVICE_ACTION_IN_16, 0x1f), &[]);
    assert_eq!(OneCommand::parse(&data).map(|one| one.support), Ok(NOT_SUPPORTED));
    let plain = operations::parse_all(&bench.good(nexus, 1, report_all_operations(), &[])).expect("a list");
    assert_eq!(all.len() - plain.len(), 1, "only a thin unit has UNMAP");
}

#[test]
fn every_command_checks_its_range() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    let ranges: [fn(u64, u32) -> Cdb; 8] = [
        |lba, blocks| Cdb::Read { lba, blocks, fua: false },
        |lba, blocks| Cdb::Write { lba, blocks, fua: false },
        |lba, blocks| Cdb::WriteAndVerify { lba, blocks, byte_check: 1 },
        |lba, blocks| Cdb::Verify { lba, blocks, byte_check: 0 },
        |lba, blocks| Cdb::SynchronizeCache { lba, blocks, immediate: false },
        |lba, blocks| Cdb::Prefetch { lba, blocks, immediate: true },
        |lba, blocks| Cdb::WriteSame { lba, blocks, unmap: false, anchor: false, no_data: true },
        |lba, blocks| Cdb::CompareAndWrite { lba, blocks: blocks as u8, fua: false },
    ];
    let zeros = vec![0; 128 * BLOCK];
    for range in ranges {
        bench.good(nexus, 0, range(BLOCKS - 2, 2), &zeros);
        for (lba, blocks) in [(BLOCKS - 1, 2), (BLOCKS, 1), (u64::MAX, 1), (u64::MAX, 0xff)] {
            let sense = bench.run(nexus, 0, range(lba, blocks), &zeros).sense.expect("sense data");
            assert_eq!(sense.code, SenseCode::LBA_OUT_OF_RANGE, "{}", range(lba, blocks));
        }
    }
    let status = Cdb::GetLbaStatus { lba: BLOCKS, allocation_len: 24 };
    assert_eq!(bench.code(nexus, 0, status, &[]), SenseCode::LBA_OUT_OF_RANGE);
}

#[test]
fn the_sense_points_to_the_wrong_field() {
    let mut bench = Bench::new(DeviceConfig {
        units: vec![UnitConfig { max_transfer_blocks: 16, ..config().units[0].clone() }],
        ..config()
    });
    let nexus = bench.host(1, 0);
    let bytes = |start: &[u8]| {
        let mut cdb = [0; 16];
        cdb[..start.len()].copy_from_slice(start);
        cdb
    };
    let cases: [(&[u8], u16); 14] = [
        (&[0x28, 0x20, 0, 0, 0, 0, 0, 0, 1], 1),               // protection information
        (&[0x2a, 0xe0, 0, 0, 0, 0, 0, 0, 1], 1),               //
        (&[0x28, 0, 0, 0, 0, 0, 0, 0, 17], 7),                 // longer than the largest transfer
        (&[0xa8, 0, 0, 0, 0, 0, 0, 0, 0, 17], 6),              //
        (&[0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 17], 10), //
        (&[0x41, 0x10, 0, 0, 0, 0, 0, 0, 1], 1),               // anchored
        (&[0x41, 0, 0, 0, 0, 0, 0, 0, 0], 7),                  // no blocks
        (&[0x42, 1, 0, 0, 0, 0, 0, 0, 24], 1),                 // anchored
        (&[0x5e, 4, 0, 0, 0, 0, 0, 1, 0], 1),                  // unknown service action
        (&[0x5f, 1, 2, 0, 0, 0, 0, 0, 24], 2),                 // unknown type
        (&[0x5f, 1, 0x11, 0, 0, 0, 0, 0, 24], 2),              // unknown scope
        (&[0x1a, 0, 0x05, 0, 0xff], 2),                        // unknown page
        (&[0x1a, 0, 0x08, 1, 0xff], 3),                        // unknown subpage
        (&[0x00, 0, 0, 0, 0, 4], 5),                           // NACA
    ];
    for (cdb, byte) in cases {
        let sense = bench.run_bytes(nexus, 0, bytes(cdb), &[0; 64]).sense.expect("sense data");
        let [high, low] = byte.to_be_bytes();
        assert_eq!(
            (sense.code, sense.key_specific),
            (SenseCode::INVALID_FIELD_IN_CDB, [0xc0, high, low]),
            "{cdb:02x?}"
        );
    }
}

#[test]
fn answers_are_truncated_at_the_allocation_length() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    for len in [0, 1, 5, 36] {
        let data = bench.good(nexus, 0, Cdb::Inquiry { vpd_page: None, allocation_len: len }, &[]);
        assert_eq!(data.len(), usize::from(len));
    }
    let short = Cdb::ReportLuns { allocation_len: 15 };
    assert_eq!(bench.code(nexus, 0, short, &[]), SenseCode::INVALID_FIELD_IN_CDB);
}

#[test]
fn comparisons_report_where_they_failed() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    bench.good(nexus, 0, Cdb::Write { lba: 3, blocks: 1, fua: false }, &[7; BLOCK]);
    let mut twice = vec![7; 2 * BLOCK];
    twice[BLOCK..].fill(8);
    let swap = Cdb::CompareAndWrite { lba: 3, blocks: 1, fua: false };
    bench.good(nexus, 0, swap, &twice);
    assert_eq!(bench.disks[0].bytes[3 * BLOCK], 8);
    let sense = bench.sense(nexus, 0, swap, &twice);
    assert_eq!((sense.code, sense.information), (SenseCode::MISCOMPARE, Some(0)));
    let mut almost = vec![8; BLOCK];
    almost[100] = 9;
    let sense = bench.sense(nexus, 0, Cdb::Verify { lba: 3, blocks: 1, byte_check: 1 }, &almost);
    assert_eq!(sense.information, Some(100));
    bench.good(nexus, 0, Cdb::Verify { lba: 3, blocks: 1, byte_check: 3 }, &[8; BLOCK]);
    assert_eq!(bench.run(nexus, 0, Cdb::Verify { lba: 3, blocks: 0, byte_check: 1 }, &[]).status, status::GOOD);
}
