//! A file of zone edits: `[[edit]]`.

use super::nodes::Names;
use super::zone_members::Members;
use super::zones::{ALL_ZONES, hand_out, once, zone_named};
use crate::check::{self, Checked};
use crate::diagnostic::{Origin, Sink};
use crate::document::{Budget, UNKNOWN_SECTION, bad_zone_name};
use crate::element::Element;
use crate::schema::{self, EditAction, Key};
use crate::value::{self, Places};
use crate::{suggest, syntax};
use sanloom_fc::config::ZoneMember;
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::{
    AliasMembers, MemberRef, ObjectKind, Transaction, ZoneDatabase, ZoneDefinition, ZoneEdit, ZoneProblem,
};
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

/// Code of an edit that cannot be applied.
pub(crate) const BAD_EDIT: &str = "bad-edit";

const KINDS: [(&str, ObjectKind); 3] =
    [("zone", ObjectKind::Zone), ("alias", ObjectKind::Alias), ("config", ObjectKind::Config)];

/// Reads and applies the edits, and reports errors to `sink`. The transaction is valid only if
/// there are none.
pub(crate) fn edit_zones(text: &str, lab: &Lab, sink: &mut Sink) -> Edited {
    let root = syntax::parse(text, sink);
    let mut tables = tables(&root, sink);
    // TOML keeps the order of an array, and the file contains a single array, so this is the order
    // of the file.
    let mut editor = Editor::begin(lab, &lab.zone_database, sink);
    if editor.sink.has_syntax_errors() {
        return Edited { transaction: editor.transaction, edits: Vec::new() };
    }
    for (header, checked) in tables.drain(..) {
        let element = Element {
            def: &schema::EDIT,
            name: String::new(),
            offset: 0,
            count: 1,
            header,
            layers: vec![&checked],
            sets: Vec::new(),
        };
        editor.edit(&element);
    }
    editor.finish()
}

/// The applied edits in order, and the resulting transaction.
#[derive(Debug)]
pub(crate) struct Edited {
    pub transaction: Transaction,
    pub edits: Vec<ZoneEdit>,
}

/// Applies the edits of a lab to a database, and reports errors to `sink`.
pub(super) fn edit_database(lab: &Lab, base: &ZoneDatabase, elements: &[&Element<'_>], sink: &mut Sink) -> Edited {
    let mut editor = Editor::begin(lab, base, sink);
    elements.iter().for_each(|element| editor.edit(element));
    editor.finish()
}

fn tables(root: &DeTable<'_>, sink: &mut Sink) -> Vec<(Origin, Checked)> {
    let def = &schema::EDIT;
    let mut found = Vec::new();
    for (name, value) in root {
        let origin = Places::File.origin(name.span());
        if name.get_ref() != def.name {
            sink.error(
                UNKNOWN_SECTION,
                &origin,
                format!("there is no section `{}` in a file of zone edits", value::cut(name.get_ref())),
                format!("write {}", def.heading()),
            );
            continue;
        }
        let DeValue::Array(items) = value.get_ref() else {
            let heading = def.heading();
            value::wrong_type(value.get_ref(), "a list of tables", &heading, &origin, sink);
            continue;
        };
        for item in items.iter() {
            let origin = Places::File.origin(item.span());
            match item.get_ref() {
                DeValue::Table(table) => found.push((origin, check::table(def, table, Places::File, sink))),
                other => value::wrong_type(other, "a table", &def.heading(), &origin, sink),
            }
        }
    }
    found
}

struct Editor<'e> {
    lab: &'e Lab,
    names: Names,
    budget: Budget,
    transaction: Transaction,
    /// Edits applied so far.
    done: Vec<ZoneEdit>,
    /// Location of the last edit of each object.
    touched: BTreeMap<String, Origin>,
    says_what_is_in_force: bool,
    sink: &'e mut Sink,
}

