//! Control requests for ports and switches: disabling, enabling, capturing.

use super::UpError;
use crate::capture::{CapturePoint, FrameSink};
use crate::initiator::Adapter;
use crate::runtime::fabric::Fabric;
use crate::runtime::fabric::switch::{Attachment, LiveSwitch};
use crate::runtime::instance::Instance;
use crate::runtime::tunnel;
use crate::volumes::HostPort;
use sanloom_api::control::{Answer, PortChange, RequestError, RequestUser};
use sanloom_fc::config::Node;
use sanloom_fc::fabric_switch;
use sanloom_fc::fip::fcf;
use sanloom_fc::switch::PortKind;
use sanloom_scsi::time::Instant;
use std::collections::BTreeMap;
use std::path::Path;

/// Disables or enables ports of switches, such as `sw1:0`. If one of them does not exist, none
/// changes. `by`: the user for the event log.
pub fn enable(instance: &mut Instance, now: Instant, changes: &[PortChange], by: Option<&RequestUser>) -> Answer {
    let mut of_switches: BTreeMap<usize, Vec<(u16, &PortChange)>> = BTreeMap::new();
    for change in changes {
        match place_of(instance, &change.port) {
            Ok((switch, port)) => of_switches.entry(switch).or_default().push((port, change)),
            Err(reason) => return Answer::failed(reason),
        }
    }
    for (switch, ports) in of_switches {
        let mut disabled = instance.fabric.switches[switch].disabled.clone();
        for (port, PortChange { port: name, enabled }) in ports {
            let is_new = if *enabled { disabled.remove(&port) } else { disabled.insert(port) };
            if is_new {
                tracing::info!(port = name, enabled, user = by.map_or("", |by| &by.user), "operator");
                instance.log.port_enabled(now, (instance.lab_switches[switch], port), *enabled, by);
            }
        }
        change(instance, now, switch, |live| live.disabled = disabled);
    }
    Answer::Done
}

/// Switch and number of a port such as `sw1:0`. A virtual port has the number of its Ethernet port.
fn place_of(instance: &Instance, name: &str) -> Result<(usize, u16), String> {
    let (switch, port) = instance.fabric.port_named(name)?;
    let of_chassis = &instance.lab.switches[usize::from(instance.lab_switches[switch])].virtual_fabric;
    if of_chassis.as_ref().is_some_and(|fabric| !fabric.ports.contains(&port)) {
        return Err(format!("port {port} of the chassis does not belong to the switch of `{name}`"));
    }
    let port = match instance.fabric.switches[switch].attachment(port) {
        Attachment::Segment(number) => instance.fabric.segments[number].lab_port,
        _ => port,
    };
    Ok((switch, port))
}

/// Disables or enables a switch, by index. `by`: the user for the event log.
pub fn enable_switch(instance: &mut Instance, now: Instant, switch: usize, enabled: bool, by: Option<&RequestUser>) {
    let live = &instance.fabric.switches[switch];
    if live.off != enabled {
        return;
    }
    tracing::info!(switch = live.name, enabled, user = by.map_or("", |by| &by.user), "operator");
    instance.log.switch_enabled(now, instance.lab_switches[switch], enabled, by);
    change(instance, now, switch, |live| live.off = !enabled);
}

/// Applies a change of the disabled ports of a switch to the links whose state it changes.
fn change(instance: &mut Instance, now: Instant, switch: usize, change: impl FnOnce(&mut LiveSwitch)) {
    let ports = 0..instance.fabric.switches[switch].attachments.len() as u16;
    let before: Vec<bool> = ports.clone().map(|port| is_held(instance, switch, port)).collect();
    change(&mut instance.fabric.switches[switch]);
    for (port, before) in ports.zip(before) {
        let held = is_held(instance, switch, port);
        if held != before {
            enable_link(instance, now, (switch, port), !held);
        }
    }
}

/// Returns whether the link of a port is dark, because a port or a switch at one of its ends in
/// this process is disabled.
fn is_held(instance: &Instance, switch: usize, port: u16) -> bool {
    let Fabric { switches, segments, .. } = &instance.fabric;
    match switches[switch].attachment(port) {
        Attachment::Segment(number) => switches[switch].holds(segments[number].lab_port),
        Attachment::Cable { switch: other, port: far } => switches[switch].holds(port) || switches[other].holds(far),
        _ => switches[switch].holds(port),
    }
}

