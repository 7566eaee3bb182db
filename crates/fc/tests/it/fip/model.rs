//! For any sequence of events, the inputs that an FCF generates for its switch and its table of
//! addresses are consistent.

use crate::fip::fcf::{fdisc, flogi, keep_alive, login, logo};
use crate::fip::net::{fcf_config, fcf_mac, switch_name};
use sanloom_fc::fabric_switch;
use sanloom_fc::fip::fcf::{Event, Fcf, FcfConfig, Input, LinkEnd, Output};
use sanloom_fc::fip::{BindingChange, Bindings, Ingress};
use sanloom_scsi::random::SplitMix64;
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::els::{Els, LsAcc, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::ether::{FcMap, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, Operation, flag};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwpn};
use std::collections::{BTreeMap, BTreeSet};

const PORTS: std::ops::Range<u16> = 10..14;

/// FCF with a model of its switch, and their messages.
struct Model {
    fcf: Fcf,
    now: Instant,
    dice: SplitMix64,
    bindings: Bindings,
    bound: BTreeMap<FcId, u16>,
    up: BTreeSet<u16>,
    /// Logins and logouts that the switch has not answered: port, OX_ID, S_ID, and whether it is a
    /// logout.
    requested: Vec<(u16, u16, FcId, bool)>,
    /// Addresses that the switch considers logged in.
    granted: BTreeMap<FcId, u16>,
    logged_in: BTreeMap<FcId, Wwpn>,
}

impl Model {
    fn new(seed: u64) -> Model {
        let config = FcfConfig { ports: PORTS.collect(), ..fcf_config(1) };
        Model {
            bindings: Bindings::new(config.mac, config.fc_map),
            fcf: Fcf::new(config),
            now: Instant::ZERO,
            dice: SplitMix64(seed),
            bound: BTreeMap::new(),
            up: BTreeSet::new(),
            requested: Vec::new(),
            granted: BTreeMap::new(),
            logged_in: BTreeMap::new(),
        }
    }

