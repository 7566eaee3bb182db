//! Logical switches of a chassis at the command line: `setcontext` and `fosexec`.

use super::table::Entry;
use super::{Console, Reply, failure, is_command, outcome, usage, words};
use crate::Fabric;
use crate::fos::Now;
use crate::fos::fault::Fault;
use std::mem::replace;

/// Commands that `fosexec` does not run, because they belong to a session.
const NOT_REMOTE: [&str; 5] = ["exit", "fosexec", "logout", "quit", "setcontext"];

/// Returns whether a command selects a logical switch.
pub fn is_selection(command: &str) -> bool {
    is_named(command, "setcontext")
}

/// Returns whether a command runs another one, whose failures it counts itself.
pub fn runs_another(command: &str) -> bool {
    is_named(command, "fosexec")
}

fn is_named(command: &str, name: &str) -> bool {
    words::arguments(command).is_some_and(|(own, _)| own.eq_ignore_ascii_case(name))
}

impl Console {
    /// Runs `setcontext` or `fosexec`.
    pub(super) fn of_context(
        &mut self,
        now: Now,
        entry: &Entry,
        arguments: &[String],
        fabric: &mut dyn Fabric,
    ) -> Reply {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let reply = match (entry.name, &arguments[..]) {
            ("setcontext", [id]) => match self.logical(now, Some(id), fabric) {
                Ok(found) => {
                    for (id, switch) in found {
                        self.select(id, switch);
                    }
                    Reply::default()
                }
                Err(fault) => outcome(entry, Err(fault)),
            },
            ("fosexec", ["--fid" | "-fid", id, "-cmd" | "--cmd", command @ ..]) if !command.is_empty() => {
                match self.each(now, entry, id, &command.join(" "), fabric) {
                    Ok(reply) => return reply,
                    Err(reply) => reply,
                }
            }
            _ => outcome(entry, Err(usage())),
        };
        Reply { failed: u32::from(reply.status != 0), ..reply }
    }

    /// Logical switches of the chassis with their fabric IDs: the one with this ID, or all.
    fn logical(&mut self, now: Now, id: Option<&str>, fabric: &mut dyn Fabric) -> Result<Vec<(u16, String)>, Fault> {
        let id = id.map(|id| id.parse::<u16>().ok().filter(|id| (1..=128).contains(id)).ok_or_else(usage));
        let id = id.transpose()?;
        let mut room = self.room(now, fabric);
        let own = room.own()?;
        if own.chassis.is_none() {
            return Err(Fault::no_virtual_fabrics());
        }
        let same = room.switches()?.into_iter().filter(|row| row.chassis == own.chassis);
        let mut found: Vec<(u16, String)> = same.filter_map(|row| Some((row.vf_id?, row.switch))).collect();
        found.retain(|(own, _)| id.is_none_or(|id| id == *own));
        found.sort();
        match (found.is_empty(), id) {
            (true, Some(id)) => Err(Fault::missing(format!("The chassis has no logical switch with the FID {id}."))),
            _ => Ok(found),
        }
    }

    /// Selects a logical switch for the commands that follow.
    fn select(&mut self, id: u16, switch: String) {
        self.shared = self.shared.of(&switch);
        self.shared.lock().fabric_id = id;
        self.left.insert(replace(&mut self.switch, switch));
    }

    /// Runs a command at one logical switch or at all of them. The reply counts its failures.
    ///
    /// # Errors
    /// The reply to arguments that are not valid: no switch has run the command.
    fn each(
        &mut self,
        now: Now,
        entry: &Entry,
        id: &str,
        command: &str,
        fabric: &mut dyn Fabric,
    ) -> Result<Reply, Reply> {
        let command = match words::commands(command, is_command) {
            Ok(commands) if commands.len() == 1 => commands.concat(),
            Ok(_) => return Err(outcome(entry, Err(usage()))),
            Err(text) => return Err(failure(&text)),
        };
        let name = words::arguments(&command).map(|(name, _)| name.to_ascii_lowercase()).unwrap_or_default();
        if NOT_REMOTE.contains(&&*name) {
            return Err(failure(&format!("{name} is not allowed with fosexec.")));
        }
        let found = match self.logical(now, (id != "all").then_some(id), fabric) {
            Ok(found) => found,
            Err(fault) => return Err(outcome(entry, Err(fault))),
        };
        let (switch, shared, left) = (self.switch.clone(), self.shared.clone(), self.left.clone());
        let mut all = Reply::default();
        for (id, switch) in found {
            self.select(id, switch);
            let reply = self.piped(now, &command, fabric);
            all.output += &format!("{}\n\"{command}\" on FID {id}:\n\n{}", "-".repeat(51), reply.output);
            if reply.asks {
                self.question = None;
                all.output += match &*name {
                    "cfgclear" => "\nThe command asks; select the switch with setcontext, and run it there.\n",
                    _ => "\nThe command asks; answer it with its option -f.\n",
                };
                all.status = 1;
                all.failed += 1;
            }
            all.status = all.status.max(reply.status);
            all.failed += reply.failed;
        }
        // A transaction that the command has opened ends with the session.
        let visited = replace(&mut self.left, left);
        self.left.extend(visited.into_iter().chain([replace(&mut self.switch, switch)]));
        self.shared = shared;
        Ok(all)
    }
}