/// Brings the link of a port up or down for all that use it.
fn enable_link(instance: &mut Instance, now: Instant, (switch, port): (usize, u16), enabled: bool) {
    let mut ends = vec![(switch, port)];
    let kind = match instance.fabric.switches[switch].attachment(port) {
        Attachment::Nothing => return,
        Attachment::Segment(number) => return enable_segment(instance, now, number, enabled),
        Attachment::Tunnel(number) => return tunnel::enable(instance, now, number, enabled),
        Attachment::Storage { system, port } => {
            instance.services.systems[system].link(now, port, enabled);
            PortKind::F
        }
        Attachment::Host(host) => {
            if let Some(port) = instance.services.host_mut(host) {
                port.host_mut().link(now, enabled);
            }
            PortKind::F
        }
        Attachment::Cable { switch, port } => {
            ends.push((switch, port));
            PortKind::E
        }
    };
    for (switch, port) in ends {
        let input = match enabled {
            true => fabric_switch::Input::PortUp { port, kind },
            false => fabric_switch::Input::PortDown { port },
        };
        instance.work.push_switch(switch, input);
    }
}

fn enable_segment(instance: &mut Instance, now: Instant, number: usize, enabled: bool) {
    let segment = &mut instance.fabric.segments[number];
    if segment.disabled != enabled {
        return;
    }
    if enabled {
        segment.disabled = false;
        if instance.ports[segment.port].up {
            instance.fcf_input(now, number, fcf::Input::LinkUp);
        }
    } else {
        instance.fcf_input(now, number, fcf::Input::Shutdown);
        instance.fabric.segments[number].disabled = true;
    }
}

/// Starts to write every frame of a port to a file, or to the sink. The name is that of its link,
/// or switch and number (`sw1:0`), or that of the storage of a station or of a host with `fcoe`.
/// For an inner cable, the link selects the end that it names first.
///
/// # Errors
/// A port that does not exist or has no attachment, or a file that cannot be written.
pub fn start_capture(
    instance: &mut Instance,
    now: Instant,
    name: &str,
    file: &Path,
    sink: Option<FrameSink>,
) -> Result<(), UpError> {
    let failed = |error| UpError::Capture { path: file.to_owned(), error };
    if let Some(adapter) = uplink_named(instance, name) {
        return adapter.captures.start_into(now, CapturePoint::Ethernet(0), name, file, sink).map_err(failed);
    }
    let unknown = || UpError::Unknown { what: "port or link", name: name.to_owned() };
    let point = capture_point(instance, name).ok_or_else(unknown)?;
    instance.ports.captures.start_into(now, point, name, file, sink).map_err(failed)
}

/// Ends the capture of a port.
pub fn stop_capture(instance: &mut Instance, name: &str) -> Answer {
    let ended = match uplink_named(instance, name) {
        Some(adapter) => adapter.captures.stop(CapturePoint::Ethernet(0)),
        None => capture_point(instance, name).and_then(|point| instance.ports.captures.stop(point)),
    };
    match ended {
        Some(Ok(frames)) => Answer::Captured { frames },
        Some(Err(failed)) => Answer::Failed(RequestError::environment(failed.to_string())),
        None => Answer::failed(format!("no capture of `{name}` is running")),
    }
}

/// Returns a host port of the instance with its own Ethernet port.
fn uplink_named<'i>(instance: &'i mut Instance, name: &str) -> Option<&'i mut Adapter> {
    let ports = instance.services.volumes.iter_mut().flat_map(|engine| engine.hosts_mut().iter_mut());
    ports.filter(|port| port.name == name).find_map(HostPort::adapter_mut)
}

fn capture_point(instance: &Instance, name: &str) -> Option<CapturePoint> {
    let Instance { ports, fabric, lab, .. } = instance;
    if let Some(port) = ports.iter().position(|port| port.is_open() && port.ethernet.name == name) {
        return Some(CapturePoint::Ethernet(port));
    }
    let of_link = || {
        let link = lab.links.iter().find(|link| link.name == name)?;
        link.ends.iter().find_map(|end| match end.node {
            Node::Switch(switch) => Some((instance.switch_here(switch)?, end.port)),
            Node::Host(_) | Node::Storage(_) | Node::Loop(_) => None,
        })
    };
    let (switch, port) = fabric.port_named(name).ok().or_else(of_link)?;
    match fabric.switches[switch].attachment(port) {
        // Segments of several VLANs share one Ethernet port.
        Attachment::Segment(segment) => Some(CapturePoint::Ethernet(fabric.segments[segment].port)),
        Attachment::Tunnel(port) => Some(CapturePoint::Ethernet(port)),
        Attachment::Storage { .. } | Attachment::Host(_) | Attachment::Cable { .. } => {
            Some(CapturePoint::Inner { switch, port })
        }
        Attachment::Nothing => None,
    }
}
