//! The tables of `sanloom show` as text.

use super::grid::{Column, Grid};
use super::{fdmi, live, plane, volume};
use crate::report::format::{clean, counted, grouped, seconds};
use sanloom_api::view::{
    Attachment, Dark, FabricView, FlogiView, LoginKind, NodeRow, NodesView, NsView, PortMode, PortsView, RoutesView,
    SwitchView, Table, View, ZoneDefault, ZoneView,
};
use std::fmt::Write as _;

/// Renders a view of a simulation for a terminal of `width` columns (at least 60).
pub fn render(view: &View, width: usize) -> String {
    let when = match view.at_s {
        at if at < 0.0 => format!("{} before the workloads begin", seconds(-at)),
        at if at > 0.0 => format!("{} after the workloads began", seconds(at)),
        _ => "when every port has logged in".to_owned(),
    };
    table(view, &when, width)
}

/// Renders a view of a running instance.
pub fn render_live(view: &View, width: usize) -> String {
    table(view, &format!("{} after its start", seconds(view.at_s)), width)
}

fn table(view: &View, when: &str, width: usize) -> String {
    let width = width.max(60);
    let mut out = format!("{}, {when}\n", clean(&view.of));
    if is_without_switches(&view.table) {
        out.push_str("there is no switch\n");
        return out;
    }
    match &view.table {
        Table::Switch(table) => switches(&mut out, table, width),
        Table::Flogi(table) => logins(&mut out, table, width),
        Table::Ns(table) => objects(&mut out, table, width),
        Table::Fdmi(table) => fdmi::adapters(&mut out, table, width),
        Table::Zone(table) => zones(&mut out, table, width),
        Table::Fabric(table) => fabric(&mut out, table, width),
        Table::Routes(table) => routes(&mut out, table, width),
        Table::Ports(table) => ports(&mut out, table, width),
        Table::Nodes(table) => nodes(&mut out, table, width),
        Table::Events(table) => live::events(&mut out, table, width),
        Table::Luns(table) => live::luns(&mut out, table, width),
        Table::Groups(table) => live::groups(&mut out, table, width),
        Table::Counters(table) => live::counters(&mut out, table, width),
        Table::Injections(table) => live::injections(&mut out, table, width),
        Table::Captures(table) => live::captures(&mut out, table, width),
        Table::Volumes(table) => volume::volumes(&mut out, table, width),
        Table::Paths(table) => volume::paths(&mut out, table, width),
        Table::Sessions(table) => volume::sessions(&mut out, table, width),
        Table::Links(table) => plane::links(&mut out, table, width),
        Table::Ethernet(table) => plane::ethernet(&mut out, table, width),
        Table::Connections(table) => plane::connections(&mut out, table, width),
        Table::Infiniband(table) => plane::infiniband(&mut out, table, width),
        Table::Channels(table) => plane::channels(&mut out, table, width),
    }
    out
}

/// Returns whether the table normally has a row per switch but is empty here.
fn is_without_switches(table: &Table) -> bool {
    match table {
        Table::Switch(table) => table.switches.is_empty(),
        Table::Fabric(table) => table.switches.is_empty(),
        _ => false,
    }
}

