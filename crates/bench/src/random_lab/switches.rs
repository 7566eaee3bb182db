//! Random switches and the links between them.

use super::Dice;
use sanloom_fc::config::{
    Arbitration, CrossbarLimits, Forwarding, IslChoice, IslHash, LineRate, Link, LinkEnd, Node, Picos, Queueing, Switch,
};
use sanloom_fc::san::Lab;

/// The switches of each fabric, and the link features of this lab.
pub(super) struct Fabrics {
    /// Switches, indexed by fabric.
    pub switches: Vec<Vec<u16>>,
    rates: Vec<(LineRate, u64)>,
    credits: Vec<(Credits, u64)>,
    lengths: Vec<(Length, u64)>,
}

#[derive(Clone, Copy)]
enum Shape {
    Line,
    Ring,
    Star,
    Mesh,
    CoreEdge,
}

#[derive(Clone, Copy)]
enum Credits {
    One,
    Few,
    Many,
}

#[derive(Clone, Copy)]
enum Length {
    Room,
    Campus,
    City,
    None,
}

/// Switch features used by a lab.
struct Kinds {
    forwarding: Vec<(Forwarding, u64)>,
    queueing: Vec<(Queueing, u64)>,
    arbitration: Vec<(Arbitration, u64)>,
    isl_choice: Vec<(IslChoice, u64)>,
    isl_hash: Vec<(IslHash, u64)>,
    crossbar: Vec<(CrossbarLimits, u64)>,
}

impl Fabrics {
    pub(super) fn draw(dice: &mut Dice, lab: &mut Lab, dual: bool) -> Fabrics {
        let count = if dual || dice.chance(1, 4) { 2 } else { 1 };
        let mut fabrics = Fabrics {
            switches: Vec::new(),
            rates: dice.swarm(&LineRate::ALL),
            credits: dice.swarm(&[Credits::One, Credits::Few, Credits::Many]),
            lengths: dice.swarm(&[Length::Room, Length::Campus, Length::City, Length::None]),
        };
        let kinds = Kinds {
            forwarding: dice.swarm(&[Forwarding::StoreAndForward, Forwarding::CutThrough]),
            queueing: dice.swarm(&[Queueing::Fifo, Queueing::Any, Queueing::Voq]),
            arbitration: dice.swarm(&[Arbitration::RoundRobin, Arbitration::OldestFirst]),
            isl_choice: dice.swarm(&[IslChoice::Ingress, IslChoice::Exchange, IslChoice::DevicePair, IslChoice::Spray]),
            isl_hash: dice.swarm(&[IslHash::Salted, IslHash::Plain]),
            crossbar: dice.swarm(&[
                CrossbarLimits::default(),
                CrossbarLimits { speedup_percent: 100, bandwidth_bit_per_s: None, egress_frames: 1 },
                CrossbarLimits { speedup_percent: 150, bandwidth_bit_per_s: Some(32_000_000_000), egress_frames: 4 },
            ]),
        };
        for _ in 0..count {
            let size = dice.range(1, if count == 2 { 3 } else { 6 });
            let members: Vec<u16> = (0..size).map(|_| kinds.switch(dice, lab)).collect();
            fabrics.join(dice, lab, &members);
            fabrics.switches.push(members);
        }
        fabrics
    }

    /// Adds the ISLs of a fabric.
    fn join(&self, dice: &mut Dice, lab: &mut Lab, members: &[u16]) {
        let shape = dice.pick(&[Shape::Line, Shape::Ring, Shape::Star, Shape::Mesh, Shape::CoreEdge]);
        let last = members.len() - 1;
        let cores = 1 + dice.index(2);
        for a in 0..members.len() {
            for b in a + 1..members.len() {
                let joined = match shape {
                    Shape::Line => b == a + 1,
                    Shape::Ring => b == a + 1 || (a == 0 && b == last),
                    Shape::Star => a == 0,
                    Shape::Mesh => true,
                    // Without edge switches, the cores are joined directly.
                    Shape::CoreEdge => (a < cores && b >= cores) || (a == 0 && b < cores && last < cores),
                };
                if joined {
                    self.isls(dice, lab, members[a], members[b]);
                }
            }
        }
    }

