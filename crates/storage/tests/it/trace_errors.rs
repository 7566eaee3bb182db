//! Errors of traces: place, reason and remedy.

use sanloom_storage::trace::{
    BlockEvent, Format, MAX_DEVICES, MAX_LINE, Pattern, Settings, TraceError, TraceReader, TraceWriter,
};

/// Number of requests in front of the error, and its text.
fn error_with(settings: &Settings, bytes: &[u8]) -> (usize, String) {
    let reader = match TraceReader::new(bytes, settings) {
        Ok(reader) => reader,
        Err(error) => return (0, error.to_string()),
    };
    let all: Vec<Result<_, TraceError>> = reader.collect();
    let good = all.iter().take_while(|request| request.is_ok()).count();
    assert_eq!(good + 1, all.len(), "one error ends the trace");
    (good, all[good].as_ref().err().map(ToString::to_string).unwrap_or_default())
}

fn error(format: Format, text: &str) -> String {
    error_with(&Settings::of(format), text.as_bytes()).1
}

#[test]
fn a_line_that_ends_early_is_named_in_each_text_format() {
    let lines = [
        (Format::Disksim, "17.8 20 576560 6 1"),
        (Format::Validate, "R Hit 1975456 4 15362.0 56074.0"),
        (Format::Spc, "0,303567,3584,w,0.5"),
        (Format::Msr, "128166372016382155,hm,0,Read,1074696192,4096,113"),
        (Format::Alibaba, "0,R,126703644672,4096,1577808000000626"),
        (Format::Tencent, "1538323200,12910952,128,0,1063"),
        (Format::Mqsim, "11413000 0 657728 16 1"),
        (Format::Fiu, "89966180010 2297 syslogd 904265560 8 W 6 0"),
        (Format::Blkparse, "8,16 1 1 1.4 5529 Q WS 274432 + 8"),
    ];
    for (format, line) in lines {
        let cut = &line[..line.rfind([' ', ',']).expect("a separator")];
        let (good, text) = error_with(&Settings::of(format), format!("{line}\n\n{cut}").as_bytes());
        assert_eq!(good, 1, "{format:?}");
        assert!(text.starts_with("line 3 has ") && text.contains("; correct the line"), "{format:?}: {text}");
    }
}

#[test]
fn a_value_that_the_format_does_not_permit_is_shown_with_a_remedy() {
    for (format, line, expected) in [
        (Format::Disksim, "-1 0 0 1 1", "line 1: the arrival is `-1`; write a time as a decimal number of at least 0"),
        (Format::Disksim, "1 0 0 1 +1", "line 1: the flags is `+1`; write a hexadecimal number"),
        (Format::Spc, "0,1,512,x,0.5", "line 1: the operation is `x`; write R or W"),
        (Format::Spc, "0,1,512,r,nan", "line 1: the time is `nan`; write a time"),
        (Format::Msr, "1,h,0,Trim,0,512,1", "line 1: the operation is `Trim`; write Read or Write"),
        (Format::Alibaba, "0,R,x,512,1", "line 1: the offset is `x`; write a whole number"),
        (
            Format::Alibaba,
            "0,R,9223372036854775809,0,1",
            "line 1: the offset is `9223372036854775809`; write a position",
        ),
        (Format::Alibaba, "0,R,9223372036854775808,1,1", "line 1: the length is `1`; write an end of at most 2^63"),
        (Format::Tencent, "1,2,3,2,4", "line 1: the operation is `2`; write 0 for a read or 1 for a write"),
        (
            Format::Fio3,
            "fio version 2 iolog",
            "line 1: the first line is `fio version 2 iolog`; write fio version 3 iolog",
        ),
        (Format::Fio3, "fio version 3 iolog\n1 f wait 5 0", "line 2: the action is `wait`; write read, write"),
        (Format::Fio2, "fio version 2 iolog\nf unlink", "line 2: the action is `unlink`; write add, open or close"),
        (Format::Blkparse, "8,0 0 1 0.1 1 Q r 1 + 8", "line 1: the RWBS is `r`; write letters"),
    ] {
        let text = error(format, line);
        assert!(text.starts_with(expected), "{format:?}: {text}");
    }
}

#[test]
fn a_record_that_ends_early_is_named() {
    for (format, magic) in [(Format::Vscsi1, 14), (Format::Vscsi2, 2)] {
        let length = if format == Format::Vscsi1 { 32 } else { 40 };
        let mut record = vec![0; length];
        record[magic..magic + 2].copy_from_slice(if format == Format::Vscsi1 { &[0, 1] } else { &[0, 2] });
        record[if format == Format::Vscsi1 { 12 } else { 0 }] = 0x28;
        let trace = [&record[..], &record[..length - 1]].concat();
        let (good, text) = error_with(&Settings::of(format), &trace);
        assert_eq!(good, 1);
        assert!(text.starts_with(&format!("record 2 ends after {} of {length} bytes; ", length - 1)), "{text}");
        record[magic + 1] = 9;
        let text = error_with(&Settings::of(format), &record).1;
        assert!(text.starts_with("record 1: the version is `09"), "{text}");
    }
    let text = error_with(&Settings::of(Format::Blktrace), &[0x07, 0x74, 0x61, 0x65, 0]).1;
    assert!(text.starts_with("record 1 ends after 5 of 48 bytes"), "{text}");
    let text = error_with(&Settings::of(Format::Blktrace), &[1; 48]).1;
    assert!(text.starts_with("record 1: the magic number is `01010101`; write records with"), "{text}");
}

