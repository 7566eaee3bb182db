//! Sections of zoning, and of a file of zone edits.

use super::fabric::SPREAD_KEY;
use super::{EDIT_ACTION, Fallback, Form, Key, Kind, MERGE_CONTROL, MERGE_RULE, PRIORITY, SectionDef, ZONE_DEFAULT};

pub(super) const ZONING: SectionDef = SectionDef {
    name: "zoning",
    form: Form::Single,
    meaning: "Settings that apply beside the zones.",
    also: &["zones"],
    keys: &[
        Key {
            path: "default",
            kind: Kind::Choice(ZONE_DEFAULT),
            fallback: Fallback::Value("\"auto\""),
            meaning: "Access of ports that are in no zone.",
            example: "\"closed\"",
            also: &["default_zone"],
        },
        Key {
            path: "effective",
            kind: Kind::Text,
            fallback: Fallback::Absent(
                "the only `[[zone_config]]`; all zones, as the configuration `all-zones`, if there is none",
            ),
            meaning: "The effective configuration. `none`: no zone is effective.",
            example: "\"production\"",
            also: &["active", "enabled", "cfg", "effective_config"],
        },
        Key {
            path: "merge",
            kind: Kind::Choice(MERGE_RULE),
            fallback: Fallback::Value("\"standard\""),
            meaning: "Rule that merges two zone databases when fabrics join.",
            example: "\"fabric-os\"",
            also: &["merge_rules"],
        },
        Key {
            path: "merge_control",
            kind: Kind::Choice(MERGE_CONTROL),
            fallback: Fallback::Value("\"allow\""),
            meaning: "Zone databases that may be merged.",
            example: "\"restrict\"",
            also: &["control"],
        },
        Key {
            path: "max_database",
            kind: Kind::Size { min: 64, max: 1 << 40 },
            fallback: Fallback::Absent("no limit"),
            meaning: "Largest zone database, defined and effective objects as switches exchange them. In a fabric the smallest limit counts.",
            example: "\"1MiB\"",
            also: &["database_size", "limit"],
        },
        Key {
            path: "max_zones",
            kind: Kind::Integer { min: 1, max: 10_000_000 },
            fallback: Fallback::Absent("no limit"),
            meaning: "Maximum number of zones.",
            example: "2000",
            also: &["zone_limit"],
        },
        Key {
            path: "max_aliases",
            kind: Kind::Integer { min: 1, max: 10_000_000 },
            fallback: Fallback::Absent("no limit"),
            meaning: "Maximum number of aliases.",
            example: "2000",
            also: &["alias_limit"],
        },
        Key {
            path: "max_members",
            kind: Kind::Integer { min: 1, max: 10_000_000 },
            fallback: Fallback::Absent("no limit"),
            meaning: "Maximum number of members of a zone or an alias.",
            example: "255",
            also: &["member_limit"],
        },
    ],
};

/// Name of a zone object on real switches, where the lab needs another one.
const EXPORT_NAME_KEY: Key = Key {
    path: "export_name",
    kind: Kind::Text,
    fallback: Fallback::Absent("the name in the lab"),
    meaning: "Name on real switches, which `sanloom export zones` writes. `sanloom import` sets it if the object cannot have that name in the lab, for example because another fabric has an object of the name. For a single object, no range.",
    example: "\"backup\"",
    also: &["switch_name", "original_name"],
};

/// Mark of zones and configurations that switches have in force, but not in their definitions.
const ONLY_IN_FORCE_KEY: Key = Key {
    path: "only_in_force",
    kind: Kind::Flag,
    fallback: Fallback::Value("false"),
    meaning: "Real switches have the object in force, but not with these members in their definitions. `sanloom import` sets it if zones in force differ from their definitions; `sanloom export zones` then neither edits nor enables the object. For a zone, the configuration in force must have it, and no other one.",
    example: "true",
    also: &["active_only"],
};

pub(super) const ALIAS: SectionDef = SectionDef {
    name: "alias",
    form: Form::List,
    meaning: "Names for members of zones. A range as name makes several aliases, and each range among the members is distributed over them.",
    also: &["aliases", "zone_alias", "fcalias"],
    keys: &[
        Key {
            path: "name",
            kind: Kind::Pattern,
            fallback: Fallback::Required,
            meaning: "Name of the alias, or a range of names.",
            example: "\"oracle\"",
            also: &["names", "label"],
        },
        Key {
            path: "members",
            kind: Kind::Patterns,
            fallback: Fallback::Required,
            meaning: "Members that the alias stands for, written as in a zone. An alias cannot contain other aliases.",
            example: "[\"server1\", \"server2:1\"]",
            also: &["ports", "wwpns"],
        },
        EXPORT_NAME_KEY,
        SPREAD_KEY,
    ],
};

