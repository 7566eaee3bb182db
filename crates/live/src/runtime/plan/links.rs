//! Links to hosts that come and go while the lab runs: what a changed lab says of them, and how their ports are opened and closed.
//!
//! ```text
//!   link is not in the file any more ──▶ Clear Virtual Links ──▶ its ports of the switch go down ──▶ the socket is closed
//!   link is new                      ──▶ the socket is opened ──▶ a segment at a port of the switch ──▶ it advertises
//!   carrier, address or VLAN differs ──▶ the one, then the other
//! ```
//!
//! A link is the same one in both files if it has the same name. Its port of the switch stays; links inside the process and between
//! switches stay as they are.

use super::switches::{End, fcf};
use super::{Places, Resource};
use crate::capture::Place;
use crate::ports::{Driver, PortError};
use crate::runtime::{Attachment, LivePort, Runtime, Segment, UpError};
use sanloom_core::config::{Carrier, Ethernet, Lab, Link, LinkEnd, Node};
use sanloom_core::dcbx;
use sanloom_core::fip::fcf;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What differs between the links of two labs.
#[derive(Debug, Default)]
pub(in crate::runtime) struct LinkChanges {
    /// To be closed, by name: their switch by index in the lab, and its port.
    closed: BTreeMap<String, (u16, u16)>,
    /// To be opened, by name.
    opened: BTreeSet<String>,
    /// In sentences.
    pub(in crate::runtime) sentences: Vec<String>,
    /// What cannot change, in sentences.
    pub(in crate::runtime) refused: Vec<String>,
}

impl LinkChanges {
    /// Of the switches that run here, by index in the lab. `is_open`: the link of the lab that runs at this switch, by index in the lab,
    /// and port is open; one that could not be opened is not.
    pub(in crate::runtime) fn between(
        now: &Lab,
        new: &Lab,
        here: &[u16],
        is_open: impl Fn(u16, u16) -> bool,
    ) -> LinkChanges {
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
                    let why = "its carrier, address, VLAN, DCBX or number of hosts is another one";
                    changes
                        .sentences
                        .push(format!("link {name} is opened anew at {at}, hosts there log in again: {why}"));
                }
                None => {
                    changes.closed.insert((*name).to_owned(), (end.switch, end.port));
                    changes.sentences.push(format!("link {name} at {at} is closed, hosts there are told"));
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

    pub(in crate::runtime) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.opened.is_empty()
    }

    fn open(&mut self, name: &str, end: &HostEnd<'_>) {
        if end.ethernet.carrier == Carrier::Descriptor {
            let why = "a descriptor is handed over at the start; end the instance and start it again";
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
    let why = "links between switches and to storage are made at the start, as those of the instance's own hosts are";
    format!("link {name}: {why}; end the instance and start it again")
}

/// The end of a link at a switch; at the other one are hosts.
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
            Node::Host(_) | Node::Storage(_) => None,
        })?;
        Some(HostEnd { switch, port, number, link, side, ethernet })
    }

    fn link_end(&self) -> End<'l> {
        let HostEnd { switch, port, number, link, side, .. } = *self;
        End { switch, port, number, link, side }
    }
}

/// The links of a lab, by name. Those of hosts without Ethernet mean nothing here.
struct Links<'l> {
    hosts: BTreeMap<&'l str, HostEnd<'l>>,
    fixed: BTreeMap<&'l str, Fixed<'l>>,
}

/// A link that is made at the start.
#[derive(PartialEq)]
struct Fixed<'l> {
    what: (Vec<&'l str>, Option<u16>, String, Option<&'l Ethernet>),
    at: String,
}

