//! NBD requests: correct data, completion in any order, errors according to the protocol document,
//! bounded memory.

use crate::nbd::util::{Driver, SIZE_BYTES, export};
use proptest::prelude::*;
use sanloom_scsi::nbd::{CloseReason, Export, Input, Io, IoOp, Limits, Output, Wanted};
use sanloom_wire::nbd::*;

fn opened() -> Driver {
    Driver::opened(Limits::default())
}

fn write(driver: &mut Driver, cookie: u64, flags: u16, offset: u64, data: &[u8]) {
    driver.request(Command::WRITE, flags, cookie, offset, data.len() as u32);
    driver.write(data);
}

#[test]
fn written_data_are_read_back_and_requests_end_in_any_order() {
    let mut driver = opened();
    write(&mut driver, 1, 0, 4096, &[0xaa; 512]);
    write(&mut driver, 2, command_flag::FUA, 8192, &[0xbb; 1024]);
    let io = |tag, offset_bytes, len_bytes, fua| Io { tag, op: IoOp::Write, offset_bytes, len_bytes, fua };
    assert_eq!(driver.ios, [io(0, 4096, 512, false), io(1, 8192, 1024, true)]);
    driver.finish(1);
    driver.finish(0);
    assert_eq!(driver.replies(), [(2, ChunkBody::None), (1, ChunkBody::None)]);

    driver.request(Command::READ, command_flag::DF, 3, 4096, 512);
    driver.request(Command::READ, 0, 4, 8192, 1024);
    driver.finish(1);
    driver.finish(0);
    let data = |offset_bytes, byte, len| ChunkBody::OffsetData { offset_bytes, data: vec![byte; len].into() };
    assert_eq!(driver.replies(), [(4, data(8192, 0xbb, 1024)), (3, data(4096, 0xaa, 512))]);
    assert_eq!(driver.connection.in_flight(), 0);
}

#[test]
fn without_structured_replies_all_are_simple() {
    let mut driver = Driver::new(vec![export("lun0")], Limits::default());
    driver.write(&3_u32.to_be_bytes());
    driver.option(&ClientOption::ExportName("".into()));
    driver.sent.clear();
    driver.disk[..512].fill(7);
    driver.request(Command::READ, 0, 1, 0, 512);
    driver.request(Command::READ, 0, 2, SIZE_BYTES, 512);
    driver.request(Command::BLOCK_STATUS, 0, 3, 0, 512);
    driver.finish_all();
    let mut expected = SimpleReply { error: ErrorNumber::EINVAL, cookie: 2 }.to_bytes().to_vec();
    expected.extend(SimpleReply { error: ErrorNumber::EINVAL, cookie: 3 }.to_bytes());
    expected.extend(SimpleReply { error: ErrorNumber::NONE, cookie: 1 }.to_bytes());
    expected.extend([7; 512]);
    assert_eq!(driver.sent, expected);
}

#[test]
fn the_other_commands_reach_the_disk() {
    let mut driver = opened();
    driver.disk.fill(1);
    let commands = [
        (Command::FLUSH, 0, 0, 0, IoOp::Flush),
        (Command::TRIM, command_flag::FUA, 0, 4096, IoOp::Trim),
        (Command::CACHE, 0, 4096, 512, IoOp::Cache),
        (Command::WRITE_ZEROES, command_flag::NO_HOLE, 8192, 4096, IoOp::WriteZeroes { no_hole: true }),
        // Longer than the maximum payload, which does not apply because there is none.
        (Command::WRITE_ZEROES, 0, 0, SIZE_BYTES as u32, IoOp::WriteZeroes { no_hole: false }),
    ];
    for (command, flags, offset_bytes, len_bytes, op) in commands {
        driver.request(command, flags, 9, offset_bytes, len_bytes);
        let fua = flags & command_flag::FUA != 0;
        assert_eq!(driver.ios, [Io { tag: 0, op, offset_bytes, len_bytes, fua }]);
        driver.finish_all();
        assert_eq!(driver.replies(), [(9, ChunkBody::None)], "{command}");
    }
    assert!(driver.disk.iter().all(|byte| *byte == 0));
}

#[test]
fn block_status_reports_holes_within_the_request() {
    let mut driver = opened();
    driver.disk[4096..8192].fill(1);
    let extent = |len_bytes, flags| StatusExtent { len_bytes, flags };
    driver.request(Command::BLOCK_STATUS, 0, 1, 0, 8192 + 512);
    driver.request(Command::BLOCK_STATUS, command_flag::REQ_ONE, 2, 4096, 8192);
    driver.finish_all();
    let status = |extents| ChunkBody::BlockStatus { context: 1, extents };
    assert_eq!(
        driver.replies(),
        [(1, status(vec![extent(4096, 3), extent(4096, 0), extent(512, 3)])), (2, status(vec![extent(4096, 0)]))]
    );
    // A disk that reports more than requested, or nothing.
    for (reported, expected) in [(vec![extent(100_000, 0)], Some(512)), (vec![extent(0, 3)], None), (vec![], None)] {
        driver.request(Command::BLOCK_STATUS, 0, 3, 0, 512);
        let tag = driver.ios.remove(0).tag;
        driver.handle(Input::IoDone { tag, result: Ok(sanloom_scsi::nbd::Done::Extents(reported)) });
        match (&driver.replies()[..], expected) {
            ([(3, ChunkBody::BlockStatus { extents, .. })], Some(len)) => assert_eq!(extents[..], [extent(len, 0)]),
            ([(3, ChunkBody::Error { error, .. })], None) => assert_eq!(*error, ErrorNumber::EIO),
            (replies, _) => panic!("{replies:?}"),
        }
    }
}

