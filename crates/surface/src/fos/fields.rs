//! Leaves of the resources: type, source of the value, and who may change it.
//!
//! The table is the one description of the leaves. Answers are compared with it in every debug
//! build, changes are checked with it, and the reference page is made from it.

use super::fault::Fault;
use super::tree::{Content, Element};

/// Type of a leaf.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text.
    Text,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Bool,
    /// A container with any number of leaves of this name.
    Texts(&'static str),
    /// A container, or the entries of a list, with these leaves.
    Below(&'static [Field]),
}

/// A leaf of a resource: one line of its table.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name.
    pub leaf: &'static str,
    /// Type.
    pub kind: Kind,
    /// Source of the value: a column of a view, or a rule.
    pub source: &'static str,
    /// A PATCH may name the leaf.
    pub writable: bool,
    /// The leaf may be absent.
    pub optional: bool,
}

impl Field {
    const fn new(leaf: &'static str, kind: Kind, source: &'static str) -> Field {
        Field { leaf, kind, source, writable: false, optional: false }
    }

    /// The leaf can be changed.
    const fn rw(self) -> Field {
        Field { writable: true, ..self }
    }

    /// The leaf is absent without a value.
    const fn opt(self) -> Field {
        Field { optional: true, ..self }
    }
}

const fn text(leaf: &'static str, source: &'static str) -> Field {
    Field::new(leaf, Kind::Text, source)
}

const fn number(leaf: &'static str, source: &'static str) -> Field {
    Field::new(leaf, Kind::Number, source)
}

const fn truth(leaf: &'static str, source: &'static str) -> Field {
    Field::new(leaf, Kind::Bool, source)
}

const fn texts(leaf: &'static str, item: &'static str, source: &'static str) -> Field {
    Field::new(leaf, Kind::Texts(item), source)
}

const fn below(leaf: &'static str, fields: &'static [Field], source: &'static str) -> Field {
    Field::new(leaf, Kind::Below(fields), source)
}

const ADDRESS: &str = "address that the client connected to";
const CONTROLLER: &str = "address of the fabric controller, from `switch`: `domain`";
const FIXED: &str = "constant";
const GIVEN: &str = "name that a client has given; lasts as long as the instance";
const OPERATOR: &str = "`ports`: `dark` is `disabled`, `switch`: `disabled_ports`; a change is `sanloom port`";

/// `fibrechannel-switch/fibrechannel-switch`.
pub const SWITCH: &[Field] = &[
    text("name", "`switch`: `switch_name`"),
    number("domain-id", "`switch`: `domain`, or 0"),
    text("user-friendly-name", "name in the lab, or the one that a client has given").rw(),
    number("fcid", CONTROLLER),
    text("fcid-hex", CONTROLLER),
    number("vf-id", "`switch`: `vf_id`, or -1"),
    number("principal", "`switch`: `principal`, as 1 or 0"),
    truth("is-principal", "`switch`: `principal`"),
    number(
        "enabled-state",
        "`switch`: `disabled`, `up`; 3 if the switch is disabled or down, or else 2; a change disables or enables it",
    )
    .rw(),
    truth("is-enabled-state", "false while `enabled-state` is 3").rw(),
    number("operational-status", "2 if the switch runs, is enabled and has a domain, or else 3"),
    text("operational-status-string", "`online` or `offline`"),
    number("up-time", "time since the start of the fabric in seconds"),
    text("model", FIXED),
    text("firmware-version", FIXED),
    texts("ip-address", "ip-address", ADDRESS),
    texts("ip-static-gateway-list", "ip-static-gateway", "empty"),
    texts("dns-servers", "dns-server", "empty"),
    text("fabric-user-friendly-name", GIVEN).rw(),
    number("ag-mode", "1: the switch is no access gateway"),
    text("ag-mode-string", FIXED),
    text("banner", "a line about the lab, or the one that a client has given").rw(),
];

/// `fibrechannel-switch/topology-domain`.
pub const TOPOLOGY_DOMAIN: &[Field] = &[
    number("domain-id", "`routes`: `domain`"),
    number("path-count", "`routes`: number of `legs`"),
    number("metric", "`fabric`: `cost` of the ISL; a neighbour only").opt(),
    texts("out-ports", "port", "`routes`: ports of `legs`"),
];

/// `fibrechannel-switch/topology-route`.
pub const TOPOLOGY_ROUTE: &[Field] = &[
    number("domain-id", "`routes`: `domain`"),
    text("out-port", "`routes`: one port of `legs`"),
    texts("in-ports", "port", "the other ports that are online"),
];

