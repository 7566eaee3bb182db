//! The machines of the switches: what they are told, and what becomes of what they say.

use super::{Attachment, Runtime, Source};
use crate::record::Machine;
use crate::storage::port::{At, Leaving};
use sanloom_core::fabric::FibDelta;
use sanloom_core::fabric_switch::{self, Event};
use sanloom_core::fip::{fcf, vn2vn};
use sanloom_core::switch::PortKind;
use sanloom_core::time::Instant;

impl Runtime {
    /// Something happened to a switch.
    pub(crate) fn tell_switch(&mut self, now: Instant, switch: usize, input: fabric_switch::Input) {
        if let Some(recorder) = &mut self.recorder {
            recorder.switch_input(now, switch, &input);
        }
        self.switches[switch].machine.handle(now, input);
        self.drain_switch(now, switch);
    }

    /// Something happened to an FCF.
    pub(super) fn tell_fcf(&mut self, now: Instant, segment: usize, input: fcf::Input) {
        if let Some(recorder) = &mut self.recorder {
            recorder.fcf_input(now, segment, &input);
        }
        self.segments[segment].fcf.handle(now, input);
        self.drain_fcf(now, segment);
    }

    /// What a switch says next.
    fn ask_switch(&mut self, switch: usize) -> Option<fabric_switch::Output> {
        let output = self.switches[switch].machine.poll_output();
        if let Some(recorder) = &mut self.recorder {
            recorder.output(Machine::Switch(switch), output.as_ref());
        }
        output
    }

    /// What an FCF says next.
    fn ask_fcf(&mut self, segment: usize) -> Option<fcf::Output> {
        let output = self.segments[segment].fcf.poll_output();
        if let Some(recorder) = &mut self.recorder {
            recorder.output(Machine::Fcf(segment), output.as_ref());
        }
        output
    }

    /// What a station says next.
    pub(super) fn ask_station(&mut self, station: usize) -> Option<vn2vn::Output> {
        let output = self.stations[station].machine.poll_output();
        if let Some(recorder) = &mut self.recorder {
            recorder.output(Machine::Station(station), output.as_ref());
        }
        output
    }

    pub(super) fn drain_switch(&mut self, now: Instant, switch: usize) {
        while let Some(output) = self.ask_switch(switch) {
            match output {
                fabric_switch::Output::Send { port, frame } => self.send_from_switch(now, switch, port, frame),
                fabric_switch::Output::Fib(delta) => self.change_fib(now, switch, &delta),
                fabric_switch::Output::Event(event) => self.switch_event(now, switch, event),
                fabric_switch::Output::Persist { port_name, port_id } => {
                    self.keep_address(now, switch, port_name, port_id);
                }
                fabric_switch::Output::Zones(database) => self.keep_zones(switch, database),
            }
        }
    }

    fn change_fib(&mut self, now: Instant, switch: usize, delta: &FibDelta) {
        self.switches[switch].fib.apply(delta);
        if let FibDelta::RemoveId { id } = *delta {
            for segment in 0..self.segments.len() {
                if self.segments[segment].switch == switch {
                    self.tell_fcf(now, segment, fcf::Input::Removed { port_id: id });
                }
            }
        }
    }

    fn switch_event(&mut self, now: Instant, switch: usize, event: Event) {
        let name = self.switches[switch].name.clone();
        match event {
            Event::IslUp { port, neighbour } => {
                tracing::info!(switch = name, port, %neighbour, "link to another switch up")
            }
            Event::IslDown { port } => tracing::warn!(switch = name, port, "link to another switch down"),
            Event::Isolated { port, reason } => tracing::warn!(switch = name, port, %reason, "port isolated"),
            Event::Domain(Some(domain)) => tracing::info!(switch = name, domain, "domain"),
            Event::Domain(None) => tracing::warn!(switch = name, "no domain"),
            Event::Principal(principal) => tracing::info!(switch = name, %principal, "principal switch"),
            Event::ZonesChanged { tag, result } => {
                tracing::info!(switch = name, tag, done = result.is_ok(), "zone change");
                self.zone_change_done(switch, tag, result);
            }
        }
        self.tell_fabric(now, switch);
    }

    /// The FCFs of a switch advertise its fabric.
    pub(super) fn tell_fabric(&mut self, now: Instant, switch: usize) {
        let machine = &self.switches[switch].machine;
        let (name, available) = (machine.services().fabric_name(), machine.domain().is_some());
        for segment in 0..self.segments.len() {
            if self.segments[segment].switch == switch {
                self.tell_fcf(now, segment, fcf::Input::Fabric { name, available });
            }
        }
    }

