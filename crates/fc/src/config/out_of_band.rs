//! Out-of-band virtualization: [`OutOfBand`].

use super::units::Picos;

/// Metadata server of virtual disks whose hosts send their commands straight to the back ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutOfBand {
    /// Time that a message to the server and the answer spend on the management network.
    pub round_trip: Picos,
    /// Time of the server's processor for a message.
    pub service: Picos,
    /// Number of extents that the map of a host holds.
    pub entries: u32,
    /// Time after which a message without an answer is repeated.
    pub retry: Picos,
    /// Time after which requests fail that wait for the map.
    pub give_up: Picos,
    /// Time after which a host is fenced that has not acknowledged a change.
    pub fence_after: Picos,
    /// Rate at which the data of a moved extent are copied, in bytes per second.
    pub copy_bytes_per_s: u64,
}

impl OutOfBand {
    /// Returns the time that copying takes.
    pub fn copy_time(&self, bytes: u64) -> Picos {
        let ps = u128::from(bytes) * 1_000_000_000_000 / u128::from(self.copy_bytes_per_s.max(1));
        Picos(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}
