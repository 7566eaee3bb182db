//! Metrics: counters and states in the text format of Prometheus (OpenMetrics).

use super::Tables;
use crate::capture::Captures;
use crate::runtime::fabric::switch::LiveSwitch;
use crate::runtime::instance::Instance;
use crate::runtime::ports::LivePort;
use crate::srp::{self, SrpServer};
use crate::storage::port::StoragePort;
use crate::volumes::HostPort;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sanloom_api::view::build::Which;
use sanloom_api::view::{PORT_COUNTERS, PortRow, Table};
use sanloom_fc::fabric::PortMode;
use sanloom_scsi::counters;
use sanloom_scsi::iscsi::target::Counters;
use sanloom_scsi::time::Instant;
use sanloom_scsi::volume::{Carried, Path};
use sanloom_wire::FcId;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;

type Labels = Vec<(&'static str, String)>;

/// Metric families under construction.
#[derive(Default)]
struct Sheet {
    registry: Registry,
}

impl Sheet {
    /// Adds a counter with its current rows.
    fn counter(&mut self, name: &str, help: &str, rows: impl IntoIterator<Item = (Labels, u64)>) {
        let family = Family::<Labels, Counter>::default();
        for (labels, value) in rows {
            family.get_or_create(&labels).inc_by(value);
        }
        self.registry.register(name, help, family);
    }

    /// Adds a counter of time in seconds; the rows have nanoseconds.
    fn seconds(&mut self, name: &str, help: &str, rows: impl IntoIterator<Item = (Labels, u64)>) {
        let family = Family::<Labels, Counter<f64, AtomicU64>>::default();
        for (labels, ns) in rows {
            family.get_or_create(&labels).inc_by(ns as f64 / 1e9);
        }
        self.registry.register(name, help, family);
    }

    /// Adds a state with its current rows.
    fn gauge(&mut self, name: &str, help: &str, rows: impl IntoIterator<Item = (Labels, i64)>) {
        let family = Family::<Labels, Gauge>::default();
        for (labels, value) in rows {
            family.get_or_create(&labels).set(value);
        }
        self.registry.register(name, help, family);
    }
}

/// Returns all metrics as text.
pub fn text(instance: &Instance, now: Instant) -> String {
    Metrics(Tables::new(instance, now)).text()
}

/// Metrics from the tables of an instance.
struct Metrics<'a>(Tables<'a>);

impl<'a> Deref for Metrics<'a> {
    type Target = Tables<'a>;

    fn deref(&self) -> &Tables<'a> {
        &self.0
    }
}

