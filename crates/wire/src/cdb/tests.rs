//! Every form of every command, byte by byte.

use super::*;

fn cdb(bytes: &[u8]) -> Cdb {
    let mut padded = [0; CDB_BYTES];
    padded[..bytes.len()].copy_from_slice(bytes);
    Cdb::parse(&padded)
}

#[test]
fn reads_every_length_of_read_and_write() {
    let read = |lba, blocks, fua| Cdb::Read { lba, blocks, fua };
    let write = |lba, blocks, fua| Cdb::Write { lba, blocks, fua };
    assert_eq!(cdb(&[0x08, 0xff, 0x02, 0x03, 0x00, 0]), read(0x1f_0203, 256, false));
    assert_eq!(cdb(&[0x0a, 0x00, 0x00, 0x01, 0x07, 0]), write(1, 7, false));
    assert_eq!(cdb(&[0x28, 0x08, 0, 0, 1, 0, 0, 0, 9, 0]), read(256, 9, true));
    assert_eq!(cdb(&[0x2a, 0x00, 0xff, 0, 0, 0, 0, 1, 0, 0]), write(0xff00_0000, 256, false));
    assert_eq!(cdb(&[0xa8, 0, 0, 0, 0, 5, 0, 1, 0, 0]), read(5, 0x1_0000, false));
    assert_eq!(cdb(&[0xaa, 8, 0, 0, 0, 5, 0, 0, 0, 1]), write(5, 1, true));
    assert_eq!(cdb(&[0x88, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3]), read(0x0100_0000_0000_0002, 3, false));
    assert_eq!(cdb(&[0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0]), write(2, 0x1_0000, true));
}

#[test]
fn uses_the_16_byte_form_only_if_the_10_byte_form_is_too_small() {
    let operation = |lba, blocks| Cdb::Read { lba, blocks, fua: false }.operation();
    assert_eq!(operation(0xffff_ffff, 0xffff), operation::READ_10);
    assert_eq!(operation(0x1_0000_0000, 1), operation::READ_16);
    assert_eq!(operation(0, 0x1_0000), operation::READ_16);
}

#[test]
fn unknown_commands_keep_their_bytes() {
    for bytes in [
        &[0xc0, 1, 2, 3][..],
        &[0x12, 0, 0x80, 0, 36],
        &[0x28, 0x20, 0, 0, 0, 0, 0, 0, 1],
        &[0x9e, 0x11],
        &[0xa0, 0, 1],
    ] {
        let mut padded = [0; CDB_BYTES];
        padded[..bytes.len()].copy_from_slice(bytes);
        assert_eq!(Cdb::parse(&padded), Cdb::Other(padded));
        assert_eq!(Cdb::parse(&padded).to_bytes(), padded);
    }
}

