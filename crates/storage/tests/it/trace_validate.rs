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
