//! `[[fault]]`: conversion of names of links, ports and switches to indices.

mod ethernet;
mod infiniband;
mod out_of_band;
mod planes;

use super::Where;
use super::nodes::Names;
use super::ports;
use super::workloads::{self, CONFLICT};
use crate::diagnostic::{Origin, Sink};
use crate::document::{Budget, Document};
use crate::element::Element;
use crate::schema::{self, Trouble};
use crate::{suggest, value};
pub(crate) use out_of_band::{UNKNOWN_BACK_END, UNKNOWN_VOLUME};
use planes::{At, Plane};
use sanloom_fc::config::{Direction, Fault, FaultKind, Node, Picos, Target};
use sanloom_fc::san::Lab;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Code of a link that does not exist.
pub(crate) const UNKNOWN_LINK: &str = "unknown-link";
/// Code of a node with several ports for which no port is given.
pub(crate) const AMBIGUOUS_PORT: &str = "ambiguous-port";

/// Fills `lab.faults`, sorted by time.
pub(super) fn build<'d>(
    document: &'d Document,
    lab: &mut Lab,
    names: &Names,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<Where<'d>> {
    let index = Index::of(lab);
    let mut faults: Vec<(Fault, Where<'d>)> = Vec::new();
    for element in document.list("fault") {
        element.require_keys(sink);
        let Some(trouble) = element.choice("kind", schema::TROUBLES) else {
            continue;
        };
        useless_keys(&element, trouble, sink);
        let element = Rc::new(element);
        let at = element.time("at").unwrap_or_default();
        let until = until(&element, at, sink);
        let (only, on_planes) = (Plane::of(trouble), Vec::new());
        let mut finder =
            Finder { lab, names, index: &index, element: &element, budget, sink, trouble, only, on_planes };
        let of_fibre_channel = finder.kinds(trouble);
        for kind in of_fibre_channel.into_iter().chain(finder.kinds_on_planes(trouble)) {
            let place = Where {
                element: element.clone(),
                exact: vec![("until", element.origin(if element.is_given("for") { "for" } else { "until" }))],
            };
            faults.push((Fault { at, until, kind }, place));
        }
    }
    faults.sort_by_key(|(fault, _)| fault.at);
    let (faults, places) = faults.into_iter().unzip();
    lab.faults = faults;
    places
}

/// Links by name, and by the ports at their ends.
struct Index {
    by_name: BTreeMap<String, u16>,
    by_port: BTreeMap<(Node, u16), (u16, u8)>,
    /// Names of [`planes::PLANES`].
    planes: [planes::Index; 2],
}

impl Index {
    fn of(lab: &Lab) -> Index {
        let mut index = Index { by_name: BTreeMap::new(), by_port: BTreeMap::new(), planes: planes::Index::of(lab) };
        for (i, link) in lab.links.iter().enumerate() {
            index.by_name.entry(link.name.clone()).or_insert(i as u16);
            for (side, end) in link.ends.iter().enumerate() {
                index.by_port.entry((end.node, end.port)).or_insert((i as u16, side as u8));
            }
        }
        index
    }
}

/// Returns the keys that a kind of fault uses besides the time.
fn keys_of(trouble: Trouble) -> &'static [&'static str] {
    match trouble {
        Trouble::LinkDown => &["link", "port", "until", "for"],
        Trouble::LinkUp => &["link", "port"],
        Trouble::PortDown => &["port", "link", "end", "until", "for"],
        Trouble::SwitchReset => &["switch", "until", "for"],
        Trouble::FrameLoss | Trouble::CrcErrors => &["link", "port", "probability", "direction", "until", "for"],
        Trouble::SlowReceiver => &["port", "link", "end", "delay", "until", "for"],
        Trouble::Reordering => &["link", "port", "probability", "delay", "direction", "until", "for"],
        Trouble::PauseStorm => &["port", "link", "end", "priorities", "until", "for"],
        Trouble::WithheldCredits => &["port", "link", "end", "until", "for"],
        Trouble::LostRRdy | Trouble::LostCreditUpdates => &["port", "link", "end", "probability", "until", "for"],
        Trouble::VmMove => &["vm", "to", "until", "for"],
        Trouble::VmStop => &["vm"],
        Trouble::DuplicateName => &["vm", "of", "until", "for"],
        Trouble::ForeignAddress => &["host", "of", "until", "for"],
        Trouble::VolumeMove => &["volume", "to"],
        Trouble::MetadataCut => &["host", "until", "for"],
        Trouble::DiskFailure => &["lun", "member", "until", "for"],
        Trouble::LatentError => &["lun", "member", "block"],
        Trouble::ControllerFailure => &["storage", "controller", "until", "for"],
        Trouble::PowerFailure | Trouble::CacheBattery => &["storage", "until", "for"],
    }
}

