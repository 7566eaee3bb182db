//! `[[alias]]`, `[[zone]]`, `[[zone_config]]` and `[zoning]`: the zone database.

use super::Where;
use super::links::{RANGE_MISMATCH, share};
use super::nodes::{Names, noun};
use super::zone_members::Members;
use crate::diagnostic::{Finding, Origin, Severity, Sink};
use crate::document::{self, Budget, Document};
use crate::element::Element;
use crate::export::ExportNames;
use crate::schema::{self, Spread};
use crate::{check, suggest, value};
use sanloom_fc::config::{Priority, ZoneDefault, ZonePolicy};
use sanloom_fc::san::{Lab, ProblemKind};
use sanloom_fc::zoning::{DefinedZones, EffectiveZones, ObjectKind, ZoneDatabase};
use sanloom_fc::zoning::{ZoneDefinition, ZoneLimits, ZoneProblem};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Code of a zone that does not exist.
pub(crate) const UNKNOWN_ZONE: &str = "unknown-zone";
/// Code of a configuration that does not exist.
pub(crate) const UNKNOWN_CONFIG: &str = "unknown-zone-config";
/// Code of a name that is already used by another kind of zone object.
pub(crate) const NAME_TAKEN: &str = "name-taken";
/// Code of an invalid zone, alias or configuration.
pub(crate) const BAD_ZONE: &str = "bad-zone";
/// Code of a zone database that exceeds its limits.
pub(crate) const ZONE_LIMIT: &str = "zone-limit";

/// Name of the implicit configuration of all zones, for a lab that defines no configuration.
pub(crate) const ALL_ZONES: &str = "all-zones";
/// Word for no configuration.
const NONE: &str = "none";

/// Zones of the file beside those of the lab.
#[derive(Default)]
pub(super) struct ZonesOfFile<'d> {
    /// Location of each effective zone.
    pub places: Vec<Where<'d>>,
    /// Problems of the database as a whole, which are reported only if there are no other errors.
    pub findings: Vec<Finding>,
    pub export_names: ExportNames,
}

/// Fills `lab.zoning`, `lab.zone_database` and `lab.zone_policy`.
pub(super) fn build<'d>(
    document: &'d Document,
    lab: &mut Lab,
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> ZonesOfFile<'d> {
    let Some(zoning) = document.element(schema::section("zoning")) else {
        return Default::default();
    };
    lab.zone_policy = policy(&zoning);
    let mut builder = Builder { lab, names, budget, sink, defined: DefinedZones::default(), written: BTreeMap::new() };
    builder.aliases(document);
    let order = builder.zones(document);
    builder.configs(document);
    let (written, mut defined) = (builder.written, builder.defined);
    let of = |((kind, name), element): (&(ObjectKind, String), &Rc<Element<'_>>)| {
        let id = element.integer("virtual_fabric").filter(|_| *kind == ObjectKind::Zone)?;
        Some((name.clone(), id))
    };
    lab.zone_fabrics = written.iter().filter_map(of).collect();
    let priority = |((kind, name), element): (&(ObjectKind, String), &Rc<Element<'_>>)| {
        let priority = element.choice("priority", schema::PRIORITIES).filter(|_| *kind == ObjectKind::Zone)?;
        Some((name.clone(), priority)).filter(|_| priority != Priority::Medium)
    };
    lab.zone_priorities = written.iter().filter_map(priority).collect();
    let implicit = document.list("zone_config").is_empty();
    if implicit && !order.is_empty() {
        defined.configs.insert(ALL_ZONES.to_owned(), order);
    }
    let enabled = enabled(&zoning, &defined, implicit, sink);
    lab.zone_database = ZoneDatabase {
        defined: Arc::new(defined),
        effective: None,
        default_zone: zoning.choice("default", schema::ZONE_DEFAULTS).unwrap_or(ZoneDefault::OpenWithoutZones),
    };
    if let Some(name) = enabled
        && let Ok(zones) = lab.zone_database.resolve(&name)
    {
        lab.zone_database.effective = Some(Arc::new(EffectiveZones { name, zones }));
    }
    let problems = lab.zone_database.problems(&lab.zone_policy.limits);
    let findings = problems.iter().filter_map(|problem| finding(problem, &written, &zoning)).collect();
    lab.zoning = lab.zone_database.zoning();
    let place = |name: &String| {
        let element = written.get(&(ObjectKind::Zone, name.clone()))?.clone();
        Some(Where { element, exact: Vec::new() })
    };
    let places = lab.zoning.zones.iter().filter_map(|zone| place(&zone.name)).collect();
    let other = |(key, element): (&(ObjectKind, String), &Rc<Element<'_>>)| {
        Some((key.clone(), element.text("export_name")?.to_owned()))
    };
    let is_only_in_force = |((kind, _), element): &(&(ObjectKind, String), &Rc<Element<'_>>)| {
        *kind != ObjectKind::Alias && element.flag("only_in_force")
    };
    let export_names = ExportNames {
        names: written.iter().filter_map(other).collect(),
        only_in_force: written.iter().filter(is_only_in_force).map(|(key, _)| key.clone()).collect(),
    };
    ZonesOfFile { places, findings, export_names }
}

