//! Links to hosts that are added, changed or removed in a running lab: [`LinkChanges`] between two
//! labs, and the opening and closing of ports.
//!
//! ```text
//!   link was removed from the file   ──▶ Clear Virtual Links ──▶ its ports of the switch go down ──▶ the socket is closed
//!   link is new                      ──▶ the socket is opened ──▶ a segment at a port of the switch ──▶ it advertises
//!   carrier, address or VLAN differs ──▶ both steps, in this order
//! ```
//!
//! Links are identified by name. A link keeps its port of the switch; links inside the process and
//! between switches cannot change.

use super::Site;
use crate::ports::{Driver, PortError};
use crate::runtime::UpError;
use crate::runtime::fabric::segment::Segment;
use crate::runtime::fabric::switch::Attachment;
use crate::runtime::instance::Instance;
use crate::runtime::plan::{End, LabPaths, Resource, fcf, open, open_port, update_vlans};
use crate::runtime::ports::LivePort;
use sanloom_fc::config::{Carrier, Ethernet, Link, LinkEnd, Node};
use sanloom_fc::dcbx;
use sanloom_fc::fip::fcf;
use sanloom_fc::san::Lab;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Differences between the links of two labs.
#[derive(Debug, Default)]
pub struct LinkChanges {
    /// Links to close, by name: their switch by index in the lab, and its port.
    closed: BTreeMap<String, (u16, u16)>,
    /// Links to open, by name.
    opened: BTreeSet<String>,
    /// The changes, one sentence each.
    pub sentences: Vec<String>,
    /// Unsupported changes, one sentence each.
    pub refused: Vec<String>,
}

impl LinkChanges {
    /// Compares two labs at the switches of this process, by index in the lab. `is_open`: whether
    /// the link of the running lab at this switch, by index in the lab, and port is open.
    pub fn between(now: &Lab, new: &Lab, here: &[u16], is_open: impl Fn(u16, u16) -> bool) -> LinkChanges {
        let mut changes = LinkChanges::default();
        let (mut before, after) = (Links::of(now), Links::of(new));
        before.hosts.retain(|_, end| !here.contains(&end.switch) || is_open(end.switch, end.port));
        changes.compare_fixed(&before, &after);
        for (name, end) in &before.hosts {
            let at = at(now, end);
            match after.hosts.get(name) {
                Some(other) if self::at(new, other) != at => {
                    changes.refused.push(moved(name, &at, &self::at(new, other)));
                }
                Some(other) if other.ethernet == end.ethernet => {}
                _ if !here.contains(&end.switch) => {}
                Some(_) => {
                    changes.closed.insert((*name).to_owned(), (end.switch, end.port));
                    changes.open(name, &after.hosts[name]);
                    let why = "its carrier, address, VLAN, DCBX or number of hosts has changed";
                    changes
                        .sentences
                        .push(format!("link {name} is reopened at {at}, and its hosts log in again: {why}"));
                }
                None => {
                    changes.closed.insert((*name).to_owned(), (end.switch, end.port));
                    changes.sentences.push(format!("link {name} at {at} is closed, and its hosts are notified"));
                }
            }
        }
        for (name, end) in &after.hosts {
            if !before.hosts.contains_key(name) && here.contains(&end.switch) {
                changes.open(name, end);
                changes.sentences.push(format!("link {name} is opened at {}", at(new, end)));
            }
        }
        changes
    }

    pub fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.opened.is_empty()
    }

    fn open(&mut self, name: &str, end: &HostEnd<'_>) {
        if end.ethernet.carrier == Carrier::Descriptor {
            let why = "a descriptor is inherited at the start only; restart the instance";
            self.refused.push(format!("link {name}: {why}"));
        }
        self.opened.insert(name.to_owned());
    }

    fn compare_fixed(&mut self, before: &Links<'_>, after: &Links<'_>) {
        for (name, fixed) in &before.fixed {
            match after.fixed.get(name) {
                Some(other) if other == fixed => {}
                Some(other) if other.what == fixed.what => self.refused.push(moved(name, &fixed.at, &other.at)),
                _ => self.refused.push(unmovable(name)),
            }
        }
        let new = after.fixed.keys().filter(|name| !before.fixed.contains_key(*name));
        self.refused.extend(new.map(|name| unmovable(name)));
    }
}

