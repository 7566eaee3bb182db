//! Sections of the fabric: timers and links.

use super::ethernet::LINK as LINK_KEYS;
use super::fcip::FCIP;
use super::infiniband::LINK as INFINIBAND;
use super::live::ETHERNET;
use super::{Fallback, Form, Key, Kind, SPREAD, SectionDef};

pub(super) const TIMERS: SectionDef = SectionDef {
    name: "timers",
    form: Form::Single,
    meaning: "Timers of the whole fabric.",
    also: &["timer", "timeouts"],
    keys: &[
        Key {
            path: "e_d_tov",
            kind: Kind::Time,
            fallback: Fallback::Value("\"2s\""),
            meaning: "Error detect timeout: a port without credit for this long resets its link.",
            example: "\"2s\"",
            also: &["ed_tov", "edtov"],
        },
        Key {
            path: "r_a_tov",
            kind: Kind::Time,
            fallback: Fallback::Value("\"10s\""),
            meaning: "Resource allocation timeout: how long an exchange number stays out of use after an abort.",
            example: "\"10s\"",
            also: &["ra_tov", "ratov"],
        },
        Key {
            path: "hold_time",
            kind: Kind::Time,
            fallback: Fallback::Value("\"500ms\""),
            meaning: "A frame that waits longer in a switch is discarded.",
            example: "\"500ms\"",
            also: &["edge_hold_time"],
        },
        Key {
            path: "f_s_tov",
            kind: Kind::Time,
            fallback: Fallback::Value("\"5s\""),
            meaning: "Fabric stability timeout: how long switches wait for each other before they agree on a principal switch.",
            example: "\"5s\"",
            also: &["fs_tov", "fabric_stability"],
        },
        Key {
            path: "fspf_hello",
            kind: Kind::Time,
            fallback: Fallback::Value("\"20s\""),
            meaning: "Period of the HLO messages by which path selection detects neighbours.",
            example: "\"20s\"",
            also: &["hello", "hello_interval"],
        },
        Key {
            path: "fspf_dead",
            kind: Kind::Time,
            fallback: Fallback::Value("\"80s\""),
            meaning: "Time without an HLO after which path selection considers a neighbour down. A link without light is down at once.",
            example: "\"80s\"",
            also: &["dead", "dead_interval"],
        },
        Key {
            path: "rscn_delay",
            kind: Kind::Time,
            fallback: Fallback::Value("\"5ms\""),
            meaning: "State changes within this time share one notification (RSCN).",
            example: "\"5ms\"",
            also: &["rscn"],
        },
    ],
};

const RATE: Key = Key {
    path: "rate",
    kind: Kind::LinkRate,
    fallback: Fallback::Value("\"16GFC\""),
    meaning: "Speed of the line. With a rate of Ethernet or InfiniBand, the link is one of Ethernet or InfiniBand: its ends are switches of that kind and interfaces of hosts and storage.",
    example: "\"2GFC\"",
    also: &["speed", "bandwidth"],
};

const LENGTH: Key = Key {
    path: "length",
    kind: Kind::Length,
    fallback: Fallback::Value("\"10m\""),
    meaning: "Length of the fibre; light takes 5 ns for a metre.",
    example: "\"50m\"",
    also: &["distance", "cable"],
};

const COUNT: Key = Key {
    path: "count",
    kind: Kind::Integer { min: 1, max: 4_096 },
    fallback: Fallback::Value("1"),
    meaning: "Number of parallel links between each pair of ends.",
    example: "2",
    also: &["number", "n"],
};

const CREDITS: Key = Key {
    path: "credits",
    kind: Kind::Integer { min: 1, max: 65_535 },
    fallback: Fallback::Absent("`buffers` of a switch, `frame_buffers` of a host or storage"),
    meaning: "Receive buffers in frames at both ends of this link.",
    example: "64",
    also: &["buffers", "bb_credit", "credit"],
};

const BB_SC_OF_LINK: Key = Key {
    path: "bb_sc",
    kind: Kind::Integer { min: 0, max: 15 },
    fallback: Fallback::Absent("`bb_sc` of the nodes at its ends"),
    meaning: "Credit recovery (BB_SC_N) of both ends of this link; 0: none.",
    example: "8",
    also: &["bb_sc_n", "bbscn", "credit_recovery"],
};

pub(super) const SPREAD_KEY: Key = Key {
    path: "spread",
    kind: Kind::Choice(SPREAD),
    fallback: Fallback::Value("\"blocks\""),
    meaning: "Distribution of the longer of two ranges over the shorter one.",
    example: "\"round-robin\"",
    also: &["distribute", "distribution"],
};