fn policy(zoning: &Element<'_>) -> ZonePolicy {
    let any = ZoneLimits::default();
    let limits = ZoneLimits {
        database_bytes: zoning.size("max_database").map_or(any.database_bytes, |bytes| bytes as usize),
        zones: zoning.integer("max_zones").unwrap_or(any.zones),
        aliases: zoning.integer("max_aliases").unwrap_or(any.aliases),
        members: zoning.integer("max_members").unwrap_or(any.members),
        ..any
    };
    ZonePolicy {
        limits,
        merge_control: zoning.choice("merge_control", schema::MERGE_CONTROLS).unwrap_or_default(),
        merge_rules: zoning.choice("merge", schema::MERGE_RULES).unwrap_or_default(),
    }
}

/// Returns the name of the effective configuration.
fn enabled(zoning: &Element<'_>, defined: &DefinedZones, implicit: bool, sink: &mut Sink) -> Option<String> {
    let mut configs = defined.configs.keys();
    let name = match zoning.text("effective") {
        Some(NONE) => return None,
        Some(name) => name,
        None if configs.len() <= 1 => return configs.next().cloned(),
        None => {
            let key = zoning.def.key("effective")?;
            let (reason, names) = ("there are several configurations, and none of them is set as effective", configs);
            let names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let remedy = format!("set `{}` in [zoning] to one of {names}, or to \"{NONE}\"", key.path);
            sink.error(check::MISSING_KEY, &zoning.origin("effective"), reason, remedy);
            return None;
        }
    };
    if defined.configs.contains_key(name) {
        return Some(name.to_owned());
    }
    // If there are errors, the configuration may exist but have been rejected.
    if implicit || !sink.has_errors() {
        let otherwise = match implicit {
            true => "define it with [[zone_config]], or leave `effective` out",
            false => "name a configuration that the file defines",
        };
        sink.error(
            UNKNOWN_CONFIG,
            &zoning.origin("effective"),
            format!("there is no configuration `{}`", value::cut(name)),
            suggest::remedy(name, configs.map(String::as_str), otherwise),
        );
    }
    None
}

type Written<'d> = BTreeMap<(ObjectKind, String), Rc<Element<'d>>>;

