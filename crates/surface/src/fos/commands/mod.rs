//! Command line of a switch, in the words of Fabric OS: [`Console`].
//!
//! The texts have the shapes that monitoring and provisioning software parses. The module does no
//! I/O: a line becomes requests of [`sanloom_api::control`], and their answers become text.

mod fabric;
pub(crate) mod filters;
mod options;
pub(crate) mod ports;
mod system;
mod words;
mod zones;

use super::fault::Fault;
use super::room::{Room, Who};
use super::{Mode, Now, Shared, switches};
use crate::Fabric;
use crate::server::Peer;
use crate::server::users::Role;
use filters::Filter;
use sanloom_api::zone_database::Edit;

/// Exit status of an unknown command.
const UNKNOWN: u8 = 127;

/// Reply to a line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reply {
    /// Output, with `\n` as the end of each line.
    pub output: String,
    /// Exit status of the last command.
    pub status: u8,
    /// Number of commands of the line that have failed.
    pub failed: u32,
    /// The output ends with a question; the next line is its answer.
    pub asks: bool,
    /// The session ends.
    pub ends: bool,
}

/// A question of a command that changes the effective configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Question {
    edits: Vec<Edit>,
    /// Commands after it on the same line.
    rest: Vec<String>,
}

/// One session at the command line of a switch.
pub struct Console {
    switch: String,
    shared: Shared,
    who: Who,
    peer: Peer,
    interface: &'static str,
    question: Option<Question>,
}

