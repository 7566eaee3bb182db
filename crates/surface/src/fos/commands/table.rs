//! Table of the commands: [`find`].

use super::{Outcome, config, fabric, options, port_config, ports, system, zones};
use crate::fos::room::Room;

/// Answer of a command to its arguments.
pub type Command = fn(&mut Room<'_>, &[String]) -> Outcome;

/// Effect of a command on the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Only reads.
    None,
    /// Changes something.
    Change,
    /// Only reads without arguments, and with this option.
    Reads(&'static str),
    /// Only reads with at most this number of arguments.
    ReadsUpTo(usize),
}

/// A command: one line of the table.
pub struct Entry {
    /// Name in lower case.
    pub name: &'static str,
    /// Arguments, as the usage shows them; empty for a command without arguments.
    pub usage: &'static str,
    /// Description.
    pub help: &'static str,
    /// Effect on the switch.
    pub effect: Effect,
    /// The answer; `None` for a command that the session itself runs.
    pub run: Option<Command>,
}

impl Entry {
    /// Returns whether the command with these arguments changes something.
    pub fn changes(&self, arguments: &[String]) -> bool {
        match self.effect {
            Effect::None => false,
            Effect::Change => true,
            Effect::ReadsUpTo(count) => arguments.len() > count,
            Effect::Reads(option) => arguments.first().is_some_and(|first| first != option),
        }
    }

    /// Text of the usage.
    pub fn usage(&self) -> String {
        format!("Usage: {} {}", self.name, self.usage).trim_end().to_owned()
    }
}

const fn read(name: &'static str, usage: &'static str, help: &'static str, run: Command) -> Entry {
    Entry { name, usage, help, effect: Effect::None, run: Some(run) }
}

const fn write(name: &'static str, usage: &'static str, help: &'static str, run: Command) -> Entry {
    Entry { effect: Effect::Change, ..read(name, usage, help, run) }
}

/// A command that only reads without arguments, and with this option.
const fn both(option: &'static str, entry: Entry) -> Entry {
    Entry { effect: Effect::Reads(option), ..entry }
}

/// A command that only reads with at most this number of arguments.
const fn up_to(count: usize, entry: Entry) -> Entry {
    Entry { effect: Effect::ReadsUpTo(count), ..entry }
}

/// A command that the session itself runs.
const fn session(name: &'static str, usage: &'static str, help: &'static str, effect: Effect) -> Entry {
    Entry { name, usage, help, effect, run: None }
}

const PORTS: &str = "[-i] PORT[-PORT] ...";
const OBJECT: &str = "\"NAME\"";
const MEMBERS: &str = "\"NAME\", \"MEMBER; ...\"";
const ZONE_MEMBERS: &str = "\"NAME\", \"MEMBER; ...\" | --peerzone \"NAME\" [-principal \"MEMBER; ...\"] \
                            [-members \"MEMBER; ...\"]";
const PATTERN: &str = "[--ic] [\"PATTERN\"] [0|1]";
const EVENTS: &str = "[-a | --all] [-r | --reverse] [--severity LEVEL] [--count NUMBER]";

/// All commands.
pub const COMMANDS: &[Entry] = &[
    read("alishow", PATTERN, "Print zone alias information", zones::show_aliases),
    write("aliadd", MEMBERS, "Add a member to a zone alias", zones::add_alias),
    write("alicreate", MEMBERS, "Create a zone alias", zones::create_alias),
    write("alidelete", OBJECT, "Delete a zone alias", zones::delete_alias),
    write("aliremove", MEMBERS, "Remove a member from a zone alias", zones::remove_alias),
    read("cfgactvshow", "", "Print the effective zone configuration", zones::active),
    write("cfgadd", MEMBERS, "Add a member to a configuration", zones::add_config),
    session("cfgclear", "", "Delete all zone definitions", Effect::Change),
    write("cfgcreate", MEMBERS, "Create a zone configuration", zones::create_config),
    write("cfgdelete", OBJECT, "Delete a zone configuration", zones::delete_config),
    session("cfgdisable", "[-f]", "Disable the effective configuration", Effect::Change),
    session("cfgenable", "[-f] \"NAME\"", "Enable a zone configuration", Effect::Change),
    write("cfgremove", MEMBERS, "Remove a member from a configuration", zones::remove_config),
    session("cfgsave", "[-f]", "Save the zone definitions", Effect::Change),
    read("cfgshow", PATTERN, "Print the zone database", zones::show_all),
    read("cfgsize", "", "Print the size of the zone database", config::zone_size),
    write("cfgtransabort", "[TOKEN]", "Discard the zone transaction", zones::abort),
    read("cfgtransshow", "", "Print the zone transaction", zones::transaction),
    up_to(0, write("chassisname", "[NAME]", "Set or print the name of the chassis", fabric::chassis_name)),
    read("chassisshow", "", "Print the parts of the chassis", config::chassis_show),
    read("configshow", "[-all] [-pattern \"TEXT\"]", "Print the configuration", config::show),
    both(
        "--show",
        write(
            "creditrecovmode",
            "--show | --cfg off|onLrOnly|onLrThresh",
            "Set or print the recovery of credit",
            options::credit_recovery,
        ),
    ),
    read("date", "", "Print the date and time", fabric::date),
    Entry {
        run: Some(zones::default_zone),
        ..session(
            "defzone",
            "[--noaccess [-f] | --allaccess [-f] | --show]",
            "Set or print the default zone",
            Effect::Reads("--show"),
        )
    },
    read("errdump", EVENTS, "Print the event log", system::error_dump),
    read("errshow", EVENTS, "Print the event log, with an empty line after each event", system::error_show),
    session("exit", "", "End the session", Effect::None),
    both(
        "--show",
        write(
            "fabricprincipal",
            "--show | --enable [-p 0x1-0xff] [-f] | --disable [-f]",
            "Set or print the principal selection",
            options::principal,
        ),
    ),
    read("fabricshow", "", "Print the switches of the fabric", fabric::fabric_show),
    read("firmwareshow", "", "Print the version of the firmware", config::firmware),
    session("fosexec", "--fid FID|all -cmd \"COMMAND\"", "Run a command at logical switches", Effect::None),
    read("help", "[COMMAND]", "Print the commands", super::help),
    write("iodreset", "", "Disable in-order delivery", |room, _| options::set_in_order(room, false)),
    write("iodset", "", "Enable in-order delivery", |room, _| options::set_in_order(room, true)),
    read("iodshow", "", "Print whether in-order delivery is enabled", options::in_order),
    read("islshow", "", "Print the inter-switch links", ports::isl_show),
    read("licenseshow", "", "Print the licenses", config::licenses),
    session("logout", "", "End the session", Effect::None),
    read("lscfg", "--show [-n]", "Print the logical switches and their ports", config::logical_switches),
    read("nodefind", "WWN|PID|\"ALIAS\"", "Print the devices with a name or address", fabric::node_find),
    read("nsallshow", "", "Print the addresses of all devices", fabric::name_server_all),
    read("nscamshow", "[-t]", "Print the devices of other switches", fabric::name_server_remote),
    read("nsshow", "[-t]", "Print the devices of this switch", fabric::name_server_local),
    write("portcfgpersistentdisable", PORTS, "Disable ports, also after a restart", ports::disable),
    write("portcfgpersistentenable", PORTS, "Enable ports, also after a restart", ports::enable),
    read("portcfgshow", "[[-i] PORT[-PORT] ...]", "Print the settings of ports", port_config::show),
    write("portdisable", PORTS, "Disable ports", ports::disable),
    write("portenable", PORTS, "Enable ports", ports::enable),
    read("porterrshow", "[[-i] PORT[-PORT] ...]", "Print the error counters of ports", ports::errors),
    read("portloginshow", PORTS, "Print the logins at ports", port_config::logins),
    up_to(1, write("portname", "[[-i] PORT[-PORT] [[-n] \"NAME\"]]", "Set or print the name of a port", ports::name)),
    read("portshow", PORTS, "Print the state of a port", ports::show),
    write("portstatsclear", PORTS, "Reset the counters of ports", ports::clear),
    read("portstatsshow", PORTS, "Print the counters of ports", ports::statistics),
    session("quit", "", "End the session", Effect::None),
    read("sensorshow", "", "Print the sensors", |_, _| Ok((String::new(), 0))),
    session("setcontext", "FID", "Select a logical switch for the session", Effect::None),
    read("sfpshow", "[[-i] PORT[-PORT] ...]", "Print the transceivers of ports", port_config::transceivers),
    read("slotshow", "", "Print the slots of the chassis", config::slots),
    write("switchdisable", "", "Disable the switch", system::disable),
    write("switchenable", "", "Enable the switch", system::enable),
    up_to(0, write("switchname", "[NAME]", "Set or print the name of the switch", fabric::switch_name)),
    read("switchshow", "[-portname | -portcount]", "Print the state of the switch and its ports", ports::switch_show),
    up_to(0, write("timeout", "[0-99999 minutes]", "Set or print the idle time of a session", options::timeout)),
    read("trunkshow", "", "Print the trunks", ports::trunk_show),
    read("uptime", "", "Print the time since the start", fabric::uptime),
    read("version", "", "Print the version", fabric::version),
    both(
        "--show",
        write(
            "zone",
            "--show [\"NAME\"] | --create|--add|--remove [--peerzone] \"NAME\" [-principal \"MEMBER; ...\"] \
             [-members \"MEMBER; ...\"] | --delete|--expunge \"NAME\" | --rename \"NAME\", \"NAME\"",
            "Print and change zones and peer zones",
            zones::zone,
        ),
    ),
    write("zoneadd", ZONE_MEMBERS, "Add a member to a zone", zones::add_zone),
    write("zonecreate", ZONE_MEMBERS, "Create a zone", zones::create_zone),
    write("zonedelete", OBJECT, "Delete a zone", zones::delete_zone),
    write("zoneobjectexpunge", OBJECT, "Delete an object and all its references", zones::expunge),
    write("zoneobjectrename", "\"NAME\", \"NEW NAME\"", "Rename a zone object", zones::rename),
    write("zoneremove", ZONE_MEMBERS, "Remove a member from a zone", zones::remove_zone),
    read("zoneshow", "[--ic] [\"PATTERN\"] [0|1] | --peerzone all|user|target", "Print zones", zones::show_zones),
];

/// The command with a name, in any case.
pub fn find(name: &str) -> Option<&'static Entry> {
    COMMANDS.iter().find(|entry| entry.name.eq_ignore_ascii_case(name))
}

/// Returns whether a word is the name of a command.
pub fn is_command(word: &str) -> bool {
    find(word).is_some()
}