/// Converts a problem of the database to a finding with its location.
fn finding(problem: &ZoneProblem, written: &Written<'_>, zoning: &Element<'_>) -> Option<Finding> {
    let at = |kind: ObjectKind, name: &str, key: &str| {
        written.get(&(kind, name.to_owned())).map_or_else(|| zoning.origin(key), |element| element.origin(key))
    };
    let (code, origin, remedy) = match problem {
        ZoneProblem::Empty { kind: ObjectKind::Zone, name } => {
            let origin = at(ObjectKind::Zone, name, "members");
            (ProblemKind::EmptyZone.name(), origin, "name the ports that may communicate")
        }
        ZoneProblem::Empty { kind: ObjectKind::Alias, name } => {
            (BAD_ZONE, at(ObjectKind::Alias, name, "members"), "name what it stands for, or leave it out")
        }
        ZoneProblem::Empty { kind: ObjectKind::Config, name } => {
            (BAD_ZONE, at(ObjectKind::Config, name, "zones"), "name its zones, or leave it out")
        }
        ZoneProblem::OnlyPrincipals { zone } => (
            BAD_ZONE,
            at(ObjectKind::Zone, zone, "members"),
            "name the ports that the principals may access, or make the principals members",
        ),
        ZoneProblem::NameTaken { name, .. } => {
            let kinds = [ObjectKind::Config, ObjectKind::Zone];
            let kind = kinds.into_iter().find(|kind| written.contains_key(&(*kind, name.clone())));
            let origin = at(kind.unwrap_or(ObjectKind::Zone), name, "name");
            (NAME_TAKEN, origin, "aliases, zones and configurations share one name space: choose another name")
        }
        ZoneProblem::TooManyMembers { kind, name, .. } => {
            let key = if *kind == ObjectKind::Config { "zones" } else { "members" };
            (ZONE_LIMIT, at(*kind, name, key), "split it, or raise `max_members` in [zoning]")
        }
        ZoneProblem::TooLarge { limit, .. } => {
            use sanloom_fc::zoning::Limit;
            let (key, remedy) = match limit {
                Limit::DatabaseBytes => ("max_database", "define less, or raise `max_database`"),
                Limit::Zones => ("max_zones", "define fewer zones, or raise `max_zones`"),
                Limit::Aliases => ("max_aliases", "define fewer aliases, or raise `max_aliases`"),
                Limit::Configs => ("effective", "define fewer configurations"),
            };
            (ZONE_LIMIT, zoning.origin(key), remedy)
        }
        // Invalid and unknown names have been reported at their locations.
        _ => return None,
    };
    let (severity, remedy) = (Severity::Error, remedy.to_owned());
    Some(Finding { severity, code, origin, reason: problem.to_string(), remedy })
}

struct Builder<'b, 'd> {
    lab: &'b Lab,
    names: &'b Names,
    budget: &'b mut Budget,
    sink: &'b mut Sink,
    defined: DefinedZones,
    written: Written<'d>,
}

impl<'d> Builder<'_, 'd> {
    fn aliases(&mut self, document: &'d Document) {
        for element in document.list("alias") {
            let Some(names) = self.begin(ObjectKind::Alias, &element) else { continue };
            let members = Members { lab: self.lab, names: self.names, aliases: &BTreeMap::new() };
            let read = |text: &str, origin: &Origin, sink: &mut Sink| members.plain(text, origin, sink);
            let lists = hand_out(&element, "members", names.len(), self.budget, self.sink, read);
            let element = Rc::new(element);
            for (name, members) in names.into_iter().zip(lists) {
                if self.is_new(ObjectKind::Alias, &name, &element) {
                    self.defined.aliases.insert(name, once(members));
                }
            }
        }
    }

    /// Adds the zones of the file and returns their names in order.
    fn zones(&mut self, document: &'d Document) -> Vec<String> {
        let mut order = Vec::new();
        for element in document.list("zone") {
            let Some(names) = self.begin(ObjectKind::Zone, &element) else { continue };
            let members = Members { lab: self.lab, names: self.names, aliases: &self.defined.aliases };
            let read = |text: &str, origin: &Origin, sink: &mut Sink| members.with_aliases(text, origin, sink);
            let [members, principals] =
                ["members", "principals"].map(|key| hand_out(&element, key, names.len(), self.budget, self.sink, read));
            let element = Rc::new(element);
            for ((name, members), principals) in names.into_iter().zip(members).zip(principals) {
                if self.is_new(ObjectKind::Zone, &name, &element) {
                    let zone = ZoneDefinition { members: once(members), principals: once(principals) };
                    order.push(name.clone());
                    self.defined.zones.insert(name, zone);
                }
            }
        }
        order
    }

    fn configs(&mut self, document: &'d Document) {
        for element in document.list("zone_config") {
            let Some(names) = self.begin(ObjectKind::Config, &element) else { continue };
            let read = |text: &str, origin: &Origin, sink: &mut Sink| zone_named(&self.defined, text, origin, sink);
            let lists = hand_out(&element, "zones", names.len(), self.budget, self.sink, read);
            let element = Rc::new(element);
            for (name, zones) in names.into_iter().zip(lists) {
                if self.is_new(ObjectKind::Config, &name, &element) {
                    self.defined.configs.insert(name, once(zones));
                }
            }
        }
    }

    /// Returns the names of an element. Reports an error and returns `None` if they are invalid.
    fn begin(&mut self, kind: ObjectKind, element: &Element<'d>) -> Option<Vec<String>> {
        element.require_keys(self.sink);
        let (text, origin) = element.patterns("name").first()?;
        let names = self.budget.expand(text, origin, self.sink)?;
        if !self.can_export(kind, element, names.len()) {
            return None;
        }
        let limits = ZoneLimits::default();
        match names.iter().find_map(|name| limits.check_name(kind, name).err()) {
            Some(problem) => {
                document::bad_zone_name(&problem, origin, self.sink);
                None
            }
            None => Some(names.to_vec()),
        }
    }

    /// Reports a name for the export that no switch can have, or that `count` objects would share.
    fn can_export(&mut self, kind: ObjectKind, element: &Element<'d>, count: usize) -> bool {
        let Some(name) = element.text("export_name") else { return true };
        let origin = element.origin("export_name");
        if count > 1 {
            let reason = format!("one name cannot be that of {count} objects");
            self.sink.error(RANGE_MISMATCH, &origin, reason, "write one element for each name");
            return false;
        }
        if !crate::export::is_name_on_switches(name) {
            let reason = format!("`{}` cannot be the name of {} on a switch", value::cut(name), kind.with_article());
            let remedy = "write 1 to 64 letters, digits, `$`, `-`, `^` or `_`, without `-` at the beginning";
            self.sink.error(BAD_ZONE, &origin, reason, remedy);
            return false;
        }
        true
    }

    fn is_new(&mut self, kind: ObjectKind, name: &str, element: &Rc<Element<'d>>) -> bool {
        let key = (kind, name.to_owned());
        if self.written.contains_key(&key) {
            let plural = match kind {
                ObjectKind::Alias => "aliases",
                ObjectKind::Zone => "zones",
                ObjectKind::Config => "configurations",
            };
            self.sink.error(
                ProblemKind::DuplicateName.name(),
                &element.origin("name"),
                format!("two {plural} have the name `{name}`"),
                format!("give every {kind} a name of its own"),
            );
            return false;
        }
        if kind == ObjectKind::Alias
            && let Some(node) = self.names.get(name)
        {
            self.sink.error(
                NAME_TAKEN,
                &element.origin("name"),
                format!("the name `{name}` already belongs to a {}", noun(node)),
                "give the alias a name that no node has: a zone could mean either",
            );
            return false;
        }
        self.written.insert(key, element.clone());
        true
    }
}

