//! The control side of the switches: their machines, and the delivery of frames, port changes and
//! timers to them.

use super::command_log::CommandLog;
use super::notes::NoteKind;
use super::operator::{Operator, TAGS};
use super::processor::{Held, SwitchProcessor, class_of, is_request};
use super::{Env, Timers, ps_of};
use crate::net::{End, Incident, Net};
use sanloom_fc::config::Node;
use sanloom_fc::fabric::ZoneSet;
use sanloom_fc::fabric_switch::{self, Event, FabricSwitch, FabricSwitchConfig, IslState};
use sanloom_fc::fspf::FspfConfig;
use sanloom_fc::names::NamesConfig;
use sanloom_fc::san::Lab;
use sanloom_fc::switch::{LoginRejects, PortKind, Work};
use sanloom_fc::zoning::server::{ChangeFailure, ZoneChange, ZoneServerConfig};
use sanloom_fc::zoning::{ZoneCatalogue, Zones};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::Frame;
use sanloom_wire::arbitrated_loop::AlPa;
use sanloom_wire::els::link_incident::code;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The control side of all switches.
pub struct ControlPlane {
    pub switches: Vec<SwitchNode>,
    /// Log of requests to the services of switches, if enabled.
    pub command_log: Option<CommandLog>,
    /// State of the requests of an operator, if they are possible.
    pub(super) operator: Option<Box<Operator>>,
    /// Zones with which switches start, by virtual fabric. If the zones of the lab apply
    /// everywhere, the only key is `None`.
    initial_zones: InitialZones,
    /// Number of frame-path incidents reported to the switches so far.
    incidents_reported: usize,
    /// Timer of the first switch.
    first_timer: u32,
    /// Timer of the first switch's processor.
    first_processor_timer: u32,
}

type InitialZones = BTreeMap<Option<u16>, (Arc<ZoneSet>, Zones)>;

/// One switch with its machine.
pub struct SwitchNode {
    /// Services, and the protocols between switches.
    pub machine: FabricSwitch,
    /// Processor for requests; `None` if requests take no time.
    pub(super) processor: Option<SwitchProcessor>,
    /// True if the switch is running, that is, not restarting.
    pub up: bool,
    /// Zones that a stopped switch starts with.
    kept: Option<Zones>,
    /// Counters of the machines before the last restart.
    before_restart: SwitchCount,
}

/// Counters of a switch since the first login, across restarts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwitchCount {
    /// Accepted fabric logins, including those of virtual ports.
    pub logins: u64,
    /// Name server requests answered.
    pub name_server_requests: u64,
    /// RSCNs sent.
    pub rscns_sent: u64,
    /// Fabric logins rejected, by reason.
    pub rejects: LoginRejects,
    /// RLIRs (link incident reports) sent.
    pub incident_reports_sent: u64,
}

impl SwitchNode {
    /// Returns the counters since the first login, across restarts.
    pub fn counted(&self) -> SwitchCount {
        let (now, before) = (self.machine.counters(), self.before_restart);
        SwitchCount {
            logins: before.logins + now.fabric_logins + now.virtual_logins,
            name_server_requests: before.name_server_requests + now.ct_accepted + now.ct_rejected,
            rscns_sent: before.rscns_sent + now.rscn_sent,
            rejects: before.rejects.plus(now.login_rejects()),
            incident_reports_sent: before.incident_reports_sent + now.incident_reports_sent,
        }
    }
}

impl ControlPlane {
    /// Returns the switches of a lab, without links.
    pub(super) fn new(lab: &Lab, timers: &Timers) -> ControlPlane {
        let initial_zones = initial_zones(lab);
        let switches = (0..lab.switches.len() as u16).map(|switch| SwitchNode {
            machine: FabricSwitch::new(Instant::ZERO, config_of(lab, &initial_zones, switch)),
            processor: lab.switches[usize::from(switch)].processor.map(SwitchProcessor::new),
            up: true,
            kept: None,
            before_restart: SwitchCount::default(),
        });
        ControlPlane {
            switches: switches.collect(),
            command_log: None,
            operator: None,
            initial_zones,
            incidents_reported: 0,
            first_timer: timers.switch,
            first_processor_timer: timers.processor,
        }
    }