/// Source of the name of a chassis.
const CHASSIS_NAME: &str = "`switch`: `switch_name`; the lowest one of the logical switches of a chassis";

/// `fabric/fabric-switch`.
pub const FABRIC_SWITCH: &[Field] = &[
    text("name", "`switch`: `switch_name`"),
    text("switch-user-friendly-name", "name in the lab, or the one that a client has given"),
    text("chassis-wwn", CHASSIS_NAME),
    text("chassis-user-friendly-name", "`switch`: `chassis` or `switch`, or the name that a client has given"),
    number("domain-id", "`switch`: `domain`, or 0"),
    number("principal", "`switch`: `principal`, as 1 or 0"),
    truth("is-principal", "`switch`: `principal`"),
    number("fcid", CONTROLLER),
    text("fcid-hex", CONTROLLER),
    text("ip-address", "address of the interface of the switch"),
    text("fcip-address", FIXED),
    text("ipv6-address", FIXED),
    text("firmware-version", FIXED),
    number("path-count", "`routes`: number of `legs`"),
];

/// `interface/fibrechannel`.
pub const PORT: &[Field] = &[
    text("name", "`ports`: `number`, as slot and port"),
    text("wwn", "`ports`: `port_name`, or the name that the port has with a link"),
    number("port-type", "`ports`: `mode`; 7 E, 11 U, 15 F, 17 FCoE"),
    text("port-type-string", "`ports`: `mode`"),
    text("user-friendly-name", "`port` and number, or the name that a client has given").rw(),
    number("operational-status", "2 with light and in the fabric, or else 3"),
    text("operational-status-string", "`online` or `offline`"),
    number("enabled-state", OPERATOR).rw(),
    truth("is-enabled-state", OPERATOR).rw(),
    number("persistent-disable", OPERATOR).rw(),
    text("physical-state", "`ports`: `light`, `dark`; `online`, `no_light`, `disabled`"),
    number("index", "`ports`: `number`"),
    number("default-index", "`ports`: `number`"),
    number("long-distance", FIXED),
    number("speed", "`ports`: `rate`, in bit/s; not for Ethernet").opt(),
    number("max-speed", "`ports`: `rate`, in bit/s; not for Ethernet").opt(),
    number("fcid", "`flogi`: `port_id`, or the address of the number").opt(),
    text("fcid-hex", "`flogi`: `port_id`, or the address of the number").opt(),
    text("segmentation-reason", "`ports`: `isolated`").opt(),
    text("disable-reason", "present if an operator has disabled the port").opt(),
    texts("neighbor", "wwn", "`flogi`: `port_name`; `ports`: `port_name` of the other switch"),
    text("neighbor-node-wwn", "`flogi`: `node_name`; `switch`: `switch_name` of the other switch").opt(),
    text("neighbor-slot-port", "`ports`: `attached`").opt(),
    text("neighbor-switch-user-friendly-name", "`ports`: `attached`, or the name that a client has given").opt(),
];

/// `interface/fibrechannel-statistics`.
pub const STATISTICS: &[Field] = &[
    text("name", "`ports`: `number`, as slot and port"),
    number("sampling-interval", "time between the two samples of the rates in seconds"),
    number("time-generated", "time in seconds since 1970"),
    number("reset-statistics", "1 resets the counters for the management interfaces; not read").rw().opt(),
    number("bb-credit-zero", "`ports`: `errors.credit_zeros`").opt(),
    number("class-3-discards", "`ports`: sum of `errors.discards_received` and `errors.discards_sent`"),
    number("class-3-frames", "`ports`: `frames_received`"),
    number("class3-in-discards", "`ports`: `errors.discards_received`").opt(),
    number("class3-out-discards", "`ports`: `errors.discards_sent`").opt(),
    number("crc-errors", "`ports`: `errors.crc_errors`"),
    number("frames-too-long", "`ports`: `errors.frames_too_long`"),
    number("in-crc-errors", "`ports`: `errors.crc_errors`"),
    number("in-frames", "`ports`: `frames_received`"),
    number("in-link-resets", "`ports`: `errors.link_resets_received`").opt(),
    number("in-octets", "`ports`: `bytes_received`").opt(),
    number("link-failures", "`ports`: `errors.link_failures`"),
    number("loss-of-signal", "`ports`: `errors.link_failures`"),
    number("out-frames", "`ports`: `frames_sent`"),
    number("out-link-resets", "`ports`: `errors.link_resets_sent`").opt(),
    number("out-octets", "`ports`: `bytes_sent`").opt(),
    number("truncated-frames", "0: such a frame counts as a discard"),
    number("in-frame-rate", "frames per second between two samples").opt(),
    number("out-frame-rate", "frames per second between two samples").opt(),
    number("in-max-frame-rate", "highest `in-frame-rate` since the last reset").opt(),
    number("out-max-frame-rate", "highest `out-frame-rate` since the last reset").opt(),
    number("in-rate", "bytes per second between two samples").opt(),
    number("out-rate", "bytes per second between two samples").opt(),
    number("in-peak-rate", "highest `in-rate` since the last reset").opt(),
    number("out-peak-rate", "highest `out-rate` since the last reset").opt(),
];

