//! Invalid frames: [`Mutator`] changes captured frames at random, from a seed.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_wire::crc::frame_crc;
use sanloom_wire::ether::ETHER_BYTES;
use sanloom_wire::fcoe;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const FCOE: [u8; 2] = [0x89, 0x06];
const FIP: [u8; 2] = [0x89, 0x14];
/// Bytes before the Fibre Channel frame, and bytes after its CRC.
const IN_FRONT: usize = ETHER_BYTES + fcoe::HEAD_BYTES;
const BEHIND_CRC: usize = fcoe::TAIL_BYTES - 4;
/// Maximum length of a sent frame, in bytes.
const MAX_BYTES: usize = 2_540;

/// The frames of a capture file (pcapng: enhanced packet blocks).
pub fn captured(path: &Path) -> Vec<Vec<u8>> {
    const ENHANCED_PACKET: u32 = 6;
    let file = fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut frames, mut at) = (Vec::new(), 0);
    while at + 12 <= file.len() {
        let len = word(at + 4) as usize;
        if word(at) == ENHANCED_PACKET {
            frames.push(file[at + 28..at + 28 + word(at + 20) as usize].to_vec());
        }
        at += len;
    }
    frames
}

/// Protocol of a frame, from its EtherType and type.
pub fn kind(frame: &[u8]) -> &'static str {
    match (frame.get(12..14), frame.get(IN_FRONT + 8)) {
        (Some(ether_type), _) if ether_type == FIP => "FIP",
        (Some(ether_type), Some(fc_type)) if ether_type == FCOE => match fc_type {
            0x01 => "ELS",
            0x08 => "FCP",
            0x20 => "CT",
            _ => "other FC",
        },
        _ => "other",
    }
}

/// Changes frames.
pub struct Mutator {
    random: Xoshiro256PlusPlus,
    /// Captured frames by protocol, so that each protocol is equally likely.
    frames: BTreeMap<&'static str, Vec<Vec<u8>>>,
}

impl Mutator {
    pub fn new(seed: u64, frames: Vec<Vec<u8>>) -> Mutator {
        let mut by_kind = BTreeMap::<&str, Vec<Vec<u8>>>::new();
        for frame in frames {
            by_kind.entry(kind(&frame)).or_default().push(frame);
        }
        Mutator { random: Xoshiro256PlusPlus::seed_from_u64(seed), frames: by_kind }
    }

    /// One of the captured frames.
    fn original(&mut self) -> Vec<u8> {
        let kind = self.below(self.frames.len());
        let frames = self.frames.values().nth(kind).map_or(0, Vec::len);
        let number = self.below(frames);
        self.frames.values().nth(kind).map_or_else(Vec::new, |frames| frames[number].clone())
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.random_range(0..bound.max(1))
    }

    /// Returns the next frame, derived from a captured one. Changed FCoE frames get a valid CRC in
    /// three of four cases, because the switch discards others without further processing.
    pub fn next(&mut self) -> Vec<u8> {
        let mut frame = self.original();
        for _ in 0..=self.below(3) {
            self.change(&mut frame);
        }
        frame.truncate(MAX_BYTES);
        if self.below(4) > 0 {
            repair(&mut frame);
        }
        frame
    }

    fn change(&mut self, frame: &mut Vec<u8>) {
        let at = self.below(frame.len());
        match self.below(9) {
            // A bit.
            0 => frame[at] ^= 1 << self.below(8),
            // Sets a byte to a boundary value.
            1 => frame[at] = [0x00, 0xff, 0x7f, 0x80, 0x01][self.below(5)],
            // A field of four bytes.
            2 => {
                let value = [0, u32::MAX, 1, 1 << 31, self.random.next_u32()][self.below(5)].to_be_bytes();
                frame[at..].iter_mut().zip(value).for_each(|(byte, new)| *byte = new);
            }
            // Truncates the frame after the addresses.
            3 => frame.truncate(at.max(ETHER_BYTES)),
            // Appends bytes.
            4 => {
                let more = self.below(300);
                frame.extend((0..more).map(|_| self.random.next_u32() as u8));
            }
            // Duplicates a part.
            5 => {
                let piece = frame[at..frame.len().min(at + 64)].to_vec();
                frame.splice(at..at, piece);
            }
            // Removes a part.
            6 => drop(frame.drain(at..frame.len().min(at + 16))),
            // Replaces the rest by that of another frame.
            7 => {
                let other = self.original();
                frame.truncate(at);
                frame.extend_from_slice(other.get(at..).unwrap_or_default());
            }
            // Replaces everything after the addresses by noise.
            _ => {
                let noise = self.random.random_range(0..200);
                frame.truncate(ETHER_BYTES);
                frame.extend((0..noise).map(|_| self.random.next_u32() as u8));
            }
        }
        // A frame has at least its addresses and EtherType.
        if frame.len() < ETHER_BYTES {
            frame.resize(ETHER_BYTES, 0);
        }
    }
}

/// Sets a valid CRC in an FCoE frame.
fn repair(frame: &mut [u8]) {
    if frame.get(12..14) != Some(&FCOE[..]) || frame.len() < IN_FRONT + fcoe::TAIL_BYTES {
        return;
    }
    let end = frame.len() - BEHIND_CRC - 4;
    let crc = frame_crc(&frame[IN_FRONT..end]).to_le_bytes();
    frame[end..end + 4].copy_from_slice(&crc);
}