/// Reports keys that this kind of fault does not use, because they would be ignored silently.
fn useless_keys(element: &Element<'_>, trouble: Trouble, sink: &mut Sink) {
    let useful = keys_of(trouble);
    for key in element.def.keys {
        if ["at", "kind"].contains(&key.path) || useful.contains(&key.path) || !element.is_given(key.path) {
            continue;
        }
        sink.error(
            CONFLICT,
            &element.origin(key.path),
            format!("`{}` has no effect for this kind of fault", key.path),
            format!("remove it; this kind uses {}", useful.join(", ")),
        );
    }
}

fn until(element: &Element<'_>, at: Picos, sink: &mut Sink) -> Option<Picos> {
    let (until, length) = (element.time("until"), element.time("for"));
    if until.is_some() && length.is_some() {
        sink.error(
            CONFLICT,
            &element.origin("for"),
            "`until` and `for` both set the end of the fault",
            "keep one of them",
        );
    }
    until.or_else(|| length.map(|length| Picos(at.0.saturating_add(length.0))))
}

struct Finder<'a, 'd> {
    lab: &'a Lab,
    names: &'a Names,
    index: &'a Index,
    element: &'a Element<'d>,
    budget: &'a mut Budget,
    sink: &'a mut Sink,
    trouble: Trouble,
    /// The kind of fault exists on this plane only.
    only: Option<Plane>,
    /// Places of the names that are those of planes.
    on_planes: Vec<(Plane, At)>,
}

/// Settings of a fault on a plane.
struct Settings {
    direction: Direction,
    probability: f64,
    delay: Picos,
    /// Paused priorities, as a mask.
    priorities: u8,
}