fn switches(out: &mut String, table: &SwitchView, width: usize) {
    let virtual_fabrics = table.switches.iter().any(|row| row.vf_id.is_some());
    let place = if virtual_fabrics { vec![Column::left("chassis"), Column::right("VF_ID")] } else { Vec::new() };
    let mut columns = vec![Column::left("switch")];
    columns.extend(place);
    columns.extend([
        Column::right("domain"),
        Column::left("principal").rank(2),
        Column::left("name").rank(4),
        Column::right("F_Ports"),
        Column::right("E_Ports"),
        Column::right("isolated"),
        Column::right("logins"),
        Column::right("virtual").rank(1),
        Column::right("objects").rank(3),
        Column::right("refused").rank(2),
        Column::right("requests").rank(2),
        Column::right("rejected").rank(3),
        Column::right("RSCNs").rank(3),
        Column::right("permissions").rank(4),
    ]);
    let mut grid = Grid::new(columns);
    for row in &table.switches {
        let mut cells = vec![clean(&row.switch)];
        if virtual_fabrics {
            cells.push(row.chassis.as_deref().map(clean).unwrap_or_default());
            cells.push(row.vf_id.map(|id| id.to_string()).unwrap_or_default());
        }
        cells.extend([
            match row.domain {
                _ if row.disabled => "disabled".to_owned(),
                Some(domain) => domain.to_string(),
                None => if row.up { "none" } else { "down" }.to_owned(),
            },
            if row.principal { "yes".to_owned() } else { String::new() },
            row.switch_name.clone(),
            row.f_ports.to_string(),
            row.e_ports.to_string(),
            unless_zero(row.isolated_ports.into()),
            grouped(row.logins.into()),
            unless_zero(row.virtual_logins.into()),
            grouped(row.name_server_objects.into()),
            unless_zero(row.logins_rejected),
            grouped(row.requests_accepted),
            unless_zero(row.requests_rejected),
            unless_zero(row.rscns_sent),
            unless_zero(row.permissions),
        ]);
        grid.row(cells);
    }
    out.push_str(&grid.render(width));
}

fn logins(out: &mut String, table: &FlogiView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("port"),
        Column::left("FC_ID"),
        Column::left("port name"),
        Column::left("node name").rank(2),
        Column::left("owner"),
        Column::left("login").rank(1),
        Column::left("address").rank(4),
        Column::right("since").rank(3),
    ]);
    for row in &table.logins {
        let kind = match row.login {
            LoginKind::Flogi => "FLOGI",
            LoginKind::Fdisc => "FDISC",
        };
        let since = if row.since_s < 0.0 { "-".to_owned() } else { String::new() } + &seconds(row.since_s.abs());
        grid.row(vec![
            clean(&row.port),
            row.port_id.clone(),
            row.port_name.clone(),
            row.node_name.clone(),
            clean(&row.owner),
            kind.to_owned(),
            if row.persistent { "persistent".to_owned() } else { String::new() },
            since,
        ]);
    }
    out.push_str(&grid.render(width));
    let _ = writeln!(out, "{} logged in", grouped(table.logins.len() as u64));
    if table.logins.iter().any(|row| row.since_s < 0.0) {
        out.push_str("Times below zero are before the workloads began.\n");
    }
}

fn objects(out: &mut String, table: &NsView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("FC_ID"),
        Column::left("type").rank(3),
        Column::left("port name"),
        Column::left("node name").rank(2),
        Column::left("FC-4"),
        Column::left("features"),
        Column::left("owner").rank(1),
        Column::left("symbolic name").rank(4),
    ]);
    for row in &table.objects {
        let symbolic = [&row.symbolic_port_name, &row.symbolic_node_name];
        grid.row(vec![
            row.port_id.clone(),
            row.port_type.clone(),
            row.port_name.clone(),
            row.node_name.clone(),
            row.fc4_types.join(" "),
            row.fcp_features.join(" "),
            clean(&row.owner),
            symbolic.into_iter().find(|name| !name.is_empty()).map(|name| clean(name)).unwrap_or_default(),
        ]);
    }
    let _ = writeln!(out, "name server of {}", clean(&table.switch));
    out.push_str(&grid.render(width));
    let _ = writeln!(out, "{}", counted(table.objects.len() as u64, "object"));
}

fn zones(out: &mut String, table: &ZoneView, width: usize) {
    let default = match table.default_zone {
        ZoneDefault::Open => "ports in no zone may access each other",
        ZoneDefault::Closed => "ports in no zone may access no other port",
    };
    let name = table.effective.as_deref().map_or(String::new(), |name| format!("effective: {}; ", clean(name)));
    let _ = writeln!(out, "{name}{default}");
    let mut grid = Grid::new(vec![
        Column::left("zone"),
        Column::left("role").rank(1),
        Column::left("member"),
        Column::left("FC_ID"),
        Column::left("owner"),
    ]);
    for zone in &table.zones {
        let mut name = clean(&zone.zone);
        for member in &zone.members {
            let role = match (zone.peer, member.principal) {
                (true, true) => "principal",
                (true, false) => "peer",
                (false, _) => "",
            };
            let ids: Vec<&str> = member.online.iter().map(|port| port.port_id.as_str()).collect();
            let mut owners: Vec<String> = member.online.iter().map(|port| clean(&port.owner)).collect();
            owners.dedup();
            let online = if ids.is_empty() { "not logged in".to_owned() } else { ids.join(" ") };
            grid.row(vec![std::mem::take(&mut name), role.to_owned(), clean(&member.member), online, owners.join(" ")]);
        }
    }
    out.push_str(&grid.render(width));
    let _ = writeln!(out, "{}", counted(table.zones.len() as u64, "zone"));
}

