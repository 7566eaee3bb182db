//! Tables of fabric logins and of the name server.

use super::Shown;
use crate::view::{FlogiView, LoginKind, LoginRow, NameRow, NsView};
use sanloom_fc::switch::NsEntry;
use sanloom_wire::ns::{fcp_feature, has_type, port_type};
use sanloom_wire::{FcId, FcType};
use std::collections::BTreeMap;

pub(super) fn logins(shown: &Shown<'_>) -> FlogiView {
    let mut logins = Vec::new();
    for seen in shown.switches() {
        let machine = seen.machine;
        let policy = &shown.lab.switches[usize::from(seen.number)].policy;
        let objects: BTreeMap<FcId, &NsEntry> =
            machine.services().name_server().map(|entry| (entry.port_id, entry)).collect();
        for (id, port) in machine.logins() {
            let Some(entry) = objects.get(&id) else { continue };
            logins.push(LoginRow {
                port: format!("{}:{port}", shown.lab.switches[usize::from(seen.number)].name),
                port_id: id.to_string(),
                port_name: entry.port_name.to_string(),
                node_name: entry.node_name.to_string(),
                owner: shown.owner(entry.port_name),
                login: if machine.services().is_virtual(id) { LoginKind::Fdisc } else { LoginKind::Flogi },
                persistent: policy.learn_addresses || policy.persistent.get(&entry.port_name) == Some(&id),
                since_s: (shown.since_start_s)(entry.logged_in_at),
            });
        }
    }
    logins.sort_by(|a, b| a.port_id.cmp(&b.port_id));
    FlogiView { logins }
}

pub(super) fn name_server(shown: &Shown<'_>) -> NsView {
    let Some(seen) = shown.database() else { return NsView::default() };
    let machine = seen.machine;
    let listed = machine.services().name_server().filter(|entry| entry.listed);
    NsView {
        switch: shown.lab.switches[usize::from(seen.number)].name.clone(),
        objects: listed.map(|entry| object(shown, entry)).collect(),
    }
}

fn object(shown: &Shown<'_>, entry: &NsEntry) -> NameRow {
    let types = (0..=u8::MAX).filter(|fc4_type| has_type(&entry.types, *fc4_type));
    let features = [(fcp_feature::INITIATOR, "initiator"), (fcp_feature::TARGET, "target")];
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
    NameRow {
        port_id: entry.port_id.to_string(),
        port_type: port_type::name(entry.port_type).map_or(format!("{:02x}", entry.port_type), str::to_owned),
        port_name: entry.port_name.to_string(),
        node_name: entry.node_name.to_string(),
        fabric_port_name: entry.fabric_port_name.to_string(),
        fc4_types: types.map(|fc4_type| FcType(fc4_type).to_string()).collect(),
        fcp_features: (features.iter())
            .filter(|(bit, _)| entry.fcp_features & bit != 0)
            .map(|(_, name)| (*name).to_owned())
            .collect(),
        symbolic_port_name: text(entry.symbolic_port_name()),
        symbolic_node_name: text(entry.symbolic_node_name()),
        owner: shown.owner(entry.port_name),
    }
}
