//! Ethernet switches, and the keys of Ethernet links.

use super::{Fallback, Form, Key, Kind, SectionDef};

const SHARE: Kind = Kind::Integer { min: 1, max: 100 };

macro_rules! shares {
    ($($path:literal),*) => {
        [$(Key {
            path: $path,
            kind: SHARE,
            fallback: Fallback::Absent("the priority is strict"),
            meaning: "Share of this priority in percent.",
            example: "50",
            also: &[],
        }),*]
    };
}

const SHARES: [Key; 8] = shares!("ets.0", "ets.1", "ets.2", "ets.3", "ets.4", "ets.5", "ets.6", "ets.7");

pub(super) const SWITCH: SectionDef = SectionDef {
    name: "ethernet_switch",
    form: Form::Named,
    meaning: "Ethernet switches, with memory that all ports share. A switch has as many ports as links. Links between the same two switches form a bundle, and a hash of the connection chooses among them and among paths of equal length; there is no spanning tree.",
    also: &["ethernet_switches", "ethernet", "eth_switch", "lan_switch", "tor"],
    keys: &[
        Key {
            path: "memory",
            kind: Kind::Size { min: 4_096, max: 1 << 40 },
            fallback: Fallback::Value("\"16MiB\""),
            meaning: "Memory for frames. What reserves and headroom leave is shared by all ports.",
            example: "\"32MiB\"",
            also: &["buffer", "buffers", "packet_memory"],
        },
        Key {
            path: "cell",
            kind: Kind::Size { min: 1, max: 4_096 },
            fallback: Fallback::Value("\"1B\""),
            meaning: "Memory is given to frames in cells of this size.",
            example: "\"208B\"",
            also: &["cells", "cell_size"],
        },
        Key {
            path: "reserve",
            kind: Kind::Size { min: 0, max: 1 << 30 },
            fallback: Fallback::Value("\"4KiB\""),
            meaning: "Memory that belongs to each port and lossless priority, or to each port with `pause`.",
            example: "\"8KiB\"",
            also: &["guarantee", "guaranteed", "xoff_reserve"],
        },
        Key {
            path: "headroom",
            kind: Kind::Size { min: 0, max: 1 << 30 },
            fallback: Fallback::Absent(
                "as much as rate and length of the link, the longest frame and the reaction to a pause need",
            ),
            meaning: "Extra memory of each port and lossless priority, or of each port with `pause`, for frames that arrive after a pause was sent. If it is too small, lossless frames are lost.",
            example: "\"40KB\"",
            also: &["xoff_headroom", "skid"],
        },
        Key {
            path: "alpha",
            kind: Kind::NumberFrom { min: 0.004 },
            fallback: Fallback::Value("0.125"),
            meaning: "A port and lossless priority pauses its sender when it holds more than this multiple of the free shared memory (dynamic threshold).",
            example: "0.5",
            also: &["dynamic_threshold", "pause_alpha"],
        },
        Key {
            path: "lossy_alpha",
            kind: Kind::NumberFrom { min: 0.004 },
            fallback: Fallback::Value("1"),
            meaning: "Frames of other priorities are dropped when the queue of their port holds more than this multiple of the free shared memory.",
            example: "8",
            also: &["drop_alpha"],
        },
        Key {
            path: "resume",
            kind: Kind::Size { min: 0, max: 1 << 30 },
            fallback: Fallback::Value("\"3KiB\""),
            meaning: "A pause ends when the port is this far below its threshold.",
            example: "\"8KiB\"",
            also: &["xon", "xon_offset"],
        },
        Key {
            path: "pfc",
            kind: Kind::Numbers { min: 0, max: 7 },
            fallback: Fallback::Value("[]"),
            meaning: "Lossless priorities: their senders are paused before memory is full (IEEE 802.1Qbb).",
            example: "[3]",
            also: &["lossless", "no_drop", "priority_pause"],
        },
        Key {
            path: "pause",
            kind: Kind::Flag,
            fallback: Fallback::Value("false"),
            meaning: "The ports pause whole links before memory is full (IEEE 802.3, annex 31B), so that all priorities are lossless and stop together. Hosts and storage at the switch do the same. Without `pause` and `pfc`, a switch and its hosts and storage ignore pauses.",
            example: "true",
            also: &["flow_control", "link_pause", "pause_802_3x"],
        },
        Key {
            path: "ets",
            kind: Kind::Table,
            fallback: Fallback::Absent("all priorities are strict, 7 before all others"),
            meaning: "Shares of priorities in percent (IEEE 802.1Qaz); their sum is 100. A priority without a share is strict and comes before those with one. The hosts and storage at the switch share their links alike.",
            example: "{ 3 = 50, 0 = 50 }",
            also: &["shares", "bandwidth", "scheduler"],
        },
        SHARES[0],
        SHARES[1],
        SHARES[2],
        SHARES[3],
        SHARES[4],
        SHARES[5],
        SHARES[6],
        SHARES[7],
        Key {
            path: "ecn",
            kind: Kind::Table,
            fallback: Fallback::Absent("no frame is marked"),
            meaning: "Marks of egress queues for congestion (ECN), when a frame enters the queue.",
            example: "{ from = \"100KB\", to = \"400KB\", chance = 0.2 }",
            also: &["red", "wred", "marking"],
        },
        Key {
            path: "ecn.from",
            kind: Kind::Size { min: 1, max: 1 << 40 },
            fallback: Fallback::Absent("`ecn` needs it"),
            meaning: "Bytes in the queue from which on frames are marked.",
            example: "\"100KB\"",
            also: &["kmin", "k", "min"],
        },
        Key {
            path: "ecn.to",
            kind: Kind::Size { min: 1, max: 1 << 40 },
            fallback: Fallback::Absent("that of `from`: a step, as DCTCP needs it"),
            meaning: "Bytes in the queue from which on every frame is marked.",
            example: "\"400KB\"",
            also: &["kmax", "max"],
        },
        Key {
            path: "ecn.chance",
            kind: Kind::Share,
            fallback: Fallback::Value("1"),
            meaning: "Chance of a mark just below `to`; it grows from 0 at `from`.",
            example: "0.2",
            also: &["pmax", "probability"],
        },
        Key {
            path: "ecn.priorities",
            kind: Kind::Numbers { min: 0, max: 7 },
            fallback: Fallback::Value("[0, 1, 2, 3, 4, 5, 6, 7]"),
            meaning: "Priorities whose queues mark frames.",
            example: "[3]",
            also: &["priority", "queues"],
        },
        Key {
            path: "mtu",
            kind: Kind::Integer { min: 68, max: 9_216 },
            fallback: Fallback::Value("9216"),
            meaning: "Largest payload of a frame in bytes; longer frames are dropped.",
            example: "1500",
            also: &["max_frame", "jumbo"],
        },
        Key {
            path: "latency",
            kind: Kind::Time,
            fallback: Fallback::Value("\"1us\""),
            meaning: "Time from the arrival of a frame until it may leave.",
            example: "\"500ns\"",
            also: &["delay"],
        },
        Key {
            path: "cut_through",
            kind: Kind::Flag,
            fallback: Fallback::Value("false"),
            meaning: "A frame may leave before its end has arrived, if its output is free and not faster.",
            example: "true",
            also: &["cutthrough", "forwarding"],
        },
    ],
};