    /// Handles a message for a service of a switch. It waits for the processor if the switch has
    /// one.
    pub(super) fn receive(&mut self, env: &mut Env<'_>, switch: u16, port: u16, message: Frame) {
        let node = &mut self.switches[usize::from(switch)];
        if !node.up {
            return;
        }
        if let Some(log) = self.command_log.as_mut().filter(|_| is_request(&message.header)) {
            log.request(env.net.now(), switch, port, &message);
        }
        match (&mut node.processor, class_of(&message.header)) {
            (Some(processor), Some(class)) => {
                processor.enqueue(port, class, message);
                self.run_processor(env, switch);
            }
            _ => {
                self.handle_message(env, switch, port, message, None);
            }
        }
    }

    /// Passes a message to the services of a switch. Their messages are collected in `held`, or
    /// sent at once if it is `None`. Returns the work.
    fn handle_message(
        &mut self,
        env: &mut Env<'_>,
        switch: u16,
        port: u16,
        frame: Frame,
        held: Option<&mut Held>,
    ) -> Work {
        let machine = &mut self.switches[usize::from(switch)].machine;
        let (before, header) = (machine.work(), frame.header);
        machine.handle(env.instant(), fabric_switch::Input::Frame { port, frame });
        let work = machine.work().since(before);
        if let Some(log) = &mut self.command_log {
            log.work_counted(switch, port, &header, work);
        }
        self.drain(env, switch, held);
        work
    }

    /// Sends the responses of a switch's processor that are due and starts the next queued
    /// requests.
    pub(super) fn run_processor(&mut self, env: &mut Env<'_>, switch: u16) {
        let now = env.net.now();
        loop {
            let Some(processor) = &mut self.switches[usize::from(switch)].processor else { return };
            if let Some(held) = processor.finish(now) {
                for (port, frame) in held {
                    self.send(env.net, switch, port, frame);
                }
                continue;
            }
            let Some(next) = processor.next_request() else { break };
            let mut held = Held::new();
            let work = self.handle_message(env, switch, next.port, next.frame, Some(&mut held));
            if let Some(processor) = &mut self.switches[usize::from(switch)].processor {
                processor.begin(now, next.server, next.kind, work, held);
            }
        }
        if let Some(at) = self.switches[usize::from(switch)].processor.as_ref().and_then(SwitchProcessor::next_end) {
            env.net.set_timer(self.first_processor_timer + u32::from(switch), at);
        }
    }

    /// Handles the timer of a switch.
    pub(super) fn switch_timeout(&mut self, env: &mut Env<'_>, switch: u16) {
        self.handle(env, switch, fabric_switch::Input::Timeout);
    }

    /// Handles a switch port that went up or down.
    pub(super) fn port_changed(&mut self, env: &mut Env<'_>, switch: u16, port: u16, up: bool) {
        if up {
            let kind = port_kind(env.net, switch, port);
            return self.handle(env, switch, fabric_switch::Input::PortUp { port, kind });
        }
        self.handle(env, switch, fabric_switch::Input::Incident { port, code: code::LOSS_OF_SIGNAL });
        self.handle(env, switch, fabric_switch::Input::PortDown { port });
    }

    /// Handles the end of the initialisation of a loop at a switch port, its FL_Port.
    pub(super) fn loop_up(&mut self, env: &mut Env<'_>, switch: u16, port: u16, al_pas: Vec<AlPa>) {
        self.handle(env, switch, fabric_switch::Input::LoopUp { port, al_pas });
    }

    /// Returns the number of frame-path incidents reported to the switches so far.
    #[inline]
    pub(super) fn incidents_reported(&self) -> usize {
        self.incidents_reported
    }

    /// Reports link resets after a credit timeout to the switches at both ends. The switches notify
    /// the ports that registered for link incidents.
    pub(super) fn report_incidents(&mut self, env: &mut Env<'_>) {
        debug_assert!(self.incidents_reported <= env.net.fc.recorder.incidents().len(), "incidents are never removed");
        while let Some(incident) = env.net.fc.recorder.incidents().get(self.incidents_reported) {
            self.incidents_reported += 1;
            let Incident::LinkReset { lane, .. } = *incident else { continue };
            let lane = &env.net.fc.lanes()[lane as usize];
            for end in [lane.from, lane.to] {
                if let End::Switch { switch, port } = end
                    && self.switches[usize::from(switch)].up
                {
                    self.handle(env, switch, fabric_switch::Input::Incident { port, code: code::IMPLICIT });
                }
            }
        }
    }

