//! The trace format `validate`: values, and errors with line and remedy.

use sanloom_storage::trace::validate::{Record, Records, parse};

#[test]
fn a_line_becomes_a_record_in_picoseconds() {
    let record = parse(1, "R Hit    1975456   4  15362.00000  56074.00000").expect("the line is valid");
    let expected =
        Record { is_write: false, lbn: 1_975_456, blocks: 4, response_ps: 15_362_000_000, think_ps: 56_074_000_000 };
    assert_eq!(record, expected);
}

#[test]
fn errors_name_the_line_and_the_remedy() {
    let error = |text: &str| parse(7, text).expect_err("the line is invalid").to_string();
    assert_eq!(error("X Hit 1 4 1.0 1.0"), "line 7: the operation is `X`; write R or W");
    assert_eq!(error("R Hit 1 0 1.0 1.0"), "line 7: the number of blocks is `0`; write a number of at least 1");
    assert_eq!(error("R Hit 1 1 -1 1.0"), "line 7: the response time is `-1`; write microseconds from 0 to one hour");
    assert_eq!(error("R Hit -1 1 1 1.0"), "line 7: the block is `-1`; write the number of the first block");
    let columns = error("R Hit 1 4 1.0");
    assert!(columns.starts_with("line 7 has 5 columns, but the format validate has 6"), "{columns}");
}

#[test]
fn empty_lines_are_skipped_and_counted() {
    let text = "\nR Hit 1 4 1.0 1.0\n\n  \nW Hit 1 4 1.0\n";
    let records: Vec<_> = Records::new(text.as_bytes()).collect();
    assert_eq!(records.len(), 2);
    assert!(records[0].is_ok());
    let error = records[1].as_ref().expect_err("a column is missing").to_string();
    assert!(error.starts_with("line 5 "), "{error}");
}

#[test]
fn a_line_without_an_end_is_an_error_and_not_read_into_memory() {
    let endless = std::io::BufReader::new(std::io::repeat(b'7'));
    let mut records = Records::new(std::io::Read::chain("R Hit 1 4 1.0 1.0\n".as_bytes(), endless));
    assert!(records.next().is_some_and(|record| record.is_ok()));
    let counted = allocation_counter::measure(|| {
        let error = records.next().expect("an error").expect_err("the line is too long").to_string();
        assert!(error.starts_with("line 2 is longer than 4096 bytes"), "{error}");
        assert!(records.next().is_none());
    });
    assert!(counted.bytes_max < 1 << 16, "{counted:?}");
}

#[test]
fn a_line_of_the_greatest_length_is_read_and_bytes_that_are_no_text_are_an_error() {
    let record = "R Hit 1 4 1.0 1.0";
    let text = format!("{record}{}\n{record}", " ".repeat(4_095 - record.len()));
    assert_eq!(Records::new(text.as_bytes()).filter(|record| record.is_ok()).count(), 2);
    let error = Records::new(&b"R Hit 1 \xff\n"[..]).next().expect("an error").expect_err("no text");
    assert!(error.to_string().contains("line 1"), "{error}");
}