fn at(lab: &Lab, end: &HostEnd<'_>) -> String {
    format!("{}:{}", lab.switches[usize::from(end.switch)].name, end.port)
}

fn moved(name: &str, from: &str, to: &str) -> String {
    format!(
        "link {name}: it would move from {from} to {to}, because ports without a number are given in the order of the file; write the \
         ports that links have behind their switches, as in {from}"
    )
}

fn unmovable(name: &str) -> String {
    let why = "links between switches, to storage and to the instance's own hosts are created at the start only";
    format!("link {name}: {why}; restart the instance")
}

/// The end of a link at a switch; hosts are at the other end.
struct HostEnd<'l> {
    switch: u16,
    port: u16,
    number: usize,
    link: &'l Link,
    side: usize,
    ethernet: &'l Ethernet,
}

impl<'l> HostEnd<'l> {
    fn of(number: usize, link: &'l Link, ethernet: Option<&'l Ethernet>) -> Option<HostEnd<'l>> {
        let ethernet = ethernet?;
        let (side, switch, port) = link.ends.iter().enumerate().find_map(|(side, end)| match end.node {
            Node::Switch(switch) => Some((side, switch, end.port)),
            Node::Host(_) | Node::Storage(_) | Node::Loop(_) => None,
        })?;
        Some(HostEnd { switch, port, number, link, side, ethernet })
    }

    fn link_end(&self) -> End<'l> {
        let HostEnd { switch, port, number, link, side, .. } = *self;
        End { switch, port, number, link, side }
    }
}

/// Links of a lab, by name, without links to hosts that have no Ethernet.
struct Links<'l> {
    hosts: BTreeMap<&'l str, HostEnd<'l>>,
    fixed: BTreeMap<&'l str, Fixed<'l>>,
}

/// A link that cannot change.
#[derive(PartialEq)]
struct Fixed<'l> {
    what: (Vec<&'l str>, Option<u16>, String, Option<&'l Ethernet>),
    at: String,
}

