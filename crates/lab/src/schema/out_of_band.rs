//! Keys of `[storage.NAME]` that make it a metadata server.

use super::{Fallback, Key, Kind};

/// Returns a key for a time.
const fn time(path: &'static str, default: &'static str, meaning: &'static str, example: &'static str) -> Key {
    Key { path, kind: Kind::Time, fallback: Fallback::Value(default), meaning, example, also: &[] }
}

pub(super) const OUT_OF_BAND: [Key; 8] = [
    Key {
        path: "out_of_band",
        kind: Kind::Table,
        fallback: Fallback::Absent("data of virtual disks pass through the storage system"),
        meaning: "With `medium = \"volumes\"`: the storage system is a metadata server. Its hosts hold a map of the extents of virtual disks and send their commands straight to the back ends. The server has no link, because its network is not simulated. Only a simulation obeys these keys.",
        example: "{ round_trip = \"200us\", service = \"20us\", entries = 1000 }",
        also: &["outofband", "metadata", "metadata_server"],
    },
    time(
        "out_of_band.round_trip",
        "\"200us\"",
        "Time that a message to the server and the answer spend on the network.",
        "\"1ms\"",
    ),
    time("out_of_band.service", "\"20us\"", "Processor time of the server for a message of a host.", "\"50us\""),
    Key {
        path: "out_of_band.entries",
        kind: Kind::Integer { min: 1, max: 1 << 24 },
        fallback: Fallback::Value("65536"),
        meaning: "Number of extents that the map of a host holds. The extent that was used least recently makes room for another one.",
        example: "1000",
        also: &["map_entries", "cache"],
    },
    time(
        "out_of_band.retry",
        "\"1s\"",
        "Time after which a host repeats a request, and the server a recall, without an answer.",
        "\"200ms\"",
    ),
    time("out_of_band.give_up", "\"30s\"", "Time after which requests fail that wait for the map.", "\"5s\""),
    time(
        "out_of_band.fence_after",
        "\"5s\"",
        "Time that the server waits for acknowledgements of a change. Then it fences the missing hosts: the back ends refuse their commands.",
        "\"2s\"",
    ),
    Key {
        path: "out_of_band.copy_rate",
        kind: Kind::BitRate,
        fallback: Fallback::Value("\"1.6Gb/s\""),
        meaning: "Rate at which the data of an extent that moves are copied. Copies use no bandwidth of the simulated networks.",
        example: "\"4Gb/s\"",
        also: &["move_rate"],
    },
];
