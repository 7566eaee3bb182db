//! Validation of paths against the results that a lab can have: [`stray`].

use super::metric::{Fold, fits, split_fold};
use super::{
    AdapterResult, CacheResult, ChannelResult, ControllerResult, CpuWork, DataLossResult, DiskResult,
    EthernetDirection, EthernetLinkResult, EthernetSwitchResult, Event, ExpectationResult, FaultEvent, FcipLinkResult,
    Finding, GatewayResult, HostResult, InfinibandDirection, InfinibandLinkResult, Interval, IpRouterResult,
    IscsiSessionResult, LabInfo, LinkDirection, LinkResult, LoopPortResult, LoopResult, LostRequest, MetadataResult,
    PathResult, PortResult, PrecisionResult, RaidResult, Remedy, Replications, Results, SrpChannelResult, SsdResult,
    StorageResult, StreamHostResult, StreamResult, SubnetResult, SwitchResult, TraceResult, Victim, drops,
};
use sanloom_fc::config::{Link, Node};
use sanloom_fc::san::Lab;
use serde_json::Value;
use std::collections::BTreeMap;

/// Reason why a path of [`super::Metrics`] leads to no number in any run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stray {
    /// The function that reduces several numbers is unknown.
    Fold {
        /// The unknown function.
        word: String,
        /// Known functions.
        known: Vec<String>,
    },
    /// The field is unknown.
    Field {
        /// The valid start of the path; empty for the results as a whole.
        inside: String,
        /// The unknown field.
        part: String,
        /// Known fields.
        known: Vec<String>,
    },
    /// The lab has no such node, link or workload.
    Name {
        /// The unknown name.
        part: String,
        /// Known names.
        known: Vec<String>,
    },
    /// The path ends before a number.
    NoNumber {
        /// Fields below the end of the path.
        known: Vec<String>,
    },
}

/// Key of each map in the [`example`].
pub const ANY: &str = "";

/// Returns the reason why `path` leads to no number in the results of a lab; `None` if it may lead
/// to one. Without a lab, names are not checked.
pub fn stray(path: &str, lab: Option<&Lab>) -> Option<Stray> {
    let path = path.trim();
    let (fold, inner) = split_fold(path);
    if fold.is_none()
        && let Some((word, _)) = path.strip_suffix(')').and_then(|path| path.split_once('('))
    {
        return Some(Stray::Fold {
            word: word.trim().to_owned(),
            known: Fold::NAMES.map(|(word, _)| word.to_owned()).into(),
        });
    }
    let parts: Vec<&str> = inner.split('.').collect();
    let outline = Outline { lab, counts: fold.is_some_and(|fold| fold.counts()) };
    outline.walk(&searched(), &parts, 0).err()
}

struct Outline<'l> {
    lab: Option<&'l Lab>,
    /// The path may lead to a value that is not a number.
    counts: bool,
}

impl Outline<'_> {
    /// Follows the parts from index `at` on, starting below `value`.
    fn walk(&self, value: &Value, parts: &[&str], at: usize) -> Result<(), Stray> {
        let Some(part) = parts.get(at) else { return self.end(value) };
        match value {
            Value::Object(fields) => {
                if let Some(any) = fields.get(ANY) {
                    // A key may contain dots.
                    let mut ends = (at + 1..=parts.len()).map(|next| self.walk(any, parts, next));
                    return ends.find(Result::is_ok).unwrap_or_else(|| self.walk(any, parts, at + 1));
                }
                let fitting = fields.iter().filter(|(key, _)| fits(part, key));
                let mut found: Vec<Result<(), Stray>> =
                    fitting.map(|(_, child)| self.walk(child, parts, at + 1)).collect();
                match found.iter().position(Result::is_ok) {
                    Some(_) => Ok(()),
                    None if found.is_empty() => Err(field(fields.keys(), parts, at)),
                    None => found.swap_remove(0),
                }
            }
            Value::Array(elements) => {
                let Some(element) = elements.first() else { return Ok(()) };
                if element.get("name").is_none() && *part != "*" && part.parse::<usize>().is_err() {
                    return Err(field(std::iter::empty(), parts, at));
                }
                if at == 1 {
                    self.name(parts[0], part)?;
                }
                self.walk(element, parts, at + 1)
            }
            _ => Err(field(std::iter::empty(), parts, at)),
        }
    }

    fn end(&self, value: &Value) -> Result<(), Stray> {
        if self.counts || value.is_number() || value.is_boolean() {
            return Ok(());
        }
        let fields = match value {
            Value::Array(elements) => elements.first().and_then(Value::as_object),
            other => other.as_object(),
        };
        Err(Stray::NoNumber { known: fields.map(|fields| fields.keys().cloned().collect()).unwrap_or_default() })
    }

    /// Checks the name of an element in a list of the results.
    fn name(&self, list: &str, part: &str) -> Result<(), Stray> {
        let Some(known) = self.lab.and_then(|lab| names(lab, list)) else { return Ok(()) };
        if known.iter().any(|known| fits(part, known)) {
            return Ok(());
        }
        Err(Stray::Name { part: part.to_owned(), known })
    }
}

