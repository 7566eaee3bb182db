//! PDUs of one direction of a connection, at their positions in the stream: [`Stream`].

use sanloom_scsi::iscsi::Layout;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs};
use std::collections::VecDeque;

/// A PDU in a stream. The bytes of its data segment exist only if it is text.
#[derive(PartialEq, Eq, Debug)]
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
}

impl Stream {
    pub fn new() -> Stream {
        Stream { pdus: VecDeque::new(), end: 1, accepted: 1 }
    }

    /// Appends a PDU.
    pub fn push(&mut self, bhs: Bhs, text: Box<[u8]>, layout: Layout) {
        self.end += length(&bhs, layout);
        self.pdus.push_back(Pdu { bhs, text, end: self.end });
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
        let mut stream = Stream::new();
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
}