    /// Commits a change of the zones at a switch, as an administrator would. The switch reports the
    /// outcome as an event.
    pub(super) fn change_zones(&mut self, env: &mut Env<'_>, lab: &Lab, number: u16) {
        let change = &lab.changes[usize::from(number)];
        let (switch, edits) = (change.switch, change.edits.clone());
        if !self.switches[usize::from(switch)].up {
            let failure = Some("the switch does not run".to_owned());
            return env.note(NoteKind::ZonesChanged { switch, change: number, failure });
        }
        let change = ZoneChange::Edits(edits);
        self.handle(env, switch, fabric_switch::Input::ChangeZones { tag: number.into(), change });
    }

    /// Starts a stopped switch, with the zones that were committed before.
    pub(super) fn start(&mut self, env: &mut Env<'_>, lab: &Lab, switch: u16) {
        let mut config = config_of(lab, &self.initial_zones, switch);
        let node = &mut self.switches[usize::from(switch)];
        debug_assert!(!node.up, "switch {switch} is stopped before it starts");
        node.before_restart = node.counted();
        // Logins do not survive a restart, but committed zones do.
        let committed = node.kept.take().unwrap_or_else(|| node.machine.zone_server().zones().clone());
        (config.services.zoning, config.database) = (committed.index(), committed);
        node.machine = FabricSwitch::new(env.instant(), config);
        node.up = true;
        if let Some(operator) = &mut self.operator {
            operator.log.switch_runs(env.instant(), switch, true);
        }
        env.note(NoteKind::Switch { switch, up: true });
    }

    /// Stops a switch. It loses the frames in its buffers and the requests queued at its processor.
    pub(super) fn stop(&mut self, env: &mut Env<'_>, lab: &Lab, switch: u16) {
        env.note(NoteKind::Switch { switch, up: false });
        env.net.reset_switch(switch);
        let node = &mut self.switches[usize::from(switch)];
        debug_assert!(node.up, "switch {switch} runs before it stops");
        node.up = false;
        // The loss of its links ends a change in progress, but the switch is off by then.
        node.kept = Some(node.machine.zone_server().zones().clone());
        if let Some(operator) = &mut self.operator {
            operator.stopped(switch);
            operator.log.switch_runs(env.instant(), switch, false);
        }
        node.processor = lab.switches[usize::from(switch)].processor.map(SwitchProcessor::new);
    }

    /// Passes an input to the machines of a switch.
    pub(super) fn handle(&mut self, env: &mut Env<'_>, switch: u16, input: fabric_switch::Input) {
        self.switches[usize::from(switch)].machine.handle(env.instant(), input);
        self.drain(env, switch, None);
    }

    fn drain(&mut self, env: &mut Env<'_>, switch: u16, mut held: Option<&mut Held>) {
        while let Some(output) = self.switches[usize::from(switch)].machine.poll_output() {
            if let Some(operator) = &mut self.operator {
                operator.log.output(env.instant(), switch, &self.switches[usize::from(switch)].machine, &output);
            }
            match output {
                fabric_switch::Output::Send { port, frame } => match &mut held {
                    Some(held) => held.push((port, frame)),
                    None => self.send(env.net, switch, port, frame),
                },
                fabric_switch::Output::Fib(delta) => env.net.fc.fib_mut(switch).apply(&delta),
                fabric_switch::Output::Event(mut event) => {
                    if let Event::ZonesChanged { result, .. } = &mut event
                        && !self.switches[usize::from(switch)].up
                    {
                        *result = Err(vec![ChangeFailure::Restarted]);
                    }
                    if let Some(operator) = &mut self.operator {
                        operator.event(env.net.now(), switch, &event);
                    }
                    note_event(env, switch, event);
                }
                // Nothing is persisted, because every run starts with the addresses and zones of
                // the lab.
                fabric_switch::Output::Persist { .. } => {}
                fabric_switch::Output::Zones { database, .. } => {
                    if let Some(operator) = &mut self.operator
                        && self.switches[usize::from(switch)].up
                    {
                        operator.zones_mut(switch).commit(database);
                    }
                }
            }
        }
        if let Some(at) = self.switches[usize::from(switch)].machine.poll_timeout() {
            env.net.set_timer_earlier(self.first_timer + u32::from(switch), ps_of(at));
        }
    }

