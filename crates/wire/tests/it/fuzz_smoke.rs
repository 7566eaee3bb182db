//! A short fuzzing campaign on the stable toolchain: the entry points of the fuzz targets run on a
//! fixed set of pseudo-random inputs. Most inputs are damaged copies of real messages, because
//! random noise rarely passes the first length check.

const INPUTS: u64 = 20_000;

#[test]
fn pseudo_random_inputs_violate_no_invariant() {
    let seeds = seeds();
    for (target, (name, run)) in entry_points::ALL.iter().enumerate() {
        for number in 0..INPUTS {
            let input = input(target as u64 * INPUTS + number, &seeds);
            let outcome = std::panic::catch_unwind(|| run(&input));
            assert!(outcome.is_ok(), "{name}, input {number}: {input:02x?}");
        }
    }
}

/// Samples in the format of each entry point: whole frames, and payloads after a prefix.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (message, reply_to) in samples::messages() {
        let header = message.header(samples::HOST, samples::STORAGE, 1, 2);
        let mut payload = Vec::new();
        message.emit(&mut payload);
        let request = match reply_to {
            Some(sanloom_wire::ReplyTo::Els(command) | sanloom_wire::ReplyTo::SwIls(command)) => vec![command],
            Some(sanloom_wire::ReplyTo::Ct(_, command)) => command.to_be_bytes().to_vec(),
            None => vec![header.r_ctl.0, header.fc_type.0, 0, 0, 0, 0],
        };
        for prefix in [&header.to_bytes()[..], &request, &[], &[0], &[0; 2]] {
            seeds.push([prefix, &payload].concat());
        }
    }
    seeds.extend(crate::infiniband::units().into_iter().map(|(_, bytes)| bytes));
    seeds.extend(crate::infiniband::conversation());
    seeds.extend(crate::fcip::units());
    seeds.extend(nbd_samples::all().into_iter().map(|(_, unit)| unit.bytes()));
    seeds.extend(iscsi_samples::all().into_iter().map(|(_, head)| {
        let text = b"InitiatorName=iqn.2026-11.net.example:host\0CHAP_C=0x0102\0MaxBurstLength=0x1000\0";
        [&head.to_bytes()[..], text].concat()
    }));
    for file in [include_str!("golden/fip.txt"), include_str!("golden/frames.txt")] {
        for line in file.lines().filter(|line| !line.starts_with('#')) {
            let digits = line.split_once(' ').expect("label and bytes").1;
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex");
            let frame: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
            seeds.push(frame[14..].to_vec());
            seeds.push(frame);
        }
    }
    // Chassis, port, time to live, ETS, PFC, application priorities.
    let mut lldpdu = vec![0x02, 7, 4, 2, 0, 0, 0, 0, 1, 0x04, 5, 5, b'e', b't', b'h', b'0', 0x06, 2, 0, 120];
    lldpdu.extend([&[0xfe, 25, 0, 0x80, 0xc2, 9][..], &[0; 21]].concat());
    lldpdu
        .extend([0xfe, 6, 0, 0x80, 0xc2, 11, 0x88, 8, 0xfe, 11, 0, 0x80, 0xc2, 12, 0, 0x61, 0x89, 6, 0x61, 0x89, 0x14]);
    seeds.push(lldpdu);
    seeds
}

fn input(number: u64, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut random = Random(number);
    let mut input = seeds[random.below(seeds.len())].clone();
    for _ in 0..random.below(6) {
        if input.is_empty() {
            input.push(random.next() as u8);
        }
        let at = random.below(input.len());
        match random.below(5) {
            0 => input[at] = random.next() as u8,
            1 => input[at] ^= 1 << random.below(8),
            2 => input[at] = [0, 0x7f, 0x80, 0xff][random.below(4)],
            3 => input.truncate(at),
            _ => input.insert(at, random.next() as u8),
        }
    }
    input
}

/// SplitMix64: sufficient to choose inputs, and identical on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
use crate::entry_points;
use crate::iscsi_samples;
use crate::nbd_samples;
use sanloom_test_support::samples;
