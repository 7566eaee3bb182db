//! Command line of a switch, in the words of Fabric OS: [`Console`].
//!
//! The texts have the shapes that monitoring and provisioning software parses. The module does no
//! I/O: a line becomes requests of [`sanloom_api::control`], and their answers become text.

mod config;
mod contexts;
mod fabric;
pub(crate) mod filters;
mod options;
mod port_config;
pub(crate) mod ports;
mod system;
mod table;
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
use std::collections::BTreeSet;
use table::{COMMANDS, Entry, find, is_command};

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
    /// Other switches of the chassis that the session has selected.
    left: BTreeSet<String>,
}

/// Result of a command: its output and exit status.
type Outcome = Result<(String, u8), Fault>;

/// Tag of the fault of wrong arguments.
const USAGE: &str = "usage";

/// Fault of wrong arguments; the answer is the usage of the command.
pub(super) fn usage() -> Fault {
    Fault { tag: USAGE, ..Fault::invalid("the arguments are wrong") }
}

/// Commands of a line with their arguments.
pub fn parse(line: &str) -> Vec<(String, Vec<String>)> {
    let commands = words::commands(line, is_command).unwrap_or_default();
    commands.iter().filter_map(|command| words::arguments(command)).collect()
}

fn help(_: &mut Room<'_>, words: &[String]) -> Outcome {
    match words {
        [] => {
            let mut lines: Vec<String> = COMMANDS
                .iter()
                .filter(|entry| !["logout", "quit"].contains(&entry.name))
                .map(|entry| format!("{:<25} {}\n", entry.name, entry.help))
                .collect();
            lines.sort();
            Ok((lines.concat(), 0))
        }
        [name] => match find(name) {
            Some(entry) => Ok((format!("{}\n{}\n", entry.usage(), entry.help), 0)),
            None => Err(Fault::missing(format!("No entry for {name} was found"))),
        },
        _ => Err(usage()),
    }
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
        shared.register(switch);
        Console { switch: switch.to_owned(), shared, who, peer, interface, question: None, left: BTreeSet::new() }
    }

    /// Prompt of a shell.
    pub fn prompt(&self) -> String {
        let name = self.shared.name_of(&self.switch);
        format!("{name}:FID{}:{}> ", self.shared.lock().fabric_id, self.who.user)
    }

    /// Answers a line: commands with `;` between them, or the answer to a question.
    pub fn line(&mut self, now: Now, line: &str, fabric: &mut dyn Fabric) -> Reply {
        let (mut reply, commands) = match self.question.take() {
            Some(question) => self.answered(now, line, question, fabric),
            None => match words::commands(line, is_command) {
                Ok(commands) => (Reply::default(), commands),
                Err(text) => return Reply { failed: 1, ..syntax(&text) },
            },
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
            // Commands behind a selection that has failed are meant for another switch.
            if reply.ends || next.status != 0 && contexts::is_selection(&command) {
                break;
            }
        }
        reply
    }

    /// Ends the session: its zone transactions are discarded.
    pub fn end(&mut self, now: Now, fabric: &mut dyn Fabric) {
        let own = self.switch.clone();
        for switch in self.left.clone().into_iter().chain([own]) {
            self.switch = switch;
            let mut room = self.room(now, fabric);
            if room.owns_transaction() {
                let _ = super::zone_edits::abort(&mut room);
            }
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
        let failed = if contexts::runs_another(command) { reply.failed } else { u32::from(reply.status != 0) };
        let reply = Reply { failed, ..reply };
        if reply.asks { reply } else { filters.iter().fold(reply, |reply, filter| filter.apply(reply)) }
    }

    fn run(&mut self, now: Now, command: &str, fabric: &mut dyn Fabric) -> Reply {
        let Some((name, arguments)) = words::arguments(command) else { return Reply::default() };
        let Some(entry) = find(&name) else {
            let output = format!("rbash: {name}: command not found\n");
            return Reply { output, status: UNKNOWN, ..Reply::default() };
        };
        if arguments == ["--help"] {
            return Reply { output: format!("{}\n", entry.usage()), ..Reply::default() };
        }
        if entry.usage.is_empty() && !arguments.is_empty() {
            return failure(&entry.usage());
        }
        let changes = entry.changes(&arguments);
        if changes && self.who.role < Role::Operate {
            return failure("RBAC permission denied.");
        }
        let asked = match entry.name {
            "exit" | "logout" | "quit" => return Reply { ends: true, ..Reply::default() },
            "setcontext" | "fosexec" => return self.of_context(now, entry, &arguments, fabric),
            "cfgenable" => zones::question(&arguments, zones::Ask::Enable),
            "cfgdisable" => zones::question(&arguments, zones::Ask::Disable),
            "cfgsave" => zones::question(&arguments, zones::Ask::Save),
            "cfgclear" => zones::question(&arguments, zones::Ask::Clear),
            "defzone" if changes => zones::question(&arguments, zones::Ask::DefaultZone),
            _ => {
                let Some(command) = entry.run else { return Reply::default() };
                return outcome(entry, command(&mut self.room(now, fabric), &arguments));
            }
        };
        match asked {
            Err(fault) => outcome(entry, Err(fault)),
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

    /// Makes the change of a command that has asked. `defzone` and `cfgclear` change the
    /// transaction, and all other commands commit it.
    fn perform(&mut self, now: Now, edits: Vec<Edit>, fabric: &mut dyn Fabric) -> Reply {
        let mut room = self.room(now, fabric);
        let result = match edits[..] {
            [Edit::SetDefault { .. } | Edit::Clear] => zones::stage(&mut room, edits),
            _ => zones::commit(&mut room, edits),
        };
        match result {
            Ok((output, status)) => Reply { output, status, ..Reply::default() },
            Err(fault) => failure(&fault.message),
        }
    }
}

/// Reply of a command with this outcome.
fn outcome(entry: &Entry, outcome: Outcome) -> Reply {
    match outcome {
        Ok((output, status)) => Reply { output, status, ..Reply::default() },
        Err(fault) if fault.tag == USAGE => failure(&entry.usage()),
        Err(fault) => failure(&fault.message),
    }
}

/// Reply to a line that is no list of commands.
fn syntax(text: &str) -> Reply {
    Reply { output: format!("{text}\n"), status: 2, ..Reply::default() }
}

fn failure(message: &str) -> Reply {
    Reply { output: format!("{message}\n"), status: 1, ..Reply::default() }
}

/// Banner of a shell.
pub fn banner(switch: &str, shared: &Shared) -> String {
    shared.name("banner").unwrap_or_else(|| format!("{}: switch {switch} of a laboratory", switches::PRODUCT))
}
