//! The switch, its VSANs, and its neighbours.

use crate::fos::ports;
use crate::fos::switches::{self, Date};
use crate::fos::system::is_online;
use crate::nxos::pattern::Values;
use crate::nxos::reply::{Outcome, Shown, absent, object, row, table};
use crate::nxos::session::{Session, interface};
use crate::nxos::show::rule;
use sanloom_api::view::PortMode;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Version of the operating system that the interface claims. Clients choose their requests by it.
pub const VERSION: &str = "8.4(2f)";
/// VSANs that every switch reserves, with the names of their attributes.
pub const RESERVED: [(u16, &str); 2] = [(4079, "evfp_isolated_vsan"), (4094, "isolated_vsan")];

fn uptime(session: &Session<'_>) -> [u64; 4] {
    let seconds = session.room.uptime_s.max(0.0) as u64;
    [seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60]
}

/// Name of the switch for people.
pub fn host_name(session: &Session<'_>) -> String {
    session.room.shared.name_of(&session.home)
}

/// `show version`.
pub fn version(session: &mut Session<'_>, _: &Values) -> Outcome {
    // The table of switches has the time since the start.
    session.vsans()?;
    let name = host_name(session);
    let [days, hours, minutes, seconds] = uptime(session);
    let (product, own) = (switches::PRODUCT, env!("CARGO_PKG_VERSION"));
    let image = format!("bootflash:///{product}-{own}.bin");
    let text = format!(
        "{product} {own}: a switch of a laboratory, with commands in the words of NX-OS\n\n\
         Software\n  kickstart: version {VERSION}\n  system:    version {VERSION}\n  \
         kickstart image file is: {image}\n  system image file is:    {image}\n\n\
         Hardware\n  {product} switch\n\n  Device name: {name}\n\n\
         Kernel uptime is {days} day(s), {hours} hour(s), {minutes} minute(s), {seconds} second(s)\n"
    );
    let body = json!({
        "kickstart_ver_str": VERSION,
        "sys_ver_str": VERSION,
        "kick_file_name": image,
        "isan_file_name": image,
        "chassis_id": format!("{product} switch"),
        "host_name": name,
        "manufacturer": product,
        "kern_uptm_days": days,
        "kern_uptm_hrs": hours,
        "kern_uptm_mins": minutes,
        "kern_uptm_secs": seconds,
    });
    Ok(Shown::with(text, body))
}

/// `show inventory`.
pub fn inventory(session: &mut Session<'_>, _: &Values) -> Outcome {
    let own = session.room.own()?;
    let product = switches::PRODUCT;
    let ports: usize = session.ports()?.len();
    let serial = session.room.chassis_wwn(&own)?.replace(':', "");
    let parts = [
        ("Chassis", format!("{product} switch"), product, serial),
        ("Slot 1", format!("{ports} ports"), product, "--".to_owned()),
    ];
    let text: String = parts
        .iter()
        .map(|(name, about, id, serial)| {
            format!("NAME: \"{name}\",  DESCR: \"{about}\"\nPID: {id}  ,  VID: V00 ,  SN: {serial}\n\n")
        })
        .collect();
    let rows = parts.iter().map(|(name, about, id, serial)| {
        json!({"name": name, "desc": about, "productid": id, "vendorid": "V00", "serialnum": serial})
    });
    Ok(Shown::with(text, object([table("inv", rows.collect())])))
}

/// `show switchname` and `show hostname`.
pub fn switch_name(session: &mut Session<'_>, _: &Values) -> Outcome {
    let name = host_name(session);
    Ok(Shown::with(format!("{name}\n"), json!({"switchname": name, "hostname": name})))
}

/// `show clock`.
pub fn clock(session: &mut Session<'_>, _: &Values) -> Outcome {
    let line = Date::line(session.room.now.unix_s);
    Ok(Shown::with(format!("{line}\n"), json!({"simple_time": format!("{line}\n")})))
}

