//! Findings about fabrics that differ from the lab: isolated links, rejected logins, failed zone
//! changes, and hosts without paths.

use super::super::view::View;
use super::list;
use crate::world::{HostNode, NoteKind};
use sanloom_api::results::measure::s_of_ps;
use sanloom_api::results::{Finding, FindingKind, Results, Victim};
use sanloom_api::words::plural;
use sanloom_fc::config::{EthernetNode, InfinibandNode, Node};
use sanloom_fc::fabric_switch::IslState;
use sanloom_fc::isolation::Isolation;
use sanloom_fc::switch::LoginRejects;

/// Finds links that are isolated at the end of the run, with the reasons reported by both ends.
pub(super) fn isolated(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for link in &view.world.lab.links {
        let mut reasons: Vec<(String, Isolation)> = Vec::new();
        for end in &link.ends {
            let Node::Switch(switch) = end.node else { continue };
            let mut isls = view.world.control.switches[usize::from(switch)].machine.isls();
            let state = isls.find(|isl| isl.members.contains(&end.port)).map(|isl| isl.state);
            if let Some(IslState::Isolated(reason)) = state {
                reasons.push((view.names.port(end), reason));
            }
        }
        // An end that was isolated by a notification of the other end has the less specific reason,
        // so it comes last.
        reasons.sort_by_key(|(_, reason)| *reason == Isolation::OtherSide);
        let Some((port, reason)) = reasons.first() else { continue };
        found.push(Finding {
            kind: FindingKind::IsolatedLink,
            title: format!("Link {} carries no traffic: {}", link.name, reason.name()),
            detail: reasons.iter().map(|(port, reason)| format!("{port}: {reason}")).collect::<Vec<_>>().join("; "),
            remedy: sentence(reason.remedy()),
            culprit: Some(port.clone()),
            victims: vec![Victim { name: link.name.clone(), ..Victim::default() }],
            ..Finding::default()
        });
    }
    found
}

/// Finds switches that rejected logins.
pub(super) fn rejected_logins(view: &View<'_>) -> Vec<Finding> {
    let switches = view.world.control.switches.iter().zip(&view.world.lab.switches);
    let counted = switches.map(|(node, config)| (node.counted().rejects, &config.name));
    let finding = |(rejects, name): (LoginRejects, &String)| {
        let reasons = [
            (rejects.port_limit, "the port had as many as `logins_per_port` allows"),
            (rejects.switch_limit, "the switch had as many as `logins_per_switch` allows"),
            (rejects.no_address, "no address was free"),
            (rejects.name, "the port name was in use"),
            (rejects.other, "the request was invalid for another reason"),
        ];
        let there = reasons.iter().filter(|(count, _)| *count > 0);
        Finding {
            kind: FindingKind::LoginsRejected,
            title: format!("{name} rejected {}, repetitions included", plural(rejects.total(), "fabric login")),
            detail: there.map(|(count, why)| format!("{count} because {why}")).collect::<Vec<_>>().join("; "),
            culprit: Some(name.clone()),
            ..Finding::default()
        }
    };
    counted.filter(|(rejects, _)| rejects.total() > 0).map(finding).collect()
}

/// Finds changes of the zones that failed.
pub(super) fn unchanged(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for note in view.world.notes.list() {
        let NoteKind::ZonesChanged { switch, failure: Some(failure), .. } = &note.kind else { continue };
        let name = view.names.node(Node::Switch(*switch)).to_owned();
        found.push(Finding {
            kind: FindingKind::ZonesUnchanged,
            title: format!("A change of the zones at {name} failed"),
            detail: failure.clone(),
            remedy: "No switch has changed its zones; remove the cause, and commit the change again".to_owned(),
            culprit: Some(name),
            from_s: Some(s_of_ps(note.at_ps.saturating_sub(view.world.start_ps))),
            ..Finding::default()
        });
    }
    found
}

/// Finds hosts that never had a path to at least one storage system that they use.
pub(super) fn pathless(view: &View<'_>, results: &Results) -> Option<Finding> {
    let hosts = view.world.hosts.nodes.iter().zip(&results.hosts);
    let lacking = hosts.filter(|(node, host)| (node.is_busy() || host.io.ios_offered > 0) && lacks_path(node));
    let names: Vec<String> = lacking.map(|(_, host)| host.name.clone()).collect();
    if names.is_empty() {
        return None;
    }
    Some(Finding {
        kind: FindingKind::NoPath,
        title: match &names[..] {
            [one] => format!("{one} never had a path to storage that it uses"),
            _ => format!("{} hosts never had a path to storage that they use", names.len()),
        },
        detail: format!("{}; {}", list(&names), causes(view, &names)),
        victims: names.into_iter().map(|name| Victim { name, ..Victim::default() }).collect(),
        ..Finding::default()
    })
}

/// Returns the possible causes of missing paths on the planes to which the hosts are connected.
fn causes(view: &View<'_>, hosts: &[String]) -> String {
    let lab = &view.world.lab;
    let is_one = |number: u16| lab.hosts.get(usize::from(number)).is_some_and(|host| hosts.contains(&host.name));
    let on_fc = lab.links.iter().flat_map(|link| &link.ends).any(|end| matches!(end.node, Node::Host(h) if is_one(h)));
    let ethernet = lab.ethernet_links.iter().flat_map(|link| &link.ends);
    let on_ethernet = ethernet.into_iter().any(|end| matches!(end.node, EthernetNode::Host(host) if is_one(host)));
    let infiniband = lab.infiniband.links.iter().flat_map(|link| &link.ends);
    let on_infiniband =
        infiniband.into_iter().any(|end| matches!(end.node, InfinibandNode::Host(host) if is_one(host)));
    let has_ipoib = lab.infiniband.ipoib.nodes.keys().any(|node| matches!(node, InfinibandNode::Host(h) if is_one(*h)));
    let mut found = Vec::new();
    if on_fc {
        found.push(
            "isolated links, rejected logins, zones and masks can be the cause; `sanloom zone explain` names the zones \
             of a port",
        );
    }
    if on_ethernet {
        found.push(
            "on Ethernet, links that are down or lose frames, different MTUs, a refused login of iSCSI, and masks can \
             be the cause",
        );
    }
    if on_infiniband {
        found.push(match has_ipoib {
            true => {
                "on InfiniBand, partitions, a service level without a lane that works, different MTUs of IPoIB, refused \
                 logins and masks can be the cause"
            }
            false => {
                "on InfiniBand, partitions, a service level without a lane that works, refused logins of SRP and masks \
                 can be the cause"
            }
        });
    }
    if found.is_empty() {
        found.push("no link leads from them to a network");
    }
    found.join("; ")
}

/// Returns whether the host never had a path to any storage system that it uses.
pub(super) fn is_pathless(host: &HostNode) -> bool {
    let systems = host.paths.systems();
    !systems.is_empty() && systems.iter().all(|system| system.paths().iter().all(|path| !path.was_up))
}

/// Returns whether the host never had a path to one of its storage systems.
fn lacks_path(host: &HostNode) -> bool {
    host.paths.systems().iter().any(|system| system.paths().iter().all(|path| !path.was_up))
}

/// Returns the text with a capital first letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