pub(super) const ZONE: SectionDef = SectionDef {
    name: "zone",
    form: Form::List,
    meaning: "Zones: ports that may access each other. A range as name makes several zones, and each range among the members is distributed over them. With `principals` a zone is a peer zone: a principal and a member may access each other, but two members or two principals may not.",
    also: &["zoneset"],
    keys: &[
        Key {
            path: "name",
            kind: Kind::Pattern,
            fallback: Fallback::Required,
            meaning: "Name of the zone, or a range of names: a letter or `_`, then letters, digits and `$`, `-`, `^`, `_`, at most 64.",
            example: "\"backup\"",
            also: &["names", "label"],
        },
        Key {
            path: "members",
            kind: Kind::Patterns,
            fallback: Fallback::Required,
            meaning: "Hosts and storage (all their ports), single ports (`server2:1`), aliases, port names (`21:00:00:24:ff:00:00:01`), node names (`wwnn:20:00:00:24:ff:00:00:01`), domain and port of a switch (`3,7`), or addresses (`0x030700`).",
            example: "[\"server1\", \"disk{1..4}\", \"server2:1\"]",
            also: &["ports", "wwpns"],
        },
        Key {
            path: "principals",
            kind: Kind::Patterns,
            fallback: Fallback::Absent("none: no peer zone"),
            meaning: "Principals of a peer zone, written as members are.",
            example: "\"disk1\"",
            also: &["principal", "peers"],
        },
        Key {
            path: "virtual_fabric",
            kind: Kind::Integer { min: 1, max: 4_078 },
            fallback: Fallback::Absent("every fabric"),
            meaning: "The only virtual fabric (VF_ID) that has the zone.",
            example: "10",
            also: &["vf_id", "vsan", "fid"],
        },
        Key {
            path: "priority",
            kind: Kind::Choice(PRIORITY),
            fallback: Fallback::Value("\"medium\""),
            meaning: "Priority of the frames between its members on links with virtual channels. Among several zones of two ports, one that is not medium counts, high before low.",
            example: "\"high\"",
            also: &["qos", "class"],
        },
        EXPORT_NAME_KEY,
        ONLY_IN_FORCE_KEY,
        SPREAD_KEY,
    ],
};

pub(super) const ZONE_CONFIG: SectionDef = SectionDef {
    name: "zone_config",
    form: Form::List,
    meaning: "Configurations (zone sets): zones that are effective together. In a lab without configurations all zones are effective.",
    also: &["cfg", "config", "zone_set", "zonesets", "zone_configs"],
    keys: &[
        Key {
            path: "name",
            kind: Kind::Pattern,
            fallback: Fallback::Required,
            meaning: "Name of the configuration, or a range of names.",
            example: "\"production\"",
            also: &["names", "label"],
        },
        Key {
            path: "zones",
            kind: Kind::Patterns,
            fallback: Fallback::Required,
            meaning: "Names of its zones.",
            example: "[\"backup\", \"zone{1..4}\"]",
            also: &["members", "zone"],
        },
        EXPORT_NAME_KEY,
        ONLY_IN_FORCE_KEY,
        SPREAD_KEY,
    ],
};

const EDIT_ACTION_KEY: Key = Key {
    path: "action",
    kind: Kind::Choice(EDIT_ACTION),
    fallback: Fallback::Required,
    meaning: "Operation of the edit.",
    example: "\"add\"",
    also: &["do", "command", "op"],
};

const EDIT_ZONE_KEY: Key = Key {
    path: "zone",
    kind: Kind::Pattern,
    fallback: Fallback::Absent("the edit concerns another kind of object"),
    meaning: "Zone to edit, or a range of zones.",
    example: "\"backup\"",
    also: &["zones_named"],
};

const EDIT_ALIAS_KEY: Key = Key {
    path: "alias",
    kind: Kind::Pattern,
    fallback: Fallback::Absent("the edit concerns another kind of object"),
    meaning: "Alias to edit, or a range of aliases.",
    example: "\"oracle\"",
    also: &["aliases"],
};

const EDIT_CONFIG_KEY: Key = Key {
    path: "config",
    kind: Kind::Pattern,
    fallback: Fallback::Absent("the edit concerns another kind of object"),
    meaning: "Configuration to edit.",
    example: "\"production\"",
    also: &["cfg", "zone_config", "zone_set"],
};

