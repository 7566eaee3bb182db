//! What an operator asks of a running lab: tables, ports, captures.

use super::{Attachment, Runtime};
use crate::control::{Asked, Control};
use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::view::build::{Shown, SwitchSeen, Which, blocked, isolated};
use sanloom_api::view::{PortMode, PortRow, PortsView, Table, View};
use sanloom_core::config::{Lab, Node};
use sanloom_core::fabric::PortMode as Mode;
use sanloom_core::fabric_switch;
use sanloom_core::fip::fcf;
use sanloom_core::scsi::{AccessState, PortGroup};
use sanloom_core::switch::PortKind;
use sanloom_core::time::Instant;
use std::collections::BTreeMap;
use std::path::Path;

impl Runtime {
    /// Answers what was asked. `read` makes a lab of the text of a file, or says what is wrong with it. False if somebody wants
    /// the instance to end.
    pub fn answer(&mut self, control: &Control, read: impl Fn(&str) -> Result<Lab, String>) -> bool {
        let mut go_on = true;
        for Asked { request, answer } in control.take() {
            let reply = match request {
                Request::Apply { lab, preview } => match read(&lab) {
                    Ok(lab) => {
                        self.apply(lab, preview, answer);
                        continue;
                    }
                    Err(reason) => Answer::Failed { reason },
                },
                Request::Zone { switch, action } => {
                    self.zone(switch.as_deref(), action, answer);
                    continue;
                }
                Request::Show { table: ShowTable::Fabric(which), switch } => self.show(which, switch.as_deref()),
                Request::Show { table: ShowTable::Live(which), .. } => Answer::View(self.live_view(which)),
                Request::Inject { port, matches, act, count } => self.inject(&port, &matches, &act, count),
                Request::ClearInjections { port } => self.clear_rules(port.as_deref()),
                Request::Volume { action } => self.volume(action),
                Request::Metrics => Answer::Metrics { text: self.metrics() },
                Request::Port { port, enabled } => self.enable(&port, enabled),
                Request::PortGroup { group, state, preferred } => {
                    self.set_port_group(&group, state.as_deref(), preferred)
                }
                Request::Capture { link, file: Some(file) } => match self.capture(&link, Path::new(&file)) {
                    Ok(()) => Answer::Done,
                    Err(error) => Answer::Failed { reason: error.to_string() },
                },
                Request::Capture { link, file: None } => match self.end_capture(&link) {
                    Some(frames) => Answer::Captured { frames },
                    None => Answer::Failed { reason: format!("no capture of `{link}` is running") },
                },
                Request::Fcoe(_) => Answer::Failed {
                    reason: "a fabric runs here, and no FCoE host; ask `sanloom initiator`".to_owned(),
                },
                Request::Stop => {
                    go_on = false;
                    Answer::Done
                }
            };
            // A client that does not wait for its answer is nobody's loss.
            let _ = answer.send(reply);
        }
        go_on
    }

    fn show(&self, which: Which, switch: Option<&str>) -> Answer {
        let on = match switch {
            None => None,
            Some(name) => match self.switches.iter().position(|switch| switch.name == name) {
                Some(found) => Some(self.lab_switches[found]),
                None => return unknown("switch", name, self.switches.iter().map(|switch| &*switch.name)),
            },
        };
        Answer::View(self.view(which, on))
    }

    /// A table of the fabric as it is now; `on` limits it to one switch, by index in the lab.
    pub fn view(&self, which: Which, on: Option<u16>) -> View {
        let seconds = |at: Instant| at.as_ns() as f64 / 1e9;
        let seen = self.switches.iter().zip(&self.lab_switches);
        let seen = seen.map(|(switch, number)| SwitchSeen {
            number: *number,
            machine: &switch.machine,
            fib: &switch.fib,
            up: true,
        });
        let shown = Shown::new(&self.lab, seen.collect(), on, seconds);
        let table = shown.table(which).unwrap_or_else(|| Table::Ports(self.ports_table(&shown)));
        View::new(&self.lab.name, seconds(self.clock.now()), table)
    }

    fn ports_table(&self, shown: &Shown<'_>) -> PortsView {
        let mut rows = Vec::new();
        for (link, number) in self.lab.links.iter().zip(0..) {
            for side in 0..2 {
                let end = &link.ends[side];
                let here = self.lab_switches.iter().position(|switch| end.node == Node::Switch(*switch));
                if let Some(switch) = here.filter(|here| shown.on.is_none_or(|on| on == self.lab_switches[*here])) {
                    let row = self.port_row(shown, switch, (number, side));
                    rows.push((switch, end.port, row));
                }
            }
        }
        rows.sort_by_key(|(switch, port, _)| (*switch, *port));
        PortsView { ports: rows.into_iter().map(|(.., row)| row).collect() }
    }

