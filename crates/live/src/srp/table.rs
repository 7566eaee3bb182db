//! Memory descriptors of a command, and tables of them in the memory of the initiator.

use sanloom_wire::srp::{Buffer, Descriptor};

/// Longest table in bytes: 4,096 descriptors.
const MAX_TABLE_BYTES: u32 = 65_536;

/// Returns the parts of a buffer that hold its first bytes, in order. `None` if its
/// descriptors have fewer bytes, or the data are not in the memory of the initiator.
pub(super) fn parts(buffer: &Buffer, bytes: u32) -> Option<Vec<Descriptor>> {
    let list = match buffer {
        Buffer::None => &[][..],
        Buffer::Direct(descriptor) => std::slice::from_ref(descriptor),
        Buffer::Indirect { list, .. } => list,
        Buffer::Immediate(_) => return None,
    };
    let mut left = bytes;
    let mut parts = Vec::new();
    for descriptor in list {
        let length = descriptor.length.min(left);
        if length > 0 {
            parts.push(Descriptor { length, ..*descriptor });
        }
        left -= length;
    }
    (left == 0).then_some(parts)
}

/// Returns the table that has to be read, because the CMD does not have all its descriptors.
///
/// # Errors
/// The reason if the table cannot be one.
pub(super) fn missing(buffer: &Buffer) -> Result<Option<Descriptor>, &'static str> {
    let Buffer::Indirect { table, total, list } = buffer else { return Ok(None) };
    let here: u64 = list.iter().map(|descriptor| u64::from(descriptor.length)).sum();
    if here >= u64::from(*total) {
        return Ok(None);
    }
    match table.length {
        length if length == 0 || !(length as usize).is_multiple_of(Descriptor::BYTES) => {
            Err("a table of memory descriptors ends inside a descriptor")
        }
        length if length > MAX_TABLE_BYTES => Err("a table of memory descriptors has more than 64 KiB"),
        _ => Ok(Some(*table)),
    }
}

/// Replaces the descriptors of a buffer by those of its table.
pub(super) fn complete(buffer: &mut Buffer, data: &[u8]) {
    let Buffer::Indirect { list, .. } = buffer else { return };
    let entries = data.chunks_exact(Descriptor::BYTES);
    list.clear();
    list.extend(entries.filter_map(|entry| Descriptor::parse(entry, 0).ok()));
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(address: u64, length: u32) -> Descriptor {
        Descriptor { address, key: 7, length }
    }

    #[test]
    fn data_are_in_the_first_bytes_of_a_buffer() {
        let indirect = |list: &[Descriptor]| Buffer::Indirect { table: at(0, 0), total: 30, list: list.to_vec() };
        let list = [at(100, 10), at(200, 20)];
        assert_eq!(parts(&Buffer::Direct(at(1, 10)), 4), Some(vec![at(1, 4)]));
        assert_eq!(parts(&Buffer::Direct(at(1, 10)), 11), None);
        assert_eq!(parts(&indirect(&list), 12), Some(vec![at(100, 10), at(200, 2)]));
        assert_eq!(parts(&indirect(&list), 10), Some(vec![at(100, 10)]));
        assert_eq!(parts(&indirect(&list), 31), None);
        assert_eq!((parts(&Buffer::None, 0), parts(&Buffer::None, 1)), (Some(Vec::new()), None));
        assert_eq!(parts(&Buffer::Immediate(5), 5), None);
    }

    #[test]
    fn a_table_outside_the_command_is_read_and_replaces_its_descriptors() {
        let mut buffer = Buffer::Indirect { table: at(900, 32), total: 30, list: vec![at(100, 10)] };
        assert_eq!(missing(&buffer), Ok(Some(at(900, 32))));
        let entry = |address: u8, length: u8| [0, 0, 0, 0, 0, 0, 0, address, 0, 0, 0, 7, 0, 0, 0, length];
        complete(&mut buffer, &[entry(100, 10), entry(200, 20)].concat());
        assert_eq!(missing(&buffer), Ok(None));
        assert_eq!(parts(&buffer, 30), Some(vec![at(100, 10), at(200, 20)]));
        for bytes in [0, 31, MAX_TABLE_BYTES + 16] {
            let wrong = Buffer::Indirect { table: at(900, bytes), total: 30, list: Vec::new() };
            assert!(missing(&wrong).is_err(), "{bytes} bytes");
        }
    }
}
