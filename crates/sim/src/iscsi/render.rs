//! PDUs as bytes, for captures.

use super::stream::Pdu;
use sanloom_scsi::iscsi::Layout;
use sanloom_wire::iscsi::{Bhs, Opcode, at, digest};
use sanloom_wire::pattern;
use std::ops::Range;

/// Appends a part of a PDU to `out`.
pub(super) fn pdu(pdu: &Pdu, layout: Layout, range: Range<usize>, out: &mut Vec<u8>) {
    let mut head = pdu.bhs.0.to_vec();
    head.resize(head.len() + pdu.bhs.ahs_bytes(), 0);
    if layout.head_digest_bytes() > 0 {
        head.extend(digest::of(&head));
    }
    let data_bytes = pdu.bhs.data_bytes() as usize;
    let data_end = head.len() + data_bytes;
    let end = data_end + layout.tail_bytes(data_bytes as u32);
    let part = |of: Range<usize>| {
        let cut = range.start.max(of.start)..range.end.min(of.end);
        (cut.start < cut.end).then(|| cut.start - of.start..cut.end - of.start)
    };
    if let Some(part) = part(0..head.len()) {
        out.extend_from_slice(&head[part]);
    }
    if let Some(part) = part(head.len()..data_end) {
        data(pdu, part, out);
    }
    if let Some(part) = part(data_end..end) {
        let mut all = Vec::with_capacity(end);
        data(pdu, 0..data_bytes, &mut all);
        all.resize(data_bytes.next_multiple_of(4), 0);
        if layout.data_digest && data_bytes > 0 {
            all.extend(digest::of(&all));
        }
        out.extend_from_slice(&all[data_bytes..][part]);
    }
}

/// Appends a part of the data segment.
fn data(pdu: &Pdu, range: Range<usize>, out: &mut Vec<u8>) {
    if !pdu.text.is_empty() {
        return out.extend_from_slice(&pdu.text[range]);
    }
    let at = out.len();
    out.resize(at + range.len(), 0);
    pattern::fill(
        pdu.bhs.initiator_tag().wrapping_mul(0x9e37_79b1),
        offset(&pdu.bhs) + range.start as u64,
        &mut out[at..],
    );
}

/// Returns the offset of the data segment in the data of its command.
fn offset(pdu: &Bhs) -> u64 {
    match pdu.opcode() {
        Opcode::DATA_IN | Opcode::DATA_OUT => pdu.word(at::OFFSET).into(),
        _ => 0,
    }
}