/// `name-server/fibrechannel-name-server`.
pub const NAME_SERVER: &[Field] = &[
    text("port-id", "`ns`: `port_id`"),
    text("port-name", "`ns`: `port_name`"),
    text("node-name", "`ns`: `node_name`"),
    text("port-symbolic-name", "`ns`: `symbolic_port_name` with its length"),
    text("node-symbolic-name", "`ns`: `symbolic_node_name` with its length"),
    text("port-type", "`ns`: `port_type`"),
    text("class-of-service", FIXED),
    text("fc4-type", "`ns`: `fc4_types`"),
    text("fc4-features", "`ns`: `fcp_features`"),
    text("fabric-port-name", "`ns`: `fabric_port_name`"),
    text("permanent-port-name", "`ns`: `port_name`"),
    text("name-server-device-type", "`ns`: `port_id`, `fcp_features`"),
    text("share-area", FIXED),
    text("partial", FIXED),
    text("lsan", FIXED),
    text("cascaded-ag", FIXED),
    text("connected-through-ag", FIXED),
    text("real-device-behind-ag", FIXED),
    text("fcoe-device", "`ports`: `rate` is Ethernet"),
    number("port-index", "`zones`: `switch_port` of the login").opt(),
    text("link-speed", "`ports`: `rate`").opt(),
];

/// `fdmi/hba`.
pub const HBA: &[Field] = &[
    text("hba-id", "`fdmi`: `adapter`"),
    number("domain-id", "`fdmi`: `domain`").opt(),
    text("manufacturer", "`fdmi`: `manufacturer`").opt(),
    text("serial-number", "`fdmi`: `serial_number`").opt(),
    text("model", "`fdmi`: `model`").opt(),
    text("model-description", "`fdmi`: `model_description`").opt(),
    text("node-name", "`fdmi`: `node_name`").opt(),
    text("node-symbolic-name", "`fdmi`: `symbolic_node_name`").opt(),
    text("hardware-version", "`fdmi`: `hardware_version`").opt(),
    text("driver-version", "`fdmi`: `driver_version`").opt(),
    text("option-rom-version", "`fdmi`: `option_rom_version`").opt(),
    text("firmware-version", "`fdmi`: `firmware_version`").opt(),
    text("os-name-and-version", "`fdmi`: `os`").opt(),
    number("max-ct-payload", "`fdmi`: `max_ct_payload`, in words").opt(),
    number("number-of-ports", "`fdmi`: `number_of_ports`").opt(),
    texts("hba-port-list", "wwn", "`fdmi`: `port_name` of `ports`"),
];

/// `fdmi/port`.
pub const HBA_PORT: &[Field] = &[
    text("port-name", "`fdmi`: `port_name` of `ports`"),
    text("hba-id", "`fdmi`: `adapter`"),
    number("domain-id", "`fdmi`: `domain`").opt(),
    text("port-id", "`fdmi`: `port_id`").opt(),
    text("port-symbolic-name", "`fdmi`: `symbolic_port_name`").opt(),
    text("supported-speed", "`fdmi`: `supported_speeds`").opt(),
    text("current-port-speed", "`fdmi`: `speed`").opt(),
    text("os-device-name", "`fdmi`: `os_device_name`").opt(),
    text("host-name", "`fdmi`: `host_name`").opt(),
    text("node-name", "`fdmi`: `node_name` of the port").opt(),
    number("maximum-frame-size", "`fdmi`: `max_frame_bytes`").opt(),
];