fn field<'k>(known: impl Iterator<Item = &'k String>, parts: &[&str], at: usize) -> Stray {
    let known = known.cloned().collect();
    Stray::Field { inside: parts[..at].join("."), part: parts[at].to_owned(), known }
}

/// Names of the elements of a list; `None` if the lab does not determine them.
fn names(lab: &Lab, list: &str) -> Option<Vec<String>> {
    let node = |node: Node| match node {
        Node::Switch(i) => lab.switches.get(usize::from(i)).map(|switch| switch.name.as_str()),
        Node::Host(i) => lab.hosts.get(usize::from(i)).map(|host| host.name.as_str()),
        Node::Storage(i) => lab.storage.get(usize::from(i)).map(|storage| storage.name.as_str()),
        Node::Loop(i) => lab.loops.get(usize::from(i)).map(|of_lab| of_lab.name.as_str()),
    };
    Some(match list {
        "hosts" => lab.hosts.iter().map(|host| host.name.clone()).collect(),
        "links" => lab.links.iter().map(|link| link.name.clone()).collect(),
        "storage" => lab.storage.iter().map(|storage| storage.name.clone()).collect(),
        "ethernet_links" => lab.ethernet_links.iter().map(|link| link.name.clone()).collect(),
        "ethernet_switches" => lab.ethernet_switches.iter().map(|switch| switch.name.clone()).collect(),
        "infiniband_links" => lab.infiniband.links.iter().map(|link| link.name.clone()).collect(),
        "fcip_links" => {
            let has_tunnel = |link: &&Link| link.fcoe.is_some_and(|link| link.fcip.is_some());
            lab.links.iter().filter(has_tunnel).map(|link| link.name.clone()).collect()
        }
        "loops" => lab.loops.iter().map(|of_lab| of_lab.name.clone()).collect(),
        "switches" => lab.switches.iter().map(|switch| switch.name.clone()).collect(),
        "streams" => lab.workloads.iter().map(|workload| workload.name.clone()).collect(),
        "ports" => {
            // Ports of a loop are those of hosts and storage.
            let ends = lab.links.iter().flat_map(|link| &link.ends).filter(|end| !matches!(end.node, Node::Loop(_)));
            ends.filter_map(|end| Some(format!("{}:{}", node(end.node)?, end.port))).collect()
        }
        _ => return None,
    })
}

/// The [`example`] without parts that [`super::Metrics`] does not search or that are unknown before
/// the verdicts.
fn searched() -> Value {
    let mut value = serde_json::to_value(example()).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        ["series", "expectations"].iter().for_each(|field| {
            fields.remove(*field);
        });
    }
    value
}