impl Finder<'_, '_> {
    /// Returns one fault for each named link, port or switch of Fibre Channel. `on_planes` then has
    /// the places of Ethernet and InfiniBand.
    fn kinds(&mut self, trouble: Trouble) -> Vec<FaultKind> {
        let probability = match trouble {
            Trouble::FrameLoss
            | Trouble::CrcErrors
            | Trouble::LostRRdy
            | Trouble::LostCreditUpdates
            | Trouble::Reordering => self.needed_number("probability"),
            _ => 0.0,
        };
        let delay = match trouble {
            Trouble::SlowReceiver | Trouble::Reordering => self.needed_time("delay"),
            _ => Picos::ZERO,
        };
        let direction = self.element.choice("direction", schema::DIRECTIONS).unwrap_or(Direction::Both);
        let by_link = |kind: fn(u16) -> FaultKind, links: Vec<u16>| links.into_iter().map(kind).collect();
        match trouble {
            Trouble::SwitchReset => {
                self.switches().into_iter().map(|switch| FaultKind::SwitchReset { switch }).collect()
            }
            Trouble::LinkDown => by_link(|link| FaultKind::LinkDown { link }, self.links()),
            Trouble::LinkUp => by_link(|link| FaultKind::LinkUp { link }, self.links()),
            Trouble::FrameLoss => {
                (self.links().into_iter()).map(|link| FaultKind::FrameLoss { link, direction, probability }).collect()
            }
            Trouble::CrcErrors => {
                (self.links().into_iter()).map(|link| FaultKind::CrcErrors { link, direction, probability }).collect()
            }
            Trouble::PortDown => {
                (self.ends().into_iter()).map(|(link, end)| FaultKind::PortDown { link, end }).collect()
            }
            Trouble::SlowReceiver => {
                (self.ends().into_iter()).map(|(link, end)| FaultKind::SlowReceiver { link, end, delay }).collect()
            }
            Trouble::WithheldCredits => {
                (self.ends().into_iter()).map(|(link, end)| FaultKind::WithheldCredits { link, end }).collect()
            }
            Trouble::LostRRdy => {
                (self.ends().into_iter()).map(|(link, end)| FaultKind::LostRRdy { link, end, probability }).collect()
            }
            Trouble::VmMove => match self.other_host("to") {
                Some(to) => self.hosts("vm").into_iter().map(|host| FaultKind::VmMove { host, to }).collect(),
                None => Vec::new(),
            },
            Trouble::VmStop => self.hosts("vm").into_iter().map(|host| FaultKind::VmStop { host }).collect(),
            Trouble::DuplicateName => match self.other_host("of") {
                Some(of) => self.hosts("vm").into_iter().map(|host| FaultKind::DuplicateName { host, of }).collect(),
                None => Vec::new(),
            },
            Trouble::ForeignAddress => match self.other_host("of") {
                Some(of) => self.hosts("host").into_iter().map(|host| FaultKind::ForeignAddress { host, of }).collect(),
                None => Vec::new(),
            },
            Trouble::VolumeMove => out_of_band::volume_move(self),
            Trouble::MetadataCut => out_of_band::metadata_cut(self),
            Trouble::DiskFailure => {
                let member = self.element.integer("member").unwrap_or(0);
                let failure = |Target { storage, lun }| FaultKind::DiskFailure { storage, lun, member };
                self.luns().into_iter().map(failure).collect()
            }
            Trouble::LatentError => {
                let member = self.element.integer("member").unwrap_or(0);
                let block = self.element.integer("block").unwrap_or(0);
                let error = |Target { storage, lun }| FaultKind::LatentError { storage, lun, member, block };
                self.luns().into_iter().map(error).collect()
            }
            Trouble::PowerFailure => {
                self.systems().into_iter().map(|storage| FaultKind::PowerFailure { storage }).collect()
            }
            Trouble::ControllerFailure => {
                let controller = self.element.integer("controller").unwrap_or(0);
                let failure = |storage| FaultKind::ControllerFailure { storage, controller };
                self.systems().into_iter().map(failure).collect()
            }
            Trouble::Reordering => {
                let links = self.links();
                planes::refuse(self, Plane::Ethernet, &links)
            }
            Trouble::PauseStorm => {
                let links = self.links_of_ends();
                planes::refuse(self, Plane::Ethernet, &links)
            }
            Trouble::LostCreditUpdates => {
                let links = self.links_of_ends();
                planes::refuse(self, Plane::Infiniband, &links)
            }
            Trouble::CacheBattery => {
                self.systems().into_iter().map(|storage| FaultKind::CacheBattery { storage }).collect()
            }
        }
    }

    /// Returns one fault for each place on a plane, and reports a kind that the plane does not
    /// have.
    fn kinds_on_planes(&mut self, trouble: Trouble) -> Vec<FaultKind> {
        let settings = Settings {
            direction: self.element.choice("direction", schema::DIRECTIONS).unwrap_or(Direction::Both),
            probability: self.element.number("probability").unwrap_or(0.0),
            delay: self.element.time("delay").unwrap_or_default(),
            priorities: match self.element.numbers("priorities") {
                [] => u8::MAX,
                some => some.iter().fold(0, |mask, priority| mask | 1 << (priority & 7)),
            },
        };
        let mut kinds = Vec::new();
        let mut refused = [false; 2];
        for (plane, at) in std::mem::take(&mut self.on_planes) {
            let kind = match plane {
                Plane::Ethernet => ethernet::kind(trouble, at, &settings),
                Plane::Infiniband => infiniband::kind(trouble, at, &settings),
            };
            refused[plane as usize] |= kind.is_none();
            kinds.extend(kind);
        }
        for (refused, (reason, remedy)) in
            refused.into_iter().zip([ethernet::refused(trouble), infiniband::refused(trouble)])
        {
            if refused {
                self.sink.error(CONFLICT, &self.element.origin("kind"), reason, remedy);
            }
        }
        kinds
    }

    fn links_of_ends(&mut self) -> Vec<u16> {
        self.ends().into_iter().map(|(link, _)| link).collect()
    }

    fn systems(&mut self) -> Vec<u16> {
        self.need("storage");
        let mut found = Vec::new();
        for (text, origin) in self.element.patterns("storage") {
            let Some(names) = self.budget.expand(text, origin, self.sink) else { continue };
            for name in names.iter() {
                let accept = |node| matches!(node, Node::Storage(_));
                let node = self.names.find(name, "storage system", accept, origin, self.sink);
                found.extend(node.and_then(|node| if let Node::Storage(at) = node { Some(at) } else { None }));
            }
        }
        found
    }

