//! PDUs of one direction of a connection, at their positions in the stream: [`Stream`].

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
    pub end: u64,
    /// Digests around header and data.
    pub layout: Layout,
}

impl Pdu {
    /// Returns the length in bytes with padding and digests.
    pub fn bytes(&self) -> u64 {
        length(&self.bhs, self.layout)
    }

    /// Returns the stream position of its first byte.
    pub fn start(&self) -> u64 {
        self.end - self.bytes()
    }
}

fn length(bhs: &Bhs, layout: Layout) -> u64 {
    let data_bytes = bhs.data_bytes();
    let head = BHS_BYTES + bhs.ahs_bytes() + layout.head_digest_bytes();
    head as u64 + u64::from(data_bytes) + layout.tail_bytes(data_bytes) as u64
}

/// PDUs that one end of a connection has sent and whose acknowledgement it has not received.
#[derive(Debug)]
pub(super) struct Stream {
    pdus: VecDeque<Pdu>,
    /// Number of PDUs at the front that the peer has taken.
    taken: usize,
    /// Stream position after the last PDU. The first byte of a stream has position 1.
    end: u64,
    /// Position up to which TCP has accepted bytes.
    pub accepted: u64,
}

impl Stream {
    pub fn new() -> Stream {
        Stream { pdus: VecDeque::new(), taken: 0, end: 1, accepted: 1 }
    }

    /// Appends a PDU.
    pub fn push(&mut self, bhs: Bhs, text: Box<[u8]>, layout: Layout) {
        self.end += length(&bhs, layout);
        self.pdus.push_back(Pdu { bhs, text, end: self.end, layout });
    }

    /// Returns the position after the last PDU.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the next PDU for the peer, if all bytes up to `received` have arrived there.
    pub fn take(&mut self, received: u64) -> Option<Pdu> {
        let pdu = self.pdus.get(self.taken).filter(|pdu| pdu.end <= received)?;
        self.taken += 1;
        Some(pdu.clone())
    }

    /// Forgets PDUs that the peer has taken and whose bytes are acknowledged up to `position`.
    pub fn acknowledge(&mut self, position: u64) {
        while self.taken > 0 && self.pdus.front().is_some_and(|pdu| pdu.end <= position) {
            self.pdus.pop_front();
            self.taken -= 1;
        }
    }

    /// Forgets all PDUs of a lost connection.
    pub fn clear(&mut self) {
        (self.pdus, self.taken) = (VecDeque::new(), 0);
    }

    /// Returns the PDUs with bytes in a range of positions, as far as they are kept.
    pub fn within(&self, from: u64, to: u64) -> impl Iterator<Item = &Pdu> {
        let first = self.pdus.partition_point(|pdu| pdu.end <= from);
        self.pdus.range(first..).take_while(move |pdu| pdu.start() < to)
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
        let mut stream = Stream::new();
        stream.push(ping(0), Box::default(), Layout::default());
        stream.push(ping(5), Box::default(), Layout { header_digest: true, data_digest: true });
        // 48 bytes; then 48 + 4 for the header, 5 + 3 + 4 for the data.
        assert_eq!(stream.end(), 1 + 48 + 52 + 12);
        assert_eq!(stream.take(48).map(|pdu| pdu.end), None);
        assert_eq!(stream.take(112).map(|pdu| pdu.end), Some(49));
        assert_eq!(stream.take(112).map(|pdu| pdu.end), None);
        assert_eq!(stream.take(113).map(|pdu| pdu.end), Some(113));
        assert_eq!(stream.within(1, 50).count(), 2);
        stream.acknowledge(112);
        assert_eq!(stream.within(1, 200).map(Pdu::start).collect::<Vec<_>>(), [49]);
    }
}
