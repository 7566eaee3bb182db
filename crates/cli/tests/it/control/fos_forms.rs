//! Random changes of zones in all forms of the REST interface against a plain model of the
//! database, read back after each change in both encodings.

use super::fos::{JSON, Managed, Response, ZONE};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_surface::fos::tree::Element;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Members and principals of a zone.
type Members = [BTreeSet<String>; 2];
/// Zones by name.
type Model = BTreeMap<String, Members>;

/// Form of a request: where the name of the zone is, and the encoding.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Form {
    /// The whole configuration.
    Whole,
    /// A list of zones.
    List,
    /// The name in the address, the rest in the body.
    Path,
}

#[derive(Debug)]
struct Change {
    method: &'static str,
    form: Form,
    json: bool,
    name: &'static str,
    lists: [Vec<String>; 2],
    /// The body has no list of members at all.
    is_bare: bool,
}

const ALIASES: [&str; 2] = ["al1", "al2"];

fn draw(dice: &mut impl Rng, model: &Model) -> Change {
    let names: Vec<String> = (0..5).map(|n| format!("10:00:00:00:00:00:00:A{n}")).collect();
    let ports = (0..4).map(|n| format!("1,{n}"));
    let all: Vec<String> = names.into_iter().chain(ports).chain(ALIASES.map(str::to_owned)).collect();
    let name = *["z1", "z2", "z3", "peer1", "peer2"].choose(dice).unwrap();
    let method = *["POST", "POST", "PATCH", "DELETE", "DELETE"].choose(dice).unwrap();
    let mut chosen: Vec<String> = all.sample(dice, 4).cloned().collect();
    let may_lack_them = method == "DELETE" || method == "PATCH" && dice.random_bool(0.2);
    let has_principals = name.starts_with("peer") && (!may_lack_them || dice.random());
    let principals = chosen.split_off(if has_principals { dice.random_range(2..4) } else { 4 });
    chosen.truncate(dice.random_range(1..=2));
    let mut lists = [chosen, principals];
    // Random members are seldom those of the zone, so half of the removals name some or all of
    // them.
    if let Some(known) = model.get(name).filter(|_| method == "DELETE" && dice.random()) {
        let share = if dice.random() { 1.0 } else { 0.5 };
        lists = known.clone().map(|list| list.into_iter().filter(|_| dice.random_bool(share)).collect());
    }
    let form = *[Form::Whole, Form::List, Form::Path].choose(dice).unwrap();
    let is_bare = method == "DELETE" && dice.random_bool(0.2);
    let lists = if is_bare { [Vec::new(), Vec::new()] } else { lists };
    Change { method, form, json: dice.random(), name, lists, is_bare }
}

impl Change {
    fn send(&self, lab: &Managed, token: &str) -> Response {
        let is_peer = self.name.starts_with("peer");
        let below = match self.form {
            Form::Whole => String::new(),
            Form::List => "/zone".to_owned(),
            Form::Path => format!("/zone/zone-name/{}", self.name),
        };
        let line = format!("{} {ZONE}/defined-configuration{below}", self.method);
        if self.json {
            let leaves = [("entry-name", &self.lists[0]), ("principal-entry-name", &self.lists[1])];
            let lists: Vec<String> = leaves.iter().map(|(leaf, list)| format!("\"{leaf}\":{list:?}")).collect();
            let members = format!("\"member-entry\":{{{}}}", lists.join(","));
            let named = format!("\"zone-name\":\"{}\"", self.name);
            let leaves = [
                (!self.is_bare).then_some(members),
                is_peer.then(|| "\"zone-type\":1".to_owned()),
                (self.form != Form::Path).then_some(named),
            ];
            let zone = leaves.into_iter().flatten().collect::<Vec<_>>().join(",");
            let body = match self.form {
                Form::Whole => format!("{{\"defined-configuration\":{{\"zone\":[{{{zone}}}]}}}}"),
                Form::List => format!("{{\"zone\":[{{{zone}}}]}}"),
                Form::Path => format!("{{{zone}}}"),
            };
            return lab.send(&line, &[token, JSON[0], JSON[1]], &body);
        }
        let mut entries = String::new();
        for (leaf, list) in ["entry-name", "principal-entry-name"].iter().zip(&self.lists) {
            list.iter().for_each(|member| write!(entries, "<{leaf}>{member}</{leaf}>").unwrap());
        }
        let kind = if is_peer { "<zone-type>1</zone-type>" } else { "" };
        let members = if self.is_bare { String::new() } else { format!("<member-entry>{entries}</member-entry>") };
        let inner = format!("{kind}{members}");
        let named = format!("<zone><zone-name>{}</zone-name>{inner}</zone>", self.name);
        let body = match self.form {
            Form::Whole => format!("<defined-configuration>{named}</defined-configuration>"),
            Form::List => named,
            Form::Path => inner,
        };
        lab.send(&line, &[token], &body)
    }

