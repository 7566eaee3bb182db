//! Connections of a switch as byte streams: PDUs with digests and padding, in pieces of any length.

use crate::forward::bed::Shapes;
use crate::forward::served::Pdu;
use sanloom_scsi::iscsi::Parameters;
use sanloom_scsi::iscsi::forward::mover::Piece;
use sanloom_scsi::iscsi::forward::{Conn, Mover};
use sanloom_scsi::random::SplitMix64;
use sanloom_wire::iscsi::{BHS_BYTES, Bhs, digest, padding};

/// One connection.
#[derive(Default)]
struct Stream {
    header_digest: bool,
    data_digest: bool,
    /// Received bytes that were not consumed, and how many of them the switch has seen.
    input: Vec<u8>,
    seen: usize,
    /// Sent bytes that do not form a whole PDU yet.
    output: Vec<u8>,
}

impl Stream {
    fn new(parameters: &Parameters) -> Stream {
        let Parameters { header_digest, data_digest, .. } = *parameters;
        Stream { header_digest, data_digest, ..Stream::default() }
    }

    fn encode(&self, (header, data): &Pdu, out: &mut Vec<u8>) {
        out.extend_from_slice(header);
        if self.header_digest {
            out.extend_from_slice(&digest::of(header));
        }
        let mut segment = data.clone();
        segment.resize(data.len() + padding(data.len() as u32) as usize, 0);
        out.extend_from_slice(&segment);
        if self.data_digest && !data.is_empty() {
            out.extend_from_slice(&digest::of(&segment));
        }
    }

    /// Decodes the first PDU, if it is complete. Its digests and padding must be right.
    fn decode(&self, bytes: &mut Vec<u8>) -> Option<Pdu> {
        let header: [u8; BHS_BYTES] = *bytes.first_chunk()?;
        let len = Bhs(header).data_bytes() as usize;
        let crc = |is: bool| if is { digest::DIGEST_BYTES } else { 0 };
        let head = BHS_BYTES + crc(self.header_digest);
        let padded = len + padding(len as u32) as usize;
        let all = head + padded + crc(self.data_digest && len > 0);
        let pdu = bytes.get(..all)?;
        if self.header_digest {
            assert_eq!(pdu[BHS_BYTES..head], digest::of(&header), "header digest");
        }
        assert!(pdu[head + len..head + padded].iter().all(|byte| *byte == 0), "padding");
        if self.data_digest && len > 0 {
            assert_eq!(pdu[head + padded..], digest::of(&pdu[head..head + padded]), "data digest");
        }
        let data = pdu[head..head + len].to_vec();
        bytes.drain(..all);
        Some((header, data))
    }
}

pub struct Streams {
    pub mover: Mover,
    /// All connections, the host's first.
    all: Vec<Stream>,
    /// Bytes for the conventional path that do not form a whole PDU yet.
    aside: Vec<u8>,
}

fn number(conn: Conn) -> usize {
    match conn {
        Conn::Host => 0,
        Conn::Back(back) => 1 + usize::from(back),
    }
}

fn conn(number: usize) -> Conn {
    number.checked_sub(1).map_or(Conn::Host, |back| Conn::Back(back as u8))
}

impl Streams {
    pub fn new(shapes: &Shapes) -> Streams {
        let mut all = vec![Stream::new(&shapes.front)];
        all.extend((0..shapes.luns).map(|_| Stream::new(&shapes.back)));
        Streams { mover: Mover::new(&shapes.front), all, aside: Vec::new() }
    }

    pub fn connect(&mut self, back: u8, parameters: &Parameters) {
        self.all[1 + usize::from(back)] = Stream::new(parameters);
        self.mover.connect(back, parameters);
    }

    /// Cuts a back end's connection. Returns true if a PDU to the host stays incomplete.
    pub fn cut(&mut self, back: u8) -> bool {
        let stream = &mut self.all[1 + usize::from(back)];
        (stream.input, stream.seen, stream.output) = (Vec::new(), 0, Vec::new());
        self.mover.disconnect(back)
    }

    /// Flips a bit of the next header, if there is one that the switch has not started to read.
    pub fn damage(&mut self, conn: Conn) -> bool {
        let half = self.mover.is_half(conn);
        let stream = &mut self.all[number(conn)];
        let there = !half && stream.seen == 0 && stream.input.len() >= BHS_BYTES;
        if there {
            stream.input[20] ^= 1;
        }
        there
    }

    /// Appends a PDU to the input of the switch.
    pub fn arrive(&mut self, from: Conn, pdu: &Pdu) {
        let stream = &mut self.all[number(from)];
        let mut bytes = std::mem::take(&mut stream.input);
        stream.encode(pdu, &mut bytes);
        stream.input = bytes;
    }

    /// Connections with bytes that the switch has not seen, or that were blocked by another one.
    pub fn readable(&self) -> impl Iterator<Item = usize> {
        let open = self.mover.is_open(Conn::Host).is_some();
        let waits = move |stream: &Stream| stream.seen < stream.input.len() || (stream.seen >= BHS_BYTES && !open);
        self.all.iter().enumerate().filter(move |(_, stream)| waits(stream)).map(|(number, _)| number)
    }

    /// Returns whether the switch has unread input.
    pub fn is_unread(&self, from: Conn) -> bool {
        let stream = &self.all[number(from)];
        stream.seen < stream.input.len()
    }

    /// Reads some bytes, together with those that were read before and not consumed.
    pub fn read(&mut self, number: usize, chance: &mut SplitMix64) -> (Conn, Vec<u8>) {
        let stream = &mut self.all[number];
        let more = stream.input.len() - stream.seen;
        let limit = [1, 60, 3000, 1 << 20][chance.index(4)];
        stream.seen += if more > 0 { 1 + chance.index(more.min(limit)) } else { 0 };
        let input = stream.input.drain(..stream.seen).collect();
        stream.seen = 0;
        (conn(number), input)
    }

    pub fn put_back(&mut self, number: usize, rest: Vec<u8>) {
        let stream = &mut self.all[number];
        stream.seen = rest.len();
        stream.input.splice(0..0, rest);
    }

    /// Appends bytes for the conventional path, and returns the PDUs that are complete.
    pub fn conventional(&mut self, bytes: &[u8]) -> Vec<Pdu> {
        self.aside.extend_from_slice(bytes);
        let mut aside = std::mem::take(&mut self.aside);
        let pdus = std::iter::from_fn(|| self.all[0].decode(&mut aside)).collect();
        self.aside = aside;
        pdus
    }

    /// Sends a PDU of the conventional path.
    pub fn send(&mut self, pdu: &Pdu) {
        let mut bytes = std::mem::take(&mut self.all[0].output);
        self.all[0].encode(pdu, &mut bytes);
        self.all[0].output = bytes;
    }

    pub fn leave(&mut self, to: Conn, pieces: &[Piece], input: &[u8]) {
        let output = &mut self.all[number(to)].output;
        pieces.iter().for_each(|piece| output.extend_from_slice(piece.bytes(input)));
    }

    pub fn take_complete(&mut self) -> Vec<(Conn, Pdu)> {
        let mut complete = Vec::new();
        for number in 0..self.all.len() {
            let mut bytes = std::mem::take(&mut self.all[number].output);
            while let Some(pdu) = self.all[number].decode(&mut bytes) {
                complete.push((conn(number), pdu));
            }
            self.all[number].output = bytes;
        }
        complete
    }
}
