//! Entry point of the fuzzer of traces, shared with the property tests. Any bytes must give
//! requests or an error, and no panic.

use sanloom_storage::trace::inspect::{Inspector, Limits, synthetic};
use sanloom_storage::trace::replay::{Replay, ReplaySettings};
use sanloom_storage::trace::{
    BlockEvent, Format, Pattern, Settings, TraceError, TraceReader, TraceRequest, TraceWriter, WRITABLE,
};

/// Settings for the first byte of an input: each format, and the detection.
fn settings(choice: u8) -> Settings {
    let number = usize::from(choice) % (Format::ALL.len() + 1);
    let format = Format::ALL.get(number).copied();
    let pattern =
        Pattern::new(r"(?<op>\w+) (?<offset>\d+) (?<length>\d+) (?<time>\S+)( (?<response>\d+))?( (?<device>.*))?");
    let event = [BlockEvent::Queue, BlockEvent::Issue, BlockEvent::Complete][usize::from(choice) / 16 % 3];
    Settings {
        reorder: 1 + usize::from(choice / 16),
        pattern: pattern.ok().filter(|_| format == Some(Format::Regex)),
        event,
        ..Settings { format, ..Settings::default() }
    }
}

/// Reads a trace in the format of the first byte, and uses the requests as every caller does.
pub fn trace(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let settings = settings(*choice);
    let Ok(mut reader) = TraceReader::new(bytes, &settings) else { return };
    let mut inspector = Inspector::new(Limits { blocks: 64 });
    let (mut requests, mut failed) = (Vec::new(), false);
    for request in &mut reader {
        assert!(!failed, "nothing follows an error");
        match request {
            Ok(request) => requests.push(request),
            Err(error) => {
                failed = true;
                assert!(!error.to_string().is_empty());
            }
        }
        if requests.len() > 4_096 {
            break;
        }
    }
    for pair in requests.windows(2) {
        assert!(pair[0].arrival_ps <= pair[1].arrival_ps, "requests are in order");
    }
    let largest = 1 << 20;
    for request in &requests {
        assert!((request.device as usize) < reader.devices().len());
        assert!(request.end_bytes() <= 1 << 63);
        // Long requests are slow to count block by block.
        if request.length_bytes <= largest {
            inspector.add(request);
        }
    }
    let statistics = inspector.statistics(reader.devices());
    assert!((0.0..=1.0).contains(&statistics.sequential.share));
    assert!(statistics.locality.hot.iter().all(|hot| (0.0..=1.0).contains(&hot.accesses)));
    assert!(synthetic(&statistics, "trace", "fuzz").ends_with('\n'));
    let replay = Replay::new(|| TraceReader::new(bytes, &settings), ReplaySettings::new(1 << 30));
    for request in replay.into_iter().flatten().take(1_000).flatten() {
        assert!(request.end_bytes() <= 1 << 30 && request.offset_bytes.is_multiple_of(512));
    }
    for format in WRITABLE {
        round_trip(format, &requests, reader.devices());
    }
}

/// Writes requests in a format and reads them again: as many as the writer reports.
pub fn round_trip(format: Format, requests: &[TraceRequest], devices: &[String]) -> Vec<TraceRequest> {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, format).expect("the format can be written");
    for request in requests {
        writer.write(request, &devices[request.device as usize]).expect("memory can be written");
    }
    let lost = writer.finish().expect("memory can be written");
    if bytes.is_empty() {
        return Vec::new();
    }
    let reader = TraceReader::new(bytes.as_slice(), &Settings::of(format)).expect("a written trace can be opened");
    let back: Result<Vec<TraceRequest>, TraceError> = reader.collect();
    let is_expressible = |request: &&TraceRequest| {
        format != Format::Blkparse || request.op.word() == "flush" || request.length_bytes > 0
    };
    let empty = requests.len() - requests.iter().filter(is_expressible).count();
    match back {
        Ok(back) => {
            assert_eq!(back.len() as u64 + lost.left_out + empty as u64, requests.len() as u64, "{format:?}");
            back
        }
        // All requests are empty, or their ends round up beyond 2^63.
        Err(TraceError::NoEvent { .. }) => Vec::new(),
        Err(error) => {
            assert!(requests.iter().any(|request| request.end_bytes() > (1 << 63) - 512), "{format:?}: {error}");
            Vec::new()
        }
    }
}
