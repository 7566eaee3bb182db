//! Properties of readers and writers: bytes without meaning never panic, and a trace survives a
//! writer and a reader.

use crate::trace_entry_points::{round_trip, trace};
use proptest::prelude::*;
use sanloom_storage::trace::{Format, TraceOp, TraceRequest};

/// Request in units that every writable format expresses: microseconds and blocks.
fn request() -> impl Strategy<Value = TraceRequest> {
    let op = prop::sample::select(TraceOp::ALL.to_vec());
    (0..1_u64 << 40, 0..3_u32, op, 0..1_u64 << 50, 1..1_u64 << 20).prop_map(|(us, device, op, block, blocks)| {
        let is_flush = op == TraceOp::Flush;
        TraceRequest {
            arrival_ps: us % 1_000_000 * 1_000_000,
            device,
            op,
            offset_bytes: if is_flush { 0 } else { block * 512 },
            length_bytes: if is_flush { 0 } else { blocks * 512 },
            response_ps: None,
            think_ps: None,
        }
    })
}

/// Texts that are near to a format: its characters and words in any order.
fn near() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "fio version 2 iolog",
        "fio version 3 iolog",
        "R",
        "W",
        "Read",
        "Write",
        "D",
        "FWS",
        "8,16",
        "Q",
        "C",
        "+",
        " ",
        " ",
        " ",
        ",",
        ",",
        ",",
        "\n",
        "\n",
        ".",
        "0",
        "1",
        "16",
        "4096",
        "128166372016382155",
        "18446744073709551615",
        "1e300",
        "-",
        "wait",
        "read",
        "sync",
        "add",
        "Hit",
        "[x]",
        "\u{e4}",
        "\r\n",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..60).prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #[test]
    fn bytes_without_meaning_never_panic(choice: u8, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        trace(&[&[choice], &bytes[..]].concat());
    }

    #[test]
    fn texts_near_a_format_never_panic(choice: u8, text in near()) {
        trace(&[&[choice], &text[..]].concat());
    }

    #[test]
    fn records_with_the_right_magic_number_never_panic(choice: u8, mut bytes in prop::collection::vec(any::<u8>(), 160)) {
        for at in [0, 48, 96] {
            bytes[at..at + 4].copy_from_slice(&0x6561_7407_u32.to_le_bytes());
            bytes[at + 47] = 0;
        }
        // Numbers of the binary formats in the list of all formats.
        for format in [6, 8, 9] {
            for (at, version) in [(14, [0, 1]), (46, [0, 1]), (2, [0, 2]), (42, [0, 2])] {
                if format != 6 {
                    bytes[at..at + 2].copy_from_slice(&version);
                }
            }
            trace(&[&[format + choice / 16 * 16], &bytes[..]].concat());
        }
    }

    #[test]
    fn a_written_trace_is_read_as_it_was(mut requests in prop::collection::vec(request(), 1..50)) {
        requests.sort_by_key(|request| request.arrival_ps);
        // Absolute times begin at the first request.
        let start = requests[0].arrival_ps;
        requests.iter_mut().for_each(|request| request.arrival_ps -= start);
        let devices = ["8,0", "8,1", "8,2"].map(str::to_owned);
        for format in [Format::Fio3, Format::Blkparse] {
            let mut back = round_trip(format, &requests, &devices);
            // A reader numbers devices in the order of their first requests.
            let mut names: Vec<u32> = Vec::new();
            for request in &requests {
                if !names.contains(&request.device) {
                    names.push(request.device);
                }
            }
            back.iter_mut().for_each(|request| request.device = names[request.device as usize]);
            prop_assert_eq!(&back, &requests);
        }
        let data: Vec<TraceRequest> =
            requests.into_iter().filter(|request| matches!(request.op, TraceOp::Read | TraceOp::Write)).collect();
        for format in [Format::Disksim, Format::Spc] {
            let back = round_trip(format, &data, &devices);
            for (one, other) in back.iter().zip(&data) {
                prop_assert_eq!(TraceRequest { device: 0, ..*one }, TraceRequest { device: 0, ..*other });
            }
        }
        let back = round_trip(Format::Msr, &data, &devices);
        let first = data.first().map_or(0, |request| request.arrival_ps);
        for (one, other) in back.iter().zip(&data) {
            let expected = TraceRequest { device: 0, arrival_ps: other.arrival_ps - first, ..*other };
            prop_assert_eq!(TraceRequest { device: 0, response_ps: None, ..*one }, expected);
        }
    }
}