const ALIASES: &[Field] = &[text("alias-name", "name"), texts("member-entry", "alias-entry-name", "members")];
const CONFIGS: &[Field] = &[text("cfg-name", "name"), texts("member-zone", "zone-name", "zones")];
const MEMBERS: &[Field] = &[text("entry-name", "member").opt(), text("principal-entry-name", "principal").opt()];
const ZONES: &[Field] = &[
    text("zone-name", "name"),
    number("zone-type", "1 for a peer zone, or else 0"),
    text("zone-type-string", "`user-created-peer-zone` or `zone`"),
    below("member-entry", MEMBERS, "members and principals"),
];

/// `zone/defined-configuration`.
pub const DEFINED: &[Field] = &[
    below("cfg", CONFIGS, "configurations of the database").rw().opt(),
    below("zone", ZONES, "zones of the database").rw().opt(),
    below("alias", ALIASES, "aliases of the database").rw().opt(),
];

/// Parameters of the operation `fibrechannel-zone`.
pub const ZONE_OPERATION: &[Field] = &[
    text("zone-object", "name of an object"),
    text("action", "`expunge` or `rename`").opt(),
    text("zone-object-action", "as `action`").opt(),
    text("new-zone-object", "name after a rename").opt(),
];

/// `zone/effective-configuration`.
pub const EFFECTIVE: &[Field] = &[
    text("cfg-name", "the enabled configuration; a change enables another one").rw().opt(),
    text("checksum", "of the committed database; a change sends it back").rw(),
    number("cfg-action", "1 save, 2 disable, 3 clear, 4 abort; not read").rw().opt(),
    text("cfg-action-v2", "`save` or `transaction-abort`; in the path only, not read").rw().opt(),
    number("default-zone-access", "0 no access, 1 all access; the owner of a transaction reads its own value").rw(),
    number("db-max", "limit of the database in bytes"),
    number("db-avail", "`db-max` less `db-committed`"),
    number("db-committed", "bytes of the committed database"),
    number("db-transaction", "bytes of the open transaction, or 0"),
    number("transaction-token", "of the open transaction, or 0"),
    number("db-chassis-wide-committed", "`db-committed`"),
    below("enabled-zone", ZONES, "zones in force, with aliases expanded").opt(),
];

/// `zone/fabric-lock`.
pub const FABRIC_LOCK: &[Field] = &[
    number("lock-principal-domain-id", "domain of the switch with the lock, or 0"),
    number("lock-principal-transaction-token", "of the open transaction, or 0"),
    number("timeout", "idle time that ends the transaction in seconds, or 0"),
    number("remaining-time", "time until then in seconds, or 0"),
    text("client-role", "role of the owner").opt(),
    text("client-user-name", "name of the owner").opt(),
    text("client-ip-address", "address of the owner").opt(),
    text("client-interface", "interface of the owner").opt(),
    text("client-application-name", "program of the owner").opt(),
];

/// `fibrechannel-trunk/trunk`.
pub const TRUNK: &[Field] = &[
    number("group", "number of the bundle, from 1"),
    number("source-port", "`fabric`: `port` of the ISL"),
    number("destination-port", "`fabric`: `neighbour` of the ISL"),
    truth("master", "true for the first link of the bundle"),
    text("neighbor-wwn", "`switch`: `switch_name` of the neighbour").opt(),
    text("neighbor-switch-name", "`switch`: `switch` of the neighbour, or the name that a client has given").opt(),
    number("neighbor-domain-id", "`switch`: `domain` of the neighbour").opt(),
];

/// `fibrechannel-logical-switch/fibrechannel-logical-switch`.
pub const LOGICAL_SWITCH: &[Field] = &[
    number("fabric-id", "`switch`: `vf_id`"),
    text("switch-wwn", "`switch`: `switch_name`"),
    number("base-switch-enabled", FIXED),
    number("default-switch", "1 for the fabric ID 128, or else 0"),
    number("default-switch-status", "1 for the fabric ID 128, or else 0"),
    number("logical-isl-enabled", FIXED),
    number("ficon-mode-enabled", FIXED),
    texts("port-member-list", "port-member", "`ports`: `number` of the ports of the logical switch"),
];

/// `fibrechannel-configuration/fabric`.
pub const FABRIC: &[Field] = &[truth("principal-selection-enabled", "true if the switch has a domain")];

/// `fibrechannel-configuration/port-configuration`.
pub const PORT_CONFIGURATION: &[Field] = &[text("portname-mode", FIXED)];

