//! Commands about the settings, transceivers and logins of ports.

use super::Outcome;
use super::ports::{chosen, every_or_chosen};
use crate::fos::ports::{self as model, Port};
use crate::fos::room::Room;
use sanloom_api::view::LoginKind;

/// Columns of `portcfgshow` in a row.
const COLUMNS: usize = 16;

/// Settings of a port: name, and whether it is in force. Names without a condition are off.
fn settings(port: &Port) -> [(&'static str, &'static str); 9] {
    let on = |is_on| if is_on { "ON" } else { ".." };
    [
        ("Speed", "AN"),
        ("Trunk Port", "ON"),
        ("Long Distance", ".."),
        ("Disabled E_Port", ".."),
        ("Locked E_Port", ".."),
        ("ISL R_RDY Mode", ".."),
        ("RSCN Suppressed", ".."),
        ("Persistent Disable", on(port.disabled())),
        ("NPIV capability", "ON"),
    ]
}

/// `portcfgshow`: a table of all ports, or a list for each port that is named.
pub fn show(room: &mut Room<'_>, words: &[String]) -> Outcome {
    if !words.is_empty() {
        let blocks = chosen(room, words)?.into_iter().map(|port| {
            let mut text = format!("{:<26}{}\n", "Area Number:", port.number & 0xff);
            for (name, value) in settings(&port) {
                let value = match value {
                    "ON" => "ON",
                    "AN" => "AUTO",
                    _ => "OFF",
                };
                text += &format!("{:<26}{value}\n", format!("{name}:"));
            }
            text
        });
        return Ok((blocks.collect::<Vec<_>>().join("\n"), 0));
    }
    let (_, ports) = model::all(room)?;
    let blocks = ports.chunks(COLUMNS).map(|ports| {
        let row = |name: &str, value: &dyn Fn(&Port) -> String| {
            let cells: String = ports.iter().map(|port| format!("{:>4}", value(port))).collect();
            format!("{name:<22}{cells}\n")
        };
        let mut text = row("Ports of Slot 0", &|port| port.number.to_string());
        text += &format!("{}{}\n", "-".repeat(22), "+---".repeat(ports.len()));
        for (index, (name, _)) in ports.first().map(settings).into_iter().flatten().enumerate() {
            text += &row(name, &|port| settings(port)[index].1.to_owned());
        }
        text
    });
    Ok((blocks.collect::<Vec<_>>().join("\n"), 0))
}

/// `sfpshow`: the lab has no data of transceivers, so a port with a link has a plain one.
pub fn transceivers(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let is_single = !words.is_empty();
    let ports = every_or_chosen(room, words)?;
    let lines = ports.iter().map(|port| {
        let number = port.number;
        match (&port.row, is_single) {
            (None, _) => format!("Port {number:>2}: Media not installed\n"),
            (Some(row), true) => format!(
                "Port {number:>2}:\nIdentifier:  3    SFP\nConnector:   7    LC\nTransceiver: {}\nVendor Name: \
                 none\nSerial No:   none\n",
                row.rate
            ),
            (Some(row), false) => {
                format!("Port {number:>2}: id (sw) Vendor: none Serial No: none Speed: {}\n", row.rate)
            }
        }
    });
    Ok((lines.collect(), 0))
}

/// `portloginshow`: `fe` is a login by FLOGI, and `fd` one by FDISC.
pub fn logins(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let ports = chosen(room, words)?;
    let logins = room.logins()?.logins;
    let several = ports.len() > 1;
    let mut text = String::new();
    for port in &ports {
        let name = port.row.as_ref().map_or("", |row| &*row.port);
        if several {
            text += &format!("Port {}:\n", port.number);
        }
        text += &format!("Type  PID     World Wide Name        credit df_sz cos\n{}\n", "=".repeat(53));
        for login in logins.iter().filter(|login| !name.is_empty() && login.port == name) {
            let kind = if login.login == LoginKind::Flogi { "fe" } else { "fd" };
            let credit = port.row.as_ref().map_or(0, |row| row.credits[1]);
            text += &format!("  {kind}  {} {} {credit:>6} {:>5} {:>3}\n", login.port_id, login.port_name, 2_048, 8);
        }
    }
    Ok((text, 0))
}
