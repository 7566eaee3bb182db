//! Records of watched lines, which all planes of packets keep alike.

/// A record of a watched line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observed<K> {
    /// Number of the line.
    pub line: u32,
    /// Time of the event, in ps; that of the first bit of a frame or packet.
    pub at_ps: u64,
    pub kind: K,
}

/// Records that nobody has forgotten yet.
pub(super) struct Recorder<K>(Vec<Observed<K>>);

impl<K> Default for Recorder<K> {
    fn default() -> Recorder<K> {
        Recorder(Vec::new())
    }
}

impl<K> Recorder<K> {
    pub fn add(&mut self, line: u32, at_ps: u64, kind: K) {
        self.0.push(Observed { line, at_ps, kind });
    }

    pub fn all(&self) -> &[Observed<K>] {
        &self.0
    }

    pub fn forget(&mut self) {
        self.0.clear();
    }
}