    /// Sends a message from a switch's services.
    fn send(&mut self, net: &mut Net, switch: u16, port: u16, frame: Frame) {
        if let Some(log) = &mut self.command_log {
            log.response(net.now(), switch, port, &frame);
        }
        net.send_from_switch(switch, port, frame);
    }

    /// Adds a note for each port that is still isolated after the first login.
    pub(super) fn note_isolated(&self, env: &mut Env<'_>) {
        for (switch, node) in (0..).zip(&self.switches) {
            for isl in node.machine.isls() {
                if let IslState::Isolated(reason) = isl.state {
                    env.note(NoteKind::Isolated { switch, port: isl.port, reason });
                }
            }
        }
    }

    /// Returns whether switches still negotiate links, domains, zones or names.
    pub(super) fn is_forming(&self) -> bool {
        let mut up = self.switches.iter().filter(|node| node.up);
        up.any(|node| {
            let machine = &node.machine;
            if node.processor.as_ref().is_some_and(SwitchProcessor::has_fabric_messages) {
                return true;
            }
            let joining = machine.isls().any(|isl| isl.state == IslState::Initialising);
            joining || machine.open_requests() + machine.deferred_queries() > 0 || !machine.names().is_complete()
        })
    }
}

fn note_event(env: &mut Env<'_>, switch: u16, event: Event) {
    match event {
        Event::IslUp { .. } | Event::IslDown { .. } | Event::AdjacencyLost { .. } | Event::AdjacencyRestored { .. } => {
            env.note(NoteKind::Reroute)
        }
        Event::Isolated { port, reason } => env.note(NoteKind::Isolated { switch, port, reason }),
        // The client of the request receives the outcome.
        Event::ZonesChanged { tag, .. } if tag >= TAGS => {}
        Event::ZonesChanged { tag, result } => {
            let text =
                |failures: Vec<ChangeFailure>| failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            env.note(NoteKind::ZonesChanged { switch, change: tag as u16, failure: result.err().map(text) });
        }
        Event::Domain(_) | Event::Principal(_) => {}
    }
}

fn port_kind(net: &Net, switch: u16, port: u16) -> PortKind {
    match net.fc.switch(switch).tx_lane(port).map(|lane| net.fc.lanes()[lane as usize].to) {
        Some(End::Switch { .. }) => PortKind::E,
        _ => PortKind::F,
    }
}

/// Returns the configuration of a switch's machines.
fn config_of(lab: &Lab, zones: &InitialZones, switch: u16) -> FabricSwitchConfig {
    let (zoning, database) = zones[&zone_key(lab, switch)].clone();
    let config = FabricSwitchConfig::of_lab(lab, switch, zoning, database);
    FabricSwitchConfig {
        zones: ZoneServerConfig { retry: Span::from_ms(20), ..config.zones },
        fspf: FspfConfig { min_ls_interval: Span::ZERO, ..config.fspf },
        // Names are exchanged without delay. A simulated host is fast and could otherwise reach
        // a port before hard zoning includes it.
        names: NamesConfig { delay: Span::ZERO, ..NamesConfig::default() },
        ..config
    }
}

/// Returns the key into [`InitialZones`] of the zone database with which a switch starts.
fn zone_key(lab: &Lab, switch: u16) -> Option<u16> {
    lab.vf_id(switch).filter(|_| !lab.zone_fabrics.is_empty())
}

/// Returns the initial zone databases. Switches with the same key share one database.
fn initial_zones(lab: &Lab) -> InitialZones {
    let (catalogue, mut zones) = (ZoneCatalogue::default(), BTreeMap::new());
    for switch in 0..lab.switches.len() as u16 {
        zones.entry(zone_key(lab, switch)).or_insert_with(|| {
            let zones = Zones::in_catalogue(catalogue.clone(), lab.zone_database_at(switch));
            (zones.index(), zones)
        });
    }
    zones
}

/// Returns the bundle number of each port of a switch.
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