    /// Returns the LUNs of `lun`; a storage system stands for all of its LUNs.
    fn luns(&mut self) -> Vec<Target> {
        self.need("lun");
        workloads::luns(self.lab, self.element, "lun", &[], self.names, self.budget, self.sink)
    }

    fn needed_number(&mut self, key: &str) -> f64 {
        self.need(key);
        self.element.number(key).unwrap_or(0.0)
    }

    fn needed_time(&mut self, key: &str) -> Picos {
        self.need(key);
        self.element.time(key).unwrap_or(Picos(1))
    }

    fn need(&mut self, key: &str) {
        if !self.element.is_given(key)
            && let Some(key) = self.element.def.key(key)
        {
            self.element.require(key, self.sink);
        }
    }

    /// Returns the links in `link`, or the links at the ports in `port`.
    fn links(&mut self) -> Vec<u16> {
        if self.element.is_given("port") && !self.element.is_given("link") {
            return self.ports().into_iter().map(|(link, _)| link).collect();
        }
        self.need("link");
        let mut links = Vec::new();
        for (text, origin) in self.element.patterns("link") {
            let Some(names) = self.budget.expand(text, origin, self.sink) else {
                continue;
            };
            for name in names.iter() {
                links.extend(self.link(name, origin));
            }
        }
        links
    }

    fn link(&mut self, name: &str, origin: &Origin) -> Option<u16> {
        if let Some(&link) = self.index.by_name.get(name) {
            return Some(link);
        }
        if let Some((plane, link)) = planes::link(self, name) {
            self.on_planes.push((plane, At::Link(link)));
            return None;
        }
        if !self.sink.repeats(UNKNOWN_LINK, origin) {
            let on_planes = || self.index.planes.iter().flat_map(|plane| plane.links.keys());
            let known = || self.index.by_name.keys().chain(on_planes()).map(String::as_str);
            let some: Vec<&str> = known().filter(|n| n.starts_with("ISL")).take(9).collect();
            let otherwise = match some.is_empty() {
                true => "`sanloom show LAB links` lists the links of a lab".to_owned(),
                false => format!("links are named {}", crate::overrides::few(&some)),
            };
            self.sink.error(
                UNKNOWN_LINK,
                origin,
                format!("there is no link `{}`", value::cut(name)),
                suggest::remedy(name, known(), &otherwise),
            );
        }
        None
    }

    /// Returns links, each with the selected end.
    fn ends(&mut self) -> Vec<(u16, u8)> {
        if !self.element.is_given("link") {
            if !self.element.is_given("port") {
                self.need("port");
            }
            return self.ports();
        }
        if self.element.is_given("port") {
            self.sink.error(
                CONFLICT,
                &self.element.origin("link"),
                "`port` and `link` both set the location of the fault",
                "keep one of them",
            );
            return Vec::new();
        }
        self.need("end");
        let Some(name) = self.element.text("end") else {
            return Vec::new();
        };
        let origin = self.element.origin("end");
        let links = self.links();
        planes::choose_ends(self, name, &origin);
        if links.is_empty() {
            return Vec::new();
        }
        let Some(node) = self.names.find(name, "node", |_| true, &origin, self.sink) else {
            return Vec::new();
        };
        let mut ends = Vec::new();
        for link in links {
            let link_ends = &self.lab.links[usize::from(link)].ends;
            match link_ends.iter().position(|e| e.node == node) {
                Some(side) => ends.push((link, side as u8)),
                None => self.sink.error(
                    ports::BAD_PORT,
                    &origin,
                    format!("the link `{}` does not end at `{name}`", self.lab.links[usize::from(link)].name),
                    "name one of the two nodes that the link joins",
                ),
            }
        }
        ends
    }

    fn ports(&mut self) -> Vec<(u16, u8)> {
        let mut found = Vec::new();
        for (text, origin) in self.element.patterns("port") {
            let Some(names) = self.budget.expand(text, origin, self.sink) else {
                continue;
            };
            for name in names.iter() {
                found.extend(self.port(name, origin));
            }
        }
        found
    }