    fn port_row(&self, shown: &Shown<'_>, switch: usize, (number, side): (usize, usize)) -> PortRow {
        let (live, link) = (&self.switches[switch], &self.lab.links[number]);
        let end = &link.ends[side];
        let machine = &live.machine;
        let logins = |port: u16| machine.logins().filter(|(_, at)| *at == port).count() as u32;
        let mut row = PortRow {
            port: shown.port(end),
            mode: match machine.port_mode(end.port) {
                Mode::F => PortMode::F,
                Mode::E => PortMode::E,
                Mode::Isolated => PortMode::Isolated,
                Mode::Down => PortMode::Down,
            },
            light: true,
            isolated: isolated(machine, end.port),
            blocked: blocked(machine, end.port),
            rate: link.rate.to_string(),
            link: link.name.clone(),
            attached: shown.port(&link.ends[1 - side]),
            logins: logins(end.port),
            credits: [0, 0],
            frames_sent: 0,
            frames_received: 0,
            discards: BTreeMap::new(),
        };
        match live.attachment(end.port) {
            Attachment::Segment(segment) => {
                let segment = &self.segments[segment];
                let port = &self.ports[segment.port];
                row.light = port.up && !segment.disabled;
                row.rate = "Ethernet".to_owned();
                row.logins = segment.fcf.links().map(|link| logins(link.port)).sum();
                row.blocked = segment.fcf.links().any(|link| blocked(machine, link.port));
                row.frames_sent = port.ethernet.sent.frames;
                row.frames_received = port.ethernet.received.frames;
                row.discards = port.ethernet.drops.iter().map(|(why, frames)| ((*why).to_owned(), *frames)).collect();
                let fip = segment.fcf.discards().iter().filter(|(_, frames)| *frames > 0);
                row.discards.extend(fip.map(|(why, frames)| (format!("FIP: {}", why.name()), frames)));
            }
            Attachment::Storage { .. } | Attachment::Host(_) | Attachment::Cable { .. } => {}
            Attachment::Nothing => row.light = false,
        }
        row
    }

    /// Switch and port of a text such as `sw1:0`.
    pub(super) fn port_named(&self, name: &str) -> Result<(usize, u16), String> {
        let found = name.rsplit_once(':').and_then(|(switch, port)| {
            let switch = self.switches.iter().position(|live| live.name == switch)?;
            let there = |port: &u16| usize::from(*port) < self.switches[switch].attachments.len();
            Some((switch, port.parse().ok().filter(there)?))
        });
        found.ok_or_else(|| {
            let example = self.switches.first().map_or("sw1", |switch| &switch.name);
            format!("there is no port `{name}` here; write switch and number, as in {example}:0")
        })
    }

    /// Changes how a target port group serves.
    fn set_port_group(&mut self, name: &str, state: Option<&str>, preferred: Option<bool>) -> Answer {
        let groups = &self.lab.live.port_groups;
        let Some(group) = groups.iter().find(|group| group.name == name) else {
            return match groups.is_empty() {
                true => Answer::Failed { reason: "the lab has no port groups; add [port_group.NAME]".to_owned() },
                false => unknown("port group", name, groups.iter().map(|group| &*group.name)),
            };
        };
        let wanted = state.map(|text| AccessState::ALL.into_iter().find(|state| state.to_string() == text));
        if let (Some(None), Some(text)) = (wanted, state) {
            let all = AccessState::ALL.map(|state| state.to_string()).join(", ");
            return Answer::Failed { reason: format!("`{text}` is no state; there are {all}") };
        }
        let storage = &self.lab.storage[usize::from(group.storage)].name;
        let system = self.systems.iter_mut().find(|system| system.name == *storage);
        let changed = system.is_some_and(|system| {
            let Some((_, now, _)) = system.device.port_groups().find(|(number, ..)| *number == group.number) else {
                return false;
            };
            let state = wanted.flatten().unwrap_or(now.state);
            let access = PortGroup { state, preferred: preferred.unwrap_or(now.preferred) };
            tracing::info!(group = name, %state, preferred = access.preferred, "operator");
            system.device.set_port_group(group.number, access)
        });
        match changed {
            true => Answer::Done,
            false => Answer::Failed { reason: format!("`{name}` is the only port group of `{storage}`; add another") },
        }
    }

    /// Disables or enables a port of a switch, as `sw1:0`.
    fn enable(&mut self, name: &str, enabled: bool) -> Answer {
        let (switch, port) = match self.port_named(name) {
            Ok(found) => found,
            Err(reason) => return Answer::Failed { reason },
        };
        let now = self.clock.now();
        tracing::info!(port = name, enabled, "operator");
        match self.switches[switch].attachment(port) {
            Attachment::Segment(number) => {
                if self.segments[number].disabled == enabled {
                    let up = self.ports[self.segments[number].port].up;
                    if enabled {
                        self.segments[number].disabled = false;
                        if up {
                            self.tell_fcf(now, number, fcf::Input::LinkUp);
                        }
                    } else {
                        self.tell_fcf(now, number, fcf::Input::Shutdown);
                        self.segments[number].disabled = true;
                    }
                }
            }
            attached @ (Attachment::Storage { .. } | Attachment::Host(_)) => {
                let kind = PortKind::F;
                let input = if enabled {
                    fabric_switch::Input::PortUp { port, kind }
                } else {
                    fabric_switch::Input::PortDown { port }
                };
                self.tell_switch(now, switch, input);
                match attached {
                    Attachment::Storage { system, port } => self.systems[system].link(now, port, enabled),
                    Attachment::Host(host) => self.tell_host(host, |host| host.link(now, enabled)),
                    _ => {}
                }
            }
            Attachment::Cable { switch: other, port: there } => {
                let kind = PortKind::E;
                for (switch, port) in [(switch, port), (other, there)] {
                    let input = if enabled {
                        fabric_switch::Input::PortUp { port, kind }
                    } else {
                        fabric_switch::Input::PortDown { port }
                    };
                    self.tell_switch(now, switch, input);
                }
            }
            Attachment::Nothing => {
                return Answer::Failed { reason: format!("nothing is attached to `{name}` here") };
            }
        }
        self.settle_inside(now);
        Answer::Done
    }
}

pub(super) fn unknown<'n>(what: &str, name: &str, there_are: impl Iterator<Item = &'n str>) -> Answer {
    let list: Vec<&str> = there_are.collect();
    Answer::Failed { reason: format!("no {what} `{name}` runs here; there are {}", list.join(", ")) }
}