const EDIT_MEMBERS_KEY: Key = Key {
    path: "members",
    kind: Kind::Patterns,
    fallback: Fallback::Absent("none"),
    meaning: "Members of the zone or alias, written as in the lab file.",
    example: "[\"server5\"]",
    also: &["ports", "member"],
};

const EDIT_PRINCIPALS_KEY: Key = Key {
    path: "principals",
    kind: Kind::Patterns,
    fallback: Fallback::Absent("none"),
    meaning: "Principals of the zone.",
    example: "\"disk1\"",
    also: &["principal"],
};

const EDIT_ZONES_KEY: Key = Key {
    path: "zones",
    kind: Kind::Patterns,
    fallback: Fallback::Absent("none"),
    meaning: "Zones of the configuration.",
    example: "[\"backup\"]",
    also: &["zone_names"],
};

const EDIT_TO_KEY: Key = Key {
    path: "to",
    kind: Kind::Text,
    fallback: Fallback::Absent("only `rename` needs it"),
    meaning: "The new name.",
    example: "\"archive\"",
    also: &["new_name"],
};

const EDIT_DEFAULT_KEY: Key = Key {
    path: "default",
    kind: Kind::Choice(ZONE_DEFAULT),
    fallback: Fallback::Absent("only `default` needs it"),
    meaning: "New rule for ports in no zone.",
    example: "\"closed\"",
    also: &["default_zone"],
};

/// The only section of a file of zone edits, which is not a lab file.
pub(crate) const EDIT: SectionDef = SectionDef {
    name: "edit",
    form: Form::List,
    meaning: "One edit of the zone database. Edits are applied in the order of the file, in one transaction. At the end the effective configuration is enabled again with its changed zones, unless an edit enables another one.",
    also: &["edits", "change", "changes"],
    keys: &[
        EDIT_ACTION_KEY,
        EDIT_ZONE_KEY,
        EDIT_ALIAS_KEY,
        EDIT_CONFIG_KEY,
        EDIT_MEMBERS_KEY,
        EDIT_PRINCIPALS_KEY,
        EDIT_ZONES_KEY,
        EDIT_TO_KEY,
        EDIT_DEFAULT_KEY,
    ],
};

pub(super) const CHANGE: SectionDef = SectionDef {
    name: "change",
    form: Form::List,
    meaning: "One edit of the zone database while the lab runs, written as in a file of zone edits. Edits with the same time and switch are one transaction, applied in the order of the file. The zone server of the switch distributes the transaction to all switches of its fabric; if that fails, nothing changes anywhere. At the end the configuration in force is activated again, unless an edit activates another one.",
    also: &["changes", "zone_change", "edit"],
    keys: &[
        Key {
            path: "at",
            kind: Kind::Time,
            fallback: Fallback::Value("\"0s\""),
            meaning: "Time of the commit, counted from the start of the workloads.",
            example: "\"500ms\"",
            also: &["time", "start", "when"],
        },
        Key {
            path: "switch",
            kind: Kind::Pattern,
            fallback: Fallback::Absent("the first switch"),
            meaning: "Switch at which the edit is committed.",
            example: "\"edge1\"",
            also: &["on", "switches"],
        },
        EDIT_ACTION_KEY,
        EDIT_ZONE_KEY,
        EDIT_ALIAS_KEY,
        EDIT_CONFIG_KEY,
        EDIT_MEMBERS_KEY,
        EDIT_PRINCIPALS_KEY,
        EDIT_ZONES_KEY,
        EDIT_TO_KEY,
        EDIT_DEFAULT_KEY,
    ],
};

pub(super) const PERSISTENT: SectionDef = SectionDef {
    name: "persistent",
    form: Form::List,
    meaning: "Addresses that a switch reserves for port names. Other ports receive such an address only if no other is free.",
    also: &["persistent_address", "static_address", "fcid"],
    keys: &[
        Key {
            path: "port",
            kind: Kind::Pattern,
            fallback: Fallback::Required,
            meaning: "A port of a host or storage system, or the node if it has only one port.",
            example: "\"server1:0\"",
            also: &["host", "storage", "name", "wwpn"],
        },
        Key {
            path: "address",
            kind: Kind::Text,
            fallback: Fallback::Required,
            meaning: "Address of the port. At a switch with flat addresses, any address of its domain; otherwise domain, number of the switch port, and 01 to FF for a virtual port, whereas the port itself always has 00.",
            example: "\"0x010500\"",
            also: &["fcid", "fc_id", "port_id", "id"],
        },
    ],
};
