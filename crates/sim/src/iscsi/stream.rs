//! PDUs of one direction of a connection, at their positions in the stream: [`Stream`].

use super::render;
use sanloom_scsi::iscsi::Layout;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs};
use std::collections::VecDeque;

/// A PDU in a stream. The bytes of its data segment exist only if it is text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pdu {
    /// Basic header segment as it is on the wire.
    pub bhs: Bhs,
    /// Data segment of a login, a text exchange or sense data; empty for data of commands.
    pub text: Box<[u8]>,
    /// Stream position after its last byte.
    end: u64,
}

fn length(bhs: &Bhs, layout: Layout) -> u64 {
    let data_bytes = bhs.data_bytes();
    let head = BHS_BYTES + bhs.ahs_bytes() + layout.head_digest_bytes();
    head as u64 + u64::from(data_bytes) + layout.tail_bytes(data_bytes) as u64
}

/// PDUs that one end of a connection has sent and that have not arrived completely.
#[derive(Debug)]
pub(super) struct Stream {
    pdus: VecDeque<Pdu>,
    /// Stream position after the last PDU. The first byte of a stream has position 1.
    end: u64,
    /// Position up to which TCP has accepted bytes.
    pub accepted: u64,
    /// PDUs with their digests that a capture may show, if there is one.
    kept: Option<VecDeque<(Pdu, Layout)>>,
}

/// Bytes of a stream behind which no segment is on its way any more: more than any window.
const KEPT_BYTES: u64 = 1 << 26;
/// Number of PDUs that are kept beside those that have not arrived: more than are on their way
/// again.
const KEPT_PDUS: usize = 1 << 16;

impl Stream {
    /// Returns an empty stream. `keeps` lets [`Stream::bytes`] show what has been sent.
    pub fn new(keeps: bool) -> Stream {
        Stream { pdus: VecDeque::new(), end: 1, accepted: 1, kept: keeps.then(VecDeque::new) }
    }

    /// Keeps what is sent from now on, and what has not arrived yet, for [`Stream::bytes`].
    pub fn keep(&mut self, layout: Layout) {
        let pdus = || self.pdus.iter().map(|pdu| (pdu.clone(), layout)).collect();
        self.kept.get_or_insert_with(pdus);
    }

    /// Forgets what was kept, and keeps no more.
    pub fn keep_none(&mut self) {
        self.kept = None;
    }

    /// Appends a PDU.
    pub fn push(&mut self, bhs: Bhs, text: Box<[u8]>, layout: Layout) {
        self.end += length(&bhs, layout);
        let pdu = Pdu { bhs, text, end: self.end };
        if let Some(kept) = &mut self.kept {
            kept.push_back((pdu.clone(), layout));
            let most = KEPT_PDUS + self.pdus.len();
            let is_old = |(pdu, _): &(Pdu, Layout)| pdu.end + KEPT_BYTES < self.end;
            while kept.len() > most || kept.front().is_some_and(is_old) {
                kept.pop_front();
            }
        }
        self.pdus.push_back(pdu);
    }

    /// Returns `length` bytes of the stream from `position` on, as they are on the wire. Data of
    /// commands are a pattern. `None` if the stream does not keep them.
    pub fn bytes(&self, position: u64, length: u32) -> Option<Vec<u8>> {
        self.kept.as_ref()?;
        let until = position + u64::from(length);
        let mut out = Vec::with_capacity(length as usize);
        for (start, pdu, layout) in self.kept_in(position, until) {
            let range = position.max(start) - start..until.min(pdu.end) - start;
            render::pdu(pdu, layout, range.start as usize..range.end as usize, &mut out);
        }
        (out.len() == length as usize).then_some(out)
    }

    /// Returns the headers of the kept PDUs that begin within `length` bytes from `position` on.
    pub fn begun(&self, position: u64, length: u32) -> Vec<Bhs> {
        let kept = self.kept_in(position, position + u64::from(length));
        kept.filter(|(start, ..)| *start >= position).map(|(_, pdu, _)| pdu.bhs).collect()
    }

    /// Iterates over the kept PDUs of a part of the stream, with the position of each.
    fn kept_in(&self, position: u64, until: u64) -> impl Iterator<Item = (u64, &Pdu, Layout)> {
        let first = self.kept.as_ref().map_or(0, |kept| kept.partition_point(|(pdu, _)| pdu.end <= position));
        let kept = self.kept.iter().flatten().skip(first);
        let placed = kept.map(|(pdu, layout)| (pdu.end - length(&pdu.bhs, *layout), pdu, *layout));
        placed.take_while(move |(start, ..)| *start < until)
    }

    /// Returns the position after the last PDU.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the next PDU for the peer, if all bytes up to `received` have arrived there.
    pub fn take(&mut self, received: u64) -> Option<Pdu> {
        self.pdus.front().filter(|pdu| pdu.end <= received)?;
        self.pdus.pop_front()
    }

    /// Header of the next PDU for the peer, and the bytes of its data segment among those up to
    /// `received`. `None` if there are none, or if a digest judges them at the end of the PDU.
    pub fn arriving(&self, received: u64, layout: Layout) -> Option<(Bhs, u32)> {
        let pdu = self.pdus.front().filter(|_| !layout.data_digest)?;
        let data_bytes = pdu.bhs.data_bytes();
        let data = pdu.end - u64::from(data_bytes) - layout.tail_bytes(data_bytes) as u64;
        let bytes = received.checked_sub(data).filter(|bytes| *bytes > 0)?;
        Some((pdu.bhs, bytes.min(data_bytes.into()) as u32))
    }

    /// Forgets all PDUs of a lost connection.
    pub fn clear(&mut self) {
        self.pdus = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_wire::iscsi::{Head, NO_TAG, NopOut};

    fn ping(data_bytes: u32) -> Bhs {
        let ping = NopOut { lun: [0; 8], initiator_tag: 1, target_tag: NO_TAG, cmd_sn: 1, exp_stat_sn: 1 };
        Bhs(Head::with_data(ping, data_bytes).to_bytes())
    }

    #[test]
    fn a_pdu_leaves_when_its_padding_and_digest_have_arrived() {
        let mut stream = Stream::new(false);
        stream.push(ping(0), Box::default(), Layout::default());
        stream.push(ping(5), Box::default(), Layout { header_digest: true, data_digest: true });
        // 48 bytes; then 48 + 4 for the header, 5 + 3 + 4 for the data.
        assert_eq!(stream.end(), 1 + 48 + 52 + 12);
        assert_eq!(stream.take(48).map(|pdu| pdu.end), None);
        assert_eq!(stream.take(112).map(|pdu| pdu.end), Some(49));
        assert_eq!(stream.take(112).map(|pdu| pdu.end), None);
        assert_eq!(stream.take(113).map(|pdu| pdu.end), Some(113));
        assert!(stream.pdus.is_empty());
    }

    #[test]
    fn a_stream_of_small_pdus_keeps_a_bounded_number_of_them() {
        let mut stream = Stream::new(true);
        for _ in 0..2 * KEPT_PDUS {
            stream.push(ping(0), Box::default(), Layout::default());
            assert!(stream.take(stream.end()).is_some());
        }
        assert_eq!(stream.kept.as_ref().map(VecDeque::len), Some(KEPT_PDUS));
        assert!(stream.bytes(stream.end() - 48, 48).is_some() && stream.bytes(1, 48).is_none());
        stream.keep_none();
        assert!(stream.bytes(stream.end() - 48, 48).is_none());
    }
}