/// Example results with every field present: one element in each list except histograms and
/// series, all reasons for [`drops`], and the key [`ANY`] in each other map.
pub fn example() -> Results {
    let some = || Some(String::new());
    let any = || BTreeMap::from([(ANY.to_owned(), 0)]);
    let reasons = |all: &[&str]| all.iter().map(|reason| ((*reason).to_owned(), 0)).collect();
    let direction = || LinkDirection {
        frames_lost: reasons(&drops::FRAMES),
        channels: vec![ChannelResult::default()],
        ..LinkDirection::default()
    };
    let ethernet_direction = || EthernetDirection {
        drops: reasons(&drops::ETHERNET),
        paused_s: BTreeMap::from([(ANY.to_owned(), 0.0)]),
        ..EthernetDirection::default()
    };
    let infiniband_direction =
        || InfinibandDirection { drops: reasons(&drops::INFINIBAND), ..InfinibandDirection::default() };
    Results {
        lab: LabInfo {
            command: some(),
            source: some(),
            settled_s: Some(0.0),
            precision: Some(PrecisionResult { reached: Some(0.0), ..PrecisionResult::default() }),
            ..LabInfo::default()
        },
        hosts: vec![HostResult {
            cpu_work: vec![CpuWork::default()],
            paths: vec![PathResult::default()],
            ip_router: Some(IpRouterResult::default()),
            ..HostResult::default()
        }],
        streams: vec![StreamResult {
            hosts: vec![StreamHostResult::default()],
            trace: Some(TraceResult { error: Some(String::new()), ..TraceResult::default() }),
            ..StreamResult::default()
        }],
        links: vec![LinkResult {
            bundle: some(),
            forward: direction(),
            backward: direction(),
            ..LinkResult::default()
        }],
        ports: vec![PortResult { discards: any(), sequence_discards: Some(0), ..PortResult::default() }],
        storage: vec![StorageResult {
            disk_loop_utilisation: Some(0.0),
            controllers: vec![ControllerResult::default()],
            gateway: Some(GatewayResult::default()),
            metadata: Some(MetadataResult::default()),
            adapters: Some(AdapterResult::default()),
            cache: Some(CacheResult::default()),
            data_loss: Some(DataLossResult {
                first_requests: vec![LostRequest::default()],
                ..DataLossResult::default()
            }),
            raid: vec![RaidResult { rebuilt: Some(0.0), scrubbed: Some(0.0), ..RaidResult::default() }],
            disks: vec![DiskResult::default()],
            ssds: vec![SsdResult::default()],
            ..StorageResult::default()
        }],
        ethernet_links: vec![EthernetLinkResult {
            forward: ethernet_direction(),
            backward: ethernet_direction(),
            ..EthernetLinkResult::default()
        }],
        ethernet_switches: vec![EthernetSwitchResult::default()],
        iscsi_sessions: vec![IscsiSessionResult::default()],
        fcip_links: vec![FcipLinkResult::default()],
        subnet: Some(SubnetResult { refusal: some(), ..SubnetResult::default() }),
        infiniband_links: vec![InfinibandLinkResult {
            forward: infiniband_direction(),
            backward: infiniband_direction(),
            ..InfinibandLinkResult::default()
        }],
        srp_channels: vec![SrpChannelResult::default()],
        loops: vec![LoopResult { ports: vec![LoopPortResult::default()], ..LoopResult::default() }],
        switches: vec![SwitchResult { logins_rejected: any(), discards: any(), ..SwitchResult::default() }],
        drops: reasons(&drops::FRAMES),
        faults: vec![FaultEvent { until_s: Some(0.0), link: some(), node: some(), ..FaultEvent::default() }],
        events: vec![Event { subject: some(), ..Event::default() }],
        findings: vec![Finding {
            culprit: some(),
            remedies: vec![Remedy { set: vec![String::new()], ..Remedy::default() }],
            victims: vec![Victim::default()],
            cycle: vec![String::new()],
            from_s: Some(0.0),
            until_s: Some(0.0),
            ..Finding::default()
        }],
        replications: Some(Replications {
            seeds: vec![0],
            metrics: BTreeMap::from([(ANY.to_owned(), Interval::default())]),
            ..Replications::default()
        }),
        expectations: vec![ExpectationResult {
            min: Some(0.0),
            max: Some(0.0),
            value: Some(0.0),
            ..ExpectationResult::default()
        }],
        ..Results::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_field_of_a_remedy_is_stray() {
        assert_eq!(stray("findings.0.remedies.0.gain", None), None);
        assert_eq!(stray("count(findings.*.remedies.*.set.*)", None), None);
        let Some(Stray::Field { inside, part, known }) = stray("findings.0.remedies.0.gian", None) else {
            panic!("the path is accepted");
        };
        assert_eq!((inside.as_str(), part.as_str()), ("findings.0.remedies.0", "gian"));
        assert!(known.iter().any(|field| field == "gain"), "{known:?}");
    }
}