#[test]
fn wrong_requests_are_refused_with_the_documents_error_numbers() {
    let mut driver = opened();
    let end = SIZE_BYTES;
    let cases = [
        (Command::READ, 0, end, 512, ErrorNumber::EINVAL),
        (Command::READ, 0, end - 512, 1024, ErrorNumber::EINVAL),
        (Command::READ, 0, u64::MAX - 511, 512, ErrorNumber::EINVAL),
        (Command::WRITE, 0, end, 512, ErrorNumber::ENOSPC),
        (Command::WRITE_ZEROES, 0, end - 512, 1024, ErrorNumber::ENOSPC),
        (Command::TRIM, 0, end, 512, ErrorNumber::EINVAL),
        (Command::READ, 0, 0, 0, ErrorNumber::EINVAL),
        (Command::BLOCK_STATUS, 0, 0, 0, ErrorNumber::EINVAL),
        (Command::READ, 0, 1, 512, ErrorNumber::EINVAL),
        (Command::WRITE, 0, 0, 100, ErrorNumber::EINVAL),
        (Command::READ, 0, 0, 512 << 10, ErrorNumber::EINVAL),
        (Command::WRITE, 0, 0, 512 << 10, ErrorNumber::EINVAL),
        (Command::FLUSH, 0, 512, 0, ErrorNumber::EINVAL),
        (Command::RESIZE, 0, 0, 512, ErrorNumber::EINVAL),
        (Command(99), 0, 0, 0, ErrorNumber::EINVAL),
        (Command::WRITE_ZEROES, command_flag::FAST_ZERO, 0, 512, ErrorNumber::EINVAL),
        (Command::WRITE, command_flag::NO_HOLE, 0, 512, ErrorNumber::EINVAL),
        (Command::WRITE, 1 << 9, 0, 512, ErrorNumber::EINVAL),
    ];
    for (cookie, (command, flags, offset, len, error)) in cases.into_iter().enumerate() {
        driver.request(command, flags, cookie as u64, offset, len);
        if command == Command::WRITE {
            driver.write(&vec![0; len as usize]);
        }
        match &driver.replies()[..] {
            [(number, ChunkBody::Error { error: got, message })] => {
                assert_eq!((*number, *got), (cookie as u64, error), "{command} {offset} {len}");
                assert!(!message.is_empty());
            }
            other => panic!("{command} {offset} {len}: {other:?}"),
        }
    }
    assert!(driver.ios.is_empty() && driver.others.is_empty());
    assert_eq!(driver.connection.counters().refused_requests, cases.len() as u64);
    // The stream is still in step.
    write(&mut driver, 1, 0, 0, &[1; 512]);
    driver.finish_all();
    assert_eq!(driver.replies(), [(1, ChunkBody::None)]);
}

#[test]
fn a_read_only_export_refuses_writes() {
    let read_only = Export { read_only: true, ..export("lun0") };
    let mut driver = Driver::new(vec![read_only], Limits::default());
    driver.write(&3_u32.to_be_bytes());
    driver.option(&ClientOption::StructuredReply);
    driver.option(&ClientOption::Go(InfoRequest { export: "".into(), wanted: vec![] }));
    driver.sent.clear();
    write(&mut driver, 1, 0, 0, &[1; 512]);
    driver.request(Command::TRIM, 0, 2, 0, 512);
    driver.request(Command::WRITE_ZEROES, 0, 3, 0, 512);
    for (cookie, body) in driver.replies() {
        assert!(matches!(body, ChunkBody::Error { error: ErrorNumber::EPERM, .. }), "{cookie} {body:?}");
    }
    driver.request(Command::FLUSH, 0, 4, 0, 0);
    driver.finish_all();
    assert_eq!(driver.replies(), [(4, ChunkBody::None)]);
}

#[test]
fn an_error_of_the_disk_fails_the_request_with_the_same_error() {
    let mut driver = opened();
    driver.request(Command::READ, 0, 5, 0, 512);
    driver.fail(ErrorNumber::EIO, "the path is lost");
    let error = ChunkBody::Error { error: ErrorNumber::EIO, message: "the path is lost".into() };
    assert_eq!(driver.replies(), [(5, error)]);
    assert_eq!(driver.connection.counters().failed_requests, 1);
}

