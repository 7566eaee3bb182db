//! The control side of the switches: their machines, the routes between them, and how they tell each other of N_Ports.

use super::World;
use super::node::ps_of;
use super::processor::{Held, SwitchProcessor, is_request};
use sanloom_core::config::{Lab, Node};
use sanloom_core::fabric::routes::{Isl, IslEnd, cost_of, routes};
use sanloom_core::switch::{self, PeerUpdate, PortKind, Switch, Work};
use sanloom_core::time::Instant;
use sanloom_wire::Frame;
use std::collections::VecDeque;

/// The machine of one switch.
pub struct SwitchNode {
    /// Login server, name server, fabric controller.
    pub machine: Switch,
    /// What serves its requests; `None`: they are served at once.
    pub(super) processor: Option<SwitchProcessor>,
    /// It runs: not in the middle of a restart.
    pub up: bool,
    /// What its machine had counted before its last restart.
    pub(super) forgotten: SwitchCount,
}

/// What a switch has done since the first login, restarts or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwitchCount {
    /// Fabric logins accepted, those of virtual ports included.
    pub logins: u64,
    /// Name server requests answered.
    pub name_server_requests: u64,
    /// RSCNs sent.
    pub rscns_sent: u64,
}

impl SwitchNode {
    /// What the switch has done.
    pub fn counted(&self) -> SwitchCount {
        let (now, before) = (self.machine.counters(), self.forgotten);
        SwitchCount {
            logins: before.logins + now.fabric_logins + now.virtual_logins,
            name_server_requests: before.name_server_requests + now.ct_accepted + now.ct_rejected,
            rscns_sent: before.rscns_sent + now.rscn_sent,
        }
    }
}

/// Name server changes on their way from one switch to all others it can reach.
///
/// Until switches exchange them as frames, they travel outside the links and take no time.
#[derive(Default)]
pub struct PeerMail {
    queue: VecDeque<(u16, PeerUpdate)>,
}

impl World {
    /// A frame is for a service of a switch.
    pub(super) fn local(&mut self, switch: u16, port: u16, frame: crate::net::FrameRef) {
        let Some(message) = frame.message() else { return };
        self.control_frames += 1;
        let Some(whole) = self.net.messages.deliver(message) else { return };
        let now = self.net.now();
        if !self.switches[usize::from(switch)].up {
            return;
        }
        if let Some(log) = &mut self.command_log {
            log.request(now, switch, port, &whole);
        }
        match &mut self.switches[usize::from(switch)].processor {
            Some(processor) if is_request(&whole.header) => {
                processor.arrive(port, whole);
                self.run_processor(switch);
            }
            _ => {
                self.serve(switch, port, whole, None);
            }
        }
    }

    /// The services of a switch deal with a message; what they send is put into `held`, or sent at once. Returns the work.
    pub(super) fn serve(&mut self, switch: u16, port: u16, frame: Frame, held: Option<&mut Held>) -> Work {
        let now = Instant::from_ns(self.net.now() / 1_000);
        let machine = &mut self.switches[usize::from(switch)].machine;
        let (before, header) = (machine.work(), frame.header);
        machine.handle(now, switch::Input::Frame { port, frame });
        let work = machine.work().since(before);
        if let Some(log) = &mut self.command_log {
            log.served(switch, port, &header, work);
        }
        self.drain_switch(switch, held);
        work
    }

