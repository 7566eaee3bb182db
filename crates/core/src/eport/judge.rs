//! Whether the link parameters of a neighbour fit ours.

use super::{EPort, Neighbour};
use crate::isolation::Isolation;
use crate::time::Span;
use sanloom_wire::sw_ils::{Elp, ElpClass};

/// What the parameters of a neighbour are worth.
pub(super) enum Offer {
    /// They fit.
    Fits(Neighbour),
    /// They do not.
    Not(Isolation),
}

/// The smallest data field that a port may announce (FC-FS).
const MIN_RECEIVE_SIZE_BYTES: u16 = 256;

impl EPort {
    /// Compares the parameters of a neighbour with ours, in the order in which their rejects are of most use.
    pub(super) fn judge(&self, elp: &Elp) -> Offer {
        let config = &self.config;
        if elp.switch_name == config.switch_name {
            return Offer::Not(Isolation::Loopback);
        }
        if elp.r_a_tov_ms != milliseconds(config.r_a_tov) || elp.e_d_tov_ms != milliseconds(config.e_d_tov) {
            return Offer::Not(Isolation::Timers);
        }
        if !elp.class_f.is_valid() || elp.class_f.receive_size_bytes < MIN_RECEIVE_SIZE_BYTES {
            return Offer::Not(Isolation::ClassF);
        }
        let too_small =
            |class: &ElpClass| class.flags & ElpClass::VALID != 0 && class.receive_size_bytes < MIN_RECEIVE_SIZE_BYTES;
        if elp.classes.iter().any(too_small) {
            return Offer::Not(Isolation::ClassN);
        }
        if !config.flow_control.contains(&elp.flow_control) {
            return Offer::Not(Isolation::FlowControl);
        }
        Offer::Fits(Neighbour {
            switch_name: elp.switch_name,
            port_name: elp.port_name,
            bb_credit: elp.bb_credit,
            receive_size_bytes: elp.class_f.receive_size_bytes,
            flow_control: elp.flow_control,
            r_a_tov: config.r_a_tov,
            e_d_tov: config.e_d_tov,
            bb_sc_n: elp.bb_sc_n,
        })
    }
}

/// A time as ELP has it.
pub(super) fn milliseconds(span: Span) -> u32 {
    u32::try_from(span.as_ms()).unwrap_or(u32::MAX)
}