impl<'l> Links<'l> {
    fn of(lab: &'l Lab) -> Links<'l> {
        let (mut hosts, mut fixed) = (BTreeMap::new(), BTreeMap::new());
        // The instance itself is the host of some links.
        let own = lab.live.host_ports();
        let is_own = |end: &LinkEnd| match end.node {
            Node::Host(host) => {
                let hba = lab.hosts[usize::from(host)].hbas.get(usize::from(end.port));
                hba.is_some_and(|hba| own.contains(&hba.wwpn))
            }
            Node::Switch(_) | Node::Storage(_) | Node::Loop(_) => false,
        };
        for (number, link) in lab.links.iter().enumerate() {
            let ethernet = lab.live.ethernet.get(&number);
            let is_host = |node| matches!(node, Node::Host(_));
            if !link.ends.iter().any(|end| is_host(end.node) && !is_own(end)) {
                fixed.insert(link.name.as_str(), Fixed::of(lab, link, ethernet));
            } else if let Some(end) = HostEnd::of(number, link, ethernet) {
                hosts.insert(link.name.as_str(), end);
            }
        }
        Links { hosts, fixed }
    }
}

impl<'l> Fixed<'l> {
    fn of(lab: &'l Lab, link: &'l Link, ethernet: Option<&'l Ethernet>) -> Fixed<'l> {
        let name = |node: Node| match node {
            Node::Host(index) => lab.hosts[usize::from(index)].name.as_str(),
            Node::Switch(index) => lab.switches[usize::from(index)].name.as_str(),
            Node::Storage(index) => lab.storage[usize::from(index)].name.as_str(),
            Node::Loop(index) => lab.loops[usize::from(index)].name.as_str(),
        };
        let names = link.ends.iter().map(|end| name(end.node)).collect();
        let at: Vec<String> = link.ends.iter().map(|end| format!("{}:{}", name(end.node), end.port)).collect();
        Fixed { what: (names, link.bundle, link.rate.to_string(), ethernet), at: at.join(" and ") }
    }
}

/// Drivers that are opened before the first change, by link.
pub type Opened = BTreeMap<String, Driver>;

/// Opens the new links that do not reuse a resource of a closed one, before anything is changed. If
/// a link cannot be opened, nothing is changed. With `open` false, only checks whether links can be
/// opened.
///
/// # Errors
/// Links that cannot be opened, one sentence each.
pub fn prepare(instance: &Instance, lab: &Lab, changes: &LinkChanges, open: bool) -> Result<Opened, Vec<String>> {
    let mut opened = Opened::new();
    let mut refused = Vec::new();
    let lab_paths = LabPaths::of(lab);
    let of_port = |port: &LivePort| {
        let link = port.link?;
        lab_paths.resource(&instance.lab.links[link].name, instance.lab.live.ethernet.get(&link)?)
    };
    let mut taken: BTreeSet<Resource> = instance.ports.iter().filter_map(of_port).collect();
    if instance.recording.is_on() && !changes.is_empty() {
        refused
            .push("links: a recording holds only the ports of its start; restart the instance without it".to_owned());
    }
    let after = Links::of(lab).hosts;
    let here = |switch: u16| instance.switch_here(switch);
    let closing: Vec<(usize, u16)> =
        changes.closed.values().filter_map(|(switch, port)| Some((here(*switch)?, *port))).collect();
    for name in &changes.opened {
        let Some(end) = after.get(name.as_str()) else { continue };
        let Some(switch) = here(end.switch) else { continue };
        if let Attachment::Segment(segment) = instance.fabric.switches[switch].attachment(end.port)
            && !closing.contains(&(switch, instance.fabric.segments[segment].lab_port))
        {
            refused.push(format!(
                "link {name}: {} is in use for further hosts of another link; choose another port, or end the instance and \
                 start it again",
                at(lab, end)
            ));
        }
        // Another link shares it, or it becomes free when a link is closed.
        let waits = lab_paths.resource(name, end.ethernet).is_some_and(|resource| !taken.insert(resource));
        if !open || waits || !refused.is_empty() {
            continue;
        }
        match self::open(&lab_paths, name, end.ethernet, false) {
            Ok(driver) => _ = opened.insert(name.clone(), driver),
            Err(error) => refused.push(format!("link {name}: {error}")),
        }
    }
    if refused.is_empty() { Ok(opened) } else { Err(refused) }
}

/// Returns whether there is a segment at a port of a switch, by index in the lab.
pub fn is_open(instance: &Instance, switch: u16, port: u16) -> bool {
    let here = instance.switch_here(switch);
    here.is_some_and(|here| matches!(instance.fabric.switches[here].attachment(port), Attachment::Segment(_)))
}

/// Replaces the running lab: closes removed links and opens new ones.
///
/// # Errors
/// A port that cannot be opened. Its link is opened when the lab is applied again.
pub fn relink(site: &mut Site<'_>, lab: Arc<Lab>, changes: &LinkChanges, mut opened: Opened) -> Result<(), UpError> {
    let mut disabled = BTreeSet::new();
    for (name, (switch, port)) in &changes.closed {
        if let Some(switch) = site.instance.switch_here(*switch)
            && close_link(site, switch, *port)
        {
            disabled.insert(name.clone());
        }
    }
    let instance = &mut *site.instance;
    let numbers: BTreeMap<&str, usize> = (0..).zip(&lab.links).map(|(number, link)| (&*link.name, number)).collect();
    for port in instance.ports.iter_mut().filter(|port| port.station.is_none()) {
        let link = port.link.and_then(|link| instance.lab.links.get(link));
        port.link = link.and_then(|link| numbers.get(&*link.name).copied());
    }
    instance.lab = lab.clone();
    let mut outcome = Ok(());
    for (name, end) in Links::of(&lab).hosts {
        if changes.opened.contains(name)
            && let Err(error) = open_link(site, &lab, &end, opened.remove(name), disabled.contains(name))
        {
            outcome = Err(error.into());
        }
    }
    update_vlans(site.instance);
    outcome
}

/// Opens a link. `disabled`: an operator has disabled the port, which stays disabled.
fn open_link(
    site: &mut Site<'_>,
    lab: &Lab,
    end: &HostEnd<'_>,
    driver: Option<Driver>,
    disabled: bool,
) -> Result<(), PortError> {
    let instance = &mut *site.instance;
    let Some(switch) = instance.switch_here(end.switch) else { return Ok(()) };
    let port = open_port(instance, &LabPaths::of(lab), end.link_end(), end.ethernet, driver)?;
    let segments = &mut instance.fabric.segments;
    let segment = segments.iter().position(|segment| segment.gone).unwrap_or(segments.len());
    let live = &mut instance.fabric.switches[switch];
    let disabled = live.disabled.remove(&end.port) || disabled;
    // Its port of the lab first. Ports for further hosts are numbered from the first free one after
    // the ports of the lab, so the switch may have to grow.
    let behind = usize::from(lab.switches[usize::from(end.switch)].ports.max(end.port + 1));
    let is_free = |port: &usize| live.attachments.get(*port).is_none_or(|at| *at == Attachment::Nothing);
    let more = (behind..).filter(is_free).take(usize::from(end.ethernet.enodes) - 1).map(|port| port as u16);
    let ports: Vec<u16> = std::iter::once(end.port).chain(more).collect();
    let last = ports.iter().copied().max().unwrap_or(end.port);
    let all = live.attachments.len().max(usize::from(last) + 1);
    live.machine.configure(|machine| machine.grow(all as u16));
    live.fib.grow(all as u16);
    live.attachments.resize(all, Attachment::Nothing);
    ports.iter().for_each(|port| live.attachments[usize::from(*port)] = Attachment::Segment(segment));
    let config = fcf(lab, end.link_end(), end.ethernet, live.machine.name(), ports);
    if disabled {
        live.disabled.insert(end.port);
    }
    let disabled = live.holds(end.port);
    let at = ((port, end.ethernet.vlan), (switch, end.port));
    let made = Segment { disabled, ..Segment::new(segment, at.0, at.1, config, &instance.recording) };
    match segments.get_mut(segment) {
        Some(place) => *place = made,
        None => segments.push(made),
    }
    instance.ports[port].segments.push(segment);
    tracing::info!(link = instance.ports[port].ethernet.name, "opened");
    instance.advertise_fabric(segment);
    if instance.ports[port].up && !disabled {
        instance.work.push_fcf(segment, fcf::Input::LinkUp);
    }
    instance.check_peer(site.now, port, site.poller);
    Ok(())
}

/// Logs out the hosts of a link and closes its port, unless another link shares it. Returns true if
/// an operator had disabled it.
fn close_link(site: &mut Site<'_>, switch: usize, port: u16) -> bool {
    let instance = &mut *site.instance;
    let Attachment::Segment(segment) = instance.fabric.switches[switch].attachment(port) else { return false };
    instance.fcf_input(site.now, segment, fcf::Input::Shutdown);
    instance.dispatch(site.now);
    let closed = &mut instance.fabric.segments[segment];
    let number = closed.port;
    closed.disabled = true;
    closed.gone = true;
    let lab_port = closed.lab_port;
    let disabled = instance.fabric.switches[switch].disabled.remove(&lab_port);
    instance.fabric.switches[switch].failures.remove(&port);
    if disabled {
        instance.fabric.switches[switch].disabled.insert(port);
    }
    for attachment in &mut instance.fabric.switches[switch].attachments {
        if *attachment == Attachment::Segment(segment) {
            *attachment = Attachment::Nothing;
        }
    }
    tracing::info!(link = instance.ports[number].ethernet.name, port, "closed");
    instance.ports[number].segments.retain(|other| *other != segment);
    let Some(other) = instance.ports[number].segments.first().copied() else {
        instance.agent_input(site.now, number, dcbx::Input::Shutdown);
        instance.ports.close(number, site.poller);
        instance.flush_ports(site.now);
        return disabled;
    };
    // The port is named after a link that it still has.
    let other = &instance.fabric.segments[other];
    let at = (Node::Switch(instance.lab_switches[other.switch]), other.lab_port);
    let is_here = |link: &Link| link.ends.iter().any(|end| (end.node, end.port) == at);
    if let Some(link) = instance.lab.links.iter().position(is_here) {
        instance.ports[number].link = Some(link);
        instance.ports[number].ethernet.name = instance.lab.links[link].name.clone();
    }
    disabled
}
