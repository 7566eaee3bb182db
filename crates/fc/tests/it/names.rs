//! Name servers of several switches. After all faults have ended, each has exactly the ports that
//! are logged in at the others.

use sanloom_fc::config::{Zone, ZoneMember};
use sanloom_fc::ils::{ATTEMPTS, Outcome, Peer, Request, Send};
use sanloom_fc::names::{Input, NameExchange, NamesConfig, Output};
use sanloom_fc::zoning::{EffectiveZones, ZoneDatabase, Zones};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::ct::{Ct, CtBody};
use sanloom_wire::ns::{NsAccept, NsRecord, NsRequest, ZoneName, one_type, port_type};
use sanloom_wire::{FcId, Message, Wwnn, Wwpn};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug)]
enum Event {
    Request {
        from: usize,
        to: usize,
        ox_id: u16,
        message: Message,
    },
    Answer {
        to: usize,
        ox_id: u16,
        message: Message,
    },
    /// The time of an attempt has expired.
    Patience {
        from: usize,
        ox_id: u16,
    },
}

/// Request that was not answered.
struct Open {
    to: usize,
    message: Message,
    tag: u32,
    attempts: u8,
}

struct Fabric {
    now: Instant,
    switches: Vec<NameExchange>,
    own: Vec<BTreeMap<FcId, Arc<NsRecord>>>,
    /// Entries of other switches known to each switch: the sum of its outputs.
    known: Vec<BTreeMap<FcId, Arc<NsRecord>>>,
    open: Vec<BTreeMap<u16, Open>>,
    events: BTreeMap<(Instant, u64), Event>,
    numbers: u64,
    ox_id: u16,
    random: SplitMix64,
    loss: u64,
    jitter_us: u64,
    /// True if messages are encoded and parsed.
    by_wire: bool,
    /// Part of the fabric that each switch belongs to.
    part: Vec<u8>,
    requests: u64,
}

impl Fabric {
    fn new(switches: usize, seed: u64) -> Fabric {
        let mut fabric = Fabric {
            now: Instant::ZERO,
            switches: (0..switches).map(|_| NameExchange::new(NamesConfig::default())).collect(),
            own: vec![BTreeMap::new(); switches],
            known: vec![BTreeMap::new(); switches],
            open: (0..switches).map(|_| BTreeMap::new()).collect(),
            events: BTreeMap::new(),
            numbers: 0,
            ox_id: 0,
            random: SplitMix64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            loss: 0,
            jitter_us: 0,
            by_wire: seed % 2 == 1,
            part: vec![0; switches],
            requests: 0,
        };
        for switch in 0..switches {
            fabric.input(switch, Input::Domain(Some(domain(switch))));
        }
        fabric.see_each_other();
        fabric
    }

    /// Updates the reachable domains of every switch, at slightly different times.
    fn see_each_other(&mut self) {
        for a in 0..self.switches.len() {
            for b in (0..self.switches.len()).filter(|b| *b != a) {
                if self.part[a] == self.part[b] {
                    self.input(a, Input::Reachable { domain: domain(b) });
                } else {
                    self.open[a].retain(|_, open| open.to != b);
                    self.input(a, Input::Unreachable { domain: domain(b) });
                }
                if self.jitter_us > 0 {
                    let pause = self.random.below(2000);
                    self.run(Span::from_us(pause));
                }
            }
        }
    }

    fn input(&mut self, switch: usize, input: Input) {
        self.switches[switch].handle(self.now, input);
        while let Some(output) = self.switches[switch].poll_output() {
            match output {
                Output::Send(Send::Request { to: Peer::Domain(to), message, tag }) => {
                    self.ox_id = self.ox_id.wrapping_add(1);
                    let open = Open { to: usize::from(to) - 1, message, tag, attempts: 0 };
                    self.attempt(switch, self.ox_id, open);
                }
                Output::Send(Send::Withdraw { to: Peer::Domain(to), tag }) => {
                    self.open[switch].retain(|_, open| open.to != usize::from(to) - 1 || open.tag != tag);
                }
                Output::Send(Send::Answer { request, message }) => {
                    let Peer::Domain(to) = request.from else { panic!("{request:?}") };
                    let event = Event::Answer { to: usize::from(to) - 1, ox_id: request.ox_id, message };
                    self.send(switch, usize::from(to) - 1, event);
                }
                Output::Send(other) => panic!("{other:?}"),
                Output::Object(entry) => {
                    self.known[switch].insert(entry.port_id, entry);
                }
                Output::Removed { port_id } => {
                    assert!(self.known[switch].remove(&port_id).is_some(), "{port_id} was not known");
                }
                Output::DomainGone { domain } => self.known[switch].retain(|id, _| id.domain() != domain),
                Output::Superseded { port_id } => self.log_out(switch, port_id),
            }
        }
    }

