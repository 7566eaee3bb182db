//! Keys of `[storage.NAME]` that make it a gateway.

use super::{Fallback, GATEWAY_MODE, GRAIN, Key, Kind};

/// Returns a key for a time that is nothing by default.
const fn cost(path: &'static str, meaning: &'static str, example: &'static str) -> Key {
    Key { path, kind: Kind::Time, fallback: Fallback::Value("\"0s\""), meaning, example, also: &[] }
}

pub(super) const GATEWAY: [Key; 11] = [
    Key {
        path: "gateway",
        kind: Kind::Table,
        fallback: Fallback::Absent("with `medium = \"volumes\"`, the defaults of its keys"),
        meaning: "The storage system is a gateway: its hosts reach it over iSCSI or SRP, and its data are on other storage systems. Only a simulation obeys these keys.",
        example: "{ host = \"router\", target_port = \"array\", forwarding = \"frame\" }",
        also: &["bridge", "router"],
    },
    Key {
        path: "gateway.forwarding",
        kind: Kind::Choice(GRAIN),
        fallback: Fallback::Value("\"command\""),
        meaning: "Data that are collected before they are passed on between hosts and Fibre Channel.",
        example: "\"frame\"",
        also: &["grain", "store_and_forward"],
    },
    Key {
        path: "gateway.mode",
        kind: Kind::Choice(GATEWAY_MODE),
        fallback: Fallback::Value("\"proxy\""),
        meaning: "N_Port with which hosts appear in the fabric.",
        example: "\"transparent\"",
        also: &["addressing", "npiv"],
    },
    Key {
        path: "gateway.host",
        kind: Kind::Text,
        fallback: Fallback::Absent("its LUNs are virtual disks"),
        meaning: "Host of the lab, or one of its ports such as `router:1`, with which the gateway logs in to the fabric. Of a host, it uses all ports, by the `policy` in `multipath` of the host.",
        example: "\"router\"",
        also: &["hba", "host_port", "initiator_port"],
    },
    Key {
        path: "gateway.target_port",
        kind: Kind::Text,
        fallback: Fallback::Absent("`host` needs it"),
        meaning: "Storage system of the lab, or one of its ports such as `array:1`. Its LUNs appear as they are at the gateway, which uses all ports of a storage system that the fabric permits.",
        example: "\"array\"",
        also: &["target", "wwpn", "array"],
    },
    Key {
        path: "gateway.hosts",
        kind: Kind::Patterns,
        fallback: Fallback::Absent("`mode = \"transparent\"` needs it"),
        meaning: "Hosts that have a virtual N_Port in transparent mode. For the host `server1` of the gateway `router` it belongs to a host `router-server1`, which is added to the lab, with a virtual N_Port at each port that the gateway uses; zones and masks may name it.",
        example: "\"server{1..4}\"",
        also: &["initiators", "clients"],
    },
    Key {
        path: "gateway.path_timeout",
        kind: Kind::Time,
        fallback: Fallback::Value("\"30s\""),
        meaning: "Time for which commands end with BUSY after the loss of the last path to `target_port`, 0 s to 600 s. Then the gateway ends the sessions and channels of the hosts that have no path, and refuses their logins until one returns.",
        example: "\"10s\"",
        also: &["dev_loss_tmo", "path_loss_timeout"],
    },
    cost(
        "gateway.per_command",
        "Processor time of a command that the gateway ends and issues again (conventional path).",
        "\"40us\"",
    ),
    cost("gateway.per_kib", "Processor time per KiB of its data.", "\"2us\""),
    cost("gateway.per_pdu", "Processor time of a PDU that is forwarded (`iscsi.forward`).", "\"8us\""),
    cost("gateway.per_kib_forwarded", "Processor time per KiB of forwarded data.", "\"500ns\""),
];
