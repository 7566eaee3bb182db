//! Hostile CDBs and lists: every operation code followed by any bytes.

use super::bench::{BLOCK, Bench, config};
use proptest::prelude::*;
use sanloom_wire::cdb::{Cdb, operation};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No panic, no task left over, no answer longer than requested, and no I/O beyond the unit
    /// (the bench checks that).
    #[test]
    fn every_operation_code_with_any_bytes_is_survived(
        tail in any::<[u8; 15]>(),
        list in prop::collection::vec(any::<u8>(), 0..96),
    ) {
        let mut bench = Bench::new(config());
        let nexus = bench.host(1, 0);
        let mut out = list;
        let list_len = out.len();
        // The bench supplies as much data as block I/O requires; a list ends at its own length.
        out.resize(list_len.max(2 * 256 * BLOCK), 0);
        for code in 0..=255 {
            let mut cdb = [0; 16];
            cdb[0] = code;
            cdb[1..].copy_from_slice(&tail);
            let is_list = matches!(
                Cdb::parse(&cdb),
                Cdb::ModeSelect { .. } | Cdb::Unmap { .. } | Cdb::PersistentReserveOut { .. }
            );
            let out = if is_list { &out[..list_len] } else { &out[..] };
            for unit in 0..3 {
                let response = bench.run_bytes(nexus, unit, cdb, out);
                prop_assert!(response.data.len() <= 64 * BLOCK, "{:02x} answers {} bytes", code, response.data.len());
                prop_assert_eq!(bench.device.active(0) + bench.device.active(1), 0);
            }
        }
    }

    /// Parameter lists of the right length with any content.
    #[test]
    fn any_parameter_list_is_survived(
        bytes in prop::collection::vec(any::<u8>(), 24..200),
        action in 0_u8..8,
        kind in 0_u8..16,
        long in any::<bool>(),
    ) {
        let mut bench = Bench::new(config());
        let nexus = bench.host(1, 0);
        let len = bytes.len() as u16;
        for cdb in [
            Cdb::ModeSelect { long, page_format: true, save: false, list_len: if long { len } else { len.min(255) } },
            Cdb::Unmap { anchor: false, list_len: len },
            Cdb::PersistentReserveOut { action, scope: 0, kind, list_len: len.into() },
            Cdb::PersistentReserveOut { action, scope: 0, kind, list_len: 24 },
        ] {
            bench.run(nexus, 0, cdb, &bytes);
            prop_assert_eq!(bench.device.active(0), 0);
        }
    }
}

#[test]
fn a_transfer_too_large_for_a_transport_is_refused() {
    let mut bench = Bench::new(config());
    let nexus = bench.host(1, 0);
    bench.device.resize(0, u64::MAX);
    bench.run(nexus, 0, Cdb::TestUnitReady, &[]);
    for code in [operation::READ_16, operation::WRITE_16, operation::VERIFY_16, operation::WRITE_AND_VERIFY_16] {
        let mut cdb = [0xff; 16];
        cdb[..2].copy_from_slice(&[code, 0]);
        cdb[2..10].fill(0);
        cdb[15] = 0;
        let response = bench.run_bytes(nexus, 0, cdb, &[]);
        assert!(response.sense.is_some(), "{code:02x} of 2^32 - 1 blocks");
    }
}