    fn attempt(&mut self, from: usize, ox_id: u16, open: Open) {
        let (to, message) = (open.to, open.message.clone());
        let key = (self.now + Span::from_secs(2), self.number());
        self.events.insert(key, Event::Patience { from, ox_id });
        self.open[from].insert(ox_id, Open { attempts: open.attempts + 1, ..open });
        self.requests += 1;
        self.send(from, to, Event::Request { from, to, ox_id, message });
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn send(&mut self, from: usize, to: usize, event: Event) {
        if self.part[from] != self.part[to] || self.random.below(1000) < self.loss {
            return;
        }
        let late = if self.jitter_us == 0 { 0 } else { self.random.below(self.jitter_us) };
        let key = (self.now + Span::from_us(500 + late), self.number());
        self.events.insert(key, event);
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let timeouts = self.switches.iter().enumerate();
            let timeout = timeouts.filter_map(|(n, switch)| Some((switch.poll_timeout()?, n))).min();
            match (event, timeout) {
                (Some(at), other) if at <= end && other.is_none_or(|(timeout, _)| at <= timeout) => {
                    self.now = at;
                    let (_, event) = self.events.pop_first().unwrap();
                    self.happen(event);
                }
                (_, Some((at, switch))) if at <= end => {
                    self.now = self.now.max(at);
                    self.input(switch, Input::Timeout);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Request { from, to, ox_id, message } => {
                if self.part[from] == self.part[to] {
                    let message = self.carried(&message, None);
                    let request = Request { from: Peer::Domain(domain(from)), port: 0, ox_id };
                    self.input(to, Input::Request { request, message });
                }
            }
            Event::Answer { to, ox_id, message } => {
                if let Some(open) = self.open[to].remove(&ox_id) {
                    let message = self.carried(&message, Some(&open.message));
                    self.input(to, Input::Outcome { tag: open.tag, outcome: Outcome::Answered(message) });
                }
            }
            Event::Patience { from, ox_id } => {
                let Some(open) = self.open[from].remove(&ox_id) else { return };
                if open.attempts < ATTEMPTS {
                    self.ox_id = self.ox_id.wrapping_add(1);
                    return self.attempt(from, self.ox_id, open);
                }
                self.input(from, Input::Outcome { tag: open.tag, outcome: Outcome::Unanswered });
            }
        }
    }

    fn carried(&self, message: &Message, request: Option<&Message>) -> Message {
        if !self.by_wire {
            return message.clone();
        }
        let header = message.header(FcId::ZERO, FcId::ZERO, 1, 2);
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        Message::parse(&header, &bytes, request.and_then(Message::reply_key)).expect("it parses")
    }

    /// Logs in a port as the switch does, which deliberately takes over a name that is known
    /// elsewhere.
    fn log_in(&mut self, switch: usize, port: u16, name: u64) {
        let name = Wwpn(name);
        let with_name = self.own[switch].values().find(|entry| entry.port_name == name).map(|entry| entry.port_id);
        let [area, number] = port.to_be_bytes();
        let port_id = FcId::from_parts(domain(switch), area, number);
        for old in [with_name, Some(port_id)].into_iter().flatten() {
            self.log_out(switch, old);
        }
        let supersedes = self.known[switch].values().find(|entry| entry.port_name == name).map(|entry| entry.port_id);
        let entry = NsRecord {
            port_id,
            port_type: port_type::N_PORT,
            fcp_features: 0,
            listed: true,
            classes: 8,
            port_name: name,
            node_name: Wwnn(name.0 ^ 0x3000_0000_0000_0000),
            fabric_port_name: Wwpn(7),
            types: [0; 8],
            extra: None,
        };
        self.set_local(switch, entry, supersedes);
    }

    fn register(&mut self, switch: usize, id: FcId) {
        if let Some(entry) = self.own[switch].get(&id) {
            let features = 1 + self.random.below(3) as u8;
            let entry = NsRecord { types: one_type(8), fcp_features: features, ..(**entry).clone() };
            self.set_local(switch, entry, None);
        }
    }

    fn set_local(&mut self, switch: usize, entry: NsRecord, supersedes: Option<FcId>) {
        let entry = Arc::new(entry);
        self.own[switch].insert(entry.port_id, entry.clone());
        self.input(switch, Input::Local { entry, supersedes });
    }

    fn log_out(&mut self, switch: usize, port_id: FcId) {
        if let Some(entry) = self.own[switch].remove(&port_id) {
            let (port_name, node_name) = (entry.port_name, entry.node_name);
            self.input(switch, Input::LocalGone { port_id, port_name, node_name });
        }
    }

    fn assert_true(&self) {
        for (switch, known) in self.known.iter().enumerate() {
            let others = (0..self.switches.len()).filter(|other| *other != switch);
            let reachable = others.filter(|other| self.part[*other] == self.part[switch]);
            let truth: BTreeMap<FcId, NsRecord> =
                reachable.flat_map(|other| &self.own[other]).map(|(id, entry)| (*id, (**entry).clone())).collect();
            let reported: BTreeMap<FcId, NsRecord> = known.iter().map(|(id, entry)| (*id, (**entry).clone())).collect();
            let wrong = reported.iter().filter(|(id, entry)| truth.get(id) != Some(entry)).map(|(id, _)| id);
            let missing = truth.keys().filter(|id| !reported.contains_key(id));
            let (wrong, missing): (Vec<_>, Vec<_>) = (wrong.collect(), missing.collect());
            assert!(reported == truth, "switch {switch}: wrong {wrong:?}, missing {missing:?}");
            let held = (1..=239).flat_map(|domain| self.switches[switch].objects(domain));
            assert!(held.map(|entry| &**entry).eq(truth.values()), "objects at switch {switch}");
        }
        for part in 0..4 {
            let here = (0..self.own.len()).filter(|switch| self.part[*switch] == part);
            let mut names: Vec<Wwpn> = here.flat_map(|switch| self.own[switch].values()).map(|e| e.port_name).collect();
            let ports = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), ports, "a name is used twice");
        }
    }
}

