//! Compressed traces, recognised by their first bytes.

use flate2::Compression;
use flate2::write::GzEncoder;
use sanloom_storage::trace::{Format, Settings, TraceError, TraceReader, TraceRequest};
use std::io::{Read, Write};

const TEXT: &str = "0,303567,3584,w,0.000000\n1,55590,3072,R,0.026214\n";

fn read(bytes: &[u8]) -> Result<Vec<TraceRequest>, TraceError> {
    TraceReader::new(bytes, &Settings::of(Format::Spc))?.collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).expect("memory can be written")
}

/// 200 lines, compressed by `zstd -19` 1.5.4.
const COMPRESSED: &str = "\
    28b52ffd0468e4080096d32810c0a570c6ff376eef8a8848a2f517e70d270020002100bb76c952254a9326491aa491689059\
    481ff7a51eda91dd2e0903110680038320103e43854118026cb067cf9a2d4b76ec48910339a38c32c6f8d163c76edcb6691b\
    b6611b4db450e3104738eeb86fbf3efdf9f3e50ffef4d24b1df56bd7ad5bb35ead7aa88776580933311213318f798c631ac3\
    98c52c442143c85ce42297b8fce24b2f7df0b1871ec363780480c6a81100f6f6cfc0a31407101a2f9807618369ee1d69a4b3\
    6f4c31cdbd238d74f68d29a6b977a491cebe31c534f78e34d2d937a698e6de91463afbc614d3dcf3b7481bdc5aa0adb320db\
    c6126c7d25d7deca58fb2aa8d654406d4fc154599292d2a8b9f006071ef0c0039e03c759501cb4a8a4b42a250900f65d300d\
    9025c935c4ca95945176a71b802c0026002e0052a21c65441951de493b199c0c27c35d37dd73cb2df73beeb3cd368b81c560\
    b12c9245b23816c5628b61312cb5ac216b487a539b06d3300dd39ad274a63295e7673c2f4e8bd3e2048833c45971529c14e5\
    c4c1a0c1a0c19b419bc16006c30c8619d60c6986334399a1ccf00c6386274393a1c91ac81a642d5949569275641519810ab8\
    7bf55abd41bda1de506fd54bf54ebd52af54bbdaa8f6a8356a8dda80da406d514bd4120d0e0d0a0da60180c7a810b20fd05b\
    c71094d10765dc9137e69a3c33edc41b73479e9973d2cdb8236fcc357966da8937e68e3c33e7a49b710f2ec9d9becab2a41c\
    527d6c369215d589654339a1dd652616995824831360f17bf84abd24efb09be896dc0217c92b88ad4d26";

/// Two frames of `zstd --check` 1.5.4, one for each line, and a skippable frame between them.
fn zstd() -> Vec<u8> {
    bytes(
        "28b52ffd2419c90000302c3330333536372c333538342c772c302e3030303030300aa570bee8502a4d180300000061626328b52ffd2418c10000312c35353539302c333037322c522c302e3032363231340ad67ff319",
    )
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")).collect()
}

#[test]
fn gzip_members_and_zstd_frames_are_read_as_one_text() {
    let plain = read(TEXT.as_bytes()).expect("the text is valid");
    let (first, second) = TEXT.split_at(25);
    assert_eq!(read(&[gzip(first), gzip(second)].concat()).expect("gzip"), plain);
    assert_eq!(read(&zstd()).expect("zstd"), plain);
}

#[test]
fn blocks_with_sequences_and_compressed_literals_are_read() {
    let requests = read(&bytes(COMPRESSED)).expect("zstd");
    assert_eq!(requests.len(), 200);
    for (number, request) in (0..).zip(&requests) {
        assert_eq!(
            (request.offset_bytes, request.arrival_ps),
            (number * 4_096, number * 1_000_000_000_000 + 500_000_000_000)
        );
    }
}

#[test]
fn incomplete_and_damaged_files_are_errors_behind_the_valid_lines() {
    let same = "0,8,512,r,1.5\n".repeat(40_000);
    let whole = gzip(&same);
    let all: Vec<_> = TraceReader::new(&whole[..whole.len() - 9], &Settings::default()).expect("open").collect();
    let error = all.last().and_then(|last| last.as_ref().err()).map(ToString::to_string).unwrap_or_default();
    assert!(all.len() > 1_000 && error.contains("cannot be read") && error.contains("fetch it again"), "{error}");
    for length in 5..zstd().len() {
        // A cut between the frames leaves a whole file.
        if let Ok(requests) = read(&zstd()[..length]) {
            assert_eq!(requests.len(), 1, "{length} bytes");
        }
    }
    let mut damaged = zstd();
    damaged[12] ^= 1;
    let error = read(&damaged).expect_err("the checksum is wrong").to_string();
    assert!(error.contains("checksum"), "{error}");
}

#[test]
fn a_window_beyond_the_bound_is_refused() {
    // Frame header of RFC 8878 with a window of 2^27 bytes, and an empty last block.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3, 0x01, 0x00, 0x00];
    let error = read(&frame).expect_err("the window is too large").to_string();
    assert!(error.starts_with("line 1 cannot be read"), "{error}");
}

/// Lines of SPC without end of the file in memory.
struct Lines {
    left: u64,
    number: u64,
    line: Vec<u8>,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.line.is_empty() {
            if self.left == 0 {
                return Ok(0);
            }
            (self.left, self.number) = (self.left - 1, self.number + 1);
            let block = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24 << 3;
            self.line = format!("{},{block},4096,r,{}.000001\n", self.number % 100, self.number / 1_000).into_bytes();
        }
        let length = self.line.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.line[..length]);
        self.line.drain(..length);
        Ok(length)
    }
}

#[test]
fn memory_does_not_grow_with_the_length_of_a_trace() {
    use sanloom_storage::trace::inspect::{Inspector, Limits};
    let most = |lines: u64| {
        let measured = allocation_counter::measure(|| {
            let mut reader = TraceReader::new(Lines { left: lines, number: 0, line: Vec::new() }, &Settings::default())
                .expect("the lines are valid");
            let mut inspector = Inspector::new(Limits { blocks: 1 << 12 });
            (&mut reader).for_each(|request| inspector.add(&request.expect("the line is valid")));
            let statistics = inspector.statistics(reader.devices());
            assert_eq!(statistics.requests, lines);
        });
        measured.bytes_max
    };
    let (short, long) = (most(20_000), most(160_000));
    assert!(long < 8 << 20 && long < short + (1 << 20), "{short} bytes, then {long}");
}

/// Bound of the issue for all of it: reader and statistics of the default size.
#[test]
fn a_trace_with_statistics_needs_less_than_64_mib() {
    use sanloom_storage::trace::inspect::{Inspector, Limits};
    let measured = allocation_counter::measure(|| {
        let mut reader = TraceReader::new(Lines { left: 700_000, number: 0, line: Vec::new() }, &Settings::default())
            .expect("the lines are valid");
        let mut inspector = Inspector::new(Limits::default());
        (&mut reader).for_each(|request| inspector.add(&request.expect("the line is valid")));
        let statistics = inspector.statistics(reader.devices());
        assert!(statistics.locality.sampled < 1.0, "all blocks are different, so the trace is sampled");
        let error = statistics.locality.footprint_bytes as f64 / (700_000.0 * 4_096.0) - 1.0;
        assert!(error.abs() < 0.02, "{error}");
    });
    assert!(measured.bytes_max < 64 << 20, "{}", measured.bytes_max);
}
