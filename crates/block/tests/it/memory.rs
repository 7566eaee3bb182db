//! Comparison of memory with a byte array, and its allocated size.

use proptest::prelude::*;
use sanloom_block::{FileSpec, Memory, Ram, Source};
use sanloom_wire::pattern;

/// Five pages, and part of a sixth, in bytes.
const LEN: u64 = 5 * (64 << 10) + 100;

#[derive(Clone, Debug)]
enum Operation {
    Write { at: u64, len: u64, byte: u8 },
    Discard { at: u64, len: u64 },
    Read { at: u64, len: u64 },
}

fn operation() -> impl Strategy<Value = Operation> {
    let range = (0..LEN, 0..LEN).prop_map(|(at, len)| (at, len.min(LEN - at)));
    prop_oneof![
        (range.clone(), 1_u8..).prop_map(|((at, len), byte)| Operation::Write { at, len, byte }),
        range.clone().prop_map(|(at, len)| Operation::Discard { at, len }),
        range.prop_map(|(at, len)| Operation::Read { at, len }),
    ]
}

proptest! {
    #[test]
    fn sparse_memory_is_an_array_of_bytes(operations in prop::collection::vec(operation(), 1..40)) {
        let ram = Ram::new();
        let mut array = vec![0; LEN as usize];
        for operation in &operations {
            match *operation {
                Operation::Write { at, len, byte } => {
                    ram.write(at, &vec![byte; len as usize]);
                    array[at as usize..(at + len) as usize].fill(byte);
                }
                Operation::Discard { at, len } => {
                    ram.discard(at, len);
                    array[at as usize..(at + len) as usize].fill(0);
                }
                Operation::Read { at, len } => {
                    let mut out = vec![0xa5; len as usize];
                    ram.read(at, &mut out);
                    prop_assert!(out == array[at as usize..(at + len) as usize]);
                }
            }
        }
        // Unallocated ranges read as zeros, and the ranges of the map cover the whole memory.
        let mut at = 0;
        while at < LEN {
            let (mapped, len) = ram.mapping(at, LEN - at);
            prop_assert!(len > 0 && at + len <= LEN);
            prop_assert!(mapped || array[at as usize..(at + len) as usize].iter().all(|&byte| byte == 0));
            at += len;
        }
    }
}

#[test]
fn memory_is_allocated_on_write_and_freed_by_whole_pages() {
    let ram = Ram::new();
    let mut out = [1; 100];
    ram.read(1 << 60, &mut out);
    assert_eq!((out, ram.used_bytes()), ([0; 100], 0));
    ram.write((64 << 10) - 1, &[1, 2]);
    assert_eq!(ram.used_bytes(), 128 << 10);
    ram.discard(0, 128 << 10);
    assert_eq!((ram.used_bytes(), ram.mapping(0, u64::MAX)), (0, (false, u64::MAX)));
    ram.discard(u64::MAX - 5, 5);
}

#[test]
fn media_that_discard_writes_read_their_own_content() {
    let pattern = Memory::new(&Source::Pattern { seed: 7 }).expect("no file");
    let null = Memory::new(&Source::Null).expect("no file");
    let mut out = [9; 64];
    for medium in [&pattern, &null] {
        medium.write(0, &[1; 64]);
        medium.discard(0, 64);
        assert_eq!((medium.used_bytes(), medium.mapping(3, 61)), (0, (true, 61)));
    }
    pattern.read(5, &mut out);
    assert_eq!(pattern::first_difference(7, 5, &out), None);
    null.read(5, &mut out);
    assert_eq!(out, [0; 64]);
    let file = Source::File(FileSpec { path: "disk".into(), size_bytes: 1 << 20, sparse: true, direct: true });
    assert!(Memory::new(&file).is_none());
}
