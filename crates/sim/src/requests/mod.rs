//! Requests to a running world: [`Requests`] answers them with the views and zone requests of
//! `sanloom-api`, as a live instance does.
//!
//! A request takes effect at the current virtual time. A request that a simulation cannot execute
//! is refused with the reason.

mod captures;
mod inject;
mod metrics;
mod storage;
mod zones;

pub use captures::Sink;

use crate::view;
use crate::world::World;
use crate::world::operator::{self, SwitchEvent};
use captures::Captures;
use sanloom_api::control::{Answer, PortChange, Request, RequestUser, ShowTable, ZoneAction};
use sanloom_api::inject::RuleRow;
use sanloom_api::view::build::{LiveWhich, Which};
use sanloom_api::view::{CounterRow, CountersView, GroupsView, Table, View};
use sanloom_api::volume::VolumeAction;
use sanloom_api::zone_requests::ZoneChanges;
use sanloom_scsi::time::Instant;
use std::sync::mpsc::Sender;
use zones::Zones;

/// Requests to a world, the clients that wait for a change of the zones, and captures.
#[derive(Default)]
pub struct Requests {
    zones: ZoneChanges,
    captures: Captures,
}

/// Effect of a request on the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// The request only read the world.
    None,
    /// The request may have changed the world.
    Changed,
    /// The end of the instance was requested.
    Stop,
}

impl Requests {
    /// Permits requests to a world.
    pub fn begin(world: &mut World) -> Requests {
        operator::permit(world);
        Requests::default()
    }

    /// Answers a request at the current time. A change of the zones is answered when it has ended.
    pub fn request(&mut self, world: &mut World, request: Request, answer: Sender<Answer>) -> Effect {
        self.request_into(world, request, None, answer)
    }

    /// As [`Requests::request`]. The frames of a capture go into the sink, if there is one.
    pub fn request_into(
        &mut self,
        world: &mut World,
        request: Request,
        sink: Option<Sink>,
        answer: Sender<Answer>,
    ) -> Effect {
        let effect = Effect::of(&request);
        let reply = match request {
            Request::Zone { switch, by, action } => {
                let now = machine_now(world);
                self.zones.request(&mut Zones(world), now, switch.as_deref(), by, action, answer);
                self.advance(world);
                return effect;
            }
            Request::Show { table: ShowTable::Fabric(which), switch } => show(world, which, switch.as_deref()),
            Request::Show { table: ShowTable::Live(LiveWhich::Captures), .. } => {
                self.captures.advance(world);
                Answer::View(View::new(&world.lab.name, view::run_s(world), Table::Captures(self.captures.view())))
            }
            Request::Show { table: ShowTable::Live(which), .. } => live_table(world, which),
            Request::Show { table: ShowTable::Plane(which), .. } => Answer::View(view::of_planes(world, which)),
            Request::Volume { action: VolumeAction::Show { name } } => show_volumes(world, name.as_deref()),
            Request::Capture { link, file: Some(file) } => self.captures.start(world, &link, &file, sink),
            Request::Capture { link, file: None } => self.captures.stop(world, &link),
            Request::Port { port, enabled, by } => set_ports(world, &[PortChange { port, enabled }], by.as_ref()),
            Request::Ports { changes, by } => set_ports(world, &changes, by.as_ref()),
            Request::Switch { switch, enabled, by } => match switch_named(world, &switch) {
                Ok(number) => {
                    operator::set_switch(world, number, enabled, by.as_ref());
                    Answer::Done
                }
                Err(reason) => Answer::failed(reason),
            },
            Request::Inject { port, matches, act, count } => {
                let row = RuleRow { port, matches: matches.trim().to_owned(), act, left: count, ..RuleRow::default() };
                match inject::add(world, row) {
                    Ok(()) => live_table(world, LiveWhich::Injections),
                    Err(reason) => Answer::failed(reason),
                }
            }
            Request::ClearInjections { port } => match inject::clear(world, port.as_deref()) {
                Ok(before) => Answer::View(View::new(&world.lab.name, view::run_s(world), Table::Injections(before))),
                Err(reason) => Answer::failed(reason),
            },
            Request::Events { after } => {
                let table = Table::Events(view::events(world, after, None));
                Answer::View(View::new(&world.lab.name, view::run_s(world), table))
            }
            Request::Log { switch, event } => {
                let number = switch.and_then(|name| switch_named(world, &name).ok());
                let now = machine_now(world);
                if let Some(operator) = operator::state_mut(world) {
                    operator.log.client(now, number, &event);
                }
                Answer::Done
            }
            Request::Metrics => Answer::Metrics { text: metrics::text(world) },
            Request::Stop => match self.captures.end(world) {
                files if files.is_empty() => Answer::Done,
                files => Answer::Incomplete { files },
            },
            other => Answer::failed(refusal(&other)),
        };
        // The client has disconnected.
        let _ = answer.send(reply);
        effect
    }