pub(super) const LOOP: SectionDef = SectionDef {
    name: "loop",
    form: Form::Named,
    meaning: "Arbitrated loops (FC-AL), as in a hub or an enclosure of disks. Each `[[link]]` to a loop adds a port; words pass the ports in the order of their numbers. All links of a loop have the same rate, at most 8GFC. A link to a switch makes its port an FL_Port and the loop a public one, whose ports log in with the fabric. Ports of a private loop reach each other without zones.",
    also: &["loops", "fc_al", "hub", "arbitrated_loop"],
    keys: &[
        Key {
            path: "delay_words",
            kind: Kind::Integer { min: 1, max: 1_000 },
            fallback: Fallback::Value("6"),
            meaning: "Delay of a word in each port, in words of four bytes: 6 in FC-AL, 12 in later editions.",
            example: "12",
            also: &["delay", "latency"],
        },
        Key {
            path: "login_credit",
            kind: Kind::Integer { min: 0, max: 255 },
            fallback: Fallback::Value("0"),
            meaning: "Frames that each port accepts in a circuit before its first R_RDY. With 0, the first frame waits one more trip round the loop.",
            example: "2",
            also: &["credit", "bb_credit"],
        },
        Key {
            path: "firmware",
            kind: Kind::Time,
            fallback: Fallback::Value("\"0s\""),
            meaning: "Time of each port's firmware for each frame of the loop initialisation.",
            example: "\"500us\"",
            also: &["initialisation"],
        },
        Key {
            path: "unfair",
            kind: Kind::Patterns,
            fallback: Fallback::Absent("every port waits until all others have had their turn"),
            meaning: "Hosts and storage whose ports arbitrate again at once (without the access fairness algorithm).",
            example: "[\"server1\"]",
            also: &["no_fairness"],
        },
        Key {
            path: "transfers",
            kind: Kind::Patterns,
            fallback: Fallback::Absent("every port closes its circuit after each request"),
            meaning: "Hosts and storage whose ports open the next port without a new arbitration if no other port arbitrates.",
            example: "[\"array\"]",
            also: &["transfer"],
        },
        Key {
            path: "private",
            kind: Kind::Patterns,
            fallback: Fallback::Absent("every port logs in to the fabric of the FL_Port"),
            meaning: "Hosts and storage whose ports stay private on a loop with an FL_Port. A private port sends no FLOGI, and its address is its AL_PA (0000xx). It is in no name server, and exchanges frames with the private ports of its loop only, without zones.",
            example: "[\"scanner\", \"disk9\"]",
            also: &["private_ports"],
        },
    ],
};

pub(super) const LINK: SectionDef = SectionDef {
    name: "link",
    form: Form::List,
    meaning: "Links from hosts and storage to switches and loops, or from a host to storage directly. Ranges of equal length are joined one to one. One name is joined to all names of a range. Otherwise the longer range must be a multiple of the shorter one, and `spread` selects its distribution. A name alone uses the next free port of its node; `name:1` is port 1 (ports, HBAs and LUNs are numbered from 0). Interfaces of Ethernet and of InfiniBand of hosts and storage are numbered apart from HBAs and Fibre Channel ports; each has a link.",
    also: &["links", "cable", "connection", "edge"],
    keys: &[
        Key {
            path: "from",
            kind: Kind::Pattern,
            fallback: Fallback::Required,
            meaning: "One end: a host, storage system, switch or loop; of a link of Ethernet or InfiniBand, a switch of that kind, a host or a storage system.",
            example: "\"server{1..4}\"",
            also: &["a", "source", "host"],
        },
        Key {
            path: "to",
            kind: Kind::Pattern,
            fallback: Fallback::Required,
            meaning: "The other end.",
            example: "\"edge1\"",
            also: &["b", "switch", "target"],
        },
        RATE,
        LENGTH,
        COUNT,
        CREDITS,
        BB_SC_OF_LINK,
        Key {
            path: "name",
            kind: Kind::Pattern,
            fallback: Fallback::Absent("the names of both ends, such as `server1-edge1` or `server1:1-edge2`"),
            meaning: "Names of the links, as many as there are.",
            example: "\"cable{1..4}\"",
            also: &["names", "label"],
        },
        SPREAD_KEY,
        LINK_KEYS[0],
        LINK_KEYS[1],
        LINK_KEYS[2],
        INFINIBAND[0],
        ETHERNET[0],
        ETHERNET[1],
        ETHERNET[2],
        ETHERNET[3],
        ETHERNET[4],
        ETHERNET[5],
        ETHERNET[6],
        ETHERNET[7],
        ETHERNET[8],
        ETHERNET[9],
    ],
};

pub(super) const ISL: SectionDef = SectionDef {
    name: "isl",
    form: Form::List,
    meaning: "Links between switches. Ranges work as in `[[link]]`.",
    also: &["isls", "trunk", "interswitch"],
    keys: &[
        Key {
            path: "from",
            kind: Kind::Pattern,
            fallback: Fallback::Required,
            meaning: "One switch, or a range of them.",
            example: "\"edge{1..4}\"",
            also: &["a", "source"],
        },
        Key {
            path: "to",
            kind: Kind::Pattern,
            fallback: Fallback::Required,
            meaning: "The other switch, or a range of them.",
            example: "\"core\"",
            also: &["b", "target"],
        },
        RATE,
        LENGTH,
        COUNT,
        CREDITS,
        BB_SC_OF_LINK,
        Key {
            path: "bundle",
            kind: Kind::Flag,
            fallback: Fallback::Value("false"),
            meaning: "All links of the table between the same two switches form one trunk: frames are distributed over them and arrive in order. Either `count` gives their number, or both ends have a range of ports such as `edge1:{8..10}` or `edge1:{8,9,12}`; the ports are paired in order.",
            example: "true",
            also: &["trunk", "port_channel", "lag"],
        },
        Key {
            path: "name",
            kind: Kind::Pattern,
            fallback: Fallback::Absent("`ISL1`, `ISL2`, … in the order of the file"),
            meaning: "Names of the links, as many as there are.",
            example: "\"ISL{1..8}\"",
            also: &["names", "label"],
        },
        SPREAD_KEY,
        LINK_KEYS[0],
        LINK_KEYS[1],
        LINK_KEYS[2],
        INFINIBAND[0],
        ETHERNET[0],
        ETHERNET[1],
        ETHERNET[2],
        ETHERNET[3],
        ETHERNET[4],
        ETHERNET[5],
        ETHERNET[6],
        ETHERNET[7],
        ETHERNET[8],
        ETHERNET[9],
        FCIP[0],
        FCIP[1],
        FCIP[2],
        FCIP[3],
        FCIP[4],
        FCIP[5],
    ],
};
