//! Each format: requests of a small trace that was written by hand from the definition, and its
//! detection.

use sanloom_storage::trace::{BlockEvent, Format, Pattern, Settings, TraceOp, TraceReader, TraceRequest};

const US: u64 = 1_000_000;
const MS: u64 = 1_000_000_000;
const S: u64 = 1_000_000_000_000;

/// Request without response and think time.
fn request(arrival_ps: u64, device: u32, op: TraceOp, offset_bytes: u64, length_bytes: u64) -> TraceRequest {
    TraceRequest { arrival_ps, device, op, offset_bytes, length_bytes, response_ps: None, think_ps: None }
}

/// Reads a trace with its format named, and again with the format detected.
fn read(format: Format, bytes: &[u8]) -> (Vec<TraceRequest>, Vec<String>) {
    let named = read_with(&Settings::of(format), bytes);
    let reader = TraceReader::new(bytes, &Settings::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(reader.format(), format, "detected");
    named
}

fn read_with(settings: &Settings, bytes: &[u8]) -> (Vec<TraceRequest>, Vec<String>) {
    let mut reader = TraceReader::new(bytes, settings).unwrap_or_else(|error| panic!("{error}"));
    let requests = (&mut reader).map(|request| request.unwrap_or_else(|error| panic!("{error}"))).collect();
    (requests, reader.devices().to_vec())
}

#[test]
fn disksim_ascii_has_milliseconds_blocks_and_flags() {
    let text = b"17.829285 20 576560 6 1\n18.5 3 8 16 0\n19.0 20 0 1 0000000B\n";
    let (requests, devices) = read(Format::Disksim, text);
    let expected = [
        request(17_829_285_000, 0, TraceOp::Read, 576_560 * 512, 3_072),
        request(18_500_000_000, 1, TraceOp::Write, 4_096, 8_192),
        request(19 * MS, 0, TraceOp::Read, 0, 512),
    ];
    assert_eq!(requests, expected);
    assert_eq!(devices, ["20", "3"]);
}

#[test]
fn disksim_validate_has_response_and_think_times_that_give_the_arrivals() {
    let text = b"R Hit    1975456   4  15362.00000  56074.00000\nW Miss 8 2 100.5 0.0\nR Doub 9 1 1.0 1.0\n";
    let (requests, _) = read(Format::Validate, text);
    let with = |request: TraceRequest, response: u64, think: u64| TraceRequest {
        response_ps: Some(response),
        think_ps: Some(think),
        ..request
    };
    let second = (15_362 + 56_074) * US;
    let expected = [
        with(request(0, 0, TraceOp::Read, 1_975_456 * 512, 2_048), 15_362 * US, 56_074 * US),
        with(request(second, 0, TraceOp::Write, 4_096, 1_024), 100_500_000, 0),
        with(request(second + 100_500_000, 0, TraceOp::Read, 9 * 512, 512), US, US),
    ];
    assert_eq!(requests, expected);
}

#[test]
fn spc_has_blocks_bytes_and_seconds_and_any_further_columns() {
    let text = b"0,303567,3584,w,0.000000\n1,55590,3072,R,0.026214\n0,303574,3584,W,0.026682,x,y\n";
    let (requests, devices) = read(Format::Spc, text);
    let expected = [
        request(0, 0, TraceOp::Write, 303_567 * 512, 3_584),
        request(26_214 * US, 1, TraceOp::Read, 55_590 * 512, 3_072),
        request(26_682 * US, 0, TraceOp::Write, 303_574 * 512, 3_584),
    ];
    assert_eq!(requests, expected);
    assert_eq!(devices, ["0", "1"]);
}

#[test]
fn msr_has_ticks_of_100_ns_hosts_and_responses() {
    let text = b"128166372016382155,hm,0,Read,1074696192,4096,113\r\n128166372016382165,hm,1,Write,0,512,7\r\n";
    let (requests, devices) = read(Format::Msr, text);
    let expected = [
        TraceRequest { response_ps: Some(11_300_000), ..request(0, 0, TraceOp::Read, 1_074_696_192, 4_096) },
        TraceRequest { response_ps: Some(700_000), ..request(US, 1, TraceOp::Write, 0, 512) },
    ];
    assert_eq!(requests, expected);
    assert_eq!(devices, ["hm_0", "hm_1"]);
}

#[test]
fn fio_2_has_waits_instead_of_times() {
    let text = b"fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb read 4096 8192\n/dev/sdb wait 99 0\n\
        /dev/sdb write 0 512\n/dev/sdb wait 100 0\n/dev/sdb trim 1024 4096\n/dev/sdb wait 250\n/dev/sdb sync 0 0\n\
        /dev/sdb datasync 0 0\n/dev/sdb close\n";
    let (requests, devices) = read(Format::Fio2, text);
    let expected = [
        request(0, 0, TraceOp::Read, 4_096, 8_192),
        request(0, 0, TraceOp::Write, 0, 512),
        request(100 * US, 0, TraceOp::Trim, 1_024, 4_096),
        request(350 * US, 0, TraceOp::Flush, 0, 0),
        request(350 * US, 0, TraceOp::Flush, 0, 0),
    ];
    assert_eq!(requests, expected);
    assert_eq!(devices, ["/dev/sdb"]);
}

#[test]
fn fio_3_has_microseconds_in_front() {
    let text = b"fio version 3 iolog\n26 /dev/sdb add\n155 /dev/sdb open\n12250 /dev/sdb write 0 4096\n\
        12300 /dev/sdc trim 8192 512\n12301 /dev/sdb sync 0 0\n13000 /dev/sdb close\n";
    let (requests, devices) = read(Format::Fio3, text);
    let expected = [
        request(12_250 * US, 0, TraceOp::Write, 0, 4_096),
        request(12_300 * US, 1, TraceOp::Trim, 8_192, 512),
        request(12_301 * US, 0, TraceOp::Flush, 0, 0),
    ];
    assert_eq!(requests, expected);
    assert_eq!(devices, ["/dev/sdb", "/dev/sdc"]);
}

/// Record of blktrace; `is_little`: byte order.
fn event(is_little: bool, ns: u64, sector: u64, bytes: u32, action: u32, behind: u16) -> Vec<u8> {
    let four = |value: u32| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
    let eight = |value: u64| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
    let two = |value: u16| if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
    let mut record = four(0x6561_7407).to_vec();
    record.extend(four(1));
    record.extend(eight(ns));
    record.extend(eight(sector));
    [bytes, action, 5_529, 8 << 20 | 16, 1].into_iter().for_each(|value| record.extend(four(value)));
    record.extend(two(0));
    record.extend(two(behind));
    record.extend(vec![0xaa; usize::from(behind)]);
    record
}

#[test]
fn blktrace_records_of_either_byte_order_become_the_requests_of_one_event() {
    for is_little in [true, false] {
        let event = |ns, sector, bytes, action, behind| event(is_little, ns, sector, bytes, action, behind);
        let trace = [
            // A note with the name of a process, Q of a read, G of the same, D and C of the same.
            event(1_000, 0, 0, 1 << 26, 8),
            event(2_000, 274_432, 4_096, 1 | 1 << 16, 0),
            event(2_100, 274_432, 4_096, 4 | 1 << 16, 0),
            event(2_500, 274_432, 4_096, 7 | 1 << 16, 3),
            event(9_000, 274_432, 4_096, 8 | 1 << 16, 0),
            // Q of a synchronous write with a flush before it, of a trim, and of a lone flush.
            event(10_000, 8, 512, 1 | (2 | 4 | 8) << 16, 0),
            event(11_000, 16, 1 << 20, 1 | (2 | 0x2000) << 16, 0),
            event(12_000, 0, 0, 1 | (2 | 4) << 16, 0),
        ]
        .concat();
        let (requests, devices) = read(Format::Blktrace, &trace);
        let expected = [
            request(0, 0, TraceOp::Read, 274_432 * 512, 4_096),
            request(8 * US, 0, TraceOp::Flush, 0, 0),
            request(8 * US, 0, TraceOp::Write, 4_096, 512),
            request(9 * US, 0, TraceOp::Trim, 8_192, 1 << 20),
            request(10 * US, 0, TraceOp::Flush, 0, 0),
        ];
        assert_eq!(requests, expected);
        assert_eq!(devices, ["8,16"]);
        let issued = Settings { event: BlockEvent::Issue, ..Settings::of(Format::Blktrace) };
        assert_eq!(read_with(&issued, &trace).0, [request(0, 0, TraceOp::Read, 274_432 * 512, 4_096)]);
    }
}

#[test]
fn blkparse_lines_become_the_requests_of_one_event() {
    let text = b"  8,16   1        1     1.427376394  5529  Q  WS 274432 + 8 [fio]\n\
        \x20 8,16   1        2     1.427376500  5529  G  WS 274432 + 8 [fio]\n\
        \x20 8,16   1        3     1.427377000  5529  D  WS 274432 + 8 [fio]\n\
        \x20 8,16   0        4     1.427377394   697  Q FWS [jbd2/sda1-8]\n\
        \x20 8,0    0        5     1.427378394   697  Q   R 8 + 16 [cat]\n\
        \x20 8,16   0        6     1.427379394   697  Q  DS 1024 + 2048 [fstrim]\n\
        \x20 8,16   0        7     1.427380394   697  Q FWFS 0 + 8 [jbd2/sda1-8]\n\
        CPU0 (sda):\n Reads Queued:           1,        4KiB\n";
    let (requests, devices) = read_with(&Settings::of(Format::Blkparse), text);
    let expected = [
        request(0, 0, TraceOp::Write, 274_432 * 512, 4_096),
        request(US, 0, TraceOp::Flush, 0, 0),
        request(2 * US, 1, TraceOp::Read, 4_096, 8_192),
        request(3 * US, 0, TraceOp::Trim, 524_288, 1 << 20),
        request(4 * US, 0, TraceOp::Flush, 0, 0),
        request(4 * US, 0, TraceOp::Write, 0, 4_096),
    ];
    assert_eq!(requests, expected);
    assert_eq!(devices, ["8,16", "8,0"]);
    let events = text.split_inclusive(|byte| *byte == b'\n').take(7).collect::<Vec<_>>().concat();
    let reader = TraceReader::new(events.as_slice(), &Settings::default()).expect("it is blkparse");
    assert_eq!(reader.format(), Format::Blkparse);
}

#[test]
fn vscsi_1_has_records_of_32_bytes() {
    let record = |bytes: u32, code: u16, block: u64, us: u64| {
        let mut record = 7_u32.to_le_bytes().to_vec();
        record.extend(bytes.to_le_bytes());
        record.extend(1_u32.to_le_bytes());
        record.extend(code.to_le_bytes());
        record.extend(0x0100_u16.to_le_bytes());
        record.extend(block.to_le_bytes());
        record.extend(us.to_le_bytes());
        record
    };
    // TEST UNIT READY is no request.
    let trace =
        [record(4_096, 0x28, 100, 5_000), record(0, 0x00, 0, 5_001), record(512, 0x2a, 1 << 32, 5_010)].concat();
    assert_eq!(trace.len(), 96);
    let expected = [request(0, 0, TraceOp::Read, 51_200, 4_096), request(10 * US, 0, TraceOp::Write, 512 << 32, 512)];
    assert_eq!(read(Format::Vscsi1, &trace).0, expected);
}

#[test]
fn vscsi_2_has_records_of_40_bytes_with_responses() {
    let record = |bytes: u32, code: u16, block: u64, us: u64, response: u64| {
        let mut record = code.to_le_bytes().to_vec();
        record.extend(0x0201_u16.to_le_bytes());
        [7, bytes, 1].into_iter().for_each(|value: u32| record.extend(value.to_le_bytes()));
        [block, us, response].into_iter().for_each(|value| record.extend(value.to_le_bytes()));
        record
    };
    let trace = [record(4_096, 0x28, 100, 5_000, 350), record(0, 0x35, 0, 5_020, 9_000)].concat();
    assert_eq!(trace.len(), 80);
    let expected = [
        TraceRequest { response_ps: Some(350 * US), ..request(0, 0, TraceOp::Read, 51_200, 4_096) },
        TraceRequest { response_ps: Some(9 * MS), ..request(20 * US, 0, TraceOp::Flush, 0, 0) },
    ];
    assert_eq!(read(Format::Vscsi2, &trace).0, expected);
}

#[test]
fn alibaba_has_devices_bytes_and_microseconds() {
    let text = b"0,R,126703644672,4096,1577808000000626\n7,W,0,16384,1577808000000630\n";
    let (requests, devices) = read(Format::Alibaba, text);
    let expected =
        [request(0, 0, TraceOp::Read, 126_703_644_672, 4_096), request(4 * US, 1, TraceOp::Write, 0, 16_384)];
    assert_eq!((requests, devices), (expected.to_vec(), vec!["0".to_owned(), "7".to_owned()]));
}

#[test]
fn tencent_has_seconds_sectors_and_volumes() {
    let text = b"1538323200,12910952,128,0,1063\n1538323201,8,16,1,1064\n";
    let (requests, devices) = read(Format::Tencent, text);
    let expected =
        [request(0, 0, TraceOp::Read, 12_910_952 * 512, 65_536), request(S, 1, TraceOp::Write, 4_096, 8_192)];
    assert_eq!((requests, devices), (expected.to_vec(), vec!["1063".to_owned(), "1064".to_owned()]));
}

#[test]
fn mqsim_has_a_unit_of_time_that_is_a_setting() {
    let text = b"11413000 0 657728 16 1\n11414000 0 8 8 0\n";
    let trace = |unit| read_with(&Settings { mqsim_unit_ps: unit, ..Settings::of(Format::Mqsim) }, text).0;
    let expected = [
        request(11_413 * US, 0, TraceOp::Read, 657_728 * 512, 8_192),
        request(11_414 * US, 0, TraceOp::Write, 4_096, 4_096),
    ];
    assert_eq!(trace(1_000), expected);
    assert_eq!(trace(US)[1].arrival_ps, 11_414 * MS);
}

#[test]
fn fiu_has_nanoseconds_processes_and_device_numbers() {
    let text = b"89966180010 2297 syslogd 904265560 8 W 6 0 e9c8c1d4a2bb0b9c41a1c4f5ce0fbe56\n\
        89966181010 4892 pdflush 8 16 R 6 1 531e779fc1f1c1fae24c0d3f4d3f7c1b\n";
    let (requests, devices) = read(Format::Fiu, text);
    let expected =
        [request(0, 0, TraceOp::Write, 904_265_560 * 512, 4_096), request(US, 1, TraceOp::Read, 4_096, 8_192)];
    assert_eq!((requests, devices), (expected.to_vec(), vec!["6,0".to_owned(), "6,1".to_owned()]));
}

#[test]
fn a_regular_expression_names_columns_and_units() {
    let text = b"# time op lba len\n5.25 vol1 write 100 4 took 0.5\n5.5 vol2 DISCARD 8 1 took 0.1\n";
    let expression = r"^(?<time>[\d.]+) (?<device>\S+) (?<op>\w+) (?<offset>\d+) (?<length>\d+) took (?<response>\S+)";
    let pattern = Pattern::new(expression).expect("it is valid").time_unit_ps(S).response_unit_ps(MS);
    let pattern = pattern.offset_unit_bytes(4_096).length_unit_bytes(1_024).skip_unmatched(true);
    let settings = Settings { pattern: Some(pattern), ..Settings::default() };
    let (requests, devices) = read_with(&settings, text);
    let expected = [
        TraceRequest { response_ps: Some(500 * US), ..request(0, 0, TraceOp::Write, 409_600, 4_096) },
        TraceRequest { response_ps: Some(100 * US), ..request(S / 4, 1, TraceOp::Trim, 32_768, 1_024) },
    ];
    assert_eq!(requests, expected);
    assert_eq!(devices, ["vol1", "vol2"]);
}

#[test]
fn a_group_that_takes_part_names_the_operation() {
    let pattern = Pattern::new("((?<read>0)|(?<write>1)) (?<time>[0-9]+) (?<offset>[0-9]+) (?<length>[0-9]+)");
    let settings = Settings { pattern: Some(pattern.expect("it is valid")), ..Settings::default() };
    let (requests, _) = read_with(&settings, b"0 7 512 512\n1 9 0 512\n");
    let expected = [request(0, 0, TraceOp::Read, 512, 512), request(2 * US, 0, TraceOp::Write, 0, 512)];
    assert_eq!(requests, expected);
}

#[test]
fn requests_out_of_order_are_sorted_within_the_window() {
    let text = b"0,0,512,r,3.0\n0,1,512,r,1.0\n0,2,512,r,2.0\n0,3,512,r,3.0\n0,4,512,r,4.0\n";
    for window in [3, 1_024] {
        let settings = Settings { reorder: window, ..Settings::of(Format::Spc) };
        let (requests, _) = read_with(&settings, text);
        let blocks: Vec<u64> = requests.iter().map(|request| request.offset_bytes / 512).collect();
        assert_eq!(blocks, [1, 2, 0, 3, 4], "equal arrivals keep their order");
    }
}