/// Result of a command: its output and exit status.
type Outcome = Result<(String, u8), Fault>;
/// Answer of a command to its arguments.
type Command = fn(&mut Room<'_>, &[String]) -> Outcome;

/// A command that needs no question: name, arguments, whether it changes something.
struct Entry(&'static str, &'static str, bool, Command);

const COMMANDS: &[Entry] = &[
    Entry("alishow", "Print zone alias information", false, zones::show_aliases),
    Entry("aliadd", "Add a member to a zone alias", true, zones::add_alias),
    Entry("alicreate", "Create a zone alias", true, zones::create_alias),
    Entry("alidelete", "Delete a zone alias", true, zones::delete_alias),
    Entry("aliremove", "Remove a member from a zone alias", true, zones::remove_alias),
    Entry("cfgactvshow", "Print the effective zone configuration", false, zones::active),
    Entry("cfgadd", "Add a member to a configuration", true, zones::add_config),
    Entry("cfgclear", "Delete all zone definitions", true, zones::clear),
    Entry("cfgcreate", "Create a zone configuration", true, zones::create_config),
    Entry("cfgdelete", "Delete a zone configuration", true, zones::delete_config),
    Entry("cfgremove", "Remove a member from a configuration", true, zones::remove_config),
    Entry("cfgshow", "Print the zone database", false, zones::show_all),
    Entry("cfgtransabort", "Discard the zone transaction", true, zones::abort),
    Entry("cfgtransshow", "Print the zone transaction", false, zones::transaction),
    Entry("chassisname", "Print the name of the chassis", false, fabric::chassis_name),
    Entry("creditrecovmode", "Set or print the recovery of credit", true, options::credit_recovery),
    Entry("date", "Print the date and time", false, fabric::date),
    Entry("defzone", "Set or print the default zone", true, zones::default_zone),
    Entry("errdump", "Print the event log", false, system::error_dump),
    Entry("errshow", "Print the event log, with an empty line after each event", false, system::error_show),
    Entry("fabricprincipal", "Set or print the principal selection", true, options::principal),
    Entry("fabricshow", "Print the switches of the fabric", false, fabric::fabric_show),
    Entry("help", "Print the commands", false, help),
    Entry("iodreset", "Disable in-order delivery", true, |room, _| options::set_in_order(room, false)),
    Entry("iodset", "Enable in-order delivery", true, |room, _| options::set_in_order(room, true)),
    Entry("iodshow", "Print whether in-order delivery is enabled", false, options::in_order),
    Entry("islshow", "Print the inter-switch links", false, ports::isl_show),
    Entry("nsallshow", "Print the addresses of all devices", false, fabric::name_server_all),
    Entry("nscamshow", "Print the devices of other switches", false, fabric::name_server_remote),
    Entry("nsshow", "Print the devices of this switch", false, fabric::name_server_local),
    Entry("portdisable", "Disable ports", true, ports::disable),
    Entry("portenable", "Enable ports", true, ports::enable),
    Entry("porterrshow", "Print the error counters of all ports", false, ports::errors),
    Entry("portname", "Set or print the name of a port", true, ports::name),
    Entry("portshow", "Print the state of a port", false, ports::show),
    Entry("portstatsclear", "Reset the counters of ports", true, ports::clear),
    Entry("portstatsshow", "Print the counters of ports", false, ports::statistics),
    Entry("sensorshow", "Print the sensors", false, |_, _| Ok((String::new(), 0))),
    Entry("switchdisable", "Disable the switch", true, system::disable),
    Entry("switchenable", "Enable the switch", true, system::enable),
    Entry("switchname", "Set or print the name of the switch", true, fabric::switch_name),
    Entry("switchshow", "Print the state of the switch and its ports", false, ports::switch_show),
    Entry("timeout", "Set or print the idle time of a session", true, options::timeout),
    Entry("trunkshow", "Print the trunks", false, ports::trunk_show),
    Entry("uptime", "Print the time since the start", false, fabric::uptime),
    Entry("version", "Print the version", false, fabric::version),
    Entry("zoneadd", "Add a member to a zone", true, zones::add_zone),
    Entry("zonecreate", "Create a zone", true, zones::create_zone),
    Entry("zonedelete", "Delete a zone", true, zones::delete_zone),
    Entry("zoneobjectexpunge", "Delete an object and all its references", true, zones::expunge),
    Entry("zoneobjectrename", "Rename a zone object", true, zones::rename),
    Entry("zoneremove", "Remove a member from a zone", true, zones::remove_zone),
    Entry("zoneshow", "Print zones", false, zones::show_zones),
];

/// Commands that ask before they change the fabric, and those that end the session.
const OTHERS: [&str; 6] = ["cfgenable", "cfgdisable", "cfgsave", "exit", "logout", "quit"];

/// Commands of a line with their arguments.
pub fn parse(line: &str) -> Vec<(String, Vec<String>)> {
    words::commands(line, is_command).iter().filter_map(|command| words::arguments(command)).collect()
}

fn is_command(word: &str) -> bool {
    COMMANDS.iter().any(|entry| entry.0 == word) || OTHERS.contains(&word)
}

fn help(_: &mut Room<'_>, _: &[String]) -> Outcome {
    let mut lines: Vec<String> = COMMANDS.iter().map(|Entry(name, text, ..)| format!("{name:<18} {text}\n")).collect();
    lines.extend([
        format!("{:<18} Disable the effective configuration\n", "cfgdisable"),
        format!("{:<18} Enable a zone configuration\n", "cfgenable"),
        format!("{:<18} Save the zone definitions\n", "cfgsave"),
        format!("{:<18} End the session\n", "exit"),
    ]);
    lines.sort();
    Ok((lines.concat(), 0))
}

impl Console {
    /// Opens a session of a user. `session` identifies it among all sessions of the instance.
    pub fn new(
        switch: &str,
        shared: Shared,
        user: (&str, Role),
        session: &str,
        interface: &'static str,
        peer: Peer,
    ) -> Console {
        let who = Who {
            session: session.to_owned(),
            user: user.0.to_owned(),
            role: user.1,
            address: peer.address.ip().to_string(),
            application: String::new(),
        };
        Console { switch: switch.to_owned(), shared, who, peer, interface, question: None }
    }

    /// Prompt of a shell.
    pub fn prompt(&self) -> String {
        let name = self.shared.name("switch").unwrap_or_else(|| self.switch.clone());
        format!("{name}:FID{}:{}> ", self.shared.lock().fabric_id, self.who.user)
    }

    /// Answers a line: commands with `;` between them, or the answer to a question.
    pub fn line(&mut self, now: Now, line: &str, fabric: &mut dyn Fabric) -> Reply {
        let (mut reply, commands) = match self.question.take() {
            Some(question) => self.answered(now, line, question, fabric),
            None => (Reply::default(), words::commands(line, is_command)),
        };
        reply.failed = u32::from(reply.status != 0);
        let mut commands = commands.into_iter();
        while let Some(command) = commands.next() {
            let next = self.piped(now, &command, fabric);
            reply.output += &next.output;
            reply.failed += next.failed;
            (reply.status, reply.asks, reply.ends) = (next.status, next.asks, next.ends);
            if reply.asks {
                if let Some(question) = &mut self.question {
                    question.rest = commands.collect();
                }
                break;
            }
            if reply.ends {
                break;
            }
        }
        reply
    }

    /// Ends the session: its zone transaction is discarded.
    pub fn end(&mut self, now: Now, fabric: &mut dyn Fabric) {
        let mut room = self.room(now, fabric);
        if room.owns_transaction() {
            let _ = super::zone_edits::abort(&mut room);
        }
    }

    fn room<'r>(&'r self, now: Now, fabric: &'r mut dyn Fabric) -> Room<'r> {
        let mut room =
            Room::new(fabric, &self.switch, &self.shared, Mode::default(), now, self.who.clone(), &self.peer);
        room.interface = self.interface;
        room
    }

    /// Runs a command, and filters its output. A question is not filtered. The status is that of
    /// the last filter, as in a shell (POSIX.1-2017, XCU 2.9.2), but a `grep` without a match is no
    /// failure of the command.
    fn piped(&mut self, now: Now, command: &str, fabric: &mut dyn Fabric) -> Reply {
        let parts = filters::split(command);
        let [command, filters @ ..] = &parts[..] else { return Reply::default() };
        if filters.len() > filters::MAX_FILTERS {
            let output = format!("rbash: at most {} filters\n", filters::MAX_FILTERS);
            return Reply { output, status: 1, failed: 1, ..Reply::default() };
        }
        let read = |filter: &String| {
            let (name, arguments) = words::arguments(filter).unwrap_or_default();
            Filter::read(&name, &arguments)
        };
        let filters: Vec<Filter> = match filters.iter().map(read).collect() {
            Ok(filters) => filters,
            Err(reply) => return Reply { failed: 1, ..reply },
        };
        let reply = self.run(now, command, fabric);
        let reply = Reply { failed: u32::from(reply.status != 0), ..reply };
        if reply.asks { reply } else { filters.iter().fold(reply, |reply, filter| filter.apply(reply)) }
    }

    fn run(&mut self, now: Now, command: &str, fabric: &mut dyn Fabric) -> Reply {
        let Some((name, arguments)) = words::arguments(command) else { return Reply::default() };
        if ["exit", "logout", "quit"].contains(&&*name) {
            return Reply { ends: true, ..Reply::default() };
        }
        let changes = COMMANDS.iter().find(|entry| entry.0 == name).map_or(is_command(&name), |entry| entry.2);
        let prints_only = match arguments.first().map(String::as_str) {
            None => ["creditrecovmode", "defzone", "fabricprincipal", "portname", "switchname", "timeout"],
            Some("--show") => ["creditrecovmode", "defzone", "fabricprincipal", "", "", ""],
            Some(_) => [""; 6],
        };
        let prints_only = prints_only.contains(&&*name);
        if changes && !prints_only && self.who.role < Role::Operate {
            return failure("RBAC permission denied.");
        }
        let asked = match &*name {
            "cfgenable" => zones::question(&arguments, zones::Ask::Enable),
            "cfgdisable" => zones::question(&arguments, zones::Ask::Disable),
            "cfgsave" => zones::question(&arguments, zones::Ask::Save),
            "defzone" if !prints_only => zones::question(&arguments, zones::Ask::DefaultZone),
            _ => match COMMANDS.iter().find(|entry| entry.0 == name) {
                None => {
                    let output = format!("rbash: {name}: command not found\n");
                    return Reply { output, status: UNKNOWN, ..Reply::default() };
                }
                Some(Entry(.., command)) => {
                    return match command(&mut self.room(now, fabric), &arguments) {
                        Ok((output, status)) => Reply { output, status, ..Reply::default() },
                        Err(fault) => failure(&fault.message),
                    };
                }
            },
        };
        match asked {
            Err(fault) => failure(&fault.message),
            // The option -f answers the question.
            Ok((_, edits, true)) => self.perform(now, edits, fabric),
            Ok((output, edits, false)) => {
                self.question = Some(Question { edits, rest: Vec::new() });
                Reply { output, asks: true, ..Reply::default() }
            }
        }
    }

    fn answered(&mut self, now: Now, line: &str, question: Question, fabric: &mut dyn Fabric) -> (Reply, Vec<String>) {
        let Question { edits, rest } = question;
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => (self.perform(now, edits, fabric), rest),
            _ => (Reply { output: "Operation cancelled.\n".to_owned(), ..Reply::default() }, rest),
        }
    }

    /// Makes the change of a command that has asked. The default zone changes in the transaction,
    /// and all other ones commit it.
    fn perform(&mut self, now: Now, edits: Vec<Edit>, fabric: &mut dyn Fabric) -> Reply {
        let mut room = self.room(now, fabric);
        let result = match edits[..] {
            [Edit::SetDefault { .. }] => zones::stage(&mut room, edits),
            _ => zones::commit(&mut room, edits),
        };
        match result {
            Ok((output, status)) => Reply { output, status, ..Reply::default() },
            Err(fault) => failure(&fault.message),
        }
    }
}

fn failure(message: &str) -> Reply {
    Reply { output: format!("{message}\n"), status: 1, ..Reply::default() }
}

/// Banner of a shell.
pub fn banner(switch: &str, shared: &Shared) -> String {
    shared.name("banner").unwrap_or_else(|| format!("{}: switch {switch} of a laboratory", switches::PRODUCT))
}
