//! The control side of the switches: their machines, and how frames, ports and timers reach them.

use super::World;
use super::ledger::NoteKind;
use super::node::ps_of;
use super::processor::{Held, SwitchProcessor, is_request};
use crate::net::{End, Incident};
use sanloom_core::config::{Lab, Node};
use sanloom_core::fabric_switch::{self, Event, FabricSwitch, IslState};
use sanloom_core::switch::{LoginRejects, PortKind, Work};
use sanloom_core::time::Instant;
use sanloom_core::zoning::server::ChangeFailure;
use sanloom_wire::Frame;
use sanloom_wire::els::link_incident::code;

/// The machine of one switch.
pub struct SwitchNode {
    /// Its services, and what joins it with other switches.
    pub machine: FabricSwitch,
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
    /// Fabric logins rejected, by reason.
    pub rejects: LoginRejects,
    /// RLIRs sent: reports of incidents on links.
    pub incident_reports_sent: u64,
}

impl SwitchNode {
    /// What the switch has done.
    pub fn counted(&self) -> SwitchCount {
        let (now, before) = (self.machine.counters(), self.forgotten);
        SwitchCount {
            logins: before.logins + now.fabric_logins + now.virtual_logins,
            name_server_requests: before.name_server_requests + now.ct_accepted + now.ct_rejected,
            rscns_sent: before.rscns_sent + now.rscn_sent,
            rejects: before.rejects.plus(now.login_rejects()),
            incident_reports_sent: before.incident_reports_sent + now.incident_reports_sent,
        }
    }
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
        if let Some(log) = self.command_log.as_mut().filter(|_| is_request(&whole.header)) {
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
        machine.handle(now, fabric_switch::Input::Frame { port, frame });
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
        self.switch_input(switch, now, fabric_switch::Input::Timeout);
    }

    /// A port of a switch went up or down.
    pub(super) fn switch_port(&mut self, switch: u16, port: u16, up: bool) {
        let now = Instant::from_ns(self.net.now() / 1_000);
        if up {
            let kind = self.port_kind(switch, port);
            return self.switch_input(switch, now, fabric_switch::Input::PortUp { port, kind });
        }
        let code = code::LOSS_OF_SIGNAL;
        self.switch_input(switch, now, fabric_switch::Input::Incident { port, code });
        self.switch_input(switch, now, fabric_switch::Input::PortDown { port });
    }

    /// Tells the switches at both ends of links that were reset for want of credit: whoever registered for link incidents
    /// hears of it.
    pub(super) fn report_incidents(&mut self) {
        while let Some(incident) = self.net.incidents().get(self.incidents_reported) {
            self.incidents_reported += 1;
            let Incident::LinkReset { lane, .. } = *incident else { continue };
            let lane = &self.net.lanes()[lane as usize];
            let now = Instant::from_ns(self.net.now() / 1_000);
            for end in [lane.from, lane.to] {
                if let End::Switch { switch, port } = end
                    && self.switches[usize::from(switch)].up
                {
                    let code = code::IMPLICIT;
                    self.switch_input(switch, now, fabric_switch::Input::Incident { port, code });
                }
            }
        }
    }

    pub(super) fn switch_input(&mut self, switch: u16, now: Instant, input: fabric_switch::Input) {
        self.switches[usize::from(switch)].machine.handle(now, input);
        self.drain_switch(switch, None);
    }

    fn drain_switch(&mut self, switch: u16, mut held: Option<&mut Held>) {
        while let Some(output) = self.switches[usize::from(switch)].machine.poll_output() {
            match output {
                fabric_switch::Output::Send { port, frame } => match &mut held {
                    Some(held) => held.push((port, frame)),
                    None => self.send_from_switch(switch, port, frame),
                },
                fabric_switch::Output::Fib(delta) => self.net.fib_mut(switch).apply(&delta),
                fabric_switch::Output::Event(event) => self.switch_event(switch, event),
                // Every run begins with the lab's addresses.
                fabric_switch::Output::Persist { .. } | fabric_switch::Output::Zones(_) => {}
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

    fn switch_event(&mut self, switch: u16, event: Event) {
        match event {
            Event::IslUp { .. } | Event::IslDown { .. } => self.note(NoteKind::Reroute),
            Event::Isolated { port, reason } => self.note(NoteKind::Isolated { switch, port, reason }),
            Event::ZonesChanged { tag, result } => {
                let text = |failures: Vec<ChangeFailure>| {
                    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
                };
                self.note(NoteKind::ZonesChanged { switch, change: tag as u16, failure: result.err().map(text) });
            }
            Event::Domain(_) | Event::Principal(_) => {}
        }
    }

    /// The switches have not agreed yet on links, domains, zones or names.
    pub(super) fn forming(&self) -> bool {
        let mut up = self.switches.iter().filter(|node| node.up);
        up.any(|node| {
            let machine = &node.machine;
            let joining = machine.isls().any(|isl| isl.state == IslState::Initialising);
            joining || machine.open_requests() + machine.waiting_questions() > 0 || !machine.names().is_complete()
        })
    }

    fn port_kind(&self, switch: u16, port: u16) -> PortKind {
        match self.net.switch(switch).tx_lane(port).map(|lane| self.net.lanes()[lane as usize].to) {
            Some(End::Switch { .. }) => PortKind::E,
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