impl<'e> Editor<'e> {
    fn begin(lab: &'e Lab, base: &ZoneDatabase, sink: &'e mut Sink) -> Editor<'e> {
        Editor {
            lab,
            names: Names::of(lab),
            budget: Budget::new(),
            transaction: Transaction::begin(base, lab.zone_policy.limits),
            done: Vec::new(),
            touched: BTreeMap::new(),
            says_what_is_in_force: false,
            sink,
        }
    }

    fn edit(&mut self, element: &Element<'_>) {
        element.require_keys(self.sink);
        let Some(action) = element.choice("action", schema::EDIT_ACTIONS) else { return };
        let (needed, wanted): (&[&str], &[&str]) = match action {
            EditAction::Create | EditAction::Add | EditAction::Remove => (&[], &["members", "principals", "zones"]),
            EditAction::Rename => (&["to"], &["to"]),
            EditAction::Default => (&["default"], &["default"]),
            EditAction::Enable => (&["config"], &[]),
            EditAction::Delete | EditAction::Disable => (&[], &[]),
        };
        let about: &[&str] = match action {
            EditAction::Enable => &["config"],
            EditAction::Disable | EditAction::Default => &[],
            _ => &["zone", "alias", "config"],
        };
        let mut complete = true;
        for key in needed.iter().filter_map(|key| element.def.key(key)).filter(|key| !element.is_given(key.path)) {
            element.require(key, self.sink);
            complete = false;
        }
        let of_edits = |key: &&Key| schema::EDIT.key(key.path).is_some() && key.path != "action";
        for key in element.def.keys.iter().filter(of_edits).filter(|key| element.is_given(key.path)) {
            if !wanted.contains(&key.path) && !about.contains(&key.path) {
                let reason = format!("this edit does not use `{}`", key.path);
                self.sink.error(BAD_EDIT, &element.origin(key.path), reason, "leave it out, or check `action`");
                complete = false;
            }
        }
        if !complete {
            return;
        }
        match action {
            EditAction::Disable => self.apply_in_force(ZoneEdit::Disable, element),
            EditAction::Default => {
                if let Some(default) = element.choice("default", schema::ZONE_DEFAULTS) {
                    self.apply(ZoneEdit::SetDefault(default), &element.origin("default"), None);
                }
            }
            _ => self.edit_object(action, element),
        }
    }

    fn edit_object(&mut self, action: EditAction, element: &Element<'_>) {
        let given: Vec<_> = KINDS.into_iter().filter(|(key, _)| element.is_given(key)).collect();
        let [(key, kind)] = given[..] else {
            self.sink.error(
                BAD_EDIT,
                &element.header,
                "an edit is about one `zone`, one `alias` or one `config`",
                "give one of the three keys; a range names several zones",
            );
            return;
        };
        let lists = Lists::of(kind);
        if !self.lists_fit(action, kind, &lists, element) {
            return;
        }
        let Some((text, origin)) = element.patterns(key).first() else { return };
        let Some(names) = self.budget.expand(text, origin, self.sink) else { return };
        let edits = match action {
            EditAction::Create | EditAction::Add | EditAction::Remove => self.edits_of(action, kind, &names, element),
            _ => names.iter().map(|name| whole(action, kind, name.clone(), element)).collect(),
        };
        for (name, edit) in names.iter().zip(edits) {
            if matches!(edit, ZoneEdit::Enable(_)) {
                self.apply_in_force(edit, element);
            } else {
                let to = element.origin("to");
                let is_known = action == EditAction::Rename && self.transaction.defined().has(kind, name);
                self.apply(edit, if is_known { &to } else { origin }, Some((kind, name)));
            }
            self.touched.insert(name.clone(), element.header.clone());
            if let Some(to) = element.text("to") {
                self.touched.insert(to.to_owned(), element.header.clone());
            }
        }
    }

    /// Checks that an edit with lists gives a list of its own kind of object, and none of another
    /// kind.
    fn lists_fit(&mut self, action: EditAction, kind: ObjectKind, lists: &Lists, element: &Element<'_>) -> bool {
        if !matches!(action, EditAction::Create | EditAction::Add | EditAction::Remove) {
            return true;
        }
        let first = lists.own[0];
        if let Some(key) = lists.foreign.iter().find(|key| element.is_given(key)) {
            let reason = format!("{} has no `{key}`", kind.with_article());
            self.sink.error(BAD_EDIT, &element.origin(key), reason, format!("it has `{first}`"));
            return false;
        }
        if !lists.own.iter().any(|key| element.is_given(key)) {
            let reason = format!("`{first}` is missing");
            self.sink.error(check::MISSING_KEY, &element.header, reason, format!("add `{first}`"));
            return false;
        }
        true
    }

    /// Returns one edit for each name, with its share of the element's lists.
    fn edits_of(
        &mut self,
        action: EditAction,
        kind: ObjectKind,
        names: &[String],
        element: &Element<'_>,
    ) -> Vec<ZoneEdit> {
        let names = names.iter().cloned();
        match kind {
            ObjectKind::Alias => {
                let lists = self.members(element, "members", names.len(), &BTreeMap::new());
                let plain = |member| match member {
                    MemberRef::Member(member) => Some(member),
                    MemberRef::Alias(_) => None,
                };
                let lists = lists.into_iter().map(|list| list.into_iter().filter_map(plain).collect());
                names.zip(lists).map(|(name, members)| alias_edit(action, name, members)).collect()
            }
            ObjectKind::Zone => {
                let aliases = self.transaction.defined().aliases.clone();
                let [members, principals] =
                    ["members", "principals"].map(|key| self.members(element, key, names.len(), &aliases));
                let zones = members.into_iter().zip(principals);
                let zones = zones.map(|(members, principals)| ZoneDefinition { members, principals });
                names.zip(zones).map(|(name, zone)| zone_edit(action, name, zone)).collect()
            }
            ObjectKind::Config => {
                let lists = self.zones(action, element, names.len());
                names.zip(lists).map(|(name, zones)| config_edit(action, name, zones)).collect()
            }
        }
    }

    /// Returns the members listed by a key, distributed to `count` objects. If `aliases` is empty,
    /// all members are plain.
    fn members(
        &mut self,
        element: &Element<'_>,
        key: &str,
        count: usize,
        aliases: &BTreeMap<String, AliasMembers>,
    ) -> Vec<Vec<MemberRef>> {
        let members = Members { lab: self.lab, names: &self.names, aliases };
        let read = |text: &str, origin: &Origin, sink: &mut Sink| members.with_aliases(text, origin, sink);
        let lists = hand_out(element, key, count, &mut self.budget, self.sink, read);
        lists.into_iter().map(once).collect()
    }

    /// Returns the zones listed by an edit of configurations, distributed to `count` of them.
    fn zones(&mut self, action: EditAction, element: &Element<'_>, count: usize) -> Vec<Vec<String>> {
        let defined = self.transaction.defined().clone();
        let read = |text: &str, origin: &Origin, sink: &mut Sink| match action {
            // A zone that no longer exists may still be removed from a configuration; the
            // transaction checks whether it is listed.
            EditAction::Remove => vec![text.to_owned()],
            _ => zone_named(&defined, text, origin, sink),
        };
        let lists = hand_out(element, "zones", count, &mut self.budget, self.sink, read);
        lists.into_iter().map(once).collect()
    }

    fn apply_in_force(&mut self, edit: ZoneEdit, element: &Element<'_>) {
        self.says_what_is_in_force = true;
        self.apply(edit, &element.header, None);
    }

    fn apply(&mut self, edit: ZoneEdit, origin: &Origin, about: Option<(ObjectKind, &str)>) {
        let Err(problem) = self.transaction.apply(edit.clone()) else { return self.done.push(edit) };
        match &problem {
            ZoneProblem::BadName { .. } | ZoneProblem::NameTooLong { .. } => bad_zone_name(&problem, origin, self.sink),
            ZoneProblem::NotFound { kind, name } => {
                let defined = self.transaction.defined();
                let known: Vec<&str> = match kind {
                    ObjectKind::Alias => defined.aliases.keys().map(String::as_str).collect(),
                    ObjectKind::Zone => defined.zones.keys().map(String::as_str).collect(),
                    ObjectKind::Config => defined.configs.keys().map(String::as_str).collect(),
                };
                let otherwise = "name one that the lab or an earlier edit defines";
                let remedy = suggest::remedy(name, known.into_iter(), otherwise);
                self.sink.error(BAD_EDIT, origin, problem.to_string(), remedy);
            }
            ZoneProblem::NameTaken { .. } => {
                self.sink.error(BAD_EDIT, origin, problem.to_string(), "choose another name, or use action = \"add\"");
            }
            _ => {
                let what = about.map_or_else(|| "database".to_owned(), |(kind, name)| format!("{kind} `{name}`"));
                self.sink.error(BAD_EDIT, origin, problem.to_string(), format!("check the contents of the {what}"));
            }
        }
    }

    /// Enables the effective configuration again, and reports the reasons for which a commit would
    /// fail.
    fn finish(mut self) -> Edited {
        if !self.says_what_is_in_force {
            self.enable_again();
        }
        if self.sink.has_errors() {
            return Edited { transaction: self.transaction, edits: self.done };
        }
        for problem in self.transaction.outcome().1 {
            let names: [&str; 2] = match &problem {
                ZoneProblem::UnknownAlias { zone, alias } => [alias, zone],
                ZoneProblem::UnknownZone { config, zone } => [zone, config],
                ZoneProblem::OnlyPrincipals { zone } => [zone, ""],
                ZoneProblem::Empty { name, .. }
                | ZoneProblem::TooManyMembers { name, .. }
                | ZoneProblem::NotFound { name, .. } => [name, ""],
                _ => ["", ""],
            };
            let origin = names.iter().find_map(|name| self.touched.get(*name)).unwrap_or(&Origin::File(0, 0));
            self.sink.error(BAD_EDIT, origin, problem.to_string(), "correct it by a further edit");
        }
        Edited { transaction: self.transaction, edits: self.done }
    }

    /// Enables the effective configuration again. In a lab without configurations, all zones stay
    /// effective after the edits.
    fn enable_again(&mut self) {
        let defined = self.transaction.defined();
        let implicit = defined.configs.keys().all(|name| name == ALL_ZONES);
        let in_force = self.transaction.base().effective.as_ref().map(|effective| effective.name.clone());
        if !implicit {
            if let Some(name) = in_force {
                self.apply(ZoneEdit::Enable(name), &Origin::File(0, 0), None);
            }
            return;
        }
        let has_zones_not_in_force = in_force.is_none() && !self.transaction.base().defined.zones.is_empty();
        let enable = (!has_zones_not_in_force).then(|| ZoneEdit::Enable(ALL_ZONES.to_owned()));
        let all: Vec<String> = defined.zones.keys().cloned().collect();
        let listed = defined.configs.get(ALL_ZONES).cloned();
        let name = ALL_ZONES.to_owned();
        let edits = match listed {
            _ if all.is_empty() => {
                let gone = listed.map(|_| ZoneEdit::Delete { kind: ObjectKind::Config, name });
                [Some(ZoneEdit::Disable), gone, None]
            }
            None => [Some(ZoneEdit::CreateConfig { name, zones: all }), enable, None],
            Some(listed) => {
                let gone = listed.into_iter().filter(|zone| !defined.zones.contains_key(zone)).collect();
                [
                    Some(ZoneEdit::RemoveFromConfig { name: name.clone(), zones: gone }),
                    Some(ZoneEdit::AddToConfig { name, zones: all }),
                    enable,
                ]
            }
        };
        for edit in edits.into_iter().flatten() {
            self.apply(edit, &Origin::File(0, 0), None);
        }
    }
}