fn domain(switch: usize) -> u8 {
    switch as u8 + 1
}

#[test]
fn after_faults_end_every_switch_has_the_correct_names() {
    for seed in 0..300 {
        println!("seed {seed}");
        let mut random = SplitMix64(seed * 0x1234_5677 + 99);
        let switches = 2 + random.below(4) as usize;
        let mut fabric = Fabric::new(switches, seed);
        (fabric.loss, fabric.jitter_us) = (random.below(400), 1 + random.below(3_000_000));
        for _ in 0..random.below(120) {
            let pause = if random.below(4) == 0 { 800_000 } else { 4_000 };
            fabric.run(Span::from_us(random.below(pause)));
            let switch = random.below(switches as u64) as usize;
            let port = random.below(12) as u16;
            let id = FcId::from_parts(domain(switch), 0, port as u8);
            match random.below(12) {
                // Some names are used on several switches.
                0..6 => fabric.log_in(switch, port, 0x1000_0000_0000_0000 + random.below(40)),
                6..8 => fabric.log_out(switch, id),
                8..11 => fabric.register(switch, id),
                _ => {
                    for part in &mut fabric.part {
                        *part = random.below(2) as u8;
                    }
                    fabric.see_each_other();
                }
            }
        }
        fabric.part.fill(0);
        fabric.see_each_other();
        (fabric.loss, fabric.jitter_us) = (0, 0);
        fabric.run(Span::from_secs(60));
        fabric.assert_true();
    }
}

#[test]
fn a_name_that_moved_after_a_notification_stays_at_its_new_port() {
    for (old, new) in [(0, 1), (1, 0)] {
        let mut fabric = Fabric::new(3, 0);
        fabric.log_in(old, 5, 0xaaaa);
        fabric.run(Span::from_ms(100));
        fabric.log_in(new, 6, 0xaaaa);
        fabric.run(Span::from_ms(100));
        fabric.assert_true();
        assert_eq!((fabric.own[old].len(), fabric.own[new].len()), (0, 1));
    }
}

