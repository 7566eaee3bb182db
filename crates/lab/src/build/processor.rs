//! Processors of hosts.

use crate::element::Element;
use crate::schema;
use sanloom_fc::config::{AdapterProcessor, ChannelCost, DriverCost, HostProcessor, IscsiHba, Picos, StackCost};

/// Returns the processor of a host and the costs of I/O on it.
pub(super) fn processor(e: &Element<'_>) -> HostProcessor {
    let default = HostProcessor::default();
    let time = |path: &str| e.time(path).unwrap_or(Picos::ZERO);
    let millionths = |path: &str| (e.number(path).unwrap_or(0.0) * 1e6).round() as u32;
    HostProcessor {
        cores: e.integer("processor.cores").unwrap_or(default.cores),
        affinity: e.choice("processor.affinity", schema::AFFINITIES).unwrap_or(default.affinity),
        lock_share_ppm: millionths("processor.lock_share"),
        coherence_share_ppm: millionths("processor.coherence_share"),
        fc: DriverCost {
            per_command: time("fc_cost.per_command"),
            per_kib_read: time("fc_cost.per_kib_read"),
            per_kib_written: time("fc_cost.per_kib_written"),
        },
        tcp: StackCost {
            per_command: time("tcp_cost.per_command"),
            per_segment_received: time("tcp_cost.per_segment_received"),
            per_segment_sent: time("tcp_cost.per_segment_sent"),
            batch_bytes: e.size("tcp_cost.batch").unwrap_or(0) as u32,
            copy_received: time("tcp_cost.copy_received"),
            copy_sent: time("tcp_cost.copy_sent"),
            checksum: time("tcp_cost.checksum"),
            interrupt: time("tcp_cost.interrupt"),
            interrupt_gap: time("tcp_cost.interrupt_gap"),
            interrupt_frames: e.integer("tcp_cost.interrupt_frames").unwrap_or(1),
        },
        ipoib: super::ipoib::cost(e),
        srp: ChannelCost { per_command: time("srp_cost.per_command"), per_completion: time("srp_cost.per_completion") },
        hba: AdapterProcessor {
            per_read: time("hba_processor.per_read"),
            per_write: time("hba_processor.per_write"),
            per_kib: time("hba_processor.per_kib"),
        },
        iscsi_hba: e.has_table("iscsi_hba").then(|| IscsiHba {
            per_command: time("iscsi_hba.per_command"),
            per_pdu: time("iscsi_hba.per_pdu"),
            per_kib: time("iscsi_hba.per_kib"),
            driver_per_command: time("iscsi_hba.driver_per_command"),
            driver_per_kib: time("iscsi_hba.driver_per_kib"),
        }),
    }
}
