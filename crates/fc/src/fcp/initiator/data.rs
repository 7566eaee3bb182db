//! Read data of an initiator.

use super::FcpInitiator;
use crate::exchange::{Accepted, SeqRx};

impl FcpInitiator {
    /// Reception state of a command's read data. `None` if the exchange takes no data (any more).
    #[inline]
    pub fn data(&mut self, ox_id: u16) -> Option<&mut SeqRx> {
        let exchange = self.exchanges.get_mut(usize::from(ox_id & self.slot_mask))?;
        (exchange.ox_id == ox_id && exchange.takes_data()).then_some(&mut exchange.rx)
    }

    /// Takes a data frame and returns its effect; a frame for an exchange that takes no data (any
    /// more) is stale. Gaps and stale frames are discarded, and counted as such.
    #[inline]
    pub fn accept_data(&mut self, ox_id: u16, seq_cnt: u16, len_bytes: u16) -> Accepted {
        let accepted = self.data(ox_id).map_or(Accepted::Stale, |rx| rx.accept(seq_cnt, len_bytes));
        if matches!(accepted, Accepted::Gap | Accepted::Stale) {
            self.discard_data();
        }
        accepted
    }

    #[cold]
    fn discard_data(&mut self) {
        self.counters.discarded_data += 1;
    }
}