/// `show vsan`.
pub fn vsans(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (mut text, mut rows) = (String::new(), Vec::new());
    for (vsan, switch) in session.wanted(values.vsan())? {
        let name = session.name_of(vsan);
        let state = if is_online(&switch) { "up" } else { "down" };
        text += &format!(
            "vsan {vsan} information\n         name:{name}  state:active \n         interoperability mode:default \n\
             \x20        loadbalancing:src-id/dst-id/oxid \n         operational state:{state} \n\n"
        );
        rows.push(json!({
            "vsan": vsan,
            "name": name,
            "state": "active",
            "interop_mode": "default",
            "load_balancing": "src-id/dst-id/oxid",
            "operational_state": state,
        }));
    }
    if values.vsan().is_none() {
        for ((vsan, name), key) in RESERVED.into_iter().zip(["evfp_control_vsan_name", "inactive_vsan_name"]) {
            text += &format!("vsan {vsan}:{name} \n\n");
            rows.push(row(&[("vsan", vsan.into()), (key, name.into())], []));
        }
    }
    Ok(Shown::with(text, object([table("vsan", rows)])))
}

/// `show vsan membership`.
pub fn membership(session: &mut Session<'_>, values: &Values) -> Outcome {
    let wanted = session.wanted(values.vsan())?;
    let ports = session.ports()?;
    let (mut text, mut rows) = (String::new(), Vec::new());
    for (vsan, _) in wanted {
        let names: Vec<String> =
            ports.iter().filter(|placed| placed.vsan == vsan).map(|placed| interface(placed.port.number)).collect();
        text += &format!("vsan {vsan} interfaces:\n");
        for line in names.chunks(4) {
            let line: String = line.iter().map(|name| format!("{name:<17}")).collect();
            text += &format!("    {}\n", line.trim_end());
        }
        text.push('\n');
        let names = match &names[..] {
            [] => None,
            [one] => Some(Value::from(one.clone())),
            _ => Some(names.into()),
        };
        rows.push(row(&[("vsan", vsan.into())], names.map(|names| ("interfaces".to_owned(), names))));
    }
    if values.vsan().is_none() {
        for ((vsan, name), key) in RESERVED.into_iter().zip(["vsan_evfp_control_name", "vsan_inactive_name"]) {
            text += &format!("vsan {vsan}({name}) interfaces:\n\n");
            rows.push(row(&[("vsan", vsan.into()), (key, name.into())], []));
        }
    }
    Ok(Shown::with(text, object([table("vsan_membership", rows)])))
}

/// `show topology`.
pub fn topology(session: &mut Session<'_>, values: &Values) -> Outcome {
    let wanted = session.wanted(values.vsan())?;
    let domains: BTreeMap<String, Option<u8>> =
        session.room.switches()?.into_iter().map(|row| (row.switch, row.domain)).collect();
    let (mut text, mut all) = (String::new(), Vec::new());
    for (vsan, _) in wanted {
        session.select(vsan)?;
        let (_, ports) = ports::all(&mut session.room)?;
        let mut rows = Vec::new();
        let mut lines = String::new();
        for port in ports.iter().filter(|port| port.online()) {
            let Some(row) = port.row.as_ref().filter(|row| row.mode == PortMode::E) else { continue };
            let Some((peer, number)) = row.attached.rsplit_once(':') else { continue };
            let (Some(domain), Ok(number)) = (domains.get(peer).copied().flatten(), number.parse::<u32>()) else {
                continue;
            };
            let (address, name) = (switches::address(&session.room, peer), session.room.shared.name_of(peer));
            let (own, other) = (interface(port.number), interface(number));
            lines += &format!("{own:>17} {:>12} {other:>16}  {address}({name})\n", format!("0x{domain:02x}({domain})"));
            rows.push(json!({
                "interface": own,
                "peer_domain": format!("0x{domain:02x}({domain})"),
                "peer_interface": other,
                "peer_ip_address": address,
                "peer_switch_name": name,
            }));
        }
        if rows.is_empty() {
            continue;
        }
        let head = "       Interface  Peer Domain Peer Interface     Peer IP Address(Switch Name)\n";
        text += &format!("\nFC Topology for VSAN {vsan} :\n{}{head}{}{lines}", rule(80), rule(80));
        all.push(row(&[("id", vsan.into())], [table("topology", rows)]));
    }
    match all.is_empty() {
        true => Err(absent("No topology information")),
        false => Ok(Shown::with(text, object([table("topology_vsan", all)]))),
    }
}