#[test]
fn a_later_login_gets_a_name_back_after_its_first_login_ended_unreachable() {
    let mut fabric = Fabric::new(2, 0);
    fabric.log_in(1, 5, 0xaaaa);
    fabric.run(Span::from_ms(100));
    // The name is taken over, but the message is lost with the path. When the path is back, the old
    // port has logged out.
    fabric.log_in(0, 6, 0xaaaa);
    fabric.part[1] = 1;
    fabric.see_each_other();
    fabric.log_out(1, FcId::from_parts(domain(1), 0, 5));
    fabric.run(Span::from_ms(100));
    fabric.part[1] = 0;
    fabric.see_each_other();
    fabric.run(Span::from_ms(100));
    fabric.log_in(1, 7, 0xaaaa);
    fabric.run(Span::from_ms(100));
    fabric.assert_true();
    assert_eq!((fabric.own[0].len(), fabric.own[1].len()), (0, 1), "the higher address, but the later login");
}

#[test]
fn a_port_that_changes_its_name_does_not_end_the_earlier_login_with_its_first_name() {
    let mut fabric = Fabric::new(2, 0);
    fabric.log_in(1, 5, 0xaaaa);
    fabric.run(Span::from_ms(100));
    // The name is taken over, but before the message arrives, the new port has another name.
    fabric.log_in(0, 6, 0xaaaa);
    let other = NsRecord { port_name: Wwpn(0xbbbb), ..(*fabric.own[0][&FcId::from_parts(1, 0, 6)]).clone() };
    fabric.set_local(0, other, None);
    fabric.run(Span::from_secs(30));
    fabric.assert_true();
    assert_eq!((fabric.own[0].len(), fabric.own[1].len()), (1, 1));
}

#[test]
fn a_removal_does_not_affect_a_new_port_at_the_same_address() {
    let mut fabric = Fabric::new(2, 0);
    let first = FcId::from_parts(1, 0, 5);
    fabric.log_in(0, 5, 0xaaaa);
    fabric.run(Span::from_ms(100));
    fabric.log_in(1, 6, 0xaaaa);
    fabric.part[1] = 1;
    fabric.see_each_other();
    fabric.log_out(0, first);
    // The address now has another name, which is also the name of a port of the other switch.
    fabric.log_in(0, 5, 0xcccc);
    fabric.log_in(1, 7, 0xcccc);
    fabric.run(Span::from_ms(100));
    fabric.part[1] = 0;
    fabric.see_each_other();
    fabric.run(Span::from_ms(200));
    fabric.assert_true();
    assert_eq!(Vec::from_iter(fabric.own[0].keys()), [&first], "the lower address has the name");
    assert_eq!(Vec::from_iter(fabric.own[1].keys()), [&FcId::from_parts(2, 0, 6)]);
}

#[test]
fn the_lower_address_stays_after_two_simultaneous_logins() {
    let mut fabric = Fabric::new(3, 1);
    fabric.run(Span::from_ms(100));
    fabric.log_in(2, 5, 0xaaaa);
    fabric.log_in(1, 6, 0xaaaa);
    fabric.run(Span::from_ms(100));
    fabric.assert_true();
    assert_eq!((fabric.own[1].len(), fabric.own[2].len()), (1, 0));
}

#[test]
fn names_are_known_one_delay_after_the_login_and_details_follow() {
    let mut fabric = Fabric::new(2, 0);
    fabric.run(Span::from_ms(100));
    fabric.log_in(0, 1, 0xbbbb);
    fabric.register(0, FcId::from_parts(1, 0, 1));
    fabric.run(Span::from_us(5_500));
    let known: Vec<_> = fabric.known[1].values().map(|entry| (entry.port_name, entry.types)).collect();
    assert_eq!(known, [(Wwpn(0xbbbb), [0; 8])]);
    fabric.run(Span::from_us(6_000));
    fabric.assert_true();
}

#[test]
fn a_query_lost_while_paths_form_is_repeated_before_its_exchange_times_out() {
    for lost_for_ms in [5, 15, 60, 300] {
        let mut fabric = Fabric::new(3, 0);
        fabric.part = vec![0, 1, 2];
        fabric.see_each_other();
        fabric.log_in(0, 1, 0xaaaa);
        fabric.log_in(2, 1, 0xbbbb);
        (fabric.part, fabric.loss) = (vec![0; 3], 1000);
        fabric.see_each_other();
        fabric.run(Span::from_ms(lost_for_ms));
        fabric.loss = 0;
        let complete = |fabric: &Fabric| fabric.switches.iter().all(NameExchange::is_complete);
        assert!(!complete(&fabric), "after {lost_for_ms} ms");
        fabric.run(Span::from_ms(30).max(Span::from_ms(2 * lost_for_ms)));
        fabric.assert_true();
        assert!(complete(&fabric), "after {lost_for_ms} ms without a path");
        let open: usize = fabric.open.iter().map(BTreeMap::len).sum();
        assert_eq!(open, 0, "no earlier query is still open");
    }
}

