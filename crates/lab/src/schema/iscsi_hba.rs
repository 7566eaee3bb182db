//! Keys of the iSCSI adapters of hosts.

use super::{Fallback, Key, Kind};

/// Returns a key for a time that is nothing by default.
const fn cost(path: &'static str, meaning: &'static str, example: &'static str) -> Key {
    Key { path, kind: Kind::Time, fallback: Fallback::Value("\"0s\""), meaning, example, also: &[] }
}

pub(super) const ISCSI_HBA: [Key; 6] = [
    Key {
        path: "iscsi_hba",
        kind: Kind::Table,
        fallback: Fallback::Absent("the host has NICs, and `tcp_cost` is the time of TCP and iSCSI on its processor"),
        meaning: "The Ethernet interfaces of the host are iSCSI adapters, which end TCP and iSCSI themselves. The processor of an adapter handles the PDUs of one target one after the other. `tcp_cost` has no effect.",
        example: "{ per_command = \"60us\", per_pdu = \"20us\", per_kib = \"8us\", driver_per_command = \"15us\" }",
        also: &["toe", "offload_adapter"],
    },
    cost("iscsi_hba.per_command", "Time of a command in the adapter, before it leaves.", "\"60us\""),
    cost("iscsi_hba.per_pdu", "Time of a PDU in the adapter, in either direction.", "\"20us\""),
    cost("iscsi_hba.per_kib", "Time per KiB in the adapter, in either direction.", "\"8us\""),
    cost(
        "iscsi_hba.driver_per_command",
        "Time of a command in the processor of the host, before it leaves.",
        "\"15us\"",
    ),
    cost(
        "iscsi_hba.driver_per_kib",
        "Time per KiB of its data in the processor of the host, when it has ended.",
        "\"1.7us\"",
    ),
];
