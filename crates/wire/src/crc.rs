//! The CRC of a frame (FC-FS, frame check): CRC-32 over header, optional headers, data field and
//! fill bytes. It is the same function as in Ethernet. Delimiters are not covered.

/// Length of the CRC, in bytes.
pub const CRC_BYTES: usize = 4;

/// CRC of a frame without its delimiters.
pub fn frame_crc(frame: &[u8]) -> u32 {
    crc32fast::hash(frame)
}

/// CRC remainder of each byte value, for [`frame_crc_by_table`]. The reflected polynomial is
/// 04C11DB7.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u32;
    while byte < 256 {
        let mut crc = byte;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 != 0 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[byte as usize] = crc;
        byte += 1;
    }
    table
};

/// [`frame_crc`] computed with a table and without CRC instructions of the processor. It is the
/// baseline of benchmarks: the cost on a host whose adapter does not compute CRCs.
pub fn frame_crc_by_table(frame: &[u8]) -> u32 {
    !frame.iter().fold(u32::MAX, |register, byte| step(register, *byte))
}

/// For each most significant byte of an entry of [`TABLE`], which no two entries share: what
/// [`step_back`] adds for it.
const BACK: [u32; 256] = {
    let mut back = [0; 256];
    let mut byte = 0_u32;
    while byte < 256 {
        let entry = TABLE[byte as usize];
        back[(entry >> 24) as usize] = entry << 8 | byte;
        byte += 1;
    }
    back
};

/// Returns the register of [`frame_crc`] after one more byte. The first register has all bits set,
/// and the CRC is the complement of the last one.
pub(crate) fn step(register: u32, byte: u8) -> u32 {
    TABLE[usize::from((register & 0xff) as u8 ^ byte)] ^ register >> 8
}

/// Inverse of [`step`]: returns the register before the byte.
pub(crate) fn step_back(register: u32, byte: u8) -> u32 {
    register << 8 ^ BACK[(register >> 24) as usize] ^ u32::from(byte)
}

/// Returns the upper 16 bits of the register before two unknown bytes that led to a register. For
/// each value of the lower 16 bits, two bytes exist that lead on.
pub(crate) fn upper_before_two(register: u32) -> u32 {
    step_back(step_back(register, 0), 0) >> 16
}

/// CRC of `frame` in wire order: least-significant byte first, unlike every other field.
pub fn crc_bytes(frame: &[u8]) -> [u8; CRC_BYTES] {
    frame_crc(frame).to_le_bytes()
}

/// Appends the CRC of all bytes in `frame`.
pub fn append_crc(frame: &mut Vec<u8>) {
    let crc = crc_bytes(frame);
    frame.extend_from_slice(&crc);
}

/// Returns the frame without its CRC, or `None` if the CRC is wrong or missing.
pub fn strip_crc(frame_and_crc: &[u8]) -> Option<&[u8]> {
    let (frame, crc) = frame_and_crc.split_last_chunk::<CRC_BYTES>()?;
    (*crc == crc_bytes(frame)).then_some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_crc_32_of_the_usual_check_string() {
        assert_eq!(frame_crc(b"123456789"), 0xcbf4_3926);
        assert_eq!(frame_crc_by_table(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn follows_the_frame_with_the_least_significant_byte_first() {
        let mut frame = b"123456789".to_vec();
        append_crc(&mut frame);
        assert_eq!(frame[9..], [0x26, 0x39, 0xf4, 0xcb]);
        assert_eq!(strip_crc(&frame), Some(&b"123456789"[..]));
    }

    #[test]
    fn the_register_before_a_byte_is_found_from_the_one_behind_it() {
        let registers = [u32::MAX, 0, 0x1234_5678, 0x89ab_cdef];
        for (register, byte) in registers.into_iter().flat_map(|register| (0..=255).map(move |byte| (register, byte))) {
            assert_eq!(step_back(step(register, byte), byte), register);
            let behind = step(step(register, byte), !byte);
            assert_eq!(upper_before_two(behind), register >> 16, "{register:x} {byte:x}");
        }
        let all = b"123456789".iter().fold(u32::MAX, |register, byte| step(register, *byte));
        assert_eq!(!all, 0xcbf4_3926);
    }

    #[test]
    fn finds_every_single_bit_error() {
        let mut frame = vec![0x5a; 60];
        append_crc(&mut frame);
        for bit in 0..8 * frame.len() {
            frame[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(strip_crc(&frame), None, "bit {bit}");
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(strip_crc(&frame[..3]), None);
    }
}