    /// Answers the clients whose changes of the zones have ended, and writes captured frames.
    pub fn advance(&mut self, world: &mut World) {
        self.captures.advance(world);
        let now = machine_now(world);
        for ended in operator::state_mut(world).map(operator::Operator::take_ended).unwrap_or_default() {
            self.zones.finish(&mut Zones(world), now, ended);
        }
    }

    /// Takes the events of the switches since the last call.
    pub fn take_events(&self, world: &mut World) -> Vec<SwitchEvent> {
        operator::state_mut(world).map(operator::Operator::take_events).unwrap_or_default()
    }
}

/// Time of the machines. It starts at the first login, in whole nanoseconds.
fn machine_now(world: &World) -> Instant {
    Instant::from_ns(world.net.now() / 1_000)
}

impl Effect {
    /// Returns the effect of a request that is executed.
    pub fn of(request: &Request) -> Effect {
        match request {
            Request::Zone { action: ZoneAction::Show | ZoneAction::Preview { .. }, .. } => Effect::None,
            Request::Show { .. } | Request::Events { .. } | Request::Log { .. } | Request::Metrics => Effect::None,
            Request::Volume { action: VolumeAction::Show { .. } } => Effect::None,
            Request::Stop => Effect::Stop,
            _ => Effect::Changed,
        }
    }
}

/// Returns the reason why a simulated fabric does not execute a request, and the remedy.
fn refusal(request: &Request) -> &'static str {
    match request {
        Request::PortGroup { .. } => {
            "the groups of target ports do not exist in a simulation; use `sanloom up` without --simulated"
        }
        Request::Trace { .. } => {
            "a simulated fabric records no requests while it runs; use `sanloom trace record LAB` without --live"
        }
        Request::Apply { .. } => {
            "a simulated fabric keeps the lab with which it began; end it, and start it with the changed file"
        }
        Request::Volume { .. } => {
            "virtual disks of a simulation cannot be changed; use `sanloom up` without --simulated"
        }
        Request::Fcoe(_) => "this is a fabric; send the request to an instance of `sanloom initiator`",
        // Answered by the caller.
        Request::Show { .. }
        | Request::Capture { .. }
        | Request::Port { .. }
        | Request::Ports { .. }
        | Request::Switch { .. }
        | Request::Zone { .. }
        | Request::Inject { .. }
        | Request::ClearInjections { .. }
        | Request::Events { .. }
        | Request::Log { .. }
        | Request::Metrics
        | Request::Stop => "the request is not known",
    }
}

fn show(world: &World, which: Which, switch: Option<&str>) -> Answer {
    match switch.map(|name| switch_named(world, name)).transpose() {
        Ok(on) => Answer::View(view::of(world, which, on)),
        Err(reason) => Answer::failed(reason),
    }
}

fn switch_named(world: &World, name: &str) -> Result<u16, String> {
    let switches = &world.lab.switches;
    switches.iter().zip(0..).find(|(switch, _)| switch.name == name).map(|(_, number)| number).ok_or_else(|| {
        let names: Vec<&str> = switches.iter().map(|switch| &*switch.name).collect();
        format!("this instance has no switch `{name}`; it has {}", names.join(", "))
    })
}

/// A port of a switch with a link.
#[derive(Clone, Copy, Debug)]
struct Place {
    switch: u16,
    port: u16,
    link: u16,
    /// Number of the end of the link.
    end: u8,
}