    /// Applies the change. Returns the status of the answer.
    fn apply(&self, model: &mut Model) -> u16 {
        let lists: Members = self.lists.clone().map(|list| list.iter().map(|member| member.to_lowercase()).collect());
        let left = match (self.method, model.get(self.name)) {
            // An empty list of members could mean a misspelled one.
            ("DELETE", _) if lists == Members::default() && !self.is_bare => return 400,
            ("POST", None) => return self.store(model, lists, 201),
            ("POST", Some(known)) => {
                let all = [0, 1].map(|list| known[list].union(&lists[list]).cloned().collect());
                return self.store(model, all, 201);
            }
            (_, None) => return 404,
            // Members of a zone without principals would communicate with each other.
            ("PATCH", Some([_, principals])) if !principals.is_empty() && lists[1].is_empty() => return 400,
            ("PATCH", Some(_)) => return self.store(model, lists, 204),
            // Without a list of members, the whole zone is deleted.
            (_, Some(_)) if lists == Members::default() => Members::default(),
            (_, Some(known)) if (0..2).any(|list| !lists[list].is_subset(&known[list])) => return 400,
            (_, Some([members, principals]))
                if !principals.is_empty() && lists[1] == *principals && lists[0] != *members =>
            {
                return 400;
            }
            (_, Some(known)) => [0, 1].map(|list| known[list].difference(&lists[list]).cloned().collect()),
        };
        if left == Members::default() {
            model.remove(self.name);
            return 204;
        }
        self.store(model, left, 204)
    }

    fn store(&self, model: &mut Model, members: Members, status: u16) -> u16 {
        model.insert(self.name.to_owned(), members);
        status
    }
}

/// The zones of an answer.
fn zones(answer: &Response) -> Model {
    let root = if answer.status == 404 { Element::container("Response", Vec::new()) } else { answer.tree() };
    let texts = |zone: &Element, leaf: &str| -> BTreeSet<String> {
        let entries = zone.child("member-entry").into_iter().flat_map(|entry| entry.children());
        entries.filter(|entry| entry.name == leaf).map(|entry| entry.value().to_lowercase()).collect()
    };
    let lists = |zone: &Element| ["entry-name", "principal-entry-name"].map(|leaf| texts(zone, leaf));
    let all = root.all("zone").map(|zone| (zone.leaf("zone-name").unwrap(), lists(zone)));
    // The lab has a zone of its own.
    all.filter(|(name, _)| name != "z12").collect()
}

#[test]
fn random_changes_in_all_forms_give_what_a_plain_model_has() {
    let seed = std::env::var("PROPTEST_RNG_SEED").map_or(0, |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut lab = Managed::start("fos-forms", Some(18_080), &[]);
    let token = lab.login();
    for (alias, member) in ALIASES.iter().zip(["10:00:00:00:00:00:01:01", "1,9"]) {
        let body = format!(
            "<alias><alias-name>{alias}</alias-name><member-entry><alias-entry-name>{member}</alias-entry-name></member-entry></alias>"
        );
        assert_eq!(lab.send(&format!("POST {ZONE}/defined-configuration/alias"), &[&token], &body).status, 201);
    }
    let mut model = Model::new();
    let mut seen = BTreeMap::<(&str, u16), u32>::new();
    for turn in 0..400 {
        let change = draw(&mut dice, &model);
        let before = model.clone();
        let expected = change.apply(&mut model);
        let answer = change.send(&lab, &token);
        let context = || format!("seed {seed}, change {turn}: {change:?} of {before:?}: {answer:?}");
        assert_eq!(answer.status, expected, "{}", context());
        *seen.entry((change.method, expected)).or_default() += 1;
        *seen.entry((if change.is_bare { "bare" } else { "listed" }, expected)).or_default() += 1;
        for fields in [&[&token[..]][..], &[&token, JSON[0], JSON[1]]] {
            let all = lab.send(&format!("GET {ZONE}/defined-configuration/zone"), fields, "");
            assert_eq!(zones(&all), model, "{}", context());
        }
    }
    // Each outcome must have occurred, otherwise the test says little.
    assert!(seen.contains_key(&("bare", 204)), "no zone was deleted as a whole: {seen:?}");
    for outcome in [("POST", 201), ("PATCH", 204), ("PATCH", 404), ("DELETE", 204), ("DELETE", 400), ("DELETE", 404)] {
        assert!(seen.contains_key(&outcome), "{outcome:?} never occurred: {seen:?}");
    }
    lab.instance.stop();
}