/// `fibrechannel-configuration/zone-configuration`.
pub const ZONE_CONFIGURATION: &[Field] =
    &[number("fabric-lock-timeout", "setting of the interface, 300 to 1,830 seconds").rw()];

/// `fibrechannel-configuration/chassis-config-settings`.
pub const CHASSIS_SETTINGS: &[Field] =
    &[number("http-session-ttl", "setting of the interface, 60 to 432,000 seconds").rw()];

/// `chassis/chassis`.
pub const CHASSIS: &[Field] = &[
    text("chassis-user-friendly-name", "`switch`: `chassis` or `switch`, or the name that a client has given").rw(),
    text("chassis-wwn", CHASSIS_NAME),
    text("manufacturer", FIXED),
    text("product-name", FIXED),
    truth("vf-enabled", "true if the switch belongs to a chassis"),
    truth("vf-supported", "true if the switch belongs to a chassis"),
    number("max-blades-supported", FIXED),
    text("date", "date and time, UTC"),
];

/// `chassis/ha-status`.
pub const HA_STATUS: &[Field] = &[number("active-cp", FIXED), truth("ha-enabled", FIXED)];

const SEQUENCE: Field = number("sequence-number", "`events`: `sequence`");
const STAMP: Field = text("time-stamp", "`events`: `unix_s`, in UTC");
const MESSAGE: Field = text("message-id", "`events`: `id`");
const FABRIC_ID: Field = number("fabric-id", "`switch`: `vf_id`, or 128");
const LEVEL: Field = text("severity-level", "`events`: `severity`, in capital letters");
const OF_SWITCH: Field = text("switch-user-friendly-name", "name in the lab, or the one that a client has given");
const DESCRIPTION: Field = text("message-text", "`events`: `text`, with `count`");

/// `logging/error-log`.
pub const ERROR_LOG: &[Field] = &[SEQUENCE, STAMP, MESSAGE, FABRIC_ID, LEVEL, OF_SWITCH, DESCRIPTION];

/// `logging/audit-log`.
pub const AUDIT_LOG: &[Field] = &[
    SEQUENCE,
    STAMP,
    MESSAGE,
    FABRIC_ID,
    LEVEL,
    OF_SWITCH,
    DESCRIPTION,
    text("event-info", "`events`: `user`, or `operator`; only events with `audit`"),
];

/// `maps/system-resources`.
pub const SYSTEM_RESOURCES: &[Field] = &[
    number("cpu-usage", "processor time of the process since its start, in percent of one processor"),
    number("memory-usage", "resident memory of the process, in percent of the machine"),
    number("total-memory", "memory of the machine in KiB"),
];

/// `chassis/management-interface-configuration`.
pub const MANAGEMENT: &[Field] = &[
    truth("rest-enabled", FIXED),
    number(
        "max-rest-sessions",
        "setting of the interface, 1 to 10; before it is set 3 with `--fos-strict`, or else 64",
    )
    .rw(),
];

/// `maps/switch-status-policy-report`.
pub const STATUS_POLICY: &[Field] = &[
    text("switch-health", "`healthy` if the switch runs, is enabled and has a domain, or else `down`"),
    text("error-port-health", "`marginal` if a port is isolated, or else `healthy`"),
    text("marginal-port-health", FIXED),
    text("faulty-port-health", FIXED),
];

/// `time/time-zone`.
pub const TIME_ZONE: &[Field] =
    &[text("name", FIXED), number("gmt-offset-hours", FIXED), number("gmt-offset-minutes", FIXED)];

/// Compares the leaves of an element with the table.
///
/// # Errors
/// The leaf that is not in the table, that has another type, or that is missing.
pub fn compare(fields: &[Field], element: &Element) -> Result<(), String> {
    for child in element.children() {
        let field = fields.iter().find(|field| field.leaf == child.name);
        let field = field.ok_or_else(|| format!("{} has the unknown leaf {}", element.name, child.name))?;
        let fits = match (field.kind, &child.content) {
            (Kind::Text, Content::Text(_)) | (Kind::Number, Content::Number(_)) | (Kind::Bool, Content::Bool(_)) => {
                true
            }
            (Kind::Texts(item), Content::Children(items)) => items.iter().all(|one| one.name == item),
            (Kind::Below(fields), Content::Children(_)) => {
                compare(fields, child)?;
                true
            }
            _ => false,
        };
        if !fits {
            return Err(format!("{} of {} is no {:?}", child.name, element.name, field.kind));
        }
    }
    let missing = fields.iter().find(|field| !field.optional && element.child(field.leaf).is_none());
    missing.map_or(Ok(()), |field| Err(format!("{} has no {}", element.name, field.leaf)))
}

