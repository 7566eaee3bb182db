//! Hash that identifies a study: [`Fnv`].

/// FNV-1a with 64 bits (G. Fowler, L. C. Noll, K.-P. Vo). It is the same on every machine and in
/// every version of Rust; the standard library does not promise that for its hashes.
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv::new()
    }
}

impl Fnv {
    pub fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a text with its length, which distinguishes "ab", "c" from "a", "bc".
    pub fn add(&mut self, part: &str) {
        let length = (part.len() as u64).to_le_bytes();
        for byte in length.iter().chain(part.as_bytes()) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Returns the hash as 16 hexadecimal digits.
    pub fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}
