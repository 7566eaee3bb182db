//! Sections of the fabric: timers, switches, links.

use super::{ARBITRATION, FORWARDING, Fallback, Form, ISL_CHOICE, Key, Kind, QUEUEING, SPREAD, SectionDef};

pub(super) const TIMERS: SectionDef = SectionDef {
    name: "timers",
    form: Form::Single,
    meaning: "Timers that hold for the whole fabric.",
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
            path: "rscn_delay",
            kind: Kind::Time,
            fallback: Fallback::Value("\"5ms\""),
            meaning: "State changes within this time share one notification (RSCN).",
            example: "\"5ms\"",
            also: &["rscn"],
        },
    ],
};

pub(super) const SWITCH: SectionDef = SectionDef {
    name: "switch",
    form: Form::Named,
    meaning: "Switches. The name may be a range: `[switch.\"edge{1..4}\"]`. `[switch.\"*\"]` sets what holds for all switches that do not say otherwise; a table for one name adds to the range that covers it.",
    also: &["switches", "fcf", "bridge"],
    keys: &[
        Key {
            path: "domain",
            kind: Kind::IntegerOr { word: "auto", min: 1, max: 239 },
            fallback: Fallback::Value("\"auto\""),
            meaning: "Domain, the first byte of the addresses that the switch gives out. In a range it counts up. `auto`: the lowest free one.",
            example: "10",
            also: &["domain_id"],
        },
        Key {
            path: "ports",
            kind: Kind::IntegerOr { word: "auto", min: 1, max: 65_535 },
            fallback: Fallback::Value("\"auto\""),
            meaning: "Number of ports; every link that ends at the switch takes one. `auto`: as many as needed.",
            example: "16",
            also: &["port_count"],
        },
        Key {
            path: "buffers",
            kind: Kind::Integer { min: 1, max: 65_535 },
            fallback: Fallback::Value("16"),
            meaning: "Receive buffers of each port in frames: the buffer-to-buffer credit that the other end of a link is given.",
            example: "4",
            also: &["credits", "bb_credit", "frame_buffers"],
        },
        Key {
            path: "forwarding",
            kind: Kind::Choice(FORWARDING),
            fallback: Fallback::Value("\"cut-through\""),
            meaning: "When a frame may leave.",
            example: "\"store-and-forward\"",
            also: &["switching", "mode"],
        },
        Key {
            path: "queueing",
            kind: Kind::Choice(QUEUEING),
            fallback: Fallback::Value("\"fifo\""),
            meaning: "How the receive buffers of a port are organised.",
            example: "\"voq\"",
            also: &["queue", "queues", "buffering"],
        },
        Key {
            path: "arbitration",
            kind: Kind::Choice(ARBITRATION),
            fallback: Fallback::Value("\"round-robin\""),
            meaning: "Who goes next at an output that several inputs want.",
            example: "\"oldest-first\"",
            also: &["arbiter"],
        },
        Key {
            path: "latency",
            kind: Kind::Time,
            fallback: Fallback::Value("\"700ns\""),
            meaning: "Time from the last bit (store-and-forward) or the end of the header (cut-through) to the arbiter.",
            example: "\"700ns\"",
            also: &["delay"],
        },
        Key {
            path: "isl_choice",
            kind: Kind::Choice(ISL_CHOICE),
            fallback: Fallback::Value("\"exchange\""),
            meaning: "How one of several equally short ways is chosen.",
            example: "\"spray\"",
            also: &["routing", "load_balancing", "path_choice"],
        },
    ],
};

const RATE: Key = Key {
    path: "rate",
    kind: Kind::LineRate,
    fallback: Fallback::Value("\"16GFC\""),
    meaning: "Speed of the line.",
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
    meaning: "So many parallel links between each pair of ends.",
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

pub(super) const SPREAD_KEY: Key = Key {
    path: "spread",
    kind: Kind::Choice(SPREAD),
    fallback: Fallback::Value("\"blocks\""),
    meaning: "How the longer of two ranges is handed to the shorter one.",
    example: "\"round-robin\"",
    also: &["distribute", "distribution"],
};

pub(super) const LINK: SectionDef = SectionDef {
    name: "link",
    form: Form::List,
    meaning: "Links from hosts and storage to switches. Ranges of equal length are joined one to one; one name is joined to all of a range; otherwise the longer range must be a multiple of the shorter one and is handed to it as `spread` says. A name alone takes the next free port of its node; `name:1` is port 1 (ports, HBAs and LUNs are numbered from 0).",
    also: &["links", "cable", "connection", "edge"],
    keys: &[
        Key {
            path: "from",
            kind: Kind::Pattern,
            fallback: Fallback::Required,
            meaning: "One end: a host, storage system or switch.",
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
        Key {
            path: "name",
            kind: Kind::Pattern,
            fallback: Fallback::Absent("the names of both ends, such as `server1-edge1` or `server1:1-edge2`"),
            meaning: "Names of the links, as many as there are.",
            example: "\"cable{1..4}\"",
            also: &["names", "label"],
        },
        SPREAD_KEY,
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
        Key {
            path: "bundle",
            kind: Kind::Flag,
            fallback: Fallback::Value("false"),
            meaning: "The `count` links of each pair are one trunk: frames take them in turn and arrive in order.",
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
    ],
};
