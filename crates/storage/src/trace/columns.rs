//! Text formats with one request per line and fixed columns.
//!
//! | format | columns |
//! |---|---|
//! | DiskSim ASCII | arrival in ms, device, block, blocks, flags in hexadecimal (bit 0: read) |
//! | SPC | application storage unit, block, bytes, R or W, seconds; further columns are ignored |
//! | MSR Cambridge | 100 ns since 1601, host, disk, Read or Write, offset, bytes, response in 100 ns |
//! | Alibaba 2020 | device, R or W, offset, bytes, us since 1970 |
//! | Tencent CBS | s since 1970, sector, sectors, 0 (read) or 1 (write), volume |
//! | MQSim | arrival, device, sector, sectors, 0 (write) or 1 (read) |
//! | FIU | ns, process number, process, block, blocks, R or W, major, minor, hash |
//!
//! A block or sector has 512 bytes.

use super::error::{Place, TraceError};
use super::format::{MS, NS, S, US};
use super::parse::{Columns, RawRequest, duration};
use super::request::TraceOp;
use super::validate;

/// Bytes of a block.
const BLOCK: u64 = 512;

/// Picoseconds in 100 ns.
const TICK: u64 = 100 * NS;

const LETTERS: [(&str, TraceOp); 2] = [("R", TraceOp::Read), ("W", TraceOp::Write)];

/// Request, and the name of its device.
pub(super) type Parsed = Result<RawRequest, TraceError>;

/// Parses a line of DiskSim ASCII.
pub(super) fn disksim(place: Place, line: &[u8], device: &mut Vec<u8>) -> Parsed {
    let format = ("disksim", "arrival in ms, device, block, blocks, flags in hexadecimal");
    let columns = Columns::<5>::of(place, line, b' ', false, format)?;
    let flags = columns.values[4];
    let text = std::str::from_utf8(flags).unwrap_or_default();
    let number = u64::from_str_radix(text, 16).ok().filter(|_| !text.starts_with('+'));
    let number =
        number.ok_or_else(|| TraceError::value(place, "flags", flags, "a hexadecimal number, such as 1 for a read"))?;
    let op = if number & 1 == 1 { TraceOp::Read } else { TraceOp::Write };
    let mut request = RawRequest::new(columns.time(0, "arrival", MS)?, op);
    columns.whole(1, "device")?;
    device.extend_from_slice(columns.values[1]);
    request.offset_bytes = columns.size(2, "block", BLOCK)?;
    request.length_bytes = columns.size(3, "number of blocks", BLOCK)?;
    Ok(request)
}

/// Parses a line of DiskSim validate. The arrival is that of a host that starts at 0 and waits for
/// each request: `next` is advanced by response and think time.
pub(super) fn validate(place: Place, line: &[u8], next: &mut u128) -> Parsed {
    let Place::Line(number) = place else { return Err(TraceError::value(place, "record", b"", "a line of text")) };
    let text = std::str::from_utf8(line)
        .map_err(|_| TraceError::value(place, "text", line, "a line of characters of ASCII"))?;
    let record = validate::parse(number, text)?;
    let mut request = RawRequest::new(*next, if record.is_write { TraceOp::Write } else { TraceOp::Read });
    let position = |column, blocks: u64| super::parse::size(place, column, blocks, BLOCK);
    request.offset_bytes = position("block", record.lbn)?;
    request.length_bytes = position("number of blocks", record.blocks)?;
    request.response_ps = Some(record.response_ps);
    request.think_ps = Some(record.think_ps);
    *next += u128::from(record.response_ps) + u128::from(record.think_ps);
    Ok(request)
}

/// Parses a line of SPC.
pub(super) fn spc(place: Place, line: &[u8], device: &mut Vec<u8>) -> Parsed {
    let columns = Columns::<5>::of(place, line, b',', true, ("spc", "unit, block, bytes, R or W, seconds"))?;
    columns.whole(0, "application storage unit")?;
    device.extend_from_slice(columns.values[0]);
    let op = columns.word(3, "operation", &LETTERS, "R or W")?;
    let mut request = RawRequest::new(columns.time(4, "time", S)?, op);
    request.offset_bytes = columns.size(1, "block", BLOCK)?;
    request.length_bytes = columns.size(2, "length", 1)?;
    Ok(request)
}