#[test]
fn a_login_is_known_everywhere_when_every_reachable_domain_has_accepted_it() {
    let mut fabric = Fabric::new(3, 0);
    fabric.run(Span::from_ms(100));
    fabric.log_in(0, 1, 0xaaaa);
    let port_id = FcId::from_parts(1, 0, 1);
    let login = fabric.switches[0].unannounced_login(port_id).expect("no switch has been notified");
    fabric.run(Span::from_us(5_900));
    assert_eq!(fabric.switches[0].unannounced_login(port_id), Some(login), "the notification is in flight");
    fabric.run(Span::from_us(200));
    assert_eq!(fabric.switches[0].unannounced_login(port_id), None);
    assert!(fabric.switches[0].known_everywhere() > login);
    fabric.loss = 1000;
    fabric.log_in(0, 2, 0xbbbb);
    fabric.run(Span::from_secs(20));
    assert_eq!(
        fabric.switches[0].unannounced_login(FcId::from_parts(1, 0, 2)),
        None,
        "a domain that does not reply is ignored"
    );
}

#[test]
fn a_new_login_with_the_same_address_and_name_is_announced() {
    let mut fabric = Fabric::new(2, 0);
    fabric.log_in(0, 1, 0xbbbb);
    fabric.run(Span::from_secs(20));
    fabric.log_in(0, 1, 0xbbbb);
    fabric.switches[1].handle(fabric.now, Input::Timeout);
    let before = Arc::as_ptr(&fabric.known[1][&FcId::from_parts(1, 0, 1)]);
    fabric.run(Span::from_us(5_500));
    let after = &fabric.known[1][&FcId::from_parts(1, 0, 1)];
    assert_ne!(before, Arc::as_ptr(after), "it was removed and added again");
    fabric.run(Span::from_secs(1));
    fabric.assert_true();
}

#[test]
fn switches_of_one_process_share_every_object() {
    const SWITCHES: usize = 24;
    const PORTS: u16 = 400;
    let mut fabric = Fabric::new(SWITCHES, 0);
    for switch in 0..SWITCHES {
        for port in 0..PORTS {
            fabric.log_in(switch, port, (switch as u64) << 32 | u64::from(port) | 1 << 60);
        }
    }
    fabric.run(Span::from_ms(200));
    for port in 0..PORTS {
        fabric.register(3, FcId::from_parts(4, (port >> 8) as u8, port as u8));
    }
    fabric.run(Span::from_secs(1));
    fabric.assert_true();
    for switch in 1..SWITCHES {
        for (id, entry) in fabric.known[switch].iter().filter(|(id, _)| id.domain() > 1) {
            assert!(Arc::ptr_eq(entry, &fabric.known[0][id]), "{id} at switch {switch}");
        }
    }
    let pairs = (SWITCHES * (SWITCHES - 1)) as u64;
    println!("{} requests for {pairs} pairs of switches", fabric.requests);
    assert!(fabric.requests <= 12 * pairs, "{} requests", fabric.requests);
}

