//! Links between the machines, and the wire codecs.

use super::{Event, LATENCY, Packet, World};
use sanloom_fc::exchange::SeqTx;
use sanloom_scsi::time::Span;
use sanloom_wire::{FcId, Frame, Header, Message, Payload};

impl World {
    pub(super) fn send(&mut self, from: usize, frame: Frame) {
        if let Payload::Bytes(bytes) = &frame.payload
            && sanloom_wire::RCtl::SOLICITED_DATA == frame.header.r_ctl
        {
            let packet = Packet::Data { header: frame.header, len: bytes.len() as u16, tag: 0 };
            return self.send_to_switch(from, packet);
        }
        let frame = self.through_the_codecs(frame);
        let tag = match frame.payload {
            Payload::Typed(Message::FcpCmnd(_)) => self.nodes[from].sent.get(&frame.header.ox_id).copied(),
            _ => None,
        };
        self.send_to_switch(from, Packet::Message(frame, tag));
    }

    pub(super) fn transmit(&mut self, from: usize, mut sequence: SeqTx, tag: u64) {
        while let Some(data) = sequence.next_frame() {
            let header = sequence.header(&data);
            assert_eq!(header.parameter, u32::from(data.seq_cnt) * u32::from(sequence.frame_size_bytes()));
            self.send_to_switch(from, Packet::Data { header, len: data.len, tag });
        }
    }

    fn send_to_switch(&mut self, from: usize, packet: Packet) {
        if self.nodes[from].link_up {
            self.cross_link(packet, move |packet| Event::ToSwitch(from, packet));
        }
    }

    pub(super) fn send_to_node(&mut self, to: usize, packet: Packet) {
        if self.nodes[to].link_up {
            self.cross_link(packet, move |packet| Event::ToNode(to, packet));
        }
    }

    fn cross_link(&mut self, packet: Packet, arrival: impl FnOnce(Packet) -> Event) {
        let roll = self.random.below(1000);
        let jitter = self.random.below(self.links.jitter.as_ns() + 1);
        let broken = self.links.broken_at <= self.now && self.now < self.links.healed_at;
        if broken && roll < u64::from(self.links.lost_per_mille) {
            self.lost += 1;
            return;
        }
        self.schedule(self.now + LATENCY + Span::from_ns(jitter), arrival(packet));
    }

    /// Encodes and parses a message as a live driver does; the result must be equal.
    pub(super) fn through_the_codecs(&mut self, frame: Frame) -> Frame {
        let Payload::Typed(message) = &frame.payload else {
            return frame;
        };
        let header = frame.header;
        if let Some(key) = message.reply_key() {
            self.requests.insert((header.s_id, header.ox_id), key);
        }
        // The accept of FLOGI is addressed to an address that the requester did not have before.
        let requester = if header.s_id == FcId::F_PORT { FcId::ZERO } else { header.d_id };
        let reply_to = self.requests.get(&(requester, header.ox_id)).copied();
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let parsed = Message::parse(&header, &bytes, reply_to).expect("our own message parses");
        assert_eq!(&parsed, message, "{header}");
        assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
        if let Some(log) = &mut self.log {
            log.push(format!("{} {header} {message}", self.now));
        }
        frame
    }
}