    fn input(&mut self, input: Input) {
        self.fcf.handle(self.now, input);
        while let Some(output) = self.fcf.poll_output() {
            self.output(output);
        }
        self.check();
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Switch(fabric_switch::Input::PortUp { port, .. }) => {
                assert!(PORTS.contains(&port) && self.up.insert(port), "{port} was down");
            }
            Output::Switch(fabric_switch::Input::PortDown { port }) => {
                assert!(self.up.remove(&port), "{port} was up");
                assert!(!self.bound.values().any(|of| *of == port), "no address is behind a port that goes down");
                self.requested.retain(|(of, ..)| *of != port);
                self.granted.retain(|_, of| *of != port);
            }
            Output::Switch(fabric_switch::Input::Frame { port, frame }) => {
                assert!(self.up.contains(&port), "{port} is up");
                let Payload::Typed(Message::Els(els)) = &frame.payload else { return };
                let leaves = matches!(**els, Els::Logo(_));
                self.requested.push((port, frame.header.ox_id, frame.header.s_id, leaves));
            }
            Output::Switch(other) => panic!("{other:?}"),
            Output::Bind(change) => {
                self.bindings.apply(change);
                match change {
                    BindingChange::Bind { port_id, port } => {
                        assert!(self.up.contains(&port));
                        assert_eq!(self.bound.insert(port_id, port), None, "{port_id} was free");
                    }
                    BindingChange::Unbind { port_id } => {
                        assert!(self.bound.remove(&port_id).is_some(), "{port_id} was bound");
                    }
                    BindingChange::Join { .. } | BindingChange::Part { .. } => {}
                }
            }
            Output::Event(Event::VnPortUp { port_id, port_name }) => {
                assert_eq!(self.logged_in.insert(port_id, port_name), None);
            }
            Output::Event(Event::VnPortDown { port_id, port_name }) => {
                assert_eq!(self.logged_in.remove(&port_id), Some(port_name));
            }
            Output::Fip(_) | Output::Fcoe { .. } | Output::Event(_) => {}
        }
    }

    fn check(&self) {
        assert_eq!(self.up.len() + self.fcf.free_ports(), PORTS.len());
        assert_eq!(self.fcf.links().count(), self.up.len());
        let vn_ports: usize = self
            .fcf
            .links()
            .map(|link| match link.end {
                LinkEnd::Enode { vn_ports } => vn_ports,
                LinkEnd::Fcf { .. } => 0,
            })
            .sum();
        assert_eq!((vn_ports, self.logged_in.len()), (self.bound.len(), self.bound.len()));
        for (id, port) in &self.bound {
            let mac = MacAddr::fpma(FcMap::DEFAULT, *id);
            assert_eq!(self.bindings.ingress(fcf_mac(1), mac, *id), Ingress::Port(*port));
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.dice.bits() % n
    }

    fn receive(&mut self, from: MacAddr, packet: &Fip) {
        let mut pdu = Vec::new();
        packet.emit(&mut pdu);
        self.input(Input::Fip { to: fcf_mac(1), from, pdu: pdu.into() });
    }

    fn some_id(&mut self) -> FcId {
        FcId::from_parts(2, 10, self.below(12) as u8)
    }

    /// Answers a request at random, as the switch.
    fn answer(&mut self) {
        if self.requested.is_empty() {
            return;
        }
        let at = self.below(self.requested.len() as u64) as usize;
        let (port, ox_id, s_id, leaves) = self.requested.remove(at);
        let free = (0..12).map(|n| FcId::from_parts(2, 10, n)).find(|id| !self.granted.contains_key(id));
        let (els, d_id) = match (leaves, free) {
            _ if self.dice.chance(20) => {
                (Els::LsRjt(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES)), s_id)
            }
            (true, _) => {
                self.granted.remove(&s_id);
                self.input(Input::Removed { port_id: s_id });
                (Els::LsAcc(LsAcc::Empty), s_id)
            }
            (false, Some(id)) => {
                self.granted.insert(id, port);
                (Els::LsAcc(LsAcc::Login(login(Wwpn(1)))), id)
            }
            (false, None) => return,
        };
        let message = Message::from(els);
        let header = message.header(FcId::F_PORT, d_id, ox_id, 0xffff);
        self.input(Input::Send { port, frame: Frame { header, payload: Payload::Typed(message) } });
    }

    fn step(&mut self) {
        let host = self.below(6) as u8;
        let mac = MacAddr([2, 0, 0, 0, 0, host]);
        let name = Wwpn(u64::from(host) * 16 + self.below(3) + 1);
        let ox_id = self.below(20) as u16;
        let id = self.some_id();
        match self.below(16) {
            0 | 1 => self.receive(mac, &flogi(name, ox_id, flag::FPMA)),
            2 | 3 => self.receive(mac, &fdisc(name, ox_id)),
            4 => self.receive(mac, &logo(id, name, ox_id)),
            5 => self.receive(mac, &keep_alive(mac, None)),
            6 => {
                let vn_port = MacAddr::fpma(FcMap::DEFAULT, id);
                self.receive(vn_port, &keep_alive(mac, Some((vn_port, id, name))));
            }
            7 => {
                let vx_port = Descriptor::VxPort {
                    mac: MacAddr::fpma(FcMap::DEFAULT, id),
                    port_id: id,
                    port_name: self.logged_in.get(&id).copied().unwrap_or(name),
                };
                let all = self.dice.chance(30);
                let descriptors = [Descriptor::Mac(mac)].into_iter().chain((!all).then_some(vx_port)).collect();
                self.receive(mac, &Fip { operation: Operation::CLEAR_VIRTUAL_LINKS, flags: 0, descriptors });
            }
            8..=11 => self.answer(),
            12 => {
                self.granted.remove(&id);
                self.input(Input::Removed { port_id: id });
            }
            13 => self.now += Span::from_ms(self.dice.bits() % 9_000),
            14 => self.input(Input::Timeout),
            _ => match self.below(20) {
                0 => self.input(Input::LinkDown),
                1 => self.input(Input::Shutdown),
                2 | 3 => {
                    let port = PORTS.start + self.below(4) as u16;
                    self.input(Input::Clear { port });
                }
                _ if self.up.is_empty() => self.input(Input::LinkUp),
                _ => self.now += Span::from_secs(1),
            },
        }
    }
}

#[test]
fn switch_table_and_events_agree_after_random_inputs() {
    let mut logins = 0;
    for seed in 0..300 {
        let mut model = Model::new(seed);
        model.input(Input::Fabric { name: switch_name(1), available: true });
        model.input(Input::LinkUp);
        for _ in 0..500 {
            model.step();
            logins = logins.max(model.bound.len());
        }
        model.input(Input::LinkDown);
        assert_eq!((model.up.len(), model.bound.len(), model.logged_in.len()), (0, 0, 0), "seed {seed}");
        assert_eq!(model.fcf.poll_timeout(), None);
    }
    assert!(logins > 6, "{logins} at once");
}
