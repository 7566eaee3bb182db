//! Commands in the words of NX-OS: [`run`].

use super::config::{devices, interfaces, system, zones};
use super::pattern::{Pattern, Values, best};
use super::reply::{Outcome, Problem, Shown};
use super::session::{Place, Session};
use super::show;
use crate::fos::commands::Reply;
use crate::fos::commands::filters::{Filter, MAX_FILTERS, compile, split};
use crate::server::users::Role;
use std::sync::LazyLock;

/// Longest command in bytes.
pub const MAX_COMMAND: usize = 8 << 10;

/// Kind of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Shows something.
    Show,
    /// Changes nothing, and needs no place.
    Plain,
    /// Changes something, at any place.
    Change,
    /// Changes the object of a place.
    At(Where),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Where {
    Members,
    Vsans,
    DeviceAliases,
    Interfaces,
}

type Call = fn(&mut Session<'_>, &Values) -> Outcome;

struct Command(&'static str, Kind, Call);

const fn show(pattern: &'static str, call: Call) -> Command {
    Command(pattern, Kind::Show, call)
}

const fn plain(pattern: &'static str, call: Call) -> Command {
    Command(pattern, Kind::Plain, call)
}

const fn change(pattern: &'static str, call: Call) -> Command {
    Command(pattern, Kind::Change, call)
}

const fn at(place: Where, pattern: &'static str, call: Call) -> Command {
    Command(pattern, Kind::At(place), call)
}

const COMMANDS: &[Command] = &[
    show("show version", show::system::version),
    show("show inventory", show::system::inventory),
    show("show switchname", show::system::switch_name),
    show("show hostname", show::system::switch_name),
    show("show clock", show::system::clock),
    show("show module", show::parts::modules),
    show("show feature", show::parts::features),
    show("show system uptime", show::parts::uptime),
    show("show vsan [VSAN]", show::system::vsans),
    show("show vsan [VSAN] membership", show::system::membership),
    show("show topology [vsan VSAN]", show::system::topology),
    show("show fcdomain [vsan VSAN]", show::system::fcdomain),
    show("show fcdomain domain-list [vsan VSAN]", show::system::domains),
    show("show zone status [vsan VSAN]", show::zones::status),
    show("show zone [name NAME] [active] [vsan VSAN]", show::zones::zone),
    show("show zone pending-diff [vsan VSAN]", show::pending::difference),
    show("show zoneset brief [vsan VSAN]", show::pending::brief),
    show("show zoneset [name NAME] [active] [vsan VSAN]", show::zones::zone_set),
    show("show fcalias [name NAME] [vsan VSAN]", show::zones::fcalias),
    show("show device-alias database", show::devices::aliases),
    show("show device-alias name NAME", show::devices::aliases),
    show("show device-alias pwwn WWN", show::devices::aliases),
    show("show device-alias status", show::devices::alias_status),
    show("show device-alias pending", show::devices::alias_pending),
    show("show flogi database [vsan VSAN]", show::devices::flogi),
    show("show flogi database interface IFACE", show::devices::flogi),
    show("show fcns database [detail] [vsan VSAN]", show::devices::fcns),
    show("show fcns database [vsan VSAN] detail", show::devices::fcns),
    show("show fcns database domain DOMAIN [detail] [vsan VSAN]", show::devices::fcns),
    show("show interface description", show::parts::descriptions),
    show("show interface transceiver", show::parts::transceivers),
    show("show interface brief", show::interfaces::brief),
    show("show interface counters", show::interfaces::counters),
    show("show interface [TEXT]", show::interfaces::detailed),
    show("show logging logfile", show::logging::log_file),
    show("show logging last NUMBER", show::logging::log_file),
    show("show running-config", show::config::running),
    show("show running-config interface [TEXT]", show::config::interfaces),
    show("show running-config zone [vsan VSAN]", show::config::zoning_only),
    show("show running-config vsan", show::config::vsans_only),
    show("show running-config device-alias", show::config::aliases_only),
    plain("configure [terminal]", system::top),
    plain("end", system::top),
    plain("exit", system::top),
    plain("[no] terminal dont-ask", system::nothing),
    plain("terminal length LENGTH", system::nothing),
    plain("terminal width WIDTH", system::nothing),
    change("copy running-config startup-config", system::copy),
    // N_Port ID virtualisation and this interface are always on.
    change("feature npiv", system::nothing),
    change("feature nxapi", system::nothing),
    change("switchname NAME", system::switch_name),
    change("hostname NAME", system::switch_name),
    change("zone name NAME vsan VSAN", zones::zone),
    change("no zone name NAME vsan VSAN", zones::no_zone),
    change("zone rename OLD NEW vsan VSAN", zones::rename_zone),
    change("zone clone OLD NEW vsan VSAN", zones::clone_zone),
    change("zoneset name NAME vsan VSAN", zones::zone_set),
    change("no zoneset name NAME vsan VSAN", zones::no_zone_set),
    change("fcalias name NAME vsan VSAN", zones::fcalias),
    change("no fcalias name NAME vsan VSAN", zones::no_fcalias),
    change("zoneset activate name NAME vsan VSAN", zones::activate),
    change("no zoneset activate [name NAME] vsan VSAN", zones::deactivate),
    change("zone commit vsan VSAN", zones::commit),
    change("no zone commit vsan VSAN", zones::discard),
    change("clear zone lock vsan VSAN", zones::discard),
    change("clear zone database vsan VSAN", zones::clear),
    change("do clear zone database vsan VSAN", zones::clear),
    change("zone mode enhanced vsan VSAN", zones::enhanced),
    change("no zone mode enhanced vsan VSAN", zones::basic),
    change("zone default-zone permit vsan VSAN", zones::permit),
    change("no zone default-zone permit vsan VSAN", zones::deny),
    change("zone smart-zoning enable vsan VSAN", zones::smart),
    change("no zone smart-zoning enable vsan VSAN", zones::no_smart),
    change("vsan database", system::vsans),
    change("device-alias database", devices::database),
    change("device-alias commit", devices::commit),
    change("device-alias abort", devices::abort),
    change("device-alias distribute", devices::distribute),
    change("no device-alias distribute", devices::no_distribute),
    change("device-alias mode enhanced", devices::enhanced),
    change("no device-alias mode enhanced", devices::basic),
    change("interface TEXT", interfaces::interfaces),
    at(Where::Members, "member TEXT", zones::member),
    at(Where::Members, "no member TEXT", zones::no_member),
    at(Where::Vsans, "vsan VSAN", system::vsan),
    at(Where::Vsans, "vsan VSAN name TEXT", system::vsan),
    at(Where::Vsans, "vsan VSAN suspend", system::end_vsan),
    at(Where::Vsans, "no vsan VSAN suspend", system::resume),
    at(Where::Vsans, "no vsan VSAN", system::end_vsan),
    at(Where::Vsans, "vsan VSAN interface TEXT", system::membership),
    at(Where::DeviceAliases, "device-alias name NAME pwwn WWN", devices::add),
    at(Where::DeviceAliases, "no device-alias name NAME", devices::remove),
    at(Where::DeviceAliases, "device-alias rename OLD NEW", devices::rename),
    at(Where::Interfaces, "shutdown", interfaces::shut),
    at(Where::Interfaces, "no shutdown", interfaces::no_shut),
    at(Where::Interfaces, "switchport description TEXT", interfaces::description),
    at(Where::Interfaces, "no switchport description", interfaces::description),
    at(Where::Interfaces, "switchport speed TEXT", interfaces::speed),
    at(Where::Interfaces, "no switchport speed [TEXT]", interfaces::no_speed),
    at(Where::Interfaces, "switchport mode MODE", interfaces::port_mode),
    at(Where::Interfaces, "no switchport mode [MODE]", interfaces::no_mode),
    at(Where::Interfaces, "switchport trunk mode MODE", interfaces::trunk_mode),
    at(Where::Interfaces, "no switchport trunk mode [MODE]", interfaces::no_trunk_mode),
];

static PATTERNS: LazyLock<Vec<Pattern>> =
    LazyLock::new(|| COMMANDS.iter().map(|Command(pattern, ..)| Pattern::new(pattern)).collect());

/// Commands that a message permits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permitted {
    /// `show` only.
    Show,
    /// Changes only.
    Changes,
    /// All.
    All,
}

fn is_at(place: &Place, wanted: Where) -> bool {
    match wanted {
        Where::Members => matches!(place, Place::Zone(..) | Place::Set(..) | Place::Alias(..)),
        Where::Vsans => *place == Place::Vsans,
        Where::DeviceAliases => *place == Place::DeviceAliases,
        Where::Interfaces => matches!(place, Place::Interfaces(_)),
    }
}

fn find(place: &Place, text: &str) -> Result<(&'static Command, Values), Problem> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let reachable = |kind: Kind| if let Kind::At(wanted) = kind { is_at(place, wanted) } else { true };
    let matching = PATTERNS.iter().zip(COMMANDS).enumerate().filter(|(_, (_, command))| reachable(command.1));
    let mut found: Vec<(usize, Values, usize)> = matching
        .filter_map(|(at, (pattern, _))| pattern.matches(&words).map(|(values, short)| (at, values, short)))
        .collect();
    match best(&found) {
        Ok(index) => {
            let (at, values, _) = found.swap_remove(index);
            Ok((&COMMANDS[at], values))
        }
        Err(true) => Err(Problem::Syntax("% Ambiguous command\n".to_owned())),
        Err(false) => Err(Problem::Syntax("% Invalid command\n".to_owned())),
    }
}

/// Finds a command at each place, and its filters. For tests of the parser.
pub fn check(line: &str) -> bool {
    let places =
        [Place::Top, Place::Zone(1, String::new()), Place::Vsans, Place::DeviceAliases, Place::Interfaces(Vec::new())];
    let parts = split(line);
    let [command, filters @ ..] = &parts[..] else { return false };
    filters.iter().all(|text| text == "json" || filter(text).is_ok())
        && places.iter().any(|place| find(place, command).is_ok())
}

/// True for a command that shows something.
pub fn is_show(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    word.len() >= 2 && "show".starts_with(&word)
}

/// Commands of a line, with `;` between them. A `;` in quotes is part of a command, and so is one
/// within a description, where a blank stands before the `;` that ends it.
pub fn split_line(line: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for line in line.lines() {
        let mut start = 0;
        for (at, _) in line.match_indices(';') {
            let (command, rest) = (&line[start..at], &line[at..]);
            let is_quoted = command.matches('"').count() % 2 == 1 && rest.contains('"');
            if is_quoted || is_description(command) && !command.ends_with(char::is_whitespace) {
                continue;
            }
            all.push(command);
            start = at + 1;
        }
        all.push(&line[start..]);
    }
    all.into_iter().map(str::trim).filter(|command| !command.is_empty()).collect()
}

/// True for a command whose last argument is any text.
fn is_description(command: &str) -> bool {
    let mut words = command.split_whitespace().map(str::to_ascii_lowercase);
    let mut is = |name: &str, least: usize| {
        words.next().is_some_and(|word| word.len() >= least && name.starts_with(word.as_str()))
    };
    is("switchport", 2) && is("description", 1)
}

/// Runs a command. Output that is not text has no filters.
///
/// # Errors
/// The command is not valid or not permitted, or the switch refuses it.
pub fn run(session: &mut Session<'_>, line: &str, permitted: Permitted, is_text: bool) -> Outcome {
    if line.len() > MAX_COMMAND {
        return Err(Problem::Syntax("% Command is too long\n".to_owned()));
    }
    if permitted == Permitted::Changes && is_show(line) {
        return Err(Problem::NotConfiguration);
    }
    // Clients save the configuration with the messages that they use to read.
    let is_copy = line.trim_start().starts_with("copy");
    let is_change = || !is_copy && find(&session.place, line).is_ok_and(|(found, _)| needs_role(found.1));
    if permitted == Permitted::Show && !is_show(line) && is_change() {
        return Err(Problem::NotShow);
    }
    // Only outputs have filters: a description may have the character.
    let parts = if is_show(line) { split(line) } else { vec![line.trim().to_owned()] };
    let [command, filters @ ..] = &parts[..] else { return Err(Problem::Syntax(String::new())) };
    if filters.len() > MAX_FILTERS {
        return Err(Problem::Syntax("% Too many filters\n".to_owned()));
    }
    // Values as text come from the command itself, so they are the first filter.
    let (as_json, filters) = match filters {
        [first, rest @ ..] if first == "json" => (true, rest),
        filters => (false, filters),
    };
    if as_json && !is_text {
        return Err(Problem::Piped);
    }
    let filters: Vec<Filter> = filters.iter().filter_map(|text| filter(text).transpose()).collect::<Result<_, _>>()?;
    if !filters.is_empty() && !is_text {
        return Err(Problem::Piped);
    }
    let (Command(_, kind, call), values) = find(&session.place, command)?;
    if needs_role(*kind) && session.room.who.role < Role::Operate {
        return Err(Problem::Denied);
    }
    let mut shown = match call(session, &values) {
        Err(Problem::Absent(text)) if is_text => Shown::text(text),
        other => other?,
    };
    if as_json {
        let body = shown.body.take().ok_or(Problem::Unstructured)?;
        shown = Shown::text(format!("{body}\n"));
    }
    if filters.is_empty() {
        return Ok(shown);
    }
    let reply = Reply { output: shown.text, ..Reply::default() };
    Ok(Shown::text(filters.iter().fold(reply, |reply, filter| filter.apply(reply)).output))
}

fn needs_role(kind: Kind) -> bool {
    matches!(kind, Kind::Change | Kind::At(_))
}

/// Number of lines without an argument.
const LINES: usize = 10;

/// Reads a filter that only NX-OS has.
fn own_filter(name: &str, arguments: &[String]) -> Option<Result<Filter, Problem>> {
    let invalid = || Problem::Syntax("% Invalid command\n".to_owned());
    let pattern = |words: &[String], of: fn(regex::bytes::Regex) -> Filter| match words {
        [] => Err(invalid()),
        words => compile(&words.join(" "), false).map(of).ok_or_else(invalid),
    };
    let count = |of: fn(usize) -> Filter| match arguments {
        [] => Ok(of(LINES)),
        [number] => number.parse().map(of).map_err(|_| invalid()),
        [word, number] if word == "lines" || word == "-n" => number.parse().map(of).map_err(|_| invalid()),
        _ => Err(invalid()),
    };
    Some(match (name, arguments) {
        ("begin", words) => pattern(words, Filter::Begin),
        ("section", [include, words @ ..]) if include == "include" => pattern(words, Filter::Section),
        ("section", words) => pattern(words, Filter::Section),
        ("head", _) => count(Filter::Head),
        ("last", _) => count(Filter::Last),
        _ => return None,
    })
}

/// Reads a filter in the words of NX-OS; `None` for one without an effect.
fn filter(text: &str) -> Result<Option<Filter>, Problem> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let mut arguments: Vec<String> = words.map(|word| word.trim_matches(['"', '\'']).to_owned()).collect();
    if let Some(filter) = own_filter(name, &arguments) {
        return filter.map(Some);
    }
    let name = match name {
        "no-more" => return Ok(None),
        "include" | "i" | "inc" => "grep",
        "exclude" | "ex" => {
            arguments.insert(0, "-v".to_owned());
            "grep"
        }
        "count" => {
            arguments = vec!["-l".to_owned()];
            "wc"
        }
        name => name,
    };
    // A pattern may have spaces.
    if name == "grep" {
        let options = arguments.iter().take_while(|word| word.starts_with('-')).count();
        let pattern = arguments.split_off(options).join(" ");
        arguments.push(pattern);
    }
    match Filter::read(name, &arguments) {
        Ok(filter) => Ok(Some(filter)),
        Err(_) => Err(Problem::Syntax("% Invalid command\n".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_found_by_its_own_words() {
        for Command(pattern, kind, _) in COMMANDS {
            let place = match kind {
                Kind::At(Where::Members) => Place::Zone(1, String::new()),
                Kind::At(Where::Vsans) => Place::Vsans,
                Kind::At(Where::DeviceAliases) => Place::DeviceAliases,
                Kind::At(Where::Interfaces) => Place::Interfaces(Vec::new()),
                _ => Place::Top,
            };
            let line = pattern.replace(['[', ']'], "").replace("VSAN", "20");
            let (found, _) = find(&place, &line).unwrap_or_else(|problem| panic!("{line}: {problem:?}"));
            assert_eq!(found.0, *pattern);
        }
    }

    #[test]
    fn shortened_commands_are_found_unless_they_are_ambiguous() {
        let name = |line| find(&Place::Top, line).map(|(command, _)| command.0).ok();
        assert_eq!(name("sh int br"), Some("show interface brief"));
        assert_eq!(name("conf t"), Some("configure [terminal]"));
        assert_eq!(name("show zone"), Some("show zone [name NAME] [active] [vsan VSAN]"));
        assert_eq!(find(&Place::Top, "sh f d").err(), Some(Problem::Syntax("% Ambiguous command\n".to_owned())));
        assert_eq!((name("member pwwn x"), name("show"), name("")), (None, None, None));
    }
}