    fn drain_fcf(&mut self, now: Instant, segment: usize) {
        while let Some(output) = self.ask_fcf(segment) {
            match output {
                fcf::Output::Fip(frame) => {
                    let (port, tag) = (self.segments[segment].port, self.segments[segment].tag());
                    let mut buffer = self.pool.take();
                    buffer.compose(&mut self.scratch, |out| frame.emit(None, out));
                    buffer.tag = tag;
                    self.ethernet_out(now, port, Source::Machine, buffer);
                }
                fcf::Output::Fcoe { to, frame } => self.send_fcoe(now, segment, to, frame),
                fcf::Output::Switch(input) => {
                    let switch = self.segments[segment].switch;
                    let input = match input {
                        fabric_switch::Input::Frame { port, frame } if !self.injector.is_idle() => {
                            match self.inject_request(now, segment, port, frame) {
                                Some(frame) => fabric_switch::Input::Frame { port, frame },
                                None => continue,
                            }
                        }
                        other => other,
                    };
                    self.tell_switch(now, switch, input);
                }
                fcf::Output::Bind(change) => self.segments[segment].bindings.apply(change),
                fcf::Output::Event(event) => self.fcf_event(segment, event),
            }
        }
    }

    fn fcf_event(&self, segment: usize, event: fcf::Event) {
        let segment = &self.segments[segment];
        let (switch, ethernet) = (&self.switches[segment.switch].name, &self.ports[segment.port].ethernet.name);
        match event {
            fcf::Event::EnodeUp { port, mac } => tracing::info!(switch, ethernet, port, %mac, "host logged in"),
            fcf::Event::EnodeDown { port, mac } => tracing::info!(switch, ethernet, port, %mac, "host gone"),
            fcf::Event::VnPortUp { port_id, port_name } => {
                tracing::info!(switch, ethernet, %port_id, %port_name, "port logged in");
            }
            fcf::Event::VnPortDown { port_id, port_name } => {
                tracing::info!(switch, ethernet, %port_id, %port_name, "port gone");
            }
            fcf::Event::NeighbourUp { port, mac, switch_name } => {
                tracing::info!(switch, ethernet, port, %mac, %switch_name, "neighbour found");
            }
            fcf::Event::NeighbourDown { port, mac } => tracing::info!(switch, ethernet, port, %mac, "neighbour gone"),
        }
    }

    /// Switches and storage begin: everything inside the process has light.
    pub(super) fn begin(&mut self, now: Instant) {
        for switch in 0..self.switches.len() {
            self.drain_switch(now, switch);
            self.tell_fabric(now, switch);
        }
        for switch in 0..self.switches.len() {
            for port in 0..self.switches[switch].attachments.len() as u16 {
                let kind = match self.switches[switch].attachment(port) {
                    Attachment::Storage { .. } | Attachment::Host(_) => PortKind::F,
                    Attachment::Cable { .. } => PortKind::E,
                    Attachment::Segment(_) | Attachment::Nothing => continue,
                };
                self.tell_switch(now, switch, fabric_switch::Input::PortUp { port, kind });
            }
        }
        for system in 0..self.systems.len() {
            for port in 0..self.systems[system].ports.len() as u16 {
                if matches!(self.systems[system].ports[usize::from(port)].at, At::Switch { .. }) {
                    self.systems[system].link(now, port, true);
                }
            }
        }
        self.begin_hosts(now);
        self.settle_inside(now);
    }

    /// Storage has something to say: jobs go to their workers at once, frames leave in [`pump`](Runtime::pump).
    pub(super) fn drain_storage(&mut self, system: usize) {
        if let Some(workers) = &self.workers {
            self.systems[system].jobs.drain(..).for_each(|job| workers.submit(job));
        }
        if let Some(engine) = &mut self.volumes {
            self.systems[system].volume_jobs.drain(..).for_each(|job| engine.submit(job));
        }
    }

    /// Storage sends: each port in turn, a few frames at a time, unless it is held back. True if somebody has more.
    pub(super) fn pump(&mut self, now: Instant) -> bool {
        const FRAMES_IN_TURN: usize = 32;
        let mut more = false;
        for system in 0..self.systems.len() {
            for port in 0..self.systems[system].ports.len() {
                for _ in 0..FRAMES_IN_TURN {
                    let node = &mut self.systems[system].ports[port];
                    if node.held > 0 {
                        break;
                    }
                    let (switch, switch_port) = match node.at {
                        At::Nothing => break,
                        At::Switch { switch, port } => (switch, port),
                        At::Station(station) => match self.station_sends(now, station) {
                            true => continue,
                            false => break,
                        },
                    };
                    let Some(leaving) = node.next_leaving() else { break };
                    let source = Source::Storage(system, port as u16);
                    match leaving {
                        Leaving::Message(frame) => {
                            self.pass_inside(switch, switch_port, source, frame);
                        }
                        Leaving::Data(header, data) => {
                            let mut buffer = self.pool.take();
                            buffer.fill_fcoe(&header, data);
                            self.data_inside(switch, switch_port, source, buffer);
                        }
                    }
                    self.settle_inside(now);
                }
                let node = &self.systems[system].ports[port];
                more |= node.held == 0 && node.has_output();
            }
        }
        more
    }
}
