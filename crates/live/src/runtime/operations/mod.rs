//! Control requests: [`Operations`] answers the requests of the control socket.

pub mod apply;
pub mod keeper;
pub mod links;
pub mod ports;
pub mod volumes;
pub mod zones;

use crate::capture::FrameSink;
use crate::control::{Control, ControlRequest};
use crate::poll::Poller;
use crate::runtime::UpError;
use crate::runtime::events;
use crate::runtime::instance::Instance;
use crate::runtime::view::{Tables, metrics};
use apply::Apply;
use sanloom_api::control::{Answer, PortChange, Request, RequestError, ShowTable};
use sanloom_api::view::build::Which;
use sanloom_fc::san::Lab;
use sanloom_scsi::scsi::{AccessState, InitiatorName, PortGroup};
use sanloom_scsi::time::Instant;
use sanloom_storage::trace::Format;
use sanloom_wire::Wwpn;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use zones::ZoneChanges;

/// Parts that an operation may change.
pub struct Site<'a> {
    /// The running lab.
    pub instance: &'a mut Instance,
    /// The poller of its loop.
    pub poller: &'a mut Poller,
    /// Current time.
    pub now: Instant,
}

/// Time after which the loop forwards frames again, although further requests are pending.
const MOST_AT_A_TIME: Duration = Duration::from_millis(1);

/// Control requests that are not yet answered.
#[derive(Debug, Default)]
pub struct Operations {
    zones: ZoneChanges,
    apply: Apply,
}

impl Operations {
    /// Answers the requests at a control socket. `read` parses a lab file, or returns its problems.
    /// Returns false if the end of the instance is requested.
    pub fn answer(
        &mut self,
        site: &mut Site<'_>,
        control: &Control,
        read: impl Fn(&str, &[String]) -> Result<Lab, String>,
    ) -> bool {
        let mut go_on = true;
        for ControlRequest { request, sink, answer } in control.take_within(MOST_AT_A_TIME) {
            let reply = match request {
                Request::Apply { lab, preview, set } => match read(&lab, &set) {
                    Ok(lab) => {
                        self.apply.request(site, &mut self.zones, lab, preview, answer);
                        continue;
                    }
                    Err(reason) => Answer::failed(reason),
                },
                Request::Zone { switch, by, action } => {
                    self.zones.request(site.instance, site.now, switch.as_deref(), by, action, answer);
                    continue;
                }
                Request::Stop => {
                    go_on = false;
                    site.instance.flush_records();
                    match site.instance.incomplete() {
                        files if files.is_empty() => Answer::Done,
                        files => Answer::Incomplete { files },
                    }
                }
                other => at_once(site, other, sink),
            };
            // The client has disconnected.
            let _ = answer.send(reply);
        }
        site.instance.dispatch(site.now);
        go_on
    }

    /// Answers the requests whose changes in the fabric have ended.
    pub fn step(&mut self, site: &mut Site<'_>) {
        for ended in std::mem::take(&mut site.instance.zone_results) {
            if !self.apply.zones_ended(&ended) {
                self.zones.finish(site.instance, site.now, ended);
            }
        }
        self.apply.advance(site);
    }
}

/// Answers a request that does not involve the fabric.
fn at_once(site: &mut Site<'_>, request: Request, sink: Option<FrameSink>) -> Answer {
    let Site { instance, now, .. } = site;
    let now = *now;
    match request {
        Request::Show { table: ShowTable::Fabric(which), switch } => show(instance, now, which, switch.as_deref()),
        Request::Show { table: ShowTable::Live(which), .. } => Answer::View(Tables::new(instance, now).live(which)),
        Request::Show { table: ShowTable::Plane(_), .. } => Answer::failed(
            "the links of a running instance are those of its machine, and `show ports` has their state; use `sanloom \
             show LAB TABLE` without --live, or `sanloom up --simulated`",
        ),
        Request::Inject { port, matches, act, count } => match instance.fabric.add_rule(&port, &matches, &act, count) {
            Ok(()) => Answer::View(Tables::new(instance, now).injections()),
            Err(reason) => Answer::failed(reason),
        },
        Request::ClearInjections { port } => {
            let view = Tables::new(instance, now).injections();
            match instance.fabric.clear_rules(port.as_deref()) {
                Ok(()) => Answer::View(view),
                Err(reason) => Answer::failed(reason),
            }
        }
        Request::Volume { action } => volumes::request(instance, now, action),
        Request::Events { after } => Answer::View(events::view(instance, now, after, None)),
        Request::Log { switch, event } => events::record(instance, now, switch.as_deref(), &event),
        Request::Metrics => Answer::Metrics { text: metrics::text(instance, now) },
        Request::Port { port, enabled, by } => {
            ports::enable(instance, now, &[PortChange { port, enabled }], by.as_ref())
        }
        Request::Ports { changes, by } => ports::enable(instance, now, &changes, by.as_ref()),
        Request::Switch { switch, enabled, by } => match instance.fabric.switch_named(&switch) {
            Some(number) => {
                ports::enable_switch(instance, now, number, enabled, by.as_ref());
                Answer::Done
            }
            None => unknown_switch(instance, &switch),
        },
        Request::PortGroup { group, state, preferred } => set_port_group(instance, &group, state.as_deref(), preferred),
        Request::Capture { link, file: Some(file) } => {
            match ports::start_capture(instance, now, &link, Path::new(&file), sink) {
                Ok(()) => Answer::Done,
                Err(error) => Answer::Failed(error.into()),
            }
        }
        Request::Capture { link, file: None } => ports::stop_capture(instance, &link),
        Request::Trace { file: Some(file), format, hosts } => {
            start_trace(instance, now, Path::new(&file), format.as_deref(), &hosts)
        }
        Request::Trace { file: None, .. } => match instance.traces.stop(&mut instance.services.systems) {
            Some(Ok(requests)) => Answer::Traced { requests },
            Some(Err(failed)) => Answer::Failed(RequestError::environment(failed.to_string())),
            None => Answer::failed("no trace is running; start one with `sanloom trace record --live`"),
        },
        Request::Fcoe(_) => Answer::failed("this is a fabric; send the request to an instance of `sanloom initiator`"),
        // Answered by the caller.
        Request::Apply { .. } | Request::Zone { .. } | Request::Stop => Answer::Done,
    }
}

