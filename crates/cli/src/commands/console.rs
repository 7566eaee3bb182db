//! `sanloom console`: the command line of a switch of a running lab.

use crate::instance;
use sanloom_api::control::{Answer, Request};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::outputs::Sets;
use sanloom_fc::san::Lab;
use sanloom_surface::fos::commands::{Console, Reply};
use sanloom_surface::fos::{Now, Shared};
use sanloom_surface::server::Peer;
use sanloom_surface::server::users::Role;
use sanloom_surface::{Busy, Fabric};
use std::io::{BufRead, IsTerminal, Write, stdin, stdout};
use std::time::{Instant, SystemTime};

/// Options of `sanloom console`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// The switch
    #[arg(value_name = "SWITCH")]
    switch: String,
    /// Commands to run, instead of those of standard input
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    commands: Vec<String>,
    #[command(flatten)]
    sets: Sets,
}

/// A running instance behind its control socket.
struct Socket {
    lab: Lab,
    switch: String,
}

impl Fabric for Socket {
    fn ask(&mut self, request: Request) -> Result<Answer, Busy> {
        instance::ask(&self.lab, Some(&self.switch), &request).map_err(|_| Busy)
    }
}

/// Runs the commands.
///
/// # Errors
/// When no instance runs, it has no such switch, or a command fails.
pub fn run(args: &Args) -> Result<(), Failure> {
    let lab = input::load_running(&args.file, &args.sets.set)?.lab;
    let switch = &args.switch;
    if lab.switches.iter().all(|known| known.name != *switch) {
        let names: Vec<&str> = lab.switches.iter().map(|known| &*known.name).collect();
        return Err(Failure::usage(format_args!("the lab has no switch `{switch}`; it has {}", names.join(", "))));
    }
    // An instance that does not run is reported by its own error.
    let show = Request::Show {
        table: sanloom_api::control::ShowTable::Fabric(sanloom_api::view::build::Which::Switch),
        switch: Some(switch.clone()),
    };
    instance::command(&lab, Some(switch), &show)?;
    let mut fabric = Socket { lab, switch: switch.clone() };
    let here = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let peer = Peer { address: here, local: here, tls: false };
    let session = format!("{switch}/console/{}", std::process::id());
    let shared = Shared::default();
    let index =
        fabric.lab.switches.iter().position(|known| known.name == *switch).and_then(|at| u16::try_from(at).ok());
    if let Some(id) = index.and_then(|index| fabric.lab.vf_id(index)) {
        shared.lock().fabric_id = id;
    }
    let mut console = Console::new(switch, shared, ("admin", Role::Administer), &session, "console", peer);
    let start = Instant::now();
    let now = || {
        let unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        Now { elapsed: start.elapsed(), unix_s }
    };
    let mut last = Reply::default();
    let mut failed = 0_u32;
    let is_single = !args.commands.is_empty();
    let talks = !is_single && stdin().is_terminal();
    // Standard input also has the answers to the questions of the commands.
    let mut lines = is_single.then(|| Ok(joined(&args.commands))).into_iter().chain(stdin().lock().lines());
    while !last.ends {
        if talks && !last.asks {
            write(&console.prompt())?;
        }
        let Some(Ok(line)) = lines.next() else { break };
        last = console.line(now(), &line, &mut fabric);
        write(&last.output)?;
        failed += last.failed;
        if is_single && !last.asks {
            break;
        }
    }
    console.end(now(), &mut fabric);
    if last.asks {
        return Err(Failure::usage(format_args!(
            "the input ends at a question of the last command at {switch}, so nothing was changed; write the answer `y` on \
             the next line"
        )));
    }
    // A person has seen the failure, and may have mended it.
    match (failed, talks) {
        (0, _) | (_, true) => Ok(()),
        (1, _) => Err(Failure::usage(format_args!("a command at {switch} has failed"))),
        (failed, _) => Err(Failure::usage(format_args!("{failed} commands at {switch} have failed"))),
    }
}

/// Line of the words of a command. The shell has removed the quotes around members and names, so an
/// argument with a blank or a `;` inside has them again. A `;` at its end ends the command.
fn joined(words: &[String]) -> String {
    let quoted = |(at, word): (usize, &String)| {
        let argument = word.trim_end_matches(';');
        let has_parts = argument.contains(|c: char| c == ';' || c.is_whitespace());
        match at > 0 && has_parts && !argument.contains(['"', '\'']) {
            true => format!("\"{argument}\"{}", &word[argument.len()..]),
            false => word.clone(),
        }
    };
    words.iter().enumerate().map(quoted).collect::<Vec<_>>().join(" ")
}

fn write(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::environment)
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn arguments_have_the_quotes_again_that_the_shell_has_removed() {
        for (words, line) in [
            (&["nsshow; nscamshow"][..], "nsshow; nscamshow"),
            (&["zonecreate", "z", "a; b"], "zonecreate z \"a; b\""),
            (&["portname", "0", "-n", "array 1"], "portname 0 -n \"array 1\""),
            (&["switchshow", "|", "grep", "x"], "switchshow | grep x"),
            (&["nsshow", ";", "nscamshow"], "nsshow ; nscamshow"),
            (&["alicreate", "a,1,2;", "cfgsave", "-f"], "alicreate a,1,2; cfgsave -f"),
            (&["zonecreate", "z", "a;b;", "cfgsave"], "zonecreate z \"a;b\"; cfgsave"),
        ] {
            assert_eq!(joined(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()), line);
        }
    }
}
