//! Loops between the controllers and the disks of a storage system.

use super::{Fallback, Key, Kind};

pub(super) const TABLE: Key = Key {
    path: "disk_loops",
    kind: Kind::Table,
    fallback: Fallback::Absent("each disk has a line of its own to the controllers"),
    meaning: "Arbitrated loops (FC-AL) between the controllers and the disks or SSDs, whose requests share them. `disk_interface` should then be faster than the loop, which carries the same data. Only for a simulation.",
    example: "{ rate = \"4GFC\", disks = 45 }",
    also: &["back_end", "disk_loop", "enclosures"],
};

pub(super) const RATE: Key = Key {
    path: "disk_loops.rate",
    kind: Kind::LineRate,
    fallback: Fallback::Absent("no loops"),
    meaning: "Speed of each loop, 8GFC at most.",
    example: "\"2GFC\"",
    also: &["speed"],
};

pub(super) const DISKS: Key = Key {
    path: "disk_loops.disks",
    kind: Kind::Integer { min: 1, max: 125 },
    fallback: Fallback::Value("60"),
    meaning: "Disks on each loop; consecutive ones share a loop. Ports are 10 m apart.",
    example: "45",
    also: &["devices", "ports"],
};