/// Starts a trace of the requests to all storage systems of the instance: of all initiators, or of
/// those that `hosts` names.
fn start_trace(instance: &mut Instance, now: Instant, file: &Path, format: Option<&str>, hosts: &[String]) -> Answer {
    let word = format.unwrap_or("fio-3");
    let Some(format) = Format::from_word(word) else {
        return Answer::failed(format!("`{word}` is no format of traces"));
    };
    if instance.services.systems.len() == 0 {
        return Answer::failed("this instance has no storage system, so it receives no requests");
    }
    let mut initiators = BTreeSet::new();
    for name in hosts {
        match initiators_named(&instance.lab, name) {
            Some(names) => initiators.extend(names),
            None => {
                return Answer::failed(format!(
                    "the lab has no host `{name}`; name one of its hosts, the WWPN of a port, or an iSCSI name such as iqn.2026-11.net.example:server1"
                ));
            }
        }
    }
    match instance.traces.start(now, file, format, &initiators, &mut instance.services.systems) {
        Ok(()) => Answer::Done,
        Err(error) => {
            let file = file.display();
            Answer::Failed(RequestError::environment(format!("the trace {file} cannot be written: {error}")))
        }
    }
}

/// Returns the initiators of a name: all ports of a host of the lab, a WWPN or an iSCSI name.
fn initiators_named(lab: &Lab, name: &str) -> Option<Vec<InitiatorName>> {
    if let Some(host) = lab.hosts.iter().find(|host| host.name == name) {
        return Some(host.hbas.iter().map(|hba| InitiatorName::Fcp(hba.wwpn)).collect());
    }
    if let Ok(name) = name.parse::<Wwpn>() {
        return Some(vec![InitiatorName::Fcp(name)]);
    }
    let is_iscsi = ["iqn.", "eui.", "naa."].iter().any(|kind| name.starts_with(kind));
    is_iscsi.then(|| vec![InitiatorName::Iscsi(name.into())])
}

fn show(instance: &Instance, now: Instant, which: Which, switch: Option<&str>) -> Answer {
    let on = match switch {
        None => None,
        Some(name) => match instance.fabric.switch_named(name) {
            Some(found) => Some(instance.lab_switches[found]),
            None => return unknown_switch(instance, name),
        },
    };
    match which {
        Which::Events => Answer::View(events::view(instance, now, 0, on)),
        which => Answer::View(Tables::new(instance, now).fabric(which, on)),
    }
}

/// Changes the access state of a target port group.
fn set_port_group(instance: &mut Instance, name: &str, state: Option<&str>, preferred: Option<bool>) -> Answer {
    let groups = &instance.lab.live.port_groups;
    let Some(group) = groups.iter().find(|group| group.name == name) else {
        return match groups.is_empty() {
            true => Answer::failed("the lab has no port groups; add [port_group.NAME]"),
            false => unknown("port group", name, groups.iter().map(|group| &*group.name)),
        };
    };
    let wanted = state.map(|text| AccessState::ALL.into_iter().find(|state| state.to_string() == text));
    if let (Some(None), Some(text)) = (wanted, state) {
        let all = AccessState::ALL.map(|state| state.to_string()).join(", ");
        return Answer::failed(format!("`{text}` is not a state; the states are {all}"));
    }
    let storage = &instance.lab.storage[usize::from(group.storage)].name;
    let system = instance.services.systems.find_mut(|system| system.name == *storage);
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
        false => Answer::failed(format!("`{name}` is the only port group of `{storage}`; add another to the lab")),
    }
}

fn unknown_switch(instance: &Instance, name: &str) -> Answer {
    unknown("switch", name, instance.fabric.switches.iter().map(|switch| &*switch.name))
}

/// Returns the answer to a request with an unknown name.
fn unknown<'n>(what: &str, name: &str, there_are: impl Iterator<Item = &'n str>) -> Answer {
    let list: Vec<&str> = there_are.collect();
    Answer::failed(format!("this instance has no {what} `{name}`; it has {}", list.join(", ")))
}
