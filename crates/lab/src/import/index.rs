//! Zone objects by the names of their members, so that a command that removes or renames one name
//! does not search all lists: [`Index`] of an object, and [`References`] of a database.
//!
//! Both exist from the first such command of an object or database until the inputs are read.

use super::facts::{KINDS, Kind, Object, Objects, ZoneBase, wwn};
use super::nxos_config::wwn_text;
use std::collections::{BTreeMap, BTreeSet};

/// Lists of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    Members,
    Principals,
    Both,
}

const LISTS: [List; 3] = [List::Members, List::Principals, List::Both];

/// Members of an object by name. A member that is removed keeps its place until
/// [`Object::settle`], so that the other places stay valid.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Index {
    /// Lists and places of the members, by their [`key`].
    places: BTreeMap<String, Vec<(List, usize)>>,
    /// Lengths of the lists as far as they are in the index. Members behind are new.
    lengths: [usize; 3],
    /// Places of the removed members.
    removed: [BTreeSet<usize>; 3],
    /// Number of members that are not removed.
    left: usize,
}

/// Key of a member: its text, or its world-wide name in lower case.
fn key(member: &str) -> String {
    wwn(member).map_or_else(|| member.to_owned(), wwn_text)
}

impl Object {
    /// The index, with all members.
    fn index(&mut self) -> &mut Index {
        let Object { members, principals, both, index, .. } = self;
        let index: &mut Index = index.get_or_insert_default();
        for (kind, list) in LISTS.into_iter().zip([members, principals, both]) {
            let length = &mut index.lengths[kind as usize];
            for (place, member) in list.iter().enumerate().skip(*length) {
                index.places.entry(key(member)).or_default().push((kind, place));
                index.left += 1;
            }
            *length = list.len();
        }
        index
    }

    /// True if no list has a member.
    pub fn is_empty(&mut self) -> bool {
        self.index().left == 0
    }

    /// True if a list has a member with this text.
    pub fn has(&mut self, member: &str) -> bool {
        self.index();
        let places = self.index.as_ref().and_then(|index| index.places.get(&key(member)));
        places.is_some_and(|places| places.iter().any(|(list, place)| self.list(*list)[*place] == member))
    }

    fn list(&self, list: List) -> &Vec<String> {
        match list {
            List::Members => &self.members,
            List::Principals => &self.principals,
            List::Both => &self.both,
        }
    }

    /// Takes the places of members out of the index: those in `lists` that have the key of `member`
    /// and that `is_it` accepts.
    fn take(&mut self, lists: &[List], member: &str, is_it: impl Fn(&str) -> bool) -> Vec<(List, usize)> {
        let key = key(member);
        let Some(places) = self.index().places.remove(&key) else { return Vec::new() };
        let is_it = |&(list, place): &(List, usize)| lists.contains(&list) && is_it(&self.list(list)[place]);
        let (found, others): (Vec<_>, Vec<_>) = places.into_iter().partition(is_it);
        if !others.is_empty() {
            self.index().places.insert(key, others);
        }
        found
    }

    /// Removes the members with this text from all lists.
    pub fn remove(&mut self, member: &str) {
        let found = self.take(&LISTS, member, |own| own == member);
        self.index().remove(found);
    }

    /// Removes the members with this name from one list, in any notation of the name.
    pub fn remove_name(&mut self, list: List, member: &str) {
        let found = self.take(&[list], member, |_| true);
        self.index().remove(found);
    }

    /// Replaces the members with the text `old`.
    pub fn rename(&mut self, old: &str, new: &str) {
        let found = self.take(&LISTS, old, |own| own == old);
        for &(list, place) in &found {
            let list = match list {
                List::Members => &mut self.members,
                List::Principals => &mut self.principals,
                List::Both => &mut self.both,
            };
            new.clone_into(&mut list[place]);
        }
        self.index().places.entry(key(new)).or_default().extend(found);
    }

    /// Takes the removed members out of the lists.
    pub fn settle(&mut self) {
        let Some(index) = self.index.take() else { return };
        for (list, removed) in [&mut self.members, &mut self.principals, &mut self.both].into_iter().zip(index.removed)
        {
            let mut places = 0..;
            list.retain(|_| places.next().is_none_or(|place| !removed.contains(&place)));
        }
    }
}

impl Index {
    fn remove(&mut self, found: Vec<(List, usize)>) {
        self.left -= found.len();
        for (list, place) in found {
            self.removed[list as usize].insert(place);
        }
    }
}

/// An object of a database.
type Named = (Kind, String);