impl Metrics<'_> {
    fn text(&self) -> String {
        let mut sheet = Sheet { registry: Registry::with_prefix("sanloom") };
        let uptime = self.now.as_ns() / 1_000_000_000;
        sheet.gauge("uptime_seconds", "Time since the start", [(label([("lab", &self.lab.name)]), uptime as i64)]);
        self.port_metrics(&mut sheet);
        self.switch_metrics(&mut sheet);
        self.storage_metrics(&mut sheet);
        self.iscsi_metrics(&mut sheet);
        self.srp_metrics(&mut sheet);
        let events = self.log.totals().map(|(severity, count)| (label([("severity", severity.word())]), count));
        sheet.counter("events", "Events of the log, by severity", events);
        let rules = self.fabric.injector.rows().rules;
        let injected = rules.iter().map(|rule| {
            (label([("port", &rule.port), ("rule", &rule.id.to_string()), ("act", &rule.act)]), rule.injected)
        });
        sheet.counter("injected_frames", "Frames with a fault injected by a rule", injected);
        let failures = self.all_captures().flat_map(Captures::failures);
        let failures = failures.map(|(port, failures)| (label([("port", port)]), failures));
        sheet.counter("capture_failures", "Captures that ended because their file could not be written", failures);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &sheet.registry);
        text
    }

    fn port_metrics(&self, sheet: &mut Sheet) {
        let rows = match self.fabric(Which::Ports, None).table {
            Table::Ports(table) => table.ports,
            _ => Vec::new(),
        };
        let labelled: Vec<(Labels, &PortRow)> = rows.iter().map(|row| (row.labels().to_vec(), row)).collect();
        let of_switches: BTreeMap<&str, &Labels> = labelled.iter().map(|(labels, row)| (&*row.port, labels)).collect();
        // A port of a storage system or of a host belongs to no switch.
        let by_link = |name: &str| label([("link", name)]);
        let labels = |port: &LivePort| {
            let own = self.switch_port(port).and_then(|port| of_switches.get(&*port).copied());
            own.cloned().unwrap_or_else(|| by_link(&port.ethernet.name))
        };
        // Closed links leave closed ports behind.
        let there = self.ports.iter().filter(|port| port.is_open());
        let there: Vec<(Labels, &LivePort)> = there.map(|port| (labels(port), port)).collect();
        let hosts = self.services.volumes.iter().flat_map(|engine| engine.hosts().iter());
        let hosts = hosts.filter_map(HostPort::adapter);
        let hosts: Vec<_> = hosts.map(|adapter| (by_link(&adapter.port.name), adapter)).collect();
        let ports = || {
            let of_switches = there.iter().map(|(labels, port)| (labels, &port.ethernet));
            of_switches.chain(hosts.iter().map(|(labels, adapter)| (labels, &adapter.port)))
        };
        let on = |labels: &Labels, key: &'static str, value: &str| {
            let mut labels = labels.clone();
            labels.push((key, value.to_owned()));
            labels
        };
        let both = |of: fn(&crate::ports::Traffic) -> u64| {
            ports().flat_map(move |(labels, port)| {
                let row = |direction, traffic| (on(labels, "direction", direction), of(traffic));
                [row("in", &port.received), row("out", &port.sent)]
            })
        };
        let light = there.iter().map(|(labels, port)| (labels.clone(), i64::from(port.light)));
        let of_hosts = hosts.iter().map(|(labels, adapter)| (labels.clone(), i64::from(adapter.port.has_peer())));
        let light = light.chain(of_hosts);
        sheet.gauge("port_up", "The Ethernet port has a peer", light);
        let begun = there.iter().map(|(labels, port)| (labels.clone(), i64::from(port.up)));
        let of_hosts = hosts.iter().map(|(labels, adapter)| (labels.clone(), i64::from(adapter.has_begun())));
        let begun = begun.chain(of_hosts);
        sheet.gauge(
            "port_fcoe",
            "FCoE has begun at the Ethernet port: it has a peer, and DCBX has agreed if it is required",
            begun,
        );
        sheet.counter("port_frames", "Frames of the Ethernet port", both(|traffic| traffic.frames));
        sheet.counter("port_bytes", "Bytes of the Ethernet port", both(|traffic| traffic.bytes));
        let pauses = ports().flat_map(|(labels, port)| {
            let of = |direction, frames| (on(labels, "direction", direction), frames);
            [of("in", port.pauses_received), of("out", port.pauses_sent)]
        });
        sheet.counter(
            "port_pauses",
            "Frames of priority-based flow control (PFC) that pause or resume lossless priorities",
            pauses,
        );
        let drops = ports().flat_map(|(labels, port)| {
            port.drops.iter().map(move |(reason, frames)| (on(labels, "reason", reason), *frames))
        });
        sheet.counter("port_dropped_frames", "Frames that were dropped, by reason", drops);
        for counter in PORT_COUNTERS {
            let value = |(labels, row): &(Labels, &PortRow)| Some((labels.clone(), (counter.of)(&row.errors)?));
            let values = labelled.iter().filter_map(value);
            match counter.is_time() {
                true => sheet.seconds(&counter.metric(), counter.help, values),
                false => sheet.counter(&counter.metric(), counter.help, values),
            }
        }
        let queued = ports().map(|(labels, port)| (labels.clone(), port.egress.len() as i64));
        sheet.gauge("port_queued_frames", "Frames in the egress queue", queued);
        let fip = self.fabric.segments.iter().filter(|segment| !segment.gone).flat_map(|segment| {
            let (switch, port) = (&self.fabric.switches[segment.switch].name, segment.lab_port);
            let discards = segment.fcf.discards();
            let row = move |(why, frames): (sanloom_fc::fip::Discard, u64)| {
                (label([("port", &format!("{switch}:{port}")), ("reason", why.name())]), frames)
            };
            discards.iter().map(row).collect::<Vec<_>>()
        });
        let stations = self.fabric.stations.iter().flat_map(|station| {
            let name = &self.ports[station.port].ethernet.name;
            let row = move |(why, frames): (sanloom_fc::fip::Discard, u64)| {
                (label([("port", name), ("reason", why.name())]), frames)
            };
            station.machine.discards().iter().map(row).collect::<Vec<_>>()
        });
        let fip = fip.chain(stations);
        sheet.counter("fip_discarded_packets", "FIP packets that were not accepted, by reason", fip);
        let agents =
            || there.iter().filter_map(|(labels, port)| Some((labels, port.agent.as_ref()?.machine.counters())));
        let lldp = agents().flat_map(|(labels, counted)| {
            let row = |direction, packets| (on(labels, "direction", direction), packets);
            [row("in", counted.received), row("out", counted.sent)]
        });
        sheet.counter("lldp_packets", "LLDP packets received or sent", lldp);
        let discarded = agents().map(|(labels, counted)| (labels.clone(), counted.discarded));
        sheet.counter("lldp_discarded_packets", "LLDP packets that were invalid, or exceeded a limit", discarded);
        let errors = agents().map(|(labels, counted)| (labels.clone(), counted.tlvs_in_error));
        sheet.counter("lldp_tlvs_in_error", "Invalid DCBX TLVs, which were ignored", errors);
    }

    /// Name of the port of a switch, such as `sw1:0`, that uses an Ethernet port: the first one of
    /// several on one wire.
    fn switch_port(&self, port: &LivePort) -> Option<String> {
        let of_segment = || {
            let segment = &self.fabric.segments[*port.segments.first()?];
            Some((segment.switch, segment.lab_port))
        };
        let (switch, number) = port.tunnel.or_else(of_segment)?;
        Some(format!("{}:{number}", self.fabric.switches[switch].name))
    }

    fn switch_metrics(&self, sheet: &mut Sheet) {
        let of = |value: fn(&LiveSwitch) -> u64| {
            self.fabric.switches.iter().map(move |switch| (label([("switch", &switch.name)]), value(switch)))
        };
        let state = |value: fn(&LiveSwitch) -> i64| {
            self.fabric.switches.iter().map(move |switch| (label([("switch", &switch.name)]), value(switch)))
        };
        sheet.counter("switch_forwarded_frames", "Frames that were forwarded", of(|switch| switch.forwarded));
        let inside = self.fabric.switches.iter().flat_map(|switch| {
            switch.drops.iter().map(|(reason, frames)| (label([("switch", &switch.name), ("reason", reason)]), *frames))
        });
        sheet.counter("switch_dropped_frames", "Frames from inside the process that were dropped, by reason", inside);
        sheet.gauge("switch_domain", "Domain; 0: none", state(|switch| switch.machine.domain().unwrap_or(0).into()));
        sheet.gauge(
            "switch_logins",
            "Number of N_Port_IDs that are logged in",
            state(|switch| switch.machine.logins().count() as i64),
        );
        let isolated = |switch: &LiveSwitch| {
            let ports = 0..switch.attachments.len() as u16;
            ports.filter(|port| switch.machine.port_mode(*port) == PortMode::Isolated).count() as i64
        };
        sheet.gauge("switch_isolated_ports", "Ports isolated from their neighbour", state(isolated));
        let rejected = of(|switch| switch.machine.counters().logins_rejected);
        sheet.counter("switch_rejected_logins", "Logins that were rejected", rejected);
        let kept = |switch: &LiveSwitch| i64::from(switch.zones.is_kept());
        sheet.gauge("switch_zones_kept", "The zones in force are in the store", state(kept));
    }

    fn iscsi_metrics(&self, sheet: &mut Sheet) {
        let targets = || self.services.iscsi.iter().flat_map(|server| server.targets());
        let sessions = targets().map(|(target, sessions, _)| (label([("target", target)]), sessions.into()));
        sheet.gauge("iscsi_sessions", "Sessions with the target", sessions);
        let steps = self.services.iscsi.iter().map(|server| (label([("lab", &self.lab.name)]), server.shared_steps()));
        sheet.counter("iscsi_shared_steps", "Steps in which several threads served sessions", steps);
        for (name, help) in counters::Counter::metrics(Counters::TABLE) {
            let of = |counters: &Counters| counters::Counter::metric_of(Counters::TABLE, name, counters);
            let values = targets().map(|(target, _, counters)| (label([("target", target)]), of(&counters)));
            sheet.counter(name, help, values);
        }
    }

    fn srp_metrics(&self, sheet: &mut Sheet) {
        let served = || self.services.srp.iter().flat_map(SrpServer::served);
        let channels = served().map(|own| (label([("target", own.target)]), own.channels as i64));
        sheet.gauge("srp_channels", "Channels of the SRP target", channels);
        let of = |value: fn(&srp::Counters) -> u64| {
            served().map(move |own| (label([("target", own.target)]), value(&own.counters)))
        };
        sheet.counter("srp_requests", "Commands and task management requests", of(|own| own.requests));
        sheet.counter("srp_read_bytes", "Bytes written to initiators", of(|own| own.moved_bytes[0]));
        sheet.counter("srp_written_bytes", "Bytes read from initiators", of(|own| own.moved_bytes[1]));
        sheet.counter("srp_repetitions", "Times that packets were repeated", of(|own| own.repetitions));
        let help = "Packets and information units that do not belong to the state of their channel";
        sheet.counter("srp_unexpected", help, of(|own| own.unexpected));
        let rows = self.services.srp.iter().flat_map(SrpServer::sockets).flat_map(|(address, socket, manager)| {
            let row = |outcome, value| (label([("address", &address.to_string()), ("outcome", outcome)]), value);
            [
                row("received", socket.received),
                row("sent", socket.sent),
                row("damaged", socket.damaged),
                row("unknown", socket.unknown),
                row("dropped", socket.dropped),
                row("refused", manager.rejects),
                row("stray", manager.unexpected),
            ]
        });
        let help = "Datagrams of RoCEv2: received, sent, with a wrong checksum, for no queue pair, dropped for lack of \
                    room; requests for connections that were refused, and messages that fit no connection";
        sheet.counter("srp_datagrams", help, rows);
    }

    fn storage_metrics(&self, sheet: &mut Sheet) {
        let ports = || self.services.systems.iter().flat_map(|system| &system.ports);
        let of = |value: fn(&StoragePort) -> u64| ports().map(move |port| (label([("port", &port.name)]), value(port)));
        let exchanges = ports().map(|port| (label([("port", &port.name)]), port.target.exchanges_in_use() as i64));
        sheet.gauge("storage_open_exchanges", "Commands in flight", exchanges);
        let unexpected = of(|port| port.unexpected + port.target.counters().unexpected_frames);
        sheet.counter("storage_unexpected_frames", "Frames that no machine accepted", unexpected);
        let luns = self.services.systems.iter().flat_map(|system| {
            (0..system.media.len() as u16).map(|unit| {
                let name = label([("storage", &system.name), ("lun", &unit.to_string())]);
                (name, i64::from(system.device.active(unit)))
            })
        });
        let full = self.services.systems.iter().flat_map(|system| {
            (0..system.media.len() as u16).map(|unit| {
                let name = label([("storage", &system.name), ("lun", &unit.to_string())]);
                (name, i64::from(super::tables::is_full(system, unit)))
            })
        });
        sheet.gauge("lun_disk_full", "The disk behind the LUN refused the last write because it is full", full);
        self.volume_metrics(sheet);
        sheet.gauge("lun_active_tasks", "Tasks of the LUN in progress", luns);
    }
}