/// Returns the items listed by a key, distributed to `count` objects.
pub(super) fn hand_out<T: Clone>(
    element: &Element<'_>,
    key: &str,
    count: usize,
    budget: &mut Budget,
    sink: &mut Sink,
    read: impl Fn(&str, &Origin, &mut Sink) -> Vec<T>,
) -> Vec<Vec<T>> {
    let spread = element.choice("spread", schema::SPREADS).unwrap_or(Spread::Blocks);
    let mut lists = vec![Vec::new(); count];
    for (text, origin) in element.patterns(key) {
        let Some(texts) = budget.expand(text, origin, sink) else {
            continue;
        };
        let found: Vec<Vec<T>> = texts.iter().map(|text| read(text, origin, sink)).collect();
        for (i, list) in lists.iter_mut().enumerate() {
            let Some(chosen) = share(texts.len(), count, i, spread) else {
                let noun = match element.def.name {
                    "alias" => "aliases",
                    "zone_config" => "configurations",
                    _ => "zones",
                };
                sink.error(
                    RANGE_MISMATCH,
                    origin,
                    format!("{} names cannot be distributed over {count} {noun}", texts.len()),
                    format!("use as many names as {noun}, or a multiple of them"),
                );
                break;
            };
            list.extend(chosen.into_iter().flat_map(|n| found[n].iter().cloned()));
        }
    }
    lists
}

/// Resolves a name in the list of a configuration.
pub(super) fn zone_named(defined: &DefinedZones, text: &str, origin: &Origin, sink: &mut Sink) -> Vec<String> {
    if defined.zones.contains_key(text) {
        return vec![text.to_owned()];
    }
    if !sink.repeats(UNKNOWN_ZONE, origin) {
        let known = defined.zones.keys().map(String::as_str);
        let reason = format!("there is no zone `{}`", value::cut(text));
        sink.error(UNKNOWN_ZONE, origin, reason, suggest::remedy(text, known, "name a zone that the file defines"));
    }
    Vec::new()
}

/// Removes duplicates and keeps the first occurrence of each item.
pub(super) fn once<T: Ord + Clone>(list: Vec<T>) -> Vec<T> {
    let mut seen = std::collections::BTreeSet::new();
    list.into_iter().filter(|item| seen.insert(item.clone())).collect()
}