#[test]
fn a_trace_without_the_event_is_an_error_with_the_other_events() {
    let settings = Settings { event: BlockEvent::Complete, ..Settings::of(Format::Blkparse) };
    let (_, text) = error_with(&settings, b"8,0 0 1 0.1 1 Q R 1 + 8 [x]\n");
    assert_eq!(
        text,
        "none of the 1 records is a request with the event `complete`; choose another event with `--event`"
    );
}

#[test]
fn a_long_line_is_refused_before_it_is_stored() {
    let line = format!("0,8,512,r,0.{}", "1".repeat(MAX_LINE));
    let text = error(Format::Spc, &format!("0,8,512,r,0.5\n{line}\n"));
    assert!(text.starts_with("line 2 is longer than 16384 bytes; shorten it"), "{text}");
}

#[test]
fn a_request_beyond_the_window_is_an_error_with_its_distance() {
    let settings = Settings { reorder: 2, ..Settings::of(Format::Spc) };
    let (good, text) = error_with(&settings, b"0,0,512,r,3\n0,0,512,r,4\n0,0,512,r,5\n0,0,512,r,1\n");
    assert_eq!(good, 3);
    assert!(text.starts_with("line 4 is 3 s earlier than a request before it, and the reader sorts only 2"));
    assert!(text.ends_with("sort the file by time, or enlarge the reorder window"), "{text}");
}

#[test]
fn a_trace_of_more_than_213_days_is_an_error() {
    let text = error(Format::Tencent, "0,0,8,0,1\n18446745,0,8,0,1\n");
    assert!(text.starts_with("line 2 is more than 213 days after the first request"), "{text}");
}

#[test]
fn more_devices_than_the_bound_are_an_error() {
    let lines: String = (0..=MAX_DEVICES).map(|device| format!("{device},R,0,512,{device}\n")).collect();
    let text = error(Format::Alibaba, &lines);
    assert!(text.starts_with("line 65537 names a device beyond the first 65536"), "{text}");
}

#[test]
fn formats_that_cannot_be_told_apart_are_named() {
    let unknown = |text: &str| error_with(&Settings::default(), text.as_bytes()).1;
    let both = unknown("11413000 0 657728 16 1\n");
    assert!(
        both.contains("it fits disksim and mqsim; name it with `--format`, one of disksim, validate, spc"),
        "{both}"
    );
    let none = unknown("hello world\n");
    assert!(none.contains("from line 1: no format has lines such as `hello world`"), "{none}");
    let later = unknown("0,1,512,r,0.5\n0,1,512,r\n");
    assert!(later.contains("from line 2: the lines before it have the format spc, but not `0,1,512,r`"), "{later}");
    assert!(unknown("").contains("the file is empty"));
    assert!(error_with(&Settings::default(), &[0; 64]).1.contains("neither text nor records of a known format"));
}

#[test]
fn regular_expressions_are_checked_before_reading() {
    let error = |expression: &str| Pattern::new(expression).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error("(").starts_with("the regular expression is invalid: "));
    assert!(error("(?<time>1)").starts_with("the regular expression has no group `offset`; add it"));
    assert!(error("(?<when>1)").starts_with("the regular expression has an unknown group `when`; use time"));
    assert!(error("(?<time>1)(?<offset>1)(?<length>1)").contains("no group `op`"));
    assert!(error("(?<time>(a{1000}){1000})").contains("invalid"), "the size is bounded");
    let pattern = Pattern::new("(?<op>[rw]) (?<time>[0-9]+) (?<offset>[0-9]+) (?<length>[0-9]+)").ok();
    let settings = Settings { pattern: pattern.clone(), ..Settings::default() };
    let text = error_with(&settings, b"r 1 2 3\nx\n").1;
    assert!(text.starts_with("line 2: the text is `x`; write a line that matches the regular expression"), "{text}");
    let text = error_with(&Settings { pattern, ..Settings::of(Format::Spc) }, b"").1;
    assert!(text.contains("leave out one of"), "{text}");
    assert!(error_with(&Settings::of(Format::Regex), b"").1.contains("give one with `--regex`"));
}

#[test]
fn a_format_without_writer_is_refused() {
    let refused = TraceWriter::new(Vec::new(), Format::Vscsi1).err().map(|error| error.to_string());
    let expected = "traces cannot be written in the format `vscsi-1`; choose disksim, spc, msr, fio-3 or blkparse";
    assert_eq!(refused.as_deref(), Some(expected));
}