/// Parses a line of MSR Cambridge.
pub(super) fn msr(place: Place, line: &[u8], device: &mut Vec<u8>) -> Parsed {
    let format = ("msr", "time in 100 ns, host, disk, Read or Write, offset, bytes, response in 100 ns");
    let columns = Columns::<7>::of(place, line, b',', false, format)?;
    device.extend_from_slice(columns.values[1]);
    device.push(b'_');
    columns.whole(2, "disk")?;
    device.extend_from_slice(columns.values[2]);
    let words = [("Read", TraceOp::Read), ("Write", TraceOp::Write)];
    let op = columns.word(3, "operation", &words, "Read or Write")?;
    let mut request = RawRequest::new(columns.time(0, "time", TICK)?, op);
    request.offset_bytes = columns.size(4, "offset", 1)?;
    request.length_bytes = columns.size(5, "length", 1)?;
    request.response_ps = Some(duration(place, "response time", columns.values[6], TICK)?);
    Ok(request)
}

/// Parses a line of the Alibaba block traces.
pub(super) fn alibaba(place: Place, line: &[u8], device: &mut Vec<u8>) -> Parsed {
    let columns = Columns::<5>::of(place, line, b',', false, ("alibaba", "device, R or W, offset, bytes, us"))?;
    columns.whole(0, "device")?;
    device.extend_from_slice(columns.values[0]);
    let op = columns.word(1, "operation", &LETTERS, "R or W")?;
    let mut request = RawRequest::new(columns.time(4, "time", US)?, op);
    request.offset_bytes = columns.size(2, "offset", 1)?;
    request.length_bytes = columns.size(3, "length", 1)?;
    Ok(request)
}

/// Parses a line of Tencent CBS.
pub(super) fn tencent(place: Place, line: &[u8], device: &mut Vec<u8>) -> Parsed {
    let columns = Columns::<5>::of(place, line, b',', false, ("tencent", "s, sector, sectors, 0 or 1, volume"))?;
    columns.whole(4, "volume")?;
    device.extend_from_slice(columns.values[4]);
    let words = [("0", TraceOp::Read), ("1", TraceOp::Write)];
    let op = columns.word(3, "operation", &words, "0 for a read or 1 for a write")?;
    let mut request = RawRequest::new(columns.time(0, "time", S)?, op);
    request.offset_bytes = columns.size(1, "sector", BLOCK)?;
    request.length_bytes = columns.size(2, "number of sectors", BLOCK)?;
    Ok(request)
}

/// Parses a line of MQSim.
pub(super) fn mqsim(place: Place, line: &[u8], unit_ps: u64, device: &mut Vec<u8>) -> Parsed {
    let columns = Columns::<5>::of(place, line, b' ', false, ("mqsim", "arrival, device, sector, sectors, 0 or 1"))?;
    columns.whole(1, "device")?;
    device.extend_from_slice(columns.values[1]);
    let words = [("0", TraceOp::Write), ("1", TraceOp::Read)];
    let op = columns.word(4, "operation", &words, "0 for a write or 1 for a read")?;
    let mut request = RawRequest::new(columns.time(0, "arrival", unit_ps)?, op);
    request.offset_bytes = columns.size(2, "sector", BLOCK)?;
    request.length_bytes = columns.size(3, "number of sectors", BLOCK)?;
    Ok(request)
}

/// Parses a line of FIU. The hash of the content is optional.
pub(super) fn fiu(place: Place, line: &[u8], device: &mut Vec<u8>) -> Parsed {
    let format = ("fiu", "ns, process number, process, block, blocks, R or W, major, minor, hash");
    let columns = Columns::<8>::of(place, line, b' ', true, format)?;
    let op = columns.word(5, "operation", &LETTERS, "R or W")?;
    let mut request = RawRequest::new(columns.time(0, "time", NS)?, op);
    columns.whole(6, "major number")?;
    columns.whole(7, "minor number")?;
    device.extend_from_slice(columns.values[6]);
    device.push(b',');
    device.extend_from_slice(columns.values[7]);
    request.offset_bytes = columns.size(3, "block", BLOCK)?;
    request.length_bytes = columns.size(4, "number of blocks", BLOCK)?;
    Ok(request)
}