fn fabric(out: &mut String, table: &FabricView, width: usize) {
    let mut switches = Grid::new(vec![
        Column::left("switch"),
        Column::right("domain"),
        Column::left("name"),
        Column::left("principal switch"),
        Column::left("domains known"),
    ]);
    let mut isls = Grid::new(vec![
        Column::left("port"),
        Column::left("neighbour"),
        Column::left("state"),
        Column::left("reason"),
        Column::left("rate").rank(1),
        Column::right("cost").rank(1),
        Column::left("bundle").rank(2),
    ]);
    for switch in &table.switches {
        let domains: Vec<String> = switch.domains.iter().map(u8::to_string).collect();
        let known = match domains.len() {
            0..=16 => domains.join(" "),
            n => format!("{} and {} more", domains[..12].join(" "), n - 12),
        };
        let principal = switch.principal.clone().unwrap_or_default();
        switches.row(vec![
            clean(&switch.switch),
            switch.domain.map_or("none".to_owned(), |domain| domain.to_string()),
            switch.switch_name.clone(),
            if principal == switch.switch_name { "this one".to_owned() } else { principal },
            known,
        ]);
        for isl in &switch.isls {
            isls.row(vec![
                clean(&isl.port),
                clean(&isl.neighbour),
                isl.state.clone(),
                isl.reason.as_deref().map(clean).unwrap_or_default(),
                isl.rate.clone(),
                isl.cost.to_string(),
                isl.bundle.clone().unwrap_or_default(),
            ]);
        }
    }
    out.push_str(&switches.render(width));
    out.push_str(&isls.render(width));
}

fn routes(out: &mut String, table: &RoutesView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("from"),
        Column::right("to domain"),
        Column::left("switch"),
        Column::right("paths"),
        Column::left("by"),
    ]);
    for row in &table.routes {
        let by = if row.legs.is_empty() { "unreachable".to_owned() } else { row.legs.join(", ") };
        grid.row(vec![
            clean(&row.switch),
            row.domain.to_string(),
            clean(&row.to),
            row.legs.len().to_string(),
            clean(&by),
        ]);
    }
    out.push_str(&grid.render(width));
}

fn ports(out: &mut String, table: &PortsView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("port"),
        Column::left("mode"),
        Column::left("rate"),
        Column::left("attached"),
        Column::right("logins").rank(2),
        Column::right("credits"),
        Column::right("channels").rank(3),
        Column::right("frames out").rank(1),
        Column::right("frames in").rank(1),
        Column::left("discards").rank(3),
        Column::left("link").rank(4),
    ]);
    for row in &table.ports {
        let mode = match (row.mode, &row.isolated, row.light) {
            (_, Some(reason), _) => format!("isolated: {}", clean(reason)),
            (PortMode::F, ..) if row.blocked => "F, blocked for a used name".to_owned(),
            (PortMode::F, ..) => "F".to_owned(),
            (PortMode::E, ..) => if row.fcip.is_some() { "VE" } else { "E" }.to_owned(),
            (PortMode::Isolated, ..) => {
                if row.fcip.is_some() { "VE, initialising" } else { "E, initialising" }.to_owned()
            }
            (PortMode::Down, _, true) => "no login".to_owned(),
            (PortMode::Down, _, false) if row.dark == Some(Dark::NoPeer) && row.fcip.is_some() => {
                format!("VE, {}", row.fcip.as_ref().map_or("", |fcip| &fcip.state))
            }
            (PortMode::Down, _, false) => match row.dark {
                Some(Dark::Disabled) => "disabled",
                Some(Dark::SwitchDisabled) => "switch disabled",
                Some(Dark::Unplugged) => "unplugged",
                Some(Dark::NoDcbx) => "no DCBX",
                Some(Dark::NoPeer) | None => "no light",
            }
            .to_owned(),
        };
        let discards: Vec<String> =
            row.discards.iter().map(|(reason, count)| format!("{} {}", grouped(*count), clean(reason))).collect();
        grid.row(vec![
            clean(&row.port),
            mode,
            row.rate.clone(),
            clean(&row.attached),
            unless_zero(row.logins.into()),
            format!("{}/{}", row.credits[0], row.credits[1]),
            unless_zero(row.channels.into()),
            grouped(row.frames_sent),
            grouped(row.frames_received),
            discards.join(", "),
            clean(&row.link),
        ]);
    }
    out.push_str(&grid.render(width));
    tunnels(out, table, width);
}