/// Returns an edit of a whole object.
fn whole(action: EditAction, kind: ObjectKind, name: String, element: &Element<'_>) -> ZoneEdit {
    match action {
        EditAction::Rename => ZoneEdit::Rename { kind, from: name, to: element.text("to").unwrap_or("").to_owned() },
        EditAction::Enable => ZoneEdit::Enable(name),
        _ => ZoneEdit::Delete { kind, name },
    }
}

/// The list keys of a kind of object.
struct Lists {
    /// Keys of this kind of object, the required one first.
    own: &'static [&'static str],
    /// Keys of other kinds of objects.
    foreign: &'static [&'static str],
}

impl Lists {
    const fn of(kind: ObjectKind) -> Lists {
        match kind {
            ObjectKind::Config => Lists { own: &["zones"], foreign: &["members", "principals"] },
            ObjectKind::Alias => Lists { own: &["members"], foreign: &["principals", "zones"] },
            ObjectKind::Zone => Lists { own: &["members", "principals"], foreign: &["zones"] },
        }
    }
}

fn alias_edit(action: EditAction, name: String, members: Vec<ZoneMember>) -> ZoneEdit {
    match action {
        EditAction::Create => ZoneEdit::CreateAlias { name, members },
        EditAction::Add => ZoneEdit::AddToAlias { name, members },
        _ => ZoneEdit::RemoveFromAlias { name, members },
    }
}

fn zone_edit(action: EditAction, name: String, zone: ZoneDefinition) -> ZoneEdit {
    match action {
        EditAction::Create => ZoneEdit::CreateZone { name, zone },
        EditAction::Add => ZoneEdit::AddToZone { name, zone },
        _ => ZoneEdit::RemoveFromZone { name, zone },
    }
}

fn config_edit(action: EditAction, name: String, zones: Vec<String>) -> ZoneEdit {
    match action {
        EditAction::Create => ZoneEdit::CreateConfig { name, zones },
        EditAction::Add => ZoneEdit::AddToConfig { name, zones },
        _ => ZoneEdit::RemoveFromConfig { name, zones },
    }
}