    /// The timer of a switch has run out.
    pub(super) fn switch_timeout(&mut self, switch: u16) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        self.switch_input(switch, now, switch::Input::Timeout);
    }

    /// A port of a switch went up or down.
    pub(super) fn switch_port(&mut self, switch: u16, port: u16, up: bool) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        let kind = self.port_kind(switch, port);
        let input = if up { switch::Input::PortUp { port, kind } } else { switch::Input::PortDown { port } };
        self.switch_input(switch, now, input);
    }

    fn switch_input(&mut self, switch: u16, now: Instant, input: switch::Input) {
        self.switches[usize::from(switch)].machine.handle(now, input);
        self.drain_switch(switch, None);
    }

    fn drain_switch(&mut self, switch: u16, mut held: Option<&mut Held>) {
        while let Some(output) = self.switches[usize::from(switch)].machine.poll_output() {
            match output {
                switch::Output::Send { port, frame } => match &mut held {
                    Some(held) => held.push((port, frame)),
                    None => self.send_from_switch(switch, port, frame),
                },
                switch::Output::Fib(delta) => self.net.fib_mut(switch).apply(&delta),
                switch::Output::Peer(update) => self.post(switch, update),
                // Every run begins with the lab's addresses.
                switch::Output::Persist { .. } => {}
            }
        }
        if let Some(at) = self.switches[usize::from(switch)].machine.poll_timeout() {
            self.net.set_timer_earlier(self.timers.switch + u32::from(switch), ps_of(at));
        }
    }

    /// A message of a switch's services leaves.
    pub(super) fn send_from_switch(&mut self, switch: u16, port: u16, frame: Frame) {
        if let Some(log) = &mut self.command_log {
            log.answer(self.net.now(), switch, port, &frame);
        }
        self.net.send_from_switch(switch, port, frame);
    }

    fn post(&mut self, from: u16, update: PeerUpdate) {
        self.mail.queue.push_back((from, update));
        self.net.set_timer(self.timers.mail, self.net.now());
    }

    /// Name server changes have reached the other switches.
    pub(super) fn deliver_mail(&mut self) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        while let Some((from, update)) = self.mail.queue.pop_front() {
            for switch in 0..self.switches.len() as u16 {
                if switch != from && self.reaches(from, switch) && self.switches[usize::from(switch)].up {
                    self.switch_input(switch, now, switch::Input::Peer(update.clone()));
                }
            }
        }
    }

    /// There is a path between two switches.
    fn reaches(&self, from: u16, to: u16) -> bool {
        let domain = self.lab.switches[usize::from(to)].domain;
        !self.net.switch(from).fib.legs(domain).is_empty()
    }

    /// The topology has changed: new shortest paths for everybody (Dijkstra), and the name servers of switches that can
    /// reach each other again are brought together.
    pub(super) fn recompute_routes(&mut self) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        let isls = self.isls();
        let domains: Vec<u8> = self.lab.switches.iter().map(|switch| switch.domain).collect();
        let all = routes(&domains, &isls);
        for (switch, routes) in all.into_iter().enumerate() {
            self.switch_input(switch as u16, now, switch::Input::Routes(routes));
        }
    }

    fn isls(&self) -> Vec<Isl> {
        let end = |end: &sanloom_core::config::LinkEnd| match end.node {
            Node::Switch(switch) => Some(IslEnd { switch: usize::from(switch), port: end.port }),
            _ => None,
        };
        let mut isls = Vec::new();
        for (number, link) in self.lab.links.iter().enumerate() {
            if let (Some(a), Some(b)) = (end(&link.ends[0]), end(&link.ends[1])) {
                let up = self.net.link_is_up(number as u16) && self.switches[a.switch].up && self.switches[b.switch].up;
                isls.push(Isl { a, b, cost: cost_of(link.rate.bytes_per_s()), bundle: link.bundle, up });
            }
        }
        isls
    }

    fn port_kind(&self, switch: u16, port: u16) -> PortKind {
        match self.net.switch(switch).tx_lane(port).map(|lane| self.net.lanes()[lane as usize].to) {
            Some(crate::net::End::Switch { .. }) => PortKind::E,
            _ => PortKind::F,
        }
    }
}

/// Bundle of each port of a switch.
pub(super) fn bundles_of(lab: &Lab, switch: u16) -> Vec<Option<u16>> {
    let mut bundles = vec![None; usize::from(lab.switches[usize::from(switch)].ports)];
    for link in &lab.links {
        for end in &link.ends {
            if end.node == Node::Switch(switch)
                && let Some(slot) = bundles.get_mut(usize::from(end.port))
            {
                *slot = link.bundle;
            }
        }
    }
    bundles
}
