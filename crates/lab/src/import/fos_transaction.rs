//! Fabric OS: transactions of zone commands. Edits last from `cfgsave`, `cfgenable` or
//! `cfgdisable`; `cfgtransabort` takes them back, and the answer "no" takes back the command that
//! has asked.

use super::facts::{At, KINDS, Kind, Object, Objects, ZoneBase};
use super::lines::Reader;
use super::report::Fate;
use sanloom_fc::config::ZoneDefault;
use std::collections::BTreeMap;

/// End of the questions of Fabric OS.
const QUESTION: &str = "(yes, y, no, n):";

/// An object of a database: the number of the database, the kind of object, and the name.
type Place = (usize, Kind, String);

/// Values that edits have replaced.
#[derive(Default)]
pub(super) struct Edits {
    /// Objects before the first edit of each; `None` for those that did not exist.
    objects: BTreeMap<Place, Option<Object>>,
    /// Default zones before, by database.
    defaults: BTreeMap<usize, Option<(ZoneDefault, At)>>,
}

impl Edits {
    /// Notes what an object is before an edit. The first edit counts.
    pub fn object(&mut self, place: Place, before: Option<&Object>) {
        self.objects.entry(place).or_insert_with(|| before.cloned());
    }
}

/// Transactions of one file.
#[derive(Default)]
pub(super) struct Transactions {
    /// Edits that are not saved, by the sighting of their switch.
    open: BTreeMap<usize, Edits>,
    asked: Option<Asked>,
}

impl Transactions {
    /// Returns the edits of a switch that are not saved.
    pub fn edits(&mut self, seen: usize) -> &mut Edits {
        self.open.entry(seen).or_default()
    }
}

/// A command that may be refused by its answer.
struct Asked {
    seen: usize,
    /// The question is in the file, and no answer behind it.
    is_open: bool,
    undo: Undo,
}

/// Values that a command has replaced.
#[derive(Default)]
struct Undo {
    /// Transaction that it has ended.
    ended: Option<Edits>,
    /// Configurations in force, by database.
    in_force: Vec<(usize, InForce)>,
    /// Objects that it has removed.
    objects: Vec<(Place, Object)>,
    defaults: Vec<(usize, Option<(ZoneDefault, At)>)>,
}

/// The configuration in force: its name, whether there is none, and its zones.
type InForce = (Option<(String, At)>, bool, Objects);

/// Returns whether the commands of a switch apply to a database.
pub(super) fn is_of(base: &ZoneBase, seen: usize) -> bool {
    base.seen == seen && base.vsan.is_none()
}

/// Notes a command that asks, unless it is told not to. It has changed nothing yet.
pub(super) fn ask(reader: &mut Reader<'_>, rest: &str) {
    let asks = !rest.split_whitespace().any(|word| word == "-f");
    let seen = reader.seen;
    reader.transactions.asked = asks.then(|| Asked { seen, is_open: false, undo: Undo::default() });
}

/// Notes that no command waits for an answer.
pub(super) fn forget(reader: &mut Reader<'_>) {
    reader.transactions.asked = None;
}

/// Ends the transaction of the present switch; its edits stay.
pub(super) fn save(reader: &mut Reader<'_>) {
    let edits = reader.transactions.open.remove(&reader.seen);
    if let Some(asked) = &mut reader.transactions.asked {
        asked.undo.ended = edits;
    }
}

/// Sets the configuration in force of a database, whose zones in force are so no longer.
pub(super) fn put_in_force(reader: &mut Reader<'_>, number: usize, enabled: Option<(String, At)>, is_disabled: bool) {
    let base = &mut reader.facts.zones[number];
    let active = std::mem::take(&mut base.active);
    let before = (std::mem::replace(&mut base.enabled, enabled), base.is_disabled, active);
    base.is_disabled = is_disabled;
    if let Some(asked) = &mut reader.transactions.asked {
        asked.undo.in_force.push((number, before));
    }
}

