//! Command counters of a host: [`Counted`].

use super::{Data, Host};

/// Command counters of a host. A request without data is a control request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // the names are the description
pub struct Counted {
    pub control_requests: u64,
    pub input_requests: u64,
    pub input_bytes: u64,
    pub output_requests: u64,
    pub output_bytes: u64,
}

impl Host {
    /// Counts a completed command.
    pub(super) fn count(&mut self, tag: u64, bytes: u64) {
        let Some(active) = self.commands.get_mut(tag) else { return };
        let (requests, sum) = match active.data {
            Data::None => (&mut self.counted.control_requests, None),
            Data::In { .. } | Data::Buffer { write: false, .. } => {
                (&mut self.counted.input_requests, Some(&mut self.counted.input_bytes))
            }
            Data::Out(_) | Data::Zeroes { .. } | Data::Buffer { write: true, .. } => {
                (&mut self.counted.output_requests, Some(&mut self.counted.output_bytes))
            }
        };
        *requests += 1;
        if let Some(sum) = sum {
            *sum += bytes;
        }
    }
}