/// Keys of an Ethernet link.
pub(super) const LINK: [Key; 3] = [
    Key {
        path: "mtu",
        kind: Kind::Integer { min: 68, max: 9_216 },
        fallback: Fallback::Absent("1500; a link between switches carries what they forward"),
        meaning: "Largest payload of the frames that the interfaces at the ends of an Ethernet link send and receive, in bytes. Between two switches, the largest that the link carries.",
        example: "9000",
        also: &["jumbo"],
    },
    Key {
        path: "vlans",
        kind: Kind::Numbers { min: 1, max: 4_094 },
        fallback: Fallback::Absent("all of them"),
        meaning: "VLANs that an Ethernet link accepts; frames of other VLANs take other links. Frames of no VLAN always pass.",
        example: "[10, 20]",
        also: &["vlan", "trunk", "allowed_vlans"],
    },
    Key {
        path: "pause_reaction",
        kind: Kind::Time,
        fallback: Fallback::Absent(
            "the worst case of the standard: 3.07 us at 10 Gb/s, 1.51 us at 40 Gb/s, 2.02 us at 100 Gb/s",
        ),
        meaning: "Time within which a paused sender on an Ethernet link may still begin a frame.",
        example: "\"500ns\"",
        also: &["reaction", "pfc_delay"],
    },
];
