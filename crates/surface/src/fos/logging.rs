//! The event log as a switch shows it: `logging/error-log`, `logging/audit-log`, and `errdump`.

use super::commands::usage;
use super::fault::Fault;
use super::room::Room;
use super::switches::Date;
use super::tree::Element;
use sanloom_api::view::{EventRow, Severity};

/// Virtual fabric of a switch without one.
const DEFAULT_FABRIC: u16 = 128;

/// GET of `error-log`: all events of the switch, oldest first.
pub fn error_log(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    leaves(room, |_| true, "error-log")
}

/// GET of `audit-log`: the actions of users and operators at the switch, oldest first.
pub fn audit_log(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    leaves(room, |row| row.audit, "audit-log")
}

fn leaves(room: &mut Room<'_>, keep: fn(&EventRow) -> bool, name: &'static str) -> Result<Vec<Element>, Fault> {
    let (fabric, switch, now_s) = (fabric_id(room)?, room.friendly_name(), room.now.unix_s);
    let rows = room.events()?.events;
    let entries = rows.iter().filter(|row| keep(row)).map(|row| {
        let mut leaves = vec![
            Element::number("sequence-number", row.sequence),
            Element::text("time-stamp", stamp(row, now_s, ["-", "-", "T"]) + "Z"),
            Element::text("message-id", &row.id),
            Element::number("fabric-id", fabric),
            Element::text("severity-level", row.severity.word().to_ascii_uppercase()),
            Element::text("switch-user-friendly-name", &switch),
            Element::text("message-text", text(row)),
        ];
        if name == "audit-log" {
            let user = if row.user.is_empty() { "operator" } else { &row.user };
            leaves.push(Element::text("event-info", format!("user: {user}")));
        }
        Element::entry(name, leaves)
    });
    Ok(entries.collect())
}

fn fabric_id(room: &mut Room<'_>) -> Result<u16, Fault> {
    Ok(room.own()?.vf_id.unwrap_or(DEFAULT_FABRIC))
}

/// Date and time in UTC. An event without a time of day has the current one.
fn stamp(row: &EventRow, now_s: u64, [first, second, third]: [&str; 3]) -> String {
    let date = Date::of(row.unix_s.map_or(now_s, |unix_s| unix_s.max(0.0) as u64));
    let Date { year, month, day, hour, minute, second: seconds } = date;
    format!("{year:04}{first}{month:02}{second}{day:02}{third}{hour:02}:{minute:02}:{seconds:02}")
}

/// Description, with the number of equal events.
fn text(row: &EventRow) -> String {
    match row.count {
        0 | 1 => row.text.clone(),
        count => format!("{} ({count} times)", row.text),
    }
}

/// Events that `errdump` and `errshow` print.
struct Chosen {
    severity: Option<Severity>,
    count: Option<usize>,
    reverse: bool,
}

fn chosen(words: &[String]) -> Result<Chosen, Fault> {
    let mut chosen = Chosen { severity: None, count: None, reverse: false };
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-a" | "--all" => {}
            "-r" | "--reverse" => chosen.reverse = true,
            "--severity" => chosen.severity = Some(words.next().and_then(Severity::from_word).ok_or_else(usage)?),
            "--count" => chosen.count = Some(words.next().and_then(|word| word.parse().ok()).ok_or_else(usage)?),
            _ => return Err(usage()),
        }
    }
    Ok(chosen)
}

/// Text of `errdump` and `errshow`: the version, and one line for each event. `--count` chooses the
/// newest events, and `--severity` those of one severity.
///
/// # Errors
/// An option is not known, or the fabric is busy.
pub fn dump(room: &mut Room<'_>, words: &[String]) -> Result<String, Fault> {
    let Chosen { severity, count, reverse } = chosen(words)?;
    let (fabric, switch, now_s) = (fabric_id(room)?, room.friendly_name(), room.now.unix_s);
    let mut rows = room.events()?.events;
    rows.retain(|row| severity.is_none_or(|severity| severity == row.severity));
    rows.drain(..rows.len().saturating_sub(count.unwrap_or(usize::MAX)));
    if reverse {
        rows.reverse();
    }
    let mut output = format!("Version: {}\n\n", super::FIRMWARE);
    for row in &rows {
        let stamp = stamp(row, now_s, ["/", "/", "-"]);
        let severity = row.severity.word().to_ascii_uppercase();
        let (id, number, text) = (&row.id, row.sequence, text(row));
        output += &format!("{stamp}, [{id}], {number}, FID {fabric}, {severity}, {switch}, {text}\n");
    }
    Ok(output)
}
