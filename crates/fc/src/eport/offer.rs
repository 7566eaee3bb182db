//! Comparison of the neighbour's link parameters with the own ones.

use super::{EPort, Neighbour};
use crate::config::common_bb_sc_n;
use crate::isolation::Isolation;
use sanloom_scsi::time::Span;
use sanloom_wire::sw_ils::{Elp, ElpClass};

/// Result of the comparison.
pub(super) enum Offer {
    /// The parameters are compatible.
    Compatible(Neighbour),
    /// The parameters are incompatible.
    Incompatible(Isolation),
}

/// Smallest data field that a port may announce, in bytes (FC-FS).
const MIN_RECEIVE_SIZE_BYTES: u16 = 256;

impl EPort {
    /// Compares the parameters of a neighbour with the own ones. The order of the checks makes the
    /// first reject the most useful one.
    pub(super) fn evaluate(&self, elp: &Elp) -> Offer {
        let config = &self.config;
        if elp.switch_name == config.switch_name {
            return Offer::Incompatible(Isolation::Loopback);
        }
        if elp.r_a_tov_ms != milliseconds(config.r_a_tov) || elp.e_d_tov_ms != milliseconds(config.e_d_tov) {
            return Offer::Incompatible(Isolation::Timers);
        }
        if !elp.class_f.is_valid() || elp.class_f.receive_size_bytes < MIN_RECEIVE_SIZE_BYTES {
            return Offer::Incompatible(Isolation::ClassF);
        }
        let too_small =
            |class: &ElpClass| class.flags & ElpClass::VALID != 0 && class.receive_size_bytes < MIN_RECEIVE_SIZE_BYTES;
        if elp.classes.iter().any(too_small) {
            return Offer::Incompatible(Isolation::ClassN);
        }
        if !config.flow_control.contains(&elp.flow_control) {
            return Offer::Incompatible(Isolation::FlowControl);
        }
        Offer::Compatible(Neighbour {
            switch_name: elp.switch_name,
            port_name: elp.port_name,
            bb_credit: elp.bb_credit,
            receive_size_bytes: elp.class_f.receive_size_bytes,
            flow_control: elp.flow_control,
            r_a_tov: config.r_a_tov,
            e_d_tov: config.e_d_tov,
            bb_sc_n: common_bb_sc_n(config.bb_sc_n, elp.bb_sc_n),
        })
    }
}

/// Time in the unit of ELP, milliseconds.
pub(super) fn milliseconds(span: Span) -> u32 {
    u32::try_from(span.as_ms()).unwrap_or(u32::MAX)
}