/// Objects by the names of their members. An object may have lost such a member since; one that has
/// it is never missing.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    of: BTreeMap<String, BTreeSet<Named>>,
    /// Objects that came without a member.
    bare: BTreeSet<Named>,
}

impl References {
    fn new(objects: &Objects) -> References {
        let mut references = References::default();
        for kind in KINDS {
            for (name, object) in objects.of(kind) {
                references.put(kind, name, object);
            }
        }
        references
    }

    fn put(&mut self, kind: Kind, name: &str, object: &Object) {
        let members = || object.members.iter().chain(&object.principals);
        self.add(kind, name, members());
        if members().next().is_none() {
            self.bare.insert((kind, name.to_owned()));
        }
    }

    fn add<'m>(&mut self, kind: Kind, name: &str, members: impl Iterator<Item = &'m String>) {
        for member in members {
            self.of.entry(member.clone()).or_default().insert((kind, name.to_owned()));
        }
    }
}

impl ZoneBase {
    /// Puts an object into the definitions.
    pub fn put(&mut self, kind: Kind, name: &str, object: Object) {
        if let Some(references) = &mut self.references {
            references.put(kind, name, &object);
        }
        self.defined.of_mut(kind).insert(name.to_owned(), object);
    }

    /// Notes members that a definition has got.
    pub fn refer<'m>(&mut self, kind: Kind, name: &str, members: impl Iterator<Item = &'m String>) {
        if let Some(references) = &mut self.references {
            references.add(kind, name, members);
        }
    }

    /// The definitions that have a member with this text, before they lose it.
    pub fn take_users(&mut self, member: &str) -> Vec<Named> {
        let references = self.references.get_or_insert_with(|| References::new(&self.defined));
        let mut users: Vec<Named> = references.of.remove(member).unwrap_or_default().into_iter().collect();
        users.retain(|(kind, name)| self.defined.of_mut(*kind).get_mut(name).is_some_and(|object| object.has(member)));
        users
    }

    /// Removes the definitions without members.
    pub fn remove_bare(&mut self) {
        let references = self.references.get_or_insert_with(|| References::new(&self.defined));
        for (kind, name) in std::mem::take(&mut references.bare) {
            let map = self.defined.of_mut(kind);
            if map.get_mut(&name).is_some_and(Object::is_empty) {
                map.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::facts::Facts;
    use crate::import::lines;
    use crate::import::report::Ledger;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize, String),
        Remove(String),
        RemoveName(usize, String),
        Rename(String, String),
    }

    fn step() -> impl Strategy<Value = Step> {
        let name = || prop::sample::select(vec!["a", "b", "c", "10:00:00:00:00:00:00:0a", "10:00:00:00:00:00:00:0A"]);
        let name = move || name().prop_map(str::to_owned);
        prop_oneof![
            4 => (0..3_usize, name()).prop_map(|(list, name)| Step::Push(list, name)),
            1 => name().prop_map(Step::Remove),
            1 => (0..3_usize, name()).prop_map(|(list, name)| Step::RemoveName(list, name)),
            1 => (name(), name()).prop_map(|(old, new)| Step::Rename(old, new)),
        ]
    }

    proptest! {
        #[test]
        fn lists_with_an_index_are_those_of_a_search(steps in prop::collection::vec(step(), 0..40)) {
            let mut object = Object::default();
            let mut plain: [Vec<String>; 3] = Default::default();
            for step in steps {
                match step {
                    Step::Push(list, name) => {
                        [&mut object.members, &mut object.principals, &mut object.both][list].push(name.clone());
                        plain[list].push(name);
                    }
                    Step::Remove(name) => {
                        object.remove(&name);
                        plain.iter_mut().for_each(|list| list.retain(|own| *own != name));
                    }
                    Step::RemoveName(list, name) => {
                        object.remove_name(LISTS[list], &name);
                        plain[list].retain(|own| !own.eq_ignore_ascii_case(&name));
                    }
                    Step::Rename(old, new) => {
                        prop_assert_eq!(object.has(&old), plain.iter().any(|list| list.contains(&old)));
                        object.rename(&old, &new);
                        plain.iter_mut().flatten().filter(|own| **own == old).for_each(|own| own.clone_from(&new));
                    }
                }
                prop_assert_eq!(object.clone().is_empty(), plain.iter().all(Vec::is_empty));
            }
            object.settle();
            prop_assert_eq!([object.members, object.principals, object.both], plain);
        }

        #[test]
        fn a_database_with_references_is_that_of_a_search(commands in prop::collection::vec(command(), 0..40)) {
            let (mut plain, mut saved) = (Plain::new(), Plain::new());
            commands.iter().for_each(|command| command.apply(&mut plain, &mut saved));
            let text: String = commands.iter().map(|command| command.line() + "\n").collect();
            let mut facts = Facts::default();
            lines::read(0, &text, Ledger::new("file"), &mut facts, &mut Vec::new());
            facts.settle();
            let mut found = Plain::new();
            for (base, kind) in facts.zones.iter().flat_map(|base| KINDS.map(|kind| (base, kind))) {
                let lists = |object: &Object| [object.members.clone(), object.principals.clone()];
                found.extend(base.defined.of(kind).iter().map(|(name, object)| ((kind, name.clone()), lists(object))));
            }
            prop_assert_eq!(found, plain, "{}", text);
        }
    }

    /// Members and principals of each object.
    type Plain = BTreeMap<Named, [Vec<String>; 2]>;

    /// A zone command with a name and a member or another name.
    #[derive(Clone, Debug)]
    struct Command {
        verb: &'static str,
        kind: Kind,
        name: String,
        other: String,
    }

    fn command() -> impl Strategy<Value = Command> {
        let verbs = [
            "create",
            "create",
            "create",
            "peer",
            "add",
            "add",
            "remove",
            "delete",
            "rename",
            "rename",
            "expunge",
            "cfgsave -f",
            "cfgtransabort",
        ];
        let name = || prop::sample::select(vec!["n0", "n1", "n2", "n3"]).prop_map(str::to_owned);
        let port =
            prop::sample::select(vec!["10:00:00:00:00:00:00:0a", "10:00:00:00:00:00:00:0A"]).prop_map(str::to_owned);
        let other = prop_oneof![3 => name(), 1 => port];
        let parts = (prop::sample::select(verbs.to_vec()), prop::sample::select(KINDS.to_vec()), name(), other);
        parts.prop_map(|(verb, kind, name, other)| Command { verb, kind, name, other })
    }

    impl Command {
        fn line(&self) -> String {
            let Command { verb, kind, name, other } = self;
            let prefix = match kind {
                Kind::Alias => "ali",
                Kind::Zone => "zone",
                Kind::Config => "cfg",
            };
            match *verb {
                "create" | "add" | "remove" => format!("{prefix}{verb} \"{name}\", \"{other}\""),
                "delete" => format!("{prefix}delete \"{name}\""),
                "peer" => format!("zonecreate --peerzone \"{name}\" -principal \"{other}\" -members \"n0\""),
                "rename" => format!("zoneobjectrename \"{name}\", \"{other}\""),
                "expunge" => format!("zoneobjectexpunge \"{name}\""),
                verb => verb.to_owned(),
            }
        }

        /// Applies the command by a search of all lists.
        fn apply(&self, objects: &mut Plain, saved: &mut Plain) {
            let Command { verb, kind, name, other } = self;
            let key = (*kind, name.clone());
            let exists = |name: &String| KINDS.iter().any(|kind| objects.contains_key(&(*kind, name.clone())));
            let (is_there, is_free) = (exists(name), !exists(other));
            let renamed = |own: String| if own == *name { other.clone() } else { own };
            match *verb {
                "create" => _ = objects.entry(key).or_insert_with(|| [vec![other.clone()], Vec::new()]),
                "peer" => {
                    let lists = [vec!["n0".to_owned()], vec![other.clone()]];
                    objects.entry((Kind::Zone, name.clone())).or_insert(lists);
                }
                "add" => _ = objects.entry(key).and_modify(|lists| lists[0].push(other.clone())),
                "remove" => objects.entry(key).or_default()[0].retain(|own| !own.eq_ignore_ascii_case(other)),
                "delete" => _ = objects.remove(&key),
                "rename" if is_there && is_free => {
                    let lists = |lists: [Vec<String>; 2]| lists.map(|list| list.into_iter().map(renamed).collect());
                    let all = std::mem::take(objects).into_iter();
                    *objects = all.map(|((kind, own), of)| ((kind, renamed(own)), lists(of))).collect();
                }
                "expunge" if is_there => {
                    objects.retain(|(_, own), _| own != name);
                    objects.values_mut().flatten().for_each(|list| list.retain(|own| own != name));
                }
                "cfgsave -f" => saved.clone_from(objects),
                "cfgtransabort" => objects.clone_from(saved),
                _ => {}
            }
            objects.retain(|_, lists| lists.iter().any(|list| !list.is_empty()));
        }
    }
}