/// Returns switch and number of a port such as `sw1:0`, also without a link.
fn any_port_named(world: &World, name: &str) -> Result<(u16, u16), String> {
    let wrong = || format!("`{name}` is not a port; write switch and number, for example sw1:0");
    let (switch, number) = name.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = number.parse().map_err(|_| wrong())?;
    let index = switch_named(world, switch)?;
    let config = &world.lab.switches[usize::from(index)];
    let ports = config.ports;
    if port >= ports {
        return Err(format!("{switch} has {ports} ports, so there is no port {port}; the first is 0"));
    }
    if config.virtual_fabric.as_ref().is_some_and(|fabric| !fabric.ports.contains(&port)) {
        return Err(format!("port {port} of the chassis does not belong to {switch}"));
    }
    Ok((index, port))
}

/// Disables or enables ports. If one of them does not exist, none changes. `by`: the user for the
/// event log.
fn set_ports(world: &mut World, changes: &[PortChange], by: Option<&RequestUser>) -> Answer {
    let found: Result<Vec<(u16, u16)>, String> =
        changes.iter().map(|change| any_port_named(world, &change.port)).collect();
    let found = match found {
        Ok(found) => found,
        Err(reason) => return Answer::failed(reason),
    };
    for ((switch, port), change) in found.into_iter().zip(changes) {
        let link = operator::link_of(world, switch, port).map(|(link, _)| link);
        operator::set_port(world, link, (switch, port), change.enabled, by);
    }
    Answer::Done
}

/// Returns the place of a port with a link, such as `sw1:0`.
fn port_named(world: &World, name: &str) -> Result<Place, String> {
    let (switch, port) = any_port_named(world, name)?;
    let found = operator::link_of(world, switch, port);
    let (link, end) = found.ok_or_else(|| format!("nothing is attached to `{name}` in this lab"))?;
    Ok(Place { switch, port, link, end })
}

/// Returns a table that a live instance has, if the model of the simulator has it, too.
fn live_table(world: &World, which: LiveWhich) -> Answer {
    let table = match which {
        LiveWhich::Injections => {
            Table::Injections(operator::state(world).map(operator::Operator::rules).unwrap_or_default())
        }
        LiveWhich::Counters => Table::Counters(counters(world)),
        LiveWhich::Groups if world.lab.live.port_groups.is_empty() => Table::Groups(GroupsView::default()),
        LiveWhich::Groups => {
            return Answer::failed(
                "all target ports of a simulation are active/optimized; use `sanloom up` without --simulated",
            );
        }
        which => match storage::table(world, which) {
            Some(table) => table,
            None => return Answer::failed("a simulated fabric does not have this table"),
        },
    };
    Answer::View(View::new(&world.lab.name, view::run_s(world), table))
}

fn show_volumes(world: &World, name: Option<&str>) -> Answer {
    let volumes = storage::volumes(world, name);
    if let Some(name) = name.filter(|_| volumes.volumes.is_empty()) {
        return Answer::failed(format!("there is no volume `{name}`; `sanloom volume show` lists them"));
    }
    Answer::View(View::new(&world.lab.name, view::run_s(world), Table::Volumes(volumes)))
}

fn counters(world: &World) -> CountersView {
    let rows = world.lab.switches.iter().zip(&world.control.switches).map(|(config, node)| {
        let counted = node.machine.counters();
        let counters = [
            ("fabric logins", counted.fabric_logins),
            ("virtual logins", counted.virtual_logins),
            ("rejected logins", counted.logins_rejected),
            ("logouts", counted.logouts),
            ("implicit logouts", counted.implicit_logouts),
            ("name server requests", counted.ct_accepted),
            ("name server rejects", counted.ct_rejected),
            ("RSCNs", counted.rscn_sent),
            ("discarded messages of switches", node.machine.discarded()),
        ];
        let counters = counters.map(|(name, value)| (name.to_owned(), value)).into();
        CounterRow { of: config.name.clone(), counters }
    });
    CountersView { counters: rows.collect() }
}