#[test]
fn reading_pauses_at_the_limits_and_resumes() {
    let mut driver = Driver::opened(Limits { max_in_flight: 3, ..Limits::default() });
    for cookie in 0..10 {
        driver.request(Command::READ, 0, cookie, 0, 512);
    }
    assert_eq!((driver.ios.len(), driver.connection.wanted()), (3, Wanted::Nothing));
    driver.finish_all();
    assert_eq!(driver.replies().len(), 10);
    assert!(driver.connection.counters().stalls > 0);

    let mut driver = Driver::opened(Limits { max_in_flight_bytes: 100 << 10, ..Limits::default() });
    for cookie in 0..4 {
        write(&mut driver, cookie, 0, 0, &[1; 64 << 10]);
    }
    assert_eq!((driver.ios.len(), driver.connection.wanted()), (2, Wanted::Nothing));
    driver.finish_all();
    assert_eq!(driver.replies().len(), 4);
}

#[test]
fn a_disconnect_waits_for_the_requests_in_flight() {
    let mut driver = opened();
    driver.request(Command::READ, 0, 1, 0, 512);
    driver.request(Command::DISC, 0, 2, 0, 0);
    // Nothing is read after DISC.
    driver.request(Command::READ, 0, 3, 0, 512);
    assert!(driver.others.is_empty());
    driver.finish_all();
    assert_eq!(driver.replies().len(), 1);
    assert_eq!(driver.others, [Output::Close(CloseReason::Client)]);
}

#[test]
fn a_write_without_its_data_writes_nothing() {
    for (input, reason) in [(Input::Ended, CloseReason::Client), (Input::Shutdown, CloseReason::Shutdown)] {
        let mut driver = opened();
        driver.request(Command::WRITE, 0, 1, 0, 1024);
        driver.write(&[1; 1000]);
        driver.handle(input);
        assert!(driver.ios.is_empty());
        assert_eq!(driver.others, [Output::Close(reason)]);
        assert_eq!(driver.connection.in_flight(), 0);
    }
}

#[test]
fn a_broken_magic_number_ends_the_connection_when_its_requests_have_ended() {
    let mut driver = opened();
    driver.request(Command::READ, 0, 1, 0, 512);
    driver.write(&[0x77; 28]);
    assert!(driver.others.is_empty());
    driver.finish_all();
    assert_eq!(driver.others, [Output::Close(CloseReason::Protocol)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Requests on disjoint ranges, completed in random order, have the same effect as on an array
    /// of bytes.
    #[test]
    fn the_disk_holds_the_written_data(
        steps in proptest::collection::vec((0..4_u8, 0..64_u64, any::<u8>(), any::<prop::sample::Index>()), 1..60),
    ) {
        let mut driver = Driver::opened(Limits { max_in_flight: 4, ..Limits::default() });
        let mut model = vec![0; SIZE_BYTES as usize];
        for (cookie, (what, block, byte, order)) in steps.into_iter().enumerate() {
            let (offset, cookie) = (block * 4096, cookie as u64);
            let busy = driver.ios.iter().any(|io| io.offset_bytes == offset) || driver.ios.len() == 4;
            if busy {
                let index = order.index(driver.ios.len());
                driver.finish(index);
                driver.finish_all();
            }
            let range = offset as usize..offset as usize + 4096;
            match what {
                0 => {
                    driver.request(Command::WRITE_ZEROES, 0, cookie, offset, 4096);
                    model[range].fill(0);
                }
                1 => {
                    driver.finish_all();
                    driver.sent.clear();
                    driver.request(Command::READ, 0, cookie, offset, 4096);
                    driver.finish_all();
                    let data = ChunkBody::OffsetData { offset_bytes: offset, data: model[range].into() };
                    prop_assert_eq!(driver.replies(), [(cookie, data)]);
                }
                _ => {
                    write(&mut driver, cookie, 0, offset, &[byte; 4096]);
                    model[range].fill(byte);
                }
            }
        }
        driver.finish_all();
        prop_assert_eq!(driver.disk, model);
        prop_assert_eq!(driver.connection.in_flight(), 0);
    }

    #[test]
    fn random_bytes_are_survived_within_bounds(
        good in any::<bool>(),
        data in proptest::collection::vec(any::<u8>(), 0..600),
        heads in proptest::collection::vec((0..10_u16, 0..4_u16, any::<u64>(), any::<u32>()), 0..40),
    ) {
        let limits = Limits { max_in_flight: 5, ..Limits::default() };
        let mut driver = if good { Driver::opened(limits) } else { Driver::new(vec![export("a")], limits) };
        for (command, flags, offset, len) in heads {
            driver.request(Command(command), flags, 1, offset & 0x1f_fe00, len & 0x3_fe00);
            prop_assert!(driver.connection.in_flight() <= 5);
        }
        driver.write(&data);
        driver.handle(Input::Ended);
        driver.finish_all();
        let closed = driver.others.iter().filter(|output| matches!(output, Output::Close(_))).count();
        prop_assert_eq!((closed, driver.connection.in_flight()), (1, 0));
    }
}
