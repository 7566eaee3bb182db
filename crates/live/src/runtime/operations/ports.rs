//! Control requests for single ports: disabling, enabling, capturing.

use super::UpError;
use crate::capture::{CapturePoint, FrameSink};
use crate::initiator::Adapter;
use crate::runtime::fabric::switch::Attachment;
use crate::runtime::instance::Instance;
use crate::runtime::tunnel;
use crate::volumes::HostPort;
use sanloom_api::control::{Answer, RequestError};
use sanloom_fc::config::Node;
use sanloom_fc::fabric_switch;
use sanloom_fc::fip::fcf;
use sanloom_fc::switch::PortKind;
use sanloom_scsi::time::Instant;
use std::path::Path;

/// Disables or enables a port of a switch, such as `sw1:0`.
pub fn enable(instance: &mut Instance, now: Instant, name: &str, enabled: bool) -> Answer {
    let (switch, port) = match instance.fabric.port_named(name) {
        Ok(found) => found,
        Err(reason) => return Answer::failed(reason),
    };
    let of_chassis = &instance.lab.switches[usize::from(instance.lab_switches[switch])].virtual_fabric;
    if of_chassis.as_ref().is_some_and(|fabric| !fabric.ports.contains(&port)) {
        return Answer::failed(format!("port {port} of the chassis does not belong to the switch of `{name}`"));
    }
    tracing::info!(port = name, enabled, "operator");
    instance.log.port_enabled(now, (instance.lab_switches[switch], port), enabled);
    let mut ends = vec![(switch, port)];
    let kind = match instance.fabric.switches[switch].attachment(port) {
        Attachment::Segment(number) => {
            enable_segment(instance, now, number, enabled);
            return Answer::Done;
        }
        Attachment::Tunnel(number) => {
            tunnel::enable(instance, now, number, enabled);
            return Answer::Done;
        }
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
        // The port stays disabled when a link is attached to it.
        Attachment::Nothing => {
            let disabled = &mut instance.fabric.switches[switch].disabled;
            _ = if enabled { disabled.remove(&port) } else { disabled.insert(port) };
            return Answer::Done;
        }
    };
    for (switch, port) in ends {
        let disabled = &mut instance.fabric.switches[switch].disabled;
        _ = if enabled { disabled.remove(&port) } else { disabled.insert(port) };
        let input = match enabled {
            true => fabric_switch::Input::PortUp { port, kind },
            false => fabric_switch::Input::PortDown { port },
        };
        instance.work.push_switch(switch, input);
    }
    Answer::Done
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