impl Metrics<'_> {
    fn volume_metrics(&self, sheet: &mut Sheet) {
        let Some(engine) = &self.services.volumes else { return };
        let jobs = engine.counters();
        let one = |value: u64| [(label([("lab", &self.lab.name)]), value)];
        sheet.counter("volume_jobs", "Requests of hosts for volumes", one(jobs.jobs));
        sheet.counter("volume_split_jobs", "Requests of hosts that were split over several extents", one(jobs.split));
        sheet.counter("volume_failed_jobs", "Requests of hosts for volumes that failed", one(jobs.failed));
        let open = [(label([("lab", &self.lab.name)]), engine.open_jobs() as i64)];
        sheet.gauge("volume_open_jobs", "Requests of hosts for volumes in progress", open);
        let volumes = || engine.map().volumes().map(|(id, volume)| (id, volume.name.to_string()));
        let on = |path: Path, value: fn(&Carried) -> u64| {
            let name = if path == Path::Forwarding { "forwarding" } else { "conventional" };
            volumes().map(move |(id, volume)| {
                (label([("volume", &volume), ("path", name)]), value(&engine.volumes().carried(id, path)))
            })
        };
        let both = |value: fn(&Carried) -> u64| on(Path::Forwarding, value).chain(on(Path::Conventional, value));
        sheet.counter("volume_commands", "Commands for the volume, by path", both(|carried| carried.commands));
        sheet.counter("volume_read_bytes", "Bytes of reads, by path", both(|carried| carried.read_bytes));
        sheet.counter("volume_written_bytes", "Bytes of writes, by path", both(|carried| carried.written_bytes));
        let back_end = |name: &str| label([("back_end", name)]);
        let up = engine.back_ends().map(|seen| (back_end(&seen.plan.name), i64::from(seen.path.is_ok())));
        sheet.gauge("back_end_up", "There is a session or a login with the target of the back end", up);
        let host_ports = || {
            engine.hosts().iter().map(|port| {
                let name = port.host().login.wwpn().to_string();
                (label([("host_port", &port.name), ("port_name", &name)]), port.host())
            })
        };
        let in_fabric = host_ports().map(|(name, host)| (name, i64::from(host.port_id() != FcId::ZERO)));
        sheet.gauge("host_port_up", "The host port of the instance is logged in to its fabric", in_fabric);
        let unexpected = host_ports().map(|(name, host)| (name, host.unexpected));
        sheet.counter("host_port_unexpected_frames", "Frames that no machine accepted", unexpected);
        let of = |value: fn(&sanloom_scsi::disk::Counters) -> u64| {
            engine.back_ends().map(move |seen| (back_end(&seen.plan.name), value(&seen.counters)))
        };
        sheet.counter("back_end_requests", "Requests to the back end", of(|counters| counters.requests));
        sheet.counter("back_end_failed_requests", "Requests that failed", of(|counters| counters.failed));
        sheet.counter("back_end_retries", "Commands that were retried", of(|counters| counters.retries));
        let lost = engine.back_ends().map(|seen| (back_end(&seen.plan.name), seen.sessions[1]));
        sheet.counter("back_end_lost_sessions", "Sessions or logins with its target that were lost", lost);
        let pools = self.volumes(None).pools;
        let pool = |row: &sanloom_api::volume::PoolRow| label([("pool", &row.name)]);
        let extents = pools.iter().map(|row| (pool(row), row.extents as i64));
        sheet.gauge("pool_extents", "Extents of the back ends that were reached", extents);
        let used = pools.iter().map(|row| (pool(row), row.used as i64));
        sheet.gauge("pool_used_extents", "Extents that volumes use", used);
    }
}

fn label<const N: usize>(labels: [(&'static str, &str); N]) -> Labels {
    labels.into_iter().map(|(name, value)| (name, value.to_owned())).collect()
}