/// Checks the elements of the body of a change against the table.
///
/// # Errors
/// An element that the table does not have, text in a container, or elements in a leaf.
pub fn permit(fields: &[Field], element: &Element) -> Result<(), Fault> {
    let unknown = |name: &str, known: Vec<&str>| {
        let known = known.join(", ");
        Fault::unknown(format!("{} has no element {name}; it has {known}", element.name))
    };
    for child in element.children() {
        let Some(field) = fields.iter().find(|field| field.leaf == child.name) else {
            return Err(unknown(&child.name, fields.iter().map(|field| field.leaf).collect()));
        };
        match (field.kind, &child.content) {
            (Kind::Below(fields), Content::Children(_)) => permit(fields, child)?,
            (Kind::Texts(item), Content::Children(_)) => permit(&[text(item, "")], child)?,
            (Kind::Below(_) | Kind::Texts(_), _) => {
                return Err(Fault::invalid(format!("{} of {} has elements, and no text", child.name, element.name)));
            }
            (_, Content::Children(inside)) if !inside.is_empty() => {
                return Err(Fault::invalid(format!("{} of {} has text, and no elements", child.name, element.name)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Lines of the reference page for the leaves of a resource.
pub fn lines(fields: &[Field], prefix: &str) -> String {
    let mut text = String::new();
    for field in fields {
        let kind = match field.kind {
            Kind::Text => "text".to_owned(),
            Kind::Number => "number".to_owned(),
            Kind::Bool => "truth value".to_owned(),
            Kind::Texts(item) => format!("list of `{item}`"),
            Kind::Below(_) => "container".to_owned(),
        };
        let access = if field.writable { "read, write" } else { "read" };
        let optional = if field.optional { "may be absent" } else { "always" };
        text += &format!("| `{prefix}{}` | {kind} | {access} | {optional} | {} |\n", field.leaf, field.source);
        if let Kind::Below(fields) = field.kind {
            text += &lines(fields, &format!("{prefix}{}/", field.leaf));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_leaves_and_types_of_the_table() {
        let fields = &[text("name", ""), number("speed", "").opt(), texts("neighbor", "wwn", "")];
        let entry = |leaves: Vec<Element>| Element::entry("port", leaves);
        let all =
            vec![Element::text("name", "0/1"), Element::number("speed", 1), Element::texts("neighbor", "wwn", ["a"])];
        assert_eq!(compare(fields, &entry(all.clone())), Ok(()));
        assert_eq!(compare(fields, &entry(vec![all[0].clone(), all[2].clone()])), Ok(()), "an optional leaf");
        for (wrong, why) in [
            (vec![all[2].clone()], "port has no name"),
            (vec![all[0].clone(), Element::text("speed", "1"), all[2].clone()], "speed of port is no Number"),
            (vec![all[0].clone(), Element::texts("neighbor", "name", ["a"])], "neighbor of port is no Texts(\"wwn\")"),
            (vec![all[0].clone(), all[2].clone(), Element::number("other", 1)], "port has the unknown leaf other"),
        ] {
            assert_eq!(compare(fields, &entry(wrong)), Err(why.to_owned()));
        }
    }

    #[test]
    fn every_entry_of_a_list_and_the_leaves_behind_it_are_compared() {
        const ENTRY: &[Field] = &[text("name", "")];
        let fields = &[below("entry", ENTRY, "").opt(), number("total", "")];
        let entry = |leaf: &str| Element::entry("entry", vec![Element::text(leaf, "a")]);
        let answer = |leaves: Vec<Element>| Element::container("list", leaves);
        let total = || Element::number("total", 2_u32);
        assert_eq!(compare(fields, &answer(vec![entry("name"), entry("name"), total()])), Ok(()));
        assert_eq!(compare(fields, &answer(vec![total()])), Ok(()));
        for (wrong, why) in [
            (vec![entry("name"), entry("other"), total()], "entry has the unknown leaf other"),
            (vec![entry("name"), Element::text("total", "2")], "total of list is no Number"),
            (vec![entry("name"), total(), Element::number("more", 1_u32)], "list has the unknown leaf more"),
            (vec![entry("name")], "list has no total"),
        ] {
            assert_eq!(compare(fields, &answer(wrong)), Err(why.to_owned()));
        }
    }
}