impl<'l> Links<'l> {
    fn of(lab: &'l Lab) -> Links<'l> {
        let (mut hosts, mut fixed) = (BTreeMap::new(), BTreeMap::new());
        // The instance itself is the host of some.
        let own = lab.live.host_ports();
        let is_own = |end: &LinkEnd| match end.node {
            Node::Host(host) => {
                let hba = lab.hosts[usize::from(host)].hbas.get(usize::from(end.port));
                hba.is_some_and(|hba| own.contains(&hba.wwpn))
            }
            Node::Switch(_) | Node::Storage(_) => false,
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
        };
        let names = link.ends.iter().map(|end| name(end.node)).collect();
        let at: Vec<String> = link.ends.iter().map(|end| format!("{}:{}", name(end.node), end.port)).collect();
        Fixed { what: (names, link.bundle, link.rate.to_string(), ethernet), at: at.join(" and ") }
    }
}

/// Drivers that were opened before anything was changed, by link.
pub(in crate::runtime) type Opened = BTreeMap<String, Driver>;

impl Runtime {
    /// Opens what can be opened while the old links are still there: what then cannot change leaves everything as it is. Says why the
    /// others cannot be, in sentences.
    pub(in crate::runtime) fn prepare_links(
        &self,
        lab: &Lab,
        changes: &LinkChanges,
        open: bool,
    ) -> Result<Opened, Vec<String>> {
        let mut opened = Opened::new();
        let mut refused = Vec::new();
        let places = Places::of(lab);
        let of_port = |port: &LivePort| {
            let link = port.link?;
            places.resource(&self.lab.links[link].name, self.lab.live.ethernet.get(&link)?)
        };
        let mut taken: BTreeSet<Resource> = self.ports.iter().filter_map(of_port).collect();
        if self.recorder.is_some() && !changes.is_empty() {
            refused.push("links: a recording is of the ports that it began with; end the instance first".to_owned());
        }
        let after = Links::of(lab).hosts;
        let closing: Vec<(usize, u16)> =
            changes.closed.values().filter_map(|(switch, port)| Some((self.switch_here(*switch)?, *port))).collect();
        for name in &changes.opened {
            let Some(end) = after.get(name.as_str()) else { continue };
            let Some(switch) = self.switch_here(end.switch) else { continue };
            if let Attachment::Segment(segment) = self.switches[switch].attachment(end.port)
                && !closing.contains(&(switch, self.segments[segment].lab_port))
            {
                refused.push(format!(
                    "link {name}: {} is in use for further hosts of another link; choose another port, or end the instance and \
                     start it again",
                    at(lab, end)
                ));
            }
            // It is shared, or becomes free when a link is closed.
            let waits = places.resource(name, end.ethernet).is_some_and(|resource| !taken.insert(resource));
            if !open || waits || !refused.is_empty() {
                continue;
            }
            match super::switches::open(&places, name, end.ethernet, false) {
                Ok(driver) => _ = opened.insert(name.clone(), driver),
                Err(error) => refused.push(format!("link {name}: {error}")),
            }
        }
        if refused.is_empty() { Ok(opened) } else { Err(refused) }
    }

    fn switch_here(&self, number: u16) -> Option<usize> {
        self.lab_switches.iter().position(|here| *here == number)
    }

    /// There is a segment at a port of a switch, by index in the lab.
    pub(in crate::runtime) fn is_open(&self, switch: u16, port: u16) -> bool {
        let here = self.switch_here(switch);
        here.is_some_and(|here| matches!(self.switches[here].attachment(port), Attachment::Segment(_)))
    }

    /// The running lab is this one from now on: links that it lacks are closed, and those that are new opened.
    ///
    /// # Errors
    /// When a port cannot be opened: its link is then not there, and is opened when the lab is applied again.
    pub(in crate::runtime) fn relink(
        &mut self,
        lab: Arc<Lab>,
        changes: &LinkChanges,
        mut opened: Opened,
    ) -> Result<(), UpError> {
        let mut disabled = BTreeSet::new();
        for (name, (switch, port)) in &changes.closed {
            if let Some(switch) = self.switch_here(*switch)
                && self.close_link(switch, *port)
            {
                disabled.insert(name.clone());
            }
        }
        let numbers: BTreeMap<&str, usize> =
            (0..).zip(&lab.links).map(|(number, link)| (&*link.name, number)).collect();
        for port in self.ports.iter_mut().filter(|port| port.station.is_none()) {
            let link = port.link.and_then(|link| self.lab.links.get(link));
            port.link = link.and_then(|link| numbers.get(&*link.name).copied());
        }
        self.lab = lab.clone();
        let mut outcome = Ok(());
        for (name, end) in Links::of(&lab).hosts {
            if changes.opened.contains(name)
                && let Err(error) = self.open_link(&lab, &end, opened.remove(name), disabled.contains(name))
            {
                outcome = Err(error.into());
            }
        }
        self.answer_for_vlans();
        let now = self.clock.now();
        self.settle_inside(now);
        self.flush_ports(now);
        outcome
    }