#[test]
fn overwrites_every_byte_of_the_buffer() {
    let mut dirty = [0xa5; CDB_BYTES];
    Cdb::Inquiry { vpd_page: Some(0x83), allocation_len: 0x1234 }.emit(&mut dirty);
    assert_eq!(dirty, [0x12, 1, 0x83, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn prints_operation_and_range() {
    assert_eq!(Cdb::Read { lba: 64, blocks: 8, fua: false }.to_string(), "READ(10) 8 blocks at 64");
    assert_eq!(cdb(&[0xc1]).to_string(), "operation c1");
}

/// CDB bytes and the command that they encode. [`Cdb::emit`] must produce the same bytes.
const FORMS: [(&[u8], Cdb); 25] = [
    (&[0x03, 1, 0, 0, 252], Cdb::RequestSense { descriptor: true, allocation_len: 252 }),
    (
        &[0x1a, 8, 0x48, 1, 64],
        Cdb::ModeSense { long: false, no_descriptor: true, control: 1, page: 8, subpage: 1, allocation_len: 64 },
    ),
    (
        &[0x5a, 0, 0x3f, 0xff, 0, 0, 0, 1, 2],
        Cdb::ModeSense { long: true, no_descriptor: false, control: 0, page: 63, subpage: 255, allocation_len: 258 },
    ),
    (&[0x15, 0x11, 0, 0, 24], Cdb::ModeSelect { long: false, page_format: true, save: true, list_len: 24 }),
    (&[0x55, 0x10, 0, 0, 0, 0, 0, 1, 0], Cdb::ModeSelect { long: true, page_format: true, save: false, list_len: 256 }),
    (
        &[0x1b, 1, 0, 0, 0x37],
        Cdb::StartStopUnit { immediate: true, power: 3, no_flush: true, load_eject: true, start: true },
    ),
    (&[0x16], Cdb::Reserve6),
    (&[0x17], Cdb::Release6),
    (&[0x2f, 2, 0, 0, 0, 9, 0, 0, 5], Cdb::Verify { lba: 9, blocks: 5, byte_check: 1 }),
    (&[0x2e, 0, 0, 0, 0, 9, 0, 0, 5], Cdb::WriteAndVerify { lba: 9, blocks: 5, byte_check: 0 }),
    (&[0x35, 2, 0, 0, 0, 9, 0, 0, 0], Cdb::SynchronizeCache { lba: 9, blocks: 0, immediate: true }),
    (
        &[0x91, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2],
        Cdb::SynchronizeCache { lba: 1 << 32, blocks: 2, immediate: false },
    ),
    (&[0x34, 0, 0, 0, 0, 9, 0, 0, 5], Cdb::Prefetch { lba: 9, blocks: 5, immediate: false }),
    (
        &[0x41, 0x18, 0, 0, 0, 9, 0, 0, 5],
        Cdb::WriteSame { lba: 9, blocks: 5, unmap: true, anchor: true, no_data: false },
    ),
    (
        &[0x93, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 5],
        Cdb::WriteSame { lba: 9, blocks: 5, unmap: false, anchor: false, no_data: true },
    ),
    (&[0x42, 1, 0, 0, 0, 0, 0, 0, 24], Cdb::Unmap { anchor: true, list_len: 24 }),
    (&[0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 1, 0], Cdb::GetLbaStatus { lba: 9, allocation_len: 256 }),
    (&[0x89, 8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 5], Cdb::CompareAndWrite { lba: 9, blocks: 5, fua: true }),
    (&[0x5e, 3, 0, 0, 0, 0, 0, 1, 0], Cdb::PersistentReserveIn { action: 3, allocation_len: 256 }),
    (&[0x5f, 1, 5, 0, 0, 0, 0, 0, 24], Cdb::PersistentReserveOut { action: 1, scope: 0, kind: 5, list_len: 24 }),
    (&[0xa3, 0x2a, 0, 0, 0, 0, 0, 0, 1, 0], Cdb::ReportTargetPortGroups { extended: true, allocation_len: 256 }),
    (&[0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, 12], Cdb::SetTargetPortGroups { list_len: 12 }),
    (
        &[0xa3, 0x0c, 0x82, 0x9e, 0, 0x10, 0, 0, 1, 0],
        Cdb::ReportSupportedOperations { timeouts: true, options: 2, operation: 0x9e, action: 16, allocation_len: 256 },
    ),
    (
        &[0xa3, 0x0d, 0x80, 0, 0, 0, 0, 0, 0, 16],
        Cdb::ReportSupportedTaskManagement { extended: true, allocation_len: 16 },
    ),
    (&[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0], Cdb::ReportLuns { allocation_len: 256 }),
];

#[test]
fn every_command_is_its_bytes() {
    for (bytes, value) in FORMS {
        assert_eq!(cdb(bytes), value, "{bytes:02x?}");
        assert_eq!(value.to_bytes()[..bytes.len()], *bytes, "{value}");
        assert_eq!(Cdb::parse(&value.to_bytes()), value);
    }
}

#[test]
fn twelve_and_sixteen_byte_forms_have_longer_ranges() {
    let long = [0x8f, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 5];
    assert_eq!(cdb(&long), Cdb::Verify { lba: 9, blocks: 5, byte_check: 0 });
    assert_eq!(cdb(&[0xaf, 6, 0, 0, 0, 9, 0, 0, 0, 5]), Cdb::Verify { lba: 9, blocks: 5, byte_check: 3 });
    assert_eq!(cdb(&[0xae, 2, 0, 0, 0, 9, 0, 0, 0, 5]), Cdb::WriteAndVerify { lba: 9, blocks: 5, byte_check: 1 });
}

#[test]
fn fields_without_a_value_leave_the_bytes_as_they_are() {
    for bytes in [
        &[0x2f, 0x20][..], // protection information
        &[0x2f, 4],        // BYTCHK 10b
        &[0x2e, 4],
        &[0x41, 2],    // LBDATA
        &[0x41, 1],    // NDOB in the short form
        &[0x89, 0x20], // protection information
        &[0x16, 0x10], // third party
        &[0xa3, 0x4a], // a format of the future
        &[0xa3, 0x05],
    ] {
        assert!(matches!(cdb(bytes), Cdb::Other(_)), "{bytes:02x?}");
    }
}