/// FCIP links of the ports, if there are any.
fn tunnels(out: &mut String, table: &PortsView, width: usize) {
    let mut grid = Grid::new(vec![
        Column::left("FCIP link"),
        Column::left("port"),
        Column::left("TCP"),
        Column::left("address"),
        Column::left("other switch").rank(2),
        Column::right("connections"),
        Column::right("oldest frame").rank(1),
        Column::right("stale").rank(3),
        Column::right("LKAs").rank(3),
        Column::right("resynchronised").rank(3),
    ]);
    let rows = table.ports.iter().filter_map(|row| Some((row, row.fcip.as_ref()?)));
    for (row, fcip) in rows.clone() {
        let role = if fcip.listens { "listens at" } else { "connects to" };
        grid.row(vec![
            clean(&row.link),
            clean(&row.port),
            clean(&fcip.state),
            format!("{role} {}", clean(&fcip.address)),
            clean(&fcip.peer),
            grouped(fcip.connections),
            format!("{:.1} ms", fcip.oldest_ms),
            unless_zero(fcip.stale),
            unless_zero(fcip.keep_alives),
            unless_zero(fcip.resynchronised),
        ]);
    }
    if rows.count() > 0 {
        out.push('\n');
        out.push_str(&grid.render(width));
    }
}

fn nodes(out: &mut String, table: &NodesView, width: usize) {
    let mut columns = vec![
        Column::left("port"),
        Column::left("port name"),
        Column::left("FC_ID"),
        Column::left("attached"),
        Column::left("kind").rank(1),
        Column::left("link").rank(3),
        Column::left("rate").rank(2),
    ];
    let has_loop = table.nodes.iter().any(|row| row.attachment == Some(Attachment::Loop));
    if has_loop {
        columns.extend([Column::left("AL_PA"), Column::right("position")]);
    }
    let mut grid = Grid::new(columns);
    for row in &table.nodes {
        let mut cells = vec![
            clean(&row.port),
            row.port_name.clone(),
            row.port_id.clone().unwrap_or_default(),
            attached(row),
            match row.attachment {
                Some(Attachment::Switch) => "switch",
                Some(Attachment::Loop) => "loop",
                Some(Attachment::Direct) => "direct",
                Some(Attachment::Virtual) => "virtual port",
                None => "",
            }
            .to_owned(),
            row.link.as_deref().map(clean).unwrap_or_default(),
            row.rate.clone().unwrap_or_default(),
        ];
        if has_loop {
            cells.push(row.al_pa.clone().unwrap_or_default());
            cells.push(row.position.map(|position| position.to_string()).unwrap_or_default());
        }
        grid.row(cells);
    }
    out.push_str(&grid.render(width));
    let _ = writeln!(out, "{}", counted(table.nodes.len() as u64, "port"));
    if has_loop {
        out.push_str("Position 0 is the loop master.\n");
    }
}

fn attached(row: &NodeRow) -> String {
    match (&row.attached, row.light) {
        (None, _) => "not cabled".to_owned(),
        (Some(port), Some(false)) => format!("{}, no light", clean(port)),
        (Some(port), _) => clean(port),
    }
}

fn unless_zero(n: u64) -> String {
    if n == 0 { String::new() } else { grouped(n) }
}