/// Answer of a switch to a query of another switch, encoded and parsed: the addresses, or reason
/// and explanation.
fn query(fabric: &mut Fabric, of: usize, query: NsRequest) -> Result<Vec<FcId>, (u8, u8)> {
    let unit = Ct::ns_request(query);
    let message = Message::from(unit);
    let request = Request { from: Peer::Domain(9), port: 0, ox_id: 1 };
    fabric.by_wire = true;
    let carried = fabric.carried(&message, None);
    fabric.switches[of].handle(fabric.now, Input::Request { request, message: carried });
    let Some(Output::Send(Send::Answer { message: answer, .. })) = fabric.switches[of].poll_output() else { panic!() };
    let Message::Ct(ct) = fabric.carried(&answer, Some(&message)) else { panic!() };
    match ct.body {
        CtBody::NsAccept(NsAccept::Entries(entries)) => Ok(entries.iter().map(|entry| entry.object.port_id).collect()),
        CtBody::Reject(reject) => Err((reject.reason.0, reject.explanation)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_cost_of_a_query_by_zone_is_the_size_of_the_zone() {
    let mut fabric = Fabric::new(2, 0);
    let names = 0x1000_0000_0000_0000..0x1000_0000_0000_0800;
    (0..).zip(names.clone()).for_each(|(port, name)| fabric.log_in(0, port, name));
    let names: Vec<u64> = names.collect();
    let members = |names: &[u64]| names.iter().map(|name| ZoneMember::PortName(Wwpn(*name))).collect();
    let zone = |(number, names): (usize, &[u64])| Zone {
        name: format!("zone{number}"),
        members: members(names),
        principals: Vec::new(),
    };
    let zones = names.chunks(4).enumerate().map(zone).collect();
    let effective = Some(Arc::new(EffectiveZones { name: "all".into(), zones }));
    fabric.input(0, Input::Zones(Zones::new(ZoneDatabase { effective, ..ZoneDatabase::default() })));
    for number in 0..500 {
        let name = ZoneName(format!("zone{number}").into_bytes().into());
        assert_eq!(query(&mut fabric, 0, NsRequest::GeZn { name }).map(|ids| ids.len()), Ok(4));
    }
    assert_eq!(fabric.switches[0].counters().examined_for_zones, 500 * (4 + 4));
}

#[test]
fn a_switch_may_query_the_ports_of_a_zone_and_of_a_zone_member() {
    let mut fabric = Fabric::new(2, 0);
    let names = [0x1000_0000_0000_000a, 0x1000_0000_0000_000b, 0x1000_0000_0000_000c];
    (0..).zip(names).for_each(|(port, name)| fabric.log_in(0, port, name));
    let id = |port| FcId::from_parts(1, 0, port);
    let zn = |name: &[u8]| NsRequest::GeZn { name: ZoneName(name.into()) };
    const NOTHING: Result<Vec<FcId>, (u8, u8)> = Err((0x09, 0x13));
    assert_eq!(query(&mut fabric, 0, zn(b"backup")), NOTHING, "it has no zones");
    let zone = |name: &str, members: Vec<ZoneMember>, principals: Vec<ZoneMember>| Zone {
        name: name.into(),
        members,
        principals,
    };
    let zones = vec![
        zone("backup", vec![ZoneMember::PortName(Wwpn(names[0]))], vec![ZoneMember::PortId(id(2))]),
        zone("elsewhere", vec![ZoneMember::PortName(Wwpn(7))], Vec::new()),
    ];
    let effective = Some(Arc::new(EffectiveZones { name: "all".into(), zones }));
    let database = ZoneDatabase { effective, ..ZoneDatabase::default() };
    fabric.input(0, Input::Zones(Zones::new(database)));
    // A change of the domain does not affect the zones.
    fabric.input(0, Input::Domain(None));
    fabric.input(0, Input::Domain(Some(1)));
    fabric.own[0].clear();
    (0..).zip(names).for_each(|(port, name)| fabric.log_in(0, port, name));
    assert_eq!(query(&mut fabric, 0, zn(b"backup")), Ok(vec![id(0), id(2)]));
    assert_eq!(query(&mut fabric, 0, zn(b"elsewhere")), NOTHING);
    assert_eq!(query(&mut fabric, 0, zn(b"none")), NOTHING);

    let zm = |kind, bytes: &[u8]| NsRequest::GeZm { kind, flags: 0, id: bytes.into() };
    assert_eq!(query(&mut fabric, 0, zm(1, &names[1].to_be_bytes())), Ok(vec![id(1)]));
    assert_eq!(query(&mut fabric, 0, zm(3, &[1, 0, 2, 0])), Ok(vec![id(2)]));
    assert_eq!(query(&mut fabric, 0, zm(4, &(names[0] ^ 0x3000_0000_0000_0000).to_be_bytes())), Ok(vec![id(0)]));
    for unmatched in [zm(1, &[7; 8]), zm(3, &[9, 0, 0, 0]), zm(0xe1, &[0; 16]), zm(1, &[])] {
        assert_eq!(query(&mut fabric, 0, unmatched), NOTHING);
    }
}
