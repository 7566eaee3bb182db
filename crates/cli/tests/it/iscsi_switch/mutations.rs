//! Invalid PDUs: [`Mutator`] changes the PDUs of a session at random, from a seed.

use crate::iscsi::raw::pdu;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const HEAD_BYTES: usize = 48;

/// PDUs of a host in full feature phase, starting at this command number: commands with and without
/// data, solicited and unsolicited data, text, task management, pings, and a logout.
pub fn script(number: u32) -> Vec<Vec<u8>> {
    let word = u32::to_be_bytes;
    let cdb = |opcode: u8, blocks: u8| [opcode, 0, 0, 0, 0, 16, 0, 0, blocks, 0];
    let data = |bytes: usize| vec![0x6b; bytes];
    #[rustfmt::skip]
    let commands: [(u8, u32, Vec<u8>, Vec<u8>); 9] = [
        (0x81, 0, vec![0; 6], vec![]),
        (0xc1, 64 << 10, cdb(0x28, 128).to_vec(), vec![]),
        (0xa1, 4 << 10, cdb(0x2a, 8).to_vec(), data(4 << 10)),
        // Its data are solicited by R2T.
        (0xa1, 64 << 10, cdb(0x2a, 128).to_vec(), vec![]),
        // Its data follow unsolicited.
        (0x21, 8 << 10, cdb(0x2a, 16).to_vec(), data(4 << 10)),
        (0xa1, 1 << 10, vec![0x89, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0], data(1 << 10)),
        (0xc1, 255, vec![0x12, 1, 0x83, 0, 255, 0], vec![]),
        (0xc1, 32, vec![0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32], vec![]),
        (0xc1, 96, vec![0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 96, 0, 0], vec![]),
    ];
    let mut all: Vec<Vec<u8>> = (number..)
        .zip(&commands)
        .map(|(number, (flags, bytes, cdb, data))| {
            let fields: [(usize, &[u8]); 5] =
                [(0, &[0x01, *flags]), (16, &word(number)), (20, &word(*bytes)), (24, &word(number)), (32, cdb)];
            pdu(&fields, data)
        })
        .collect();
    let next = number + commands.len() as u32;
    let unasked: [(usize, &[u8]); 4] =
        [(0, &[0x05, 0x80]), (16, &word(number + 4)), (20, &[0xff; 4]), (40, &word(4 << 10))];
    all.insert(5, pdu(&unasked, &data(4 << 10)));
    let asked: [(usize, &[u8]); 3] = [(0, &[0x05, 0x80]), (16, &word(number + 3)), (20, &word(1))];
    all.push(pdu(&asked, &data(64 << 10)));
    all.push(pdu(&[(0, &[0x40, 0x80]), (16, &word(0x1000)), (20, &[0xff; 4]), (24, &word(next))], b"ping"));
    all.push(pdu(&[(0, &[0x44, 0x80]), (16, &word(0x1001)), (20, &[0xff; 4]), (24, &word(next))], b"SendTargets=\0"));
    for (tag, function) in (0x1010_u32..).zip([1_u8, 2, 3, 4, 5, 6, 7, 8]) {
        let fields: [(usize, &[u8]); 4] =
            [(0, &[0x42, 0x80 | function]), (16, &word(tag)), (20, &word(number + 3)), (24, &word(next))];
        all.push(pdu(&fields, &[]));
    }
    all.push(pdu(&[(0, &[0x10, 0x80]), (16, &word(number + 1)), (20, &[0xff; 4])], &[]));
    all.push(pdu(&[(0, &[0x46, 0x80]), (16, &word(0x1002)), (24, &word(next))], &[]));
    all
}

/// Generator of changed PDUs.
pub struct Mutator(Xoshiro256PlusPlus);

impl Mutator {
    pub fn new(seed: u64) -> Mutator {
        Mutator(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound.max(1))
    }

    /// Returns this number of PDUs of a session: the script unchanged up to the first changed PDU,
    /// and random PDUs after it.
    pub fn session(&mut self, script: &[Vec<u8>], count: usize) -> Vec<Vec<u8>> {
        let mut all = script[..self.below(script.len() - 1)].to_vec();
        while all.len() < count {
            let mut pdu = script[self.below(script.len())].clone();
            if self.below(3) > 0 {
                self.change(&mut pdu);
            }
            all.push(pdu);
        }
        all
    }

    /// First requests of logins.
    pub fn logins(&mut self, login: &[u8]) -> Vec<Vec<u8>> {
        (0..100)
            .map(|_| {
                let mut pdu = login.to_vec();
                self.change(&mut pdu);
                pdu
            })
            .collect()
    }

    fn change(&mut self, pdu: &mut Vec<u8>) {
        for _ in 0..=self.below(2) {
            match self.below(10) {
                // Changes a bit or a byte of the header.
                0 | 1 => {
                    let at = self.below(HEAD_BYTES);
                    pdu[at] ^= 1 << self.below(8);
                }
                2 | 3 => {
                    let at = self.below(HEAD_BYTES);
                    pdu[at] = self.0.next_u32() as u8;
                }
                // Changes a field: tags, lengths, numbers, offsets.
                4 | 5 => {
                    let at = 16 + 4 * self.below(8);
                    let value = [0, u32::MAX, 1, 1 << 31, 0x1000, self.0.next_u32()][self.below(6)];
                    pdu[at..at + 4].copy_from_slice(&value.to_be_bytes());
                }
                // Changes the length of the segment, slightly or greatly.
                6 => {
                    let value = [1, 3, 512, 4 << 10, 0x03_ffff, 0x04_0001, 0xff_ffff][self.below(7)];
                    pdu[5..8].copy_from_slice(&u32::to_be_bytes(value)[1..]);
                }
                // Announces additional headers that do not exist.
                7 => pdu[4] = [1, 2, 5, 255][self.below(4)],
                // Truncates the PDU.
                8 => {
                    let len = HEAD_BYTES + self.below(pdu.len() - HEAD_BYTES + 1);
                    pdu.truncate(len);
                }
                // Appends noise.
                _ => {
                    let more = self.below(120);
                    pdu.extend((0..more).map(|_| self.0.next_u32() as u8));
                }
            }
        }
    }
}