    /// Adds one or more ISLs between two switches, some of them in bundles.
    fn isls(&self, dice: &mut Dice, lab: &mut Lab, a: u16, b: u16) {
        let groups = if dice.chance(2, 3) { 1 } else { dice.range(2, 3) };
        for _ in 0..groups {
            let bundled = dice.chance(1, 4);
            let links = if bundled { dice.range(2, 3) } else { 1 };
            let bundle = bundled.then_some(lab.links.len() as u16);
            let (rate, length) = (self.rate(dice), self.length(dice));
            for _ in 0..links {
                let (a, b) = if dice.chance(1, 2) { (a, b) } else { (b, a) };
                let ends = [switch_end(lab, a, self.credits(dice)), switch_end(lab, b, self.credits(dice))];
                add_link(lab, ends, rate, length, bundle);
            }
        }
    }

    /// Adds a link from a port of a host or storage system to a switch.
    pub(super) fn attach(&self, dice: &mut Dice, lab: &mut Lab, node: Node, port: u16, switch: u16) {
        let own = LinkEnd { node, port, bb_credit: self.credits(dice), bb_sc_n: 0 };
        let far = switch_end(lab, switch, self.credits(dice));
        let ends = if dice.chance(1, 2) { [own, far] } else { [far, own] };
        let (rate, length) = (self.rate(dice), self.length(dice));
        add_link(lab, ends, rate, length, None);
    }

    fn rate(&self, dice: &mut Dice) -> LineRate {
        dice.weighted(&self.rates)
    }

    fn credits(&self, dice: &mut Dice) -> u16 {
        let credits = match dice.weighted(&self.credits) {
            Credits::One => 1,
            Credits::Few => dice.range(2, 8),
            Credits::Many => dice.range(9, 64),
        };
        credits as u16
    }

    /// Returns a propagation delay; light takes 5 ns per metre of fibre.
    fn length(&self, dice: &mut Dice) -> Picos {
        let metres = match dice.weighted(&self.lengths) {
            Length::None => 0,
            Length::Room => dice.range(1, 50),
            Length::Campus => dice.range(50, 2_000),
            Length::City => dice.range(2_000, 50_000),
        };
        Picos::from_ns(5 * metres)
    }
}

impl Kinds {
    fn switch(&self, dice: &mut Dice, lab: &mut Lab) -> u16 {
        let number = lab.switches.len() as u16;
        lab.switches.push(Switch {
            name: format!("switch{number}"),
            wwn: Switch::made_up_wwn(number),
            domain: number as u8 * 7 + 1,
            ports: 1 + dice.range(0, 2) as u16,
            rates: [None; 2],
            forwarding: dice.weighted(&self.forwarding),
            queueing: dice.weighted(&self.queueing),
            arbitration: dice.weighted(&self.arbitration),
            latency: Picos::from_ns(if dice.chance(1, 2) { 0 } else { dice.spread(100, 5_000) }),
            isl_choice: dice.weighted(&self.isl_choice),
            isl_hash: dice.weighted(&self.isl_hash),
            crossbar: dice.weighted(&self.crossbar),
            processor: None,
            policy: Default::default(),
            joining: Default::default(),
            virtual_channels: None,
            quarantine: None,
            virtual_fabric: None,
        });
        number
    }
}

fn switch_end(lab: &mut Lab, switch: u16, bb_credit: u16) -> LinkEnd {
    let ports = &mut lab.switches[usize::from(switch)].ports;
    let port = *ports - 1;
    *ports += 1;
    LinkEnd { node: Node::Switch(switch), port, bb_credit, bb_sc_n: 0 }
}

fn add_link(lab: &mut Lab, ends: [LinkEnd; 2], rate: LineRate, propagation: Picos, bundle: Option<u16>) {
    let name = format!("link{}", lab.links.len());
    lab.links.push(Link { name, ends, rate, propagation, bundle, fcoe: None });
}