/// `show fcdomain domain-list`.
pub fn domains(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (mut text, mut all) = (String::new(), Vec::new());
    for (vsan, own) in session.wanted(values.vsan())? {
        session.select(vsan)?;
        let members = switches::members(&mut session.room)?;
        let mut rows = Vec::new();
        let mut lines = String::new();
        for (member, _) in &members {
            let Some(domain) = member.domain else { continue };
            let marks = [(member.switch == own.switch, " [Local]"), (member.principal, " [Principal]")];
            let marks: String = marks.iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| *mark).collect();
            lines += &format!("{:>9}    {}{marks}\n", format!("0x{domain:02x}({domain})"), member.switch_name);
            rows.push(json!({"domain_id": format!("0x{domain:02x}({domain})"), "domain_wwn": member.switch_name}));
        }
        text += &format!(
            "VSAN {vsan}\nNumber of domains: {}\nDomain ID              WWN\n---------    -----------------------\n{lines}\n",
            rows.len()
        );
        all.push(row(&[("vsan", vsan.into()), ("number_of_domains", rows.len().into())], [table("domain", rows)]));
    }
    Ok(Shown::with(text, object([table("vsan", all)])))
}

/// `show fcdomain`: the principal switch and the domain of each VSAN. The interfaces are its
/// E_Ports.
pub fn fcdomain(session: &mut Session<'_>, values: &Values) -> Outcome {
    let (mut text, mut all) = (String::new(), Vec::new());
    for (vsan, own) in session.wanted(values.vsan())? {
        session.select(vsan)?;
        let members = switches::members(&mut session.room)?;
        let fabric = members.iter().find(|(row, _)| row.switch == own.switch).map(|(_, fabric)| fabric);
        let name = fabric.and_then(|fabric| fabric.fabric_name.clone()).unwrap_or_default();
        let role = if own.principal { "Principal" } else { "Subordinated" };
        let state = if own.domain.is_some() { "Stable" } else { "Unstable" };
        let domain = own.domain.unwrap_or_default();
        let domain = format!("0x{domain:02x}({domain})");
        let wwn = &own.switch_name;
        text += &format!(
            "VSAN {vsan}\nThe local switch is {} Switch.\n\nLocal switch run time information:\n        State: {state}\n\
             \x20       Local switch WWN:    {wwn}\n        Running fabric name: {name}\n        Current domain ID: \
             {domain}\n\n",
            if own.principal { "the Principal" } else { "a Subordinated" },
        );
        let (_, ports) = ports::all(&mut session.room)?;
        let ends: Vec<String> = (ports.iter().filter(|port| port.online()))
            .filter(|port| port.row.as_ref().is_some_and(|row| row.mode == PortMode::E))
            .map(|port| interface(port.number))
            .collect();
        if !ends.is_empty() {
            text += "Interface               RCF-reject\n----------------        ------------\n";
            ends.iter().for_each(|end| text += &format!("{end:<24}Disabled\n"));
            text.push('\n');
        }
        let values: [(&str, Value); 6] = [
            ("vsan", vsan.into()),
            ("local_switch", role.into()),
            ("state", state.into()),
            ("local_switch_wwn", wwn.clone().into()),
            ("running_fabric_name", name.into()),
            ("current_domain_id", domain.into()),
        ];
        let ends = ends.into_iter().map(|end| json!({"interface": end, "rcf_reject": "Disabled"})).collect();
        all.push(row(&values, [table("interface", ends)]));
    }
    Ok(Shown::with(text, object([table("fcdomain", all)])))
}