    fn port(&mut self, text: &str, origin: &Origin) -> Option<(u16, u8)> {
        let interface = planes::interface(self, text).map(|(plane, node, port)| (plane, node, Some(port)));
        let on_plane = match (interface, planes::node(self, text)) {
            (None, Some((plane, node))) => Some((plane, node, ports::number(text, u16::MAX, origin, self.sink)?)),
            (interface, _) => interface,
        };
        if let Some((plane, node, port)) = on_plane {
            let linked = self.index.planes[plane as usize].ports_of(node);
            if interface.is_none() && planes::report_elsewhere(self, text, port, Some(plane), &linked) {
                return None;
            }
            let found = self.choose_port(text, port, &linked, origin);
            self.on_planes.extend(found.map(|(link, end)| (plane, At::End(link, end))));
            return None;
        }
        let end = ports::end(text, self.names, "node", |_| true, origin, self.sink)?;
        let of_node = self.index.by_port.range((end.node, 0)..=(end.node, u16::MAX));
        let linked: Vec<(u16, (u16, u8))> = of_node.map(|(&(_, port), &place)| (port, place)).collect();
        if planes::report_elsewhere(self, text, end.port, None, &linked) {
            return None;
        }
        self.choose_port(text, end.port, &linked, origin)
    }

    /// Returns the link and its end at a port of a node, or at its only port. `linked` has the
    /// ports of the node with links.
    fn choose_port(
        &mut self,
        text: &str,
        port: Option<u16>,
        linked: &[(u16, (u16, u8))],
        origin: &Origin,
    ) -> Option<(u16, u8)> {
        let found = match port {
            Some(port) => linked.iter().find(|(p, _)| *p == port).map(|(_, place)| *place),
            None if linked.len() == 1 => linked.first().map(|(_, place)| *place),
            None => None,
        };
        match (port, linked) {
            _ if found.is_some() => {}
            (Some(_), _) => self.sink.error(
                ports::BAD_PORT,
                origin,
                format!("no link ends at port `{}`", value::cut(text)),
                "name a port that a link uses",
            ),
            (None, [(first, _), ..]) => self.sink.error(
                AMBIGUOUS_PORT,
                origin,
                format!("`{text}` has {} ports with links", linked.len()),
                format!("name one of them, for example {text}:{first}"),
            ),
            (None, []) => self.sink.error(
                ports::BAD_PORT,
                origin,
                format!("no link ends at `{}`", value::cut(text)),
                "name a node that a link reaches",
            ),
        }
        found
    }

    fn switches(&mut self) -> Vec<u16> {
        self.need("switch");
        let mut switches = Vec::new();
        for (text, origin) in self.element.patterns("switch") {
            let Some(names) = self.budget.expand(text, origin, self.sink) else {
                continue;
            };
            for name in names.iter() {
                if let Some((plane, switch)) = planes::switch(self, name) {
                    self.on_planes.push((plane, At::Switch(switch)));
                    continue;
                }
                let accept = |node| matches!(node, Node::Switch(_));
                let node = self.names.find(name, "switch", accept, origin, self.sink);
                switches.extend(node.and_then(|node| if let Node::Switch(at) = node { Some(at) } else { None }));
            }
        }
        switches
    }

    /// Returns the hosts in a key.
    fn hosts(&mut self, key: &str) -> Vec<u16> {
        let hosts = self.nodes(key, "host", |node| matches!(node, Node::Host(_)));
        hosts.into_iter().filter_map(|node| if let Node::Host(i) = node { Some(i) } else { None }).collect()
    }

    /// Returns the nodes named by a key.
    fn nodes(&mut self, key: &str, wanted: &str, accept: fn(Node) -> bool) -> Vec<Node> {
        self.need(key);
        let mut nodes = Vec::new();
        for (text, origin) in self.element.patterns(key) {
            let Some(names) = self.budget.expand(text, origin, self.sink) else {
                continue;
            };
            nodes.extend(names.iter().filter_map(|name| self.names.find(name, wanted, accept, origin, self.sink)));
        }
        nodes
    }

    /// Returns the host named by a key.
    fn other_host(&mut self, key: &str) -> Option<u16> {
        self.need(key);
        let name = self.element.text(key)?;
        let origin = self.element.origin(key);
        match self.names.find(name, "host", |node| matches!(node, Node::Host(_)), &origin, self.sink)? {
            Node::Host(host) => Some(host),
            Node::Switch(_) | Node::Storage(_) | Node::Loop(_) => None,
        }
    }
}