    /// `disabled`: the operator has disabled the port, and it stays so.
    fn open_link(
        &mut self,
        lab: &Lab,
        end: &HostEnd<'_>,
        driver: Option<Driver>,
        disabled: bool,
    ) -> Result<(), PortError> {
        let Some(switch) = self.switch_here(end.switch) else { return Ok(()) };
        let port = self.open(&Places::of(lab), end.link_end(), end.ethernet, driver)?;
        let segment = self.segments.iter().position(|segment| segment.gone).unwrap_or(self.segments.len());
        let live = &mut self.switches[switch];
        // Its port of the lab first; those for further hosts are behind all of the lab, where none is in use. A switch may have to grow.
        let behind = usize::from(lab.switches[usize::from(end.switch)].ports.max(end.port + 1));
        let is_free = |port: &usize| live.attachments.get(*port).is_none_or(|at| *at == Attachment::Nothing);
        let more = (behind..).filter(is_free).take(usize::from(end.ethernet.enodes) - 1).map(|port| port as u16);
        let ports: Vec<u16> = std::iter::once(end.port).chain(more).collect();
        let last = ports.iter().copied().max().unwrap_or(end.port);
        let all = live.attachments.len().max(usize::from(last) + 1);
        live.machine.grow(all as u16);
        live.fib.grow(all as u16);
        live.attachments.resize(all, Attachment::Nothing);
        ports.iter().for_each(|port| live.attachments[usize::from(*port)] = Attachment::Segment(segment));
        let config = fcf(lab, end.link_end(), end.ethernet, live.machine.name(), ports);
        let made = Segment { disabled, ..Segment::new(port, end.ethernet.vlan, switch, end.port, config) };
        match self.segments.get_mut(segment) {
            Some(place) => *place = made,
            None => self.segments.push(made),
        }
        self.ports[port].segments.push(segment);
        tracing::info!(link = self.ports[port].ethernet.name, "opened");
        let now = self.clock.now();
        let machine = &self.switches[switch].machine;
        let (name, available) = (machine.services().fabric_name(), machine.domain().is_some());
        self.tell_fcf(now, segment, fcf::Input::Fabric { name, available });
        if self.ports[port].up && !disabled {
            self.tell_fcf(now, segment, fcf::Input::LinkUp);
        }
        self.look_at_port(now, port);
        Ok(())
    }

    /// Hosts are told; what else is at the Ethernet port stays. True if the operator had disabled it.
    fn close_link(&mut self, switch: usize, port: u16) -> bool {
        let Attachment::Segment(segment) = self.switches[switch].attachment(port) else { return false };
        let now = self.clock.now();
        self.tell_fcf(now, segment, fcf::Input::Shutdown);
        self.settle_inside(now);
        let number = self.segments[segment].port;
        let disabled = std::mem::replace(&mut self.segments[segment].disabled, true);
        self.segments[segment].gone = true;
        for attachment in &mut self.switches[switch].attachments {
            if *attachment == Attachment::Segment(segment) {
                *attachment = Attachment::Nothing;
            }
        }
        tracing::info!(link = self.ports[number].ethernet.name, port, "closed");
        self.ports[number].segments.retain(|other| *other != segment);
        let Some(other) = self.ports[number].segments.first().copied() else {
            self.close_port(number);
            return disabled;
        };
        // The port is called after a link that it still has.
        let name = |link: &Link| {
            let of_switch = |switch: usize| Node::Switch(self.lab_switches[switch]);
            let at = (of_switch(self.segments[other].switch), self.segments[other].lab_port);
            link.ends.iter().any(|end| (end.node, end.port) == at)
        };
        if let Some(link) = self.lab.links.iter().position(name) {
            self.ports[number].link = Some(link);
            self.ports[number].ethernet.name = self.lab.links[link].name.clone();
        }
        disabled
    }

    fn close_port(&mut self, number: usize) {
        let now = self.clock.now();
        self.tell_agent(now, number, dcbx::Input::Shutdown);
        let port = &mut self.ports[number];
        port.ethernet.flush(&mut self.pool);
        port.ethernet.driver = Driver::Closed;
        port.ethernet.egress.blocked = false;
        port.ethernet.name.clear();
        (port.link, port.agent, port.vlans, port.light, port.up, port.ready) = (None, None, None, false, false, false);
        // Who waited for its queue waits no more: without a peer it is emptied, if it was not empty already.
        self.flush_ports(now);
        self.release(number);
        self.poller.forget(2 * number as u64);
        self.poller.forget(2 * number as u64 + 1);
        self.captures.stop(Place::Ethernet(number));
    }
}