/// Removes all objects of a database.
pub(super) fn clear(reader: &mut Reader<'_>, number: usize) {
    let mut defined = std::mem::take(&mut reader.facts.zones[number].defined);
    let edits = reader.transactions.edits(reader.seen);
    let mut removed = Vec::new();
    for kind in KINDS {
        for (name, object) in std::mem::take(defined.of_mut(kind)) {
            edits.object((number, kind, name.clone()), Some(&object));
            removed.push(((number, kind, name), object));
        }
    }
    if let Some(asked) = &mut reader.transactions.asked {
        asked.undo.objects.extend(removed);
    }
}

/// Sets the default zone of a database, as part of the transaction.
pub(super) fn set_default(reader: &mut Reader<'_>, number: usize, default: (ZoneDefault, At)) {
    let before = reader.facts.zones[number].default.replace(default);
    reader.transactions.edits(reader.seen).defaults.entry(number).or_insert(before);
    if let Some(asked) = &mut reader.transactions.asked {
        asked.undo.defaults.push((number, before));
    }
}

/// Notes a default zone that an output calls committed.
pub(super) fn committed_default(reader: &mut Reader<'_>, number: usize, default: (ZoneDefault, At)) {
    reader.facts.zones[number].default = Some(default);
    if let Some(edits) = reader.transactions.open.get_mut(&reader.seen) {
        edits.defaults.insert(number, Some(default));
    }
}

/// Ends the transaction of the present switch and takes its edits back. Outputs since then have
/// shown the edits, so that their objects become those before, too.
pub(super) fn abort(reader: &mut Reader<'_>) {
    let seen = reader.seen;
    let Some(edits) = reader.transactions.open.remove(&seen) else { return };
    let last_edited = edits.objects.keys().map(|place| place.0).max().unwrap_or(0);
    let later: Vec<usize> =
        (last_edited + 1..reader.facts.zones.len()).filter(|base| is_of(&reader.facts.zones[*base], seen)).collect();
    for ((number, kind, name), before) in edits.objects {
        for base in later.iter().copied().chain([number]) {
            let base = &mut reader.facts.zones[base];
            match &before {
                Some(object) => base.put(kind, &name, object.clone()),
                None => _ = base.defined.of_mut(kind).remove(&name),
            }
        }
    }
    for (number, before) in edits.defaults {
        reader.facts.zones[number].default = before;
    }
}

/// Takes back the command that has asked.
fn refuse(reader: &mut Reader<'_>) {
    let Some(Asked { seen, undo, .. }) = reader.transactions.asked.take() else { return };
    for ((number, kind, name), object) in undo.objects {
        reader.facts.zones[number].put(kind, &name, object);
    }
    for (number, (enabled, is_disabled, active)) in undo.in_force.into_iter().rev() {
        let base = &mut reader.facts.zones[number];
        (base.enabled, base.is_disabled, base.active) = (enabled, is_disabled, active);
    }
    for (number, default) in undo.defaults.into_iter().rev() {
        reader.facts.zones[number].default = default;
    }
    if let Some(ended) = undo.ended {
        reader.transactions.open.insert(seen, ended);
    }
}

/// Returns whether an output says that a command has done nothing.
fn is_cancelled(text: &str) -> bool {
    text.to_ascii_lowercase().contains("operation cancel")
}

/// Reads the question of a command, or the answer. `None`: the line is neither.
pub(super) fn answer(reader: &mut Reader<'_>, text: &str) -> Option<Fate> {
    let asked = reader.transactions.asked.as_mut()?;
    let (is_question, rest) = match text.rsplit_once(QUESTION) {
        Some((_, rest)) => (true, rest.trim().trim_start_matches("[no]").trim()),
        None => (false, text),
    };
    match rest.to_ascii_lowercase().as_str() {
        "n" | "no" => refuse(reader),
        "y" | "yes" => forget(reader),
        // The next line shows the effect of any other word.
        word if is_question && !word.contains(char::is_whitespace) => asked.is_open = true,
        _ if is_cancelled(rest) => refuse(reader),
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
