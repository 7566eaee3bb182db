//! Section of the bounds that `sanloom check` holds a design against.

use super::{Fallback, Form, Key, Kind, SectionDef};

pub(super) const CHECK: SectionDef = SectionDef {
    name: "check",
    form: Form::Single,
    meaning: "Limits of the warnings of `sanloom check` about ratios. A larger number warns later.",
    also: &["limits", "lint", "lints", "checks"],
    keys: &[
        Key {
            path: "fan_in",
            kind: Kind::NumberFrom { min: 0.01 },
            fallback: Fallback::Value("12"),
            meaning: "Highest fan-in of a storage port on any fabric: the bandwidth of the host ports that use it, divided by its own. A host port that uses several storage ports counts with an equal share at each.",
            example: "8",
            also: &["fan_out", "host_to_storage"],
        },
        Key {
            path: "host_ports",
            kind: Kind::Integer { min: 1, max: 65_535 },
            fallback: Fallback::Value("64"),
            meaning: "Maximum number of host ports that may use one storage port, virtual ports included.",
            example: "32",
            also: &["hosts_per_port", "host_ports_per_storage_port", "initiators"],
        },
        Key {
            path: "isl_oversubscription",
            kind: Kind::NumberFrom { min: 0.01 },
            fallback: Fallback::Value("7"),
            meaning: "Highest oversubscription of the ISLs between two switches: the bandwidth of the ports whose traffic crosses them, on the smaller side, divided by that of the ISLs.",
            example: "4",
            also: &["isl", "isl_ratio", "oversubscription"],
        },
        Key {
            path: "slow_port",
            kind: Kind::NumberFrom { min: 1.1 },
            fallback: Fallback::Value("4"),
            meaning: "A port of Fibre Channel or FCoE is slow if the fastest port that it may access has at least this multiple of its rate: 4 warns of 8GFC among 32GFC.",
            example: "2",
            also: &["speed_ratio", "slow"],
        },
    ],
};
