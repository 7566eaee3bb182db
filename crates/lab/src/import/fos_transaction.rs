//! Fabric OS: transactions of zone commands. Edits last from `cfgsave`, `cfgenable` or
//! `cfgdisable`; `cfgtransabort` takes them back, and the answer "no" takes back the command that
//! has asked.

use super::facts::{Objects, ZoneBase};
use super::lines::Reader;
use super::report::Fate;
use std::collections::BTreeMap;

/// End of the questions of Fabric OS.
const QUESTION: &str = "(yes, y, no, n):";

/// Databases of a switch, by number, as they were at some time.
type Snapshot = Vec<(usize, ZoneBase)>;

/// Transactions of one file.
#[derive(Default)]
pub(super) struct Transactions {
    /// Databases before the edits that are not saved, by the sighting of their switch.
    open: BTreeMap<usize, Snapshot>,
    asked: Option<Asked>,
}

/// A command that waits for its answer.
struct Asked {
    seen: usize,
    /// Databases before the command.
    before: Snapshot,
    /// The transaction that was open before the command.
    open: Option<Snapshot>,
    /// The question is in the file, and no answer behind it.
    is_open: bool,
}

fn snapshot(reader: &Reader<'_>) -> Snapshot {
    let zones = reader.facts.zones.iter().enumerate();
    zones.filter(|(_, base)| is_of(base, reader.seen)).map(|(number, base)| (number, base.clone())).collect()
}

/// Returns whether the commands of a switch apply to a database.
pub(super) fn is_of(base: &ZoneBase, seen: usize) -> bool {
    base.seen == seen && base.vsan.is_none()
}

/// Restores the databases of a switch. Outputs since then have shown the edits, so that they get
/// the objects of the last database before.
fn restore(reader: &mut Reader<'_>, seen: usize, snapshot: Snapshot) {
    let last = snapshot.last().map_or_else(Objects::default, |(_, base)| base.defined.clone());
    let of_switch = |base: &&mut ZoneBase| is_of(base, seen);
    for base in reader.facts.zones.iter_mut().filter(of_switch) {
        base.defined.clone_from(&last);
    }
    for (number, before) in snapshot {
        reader.facts.zones[number] = before;
    }
}

/// Notes that a command is about to edit the databases of the present switch.
pub(super) fn edit(reader: &mut Reader<'_>) {
    if !reader.transactions.open.contains_key(&reader.seen) {
        let before = snapshot(reader);
        reader.transactions.open.insert(reader.seen, before);
    }
}

/// Ends the transaction of the present switch; its edits stay.
pub(super) fn save(reader: &mut Reader<'_>) {
    reader.transactions.open.remove(&reader.seen);
}

/// Ends the transaction of the present switch and takes its edits back.
pub(super) fn abort(reader: &mut Reader<'_>) {
    if let Some(before) = reader.transactions.open.remove(&reader.seen) {
        restore(reader, reader.seen, before);
    }
}

/// Notes that a command that asks is about to change the present switch.
pub(super) fn ask(reader: &mut Reader<'_>) {
    let (seen, before) = (reader.seen, snapshot(reader));
    let open = reader.transactions.open.get(&seen).cloned();
    reader.transactions.asked = Some(Asked { seen, before, open, is_open: false });
}

/// Notes that the next line belongs to a command without a question.
pub(super) fn forget(reader: &mut Reader<'_>) {
    reader.transactions.asked = None;
}

/// Takes back the command that has asked.
fn refuse(reader: &mut Reader<'_>) {
    let Some(Asked { seen, before, open, .. }) = reader.transactions.asked.take() else { return };
    // A database that the command has begun shows nothing.
    let is_new = |number: usize| before.iter().all(|(known, _)| *known != number);
    for (number, base) in reader.facts.zones.iter_mut().enumerate().filter(|(_, base)| is_of(base, seen)) {
        if is_new(number) {
            *base = ZoneBase { at: base.at, seen, ..ZoneBase::default() };
        }
    }
    restore(reader, seen, before);
    match open {
        Some(open) => reader.transactions.open.insert(seen, open),
        None => reader.transactions.open.remove(&seen),
    };
}

/// Reads the question of a command, or the answer. `None`: the line is neither.
pub(super) fn answer(reader: &mut Reader<'_>, text: &str) -> Option<Fate> {
    let asked = reader.transactions.asked.as_mut()?;
    let (is_question, word) = match text.rsplit_once(QUESTION) {
        Some((_, rest)) => (true, rest.trim().trim_start_matches("[no]").trim()),
        None => (false, text),
    };
    match word.to_ascii_lowercase().as_str() {
        "n" | "no" => refuse(reader),
        "y" | "yes" => forget(reader),
        "" if is_question => asked.is_open = true,
        // The answer is not in the log, but what the command did then is.
        _ if is_question => forget(reader),
        _ => return None,
    }
    Some(Fate::Decoration)
}

/// Notes that a prompt is in the file. A question without an answer, and without an output behind
/// it, was answered with the default: no.
pub(super) fn prompt(reader: &mut Reader<'_>) {
    if reader.transactions.asked.as_ref().is_some_and(|asked| asked.is_open) {
        refuse(reader);
    }
    forget(reader);
}

/// Notes that a line is in the file that is no prompt and no answer. Behind a question, the command
/// has done something.
pub(super) fn output(reader: &mut Reader<'_>) {
    if reader.transactions.asked.as_ref().is_some_and(|asked| asked.is_open) {
        forget(reader);
    }
}
