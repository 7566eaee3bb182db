//! Commands about ports and links.

use super::{Outcome, usage, words};
use crate::fos::counters::{reset, since_reset};
use crate::fos::fault::Fault;
use crate::fos::ports::{self as model, Port};
use crate::fos::room::Room;
use crate::fos::switches::{bundles, controller, members};
use crate::fos::system::is_online;
use sanloom_api::view::{PortMode, PortRow, SwitchRow};
use std::collections::BTreeMap;

/// Speed as a switch shows it: `N16` for a negotiated one.
fn speed(port: &Port) -> String {
    let bits = port.row.as_ref().and_then(model::speed);
    bits.map_or_else(|| "--".to_owned(), |bits| format!("N{}", bits / 1_000_000_000))
}

fn address(own: &SwitchRow, port: &Port, bases: &BTreeMap<String, String>) -> String {
    let login = port.row.as_ref().and_then(|row| bases.get(&row.port));
    format!("{:06x}", model::address(own, port.number, login.map(String::as_str)))
}

/// `switchshow [-portname | -portcount]`.
pub fn switch_show(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let (own, ports) = model::all(room)?;
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        ["-portcount"] => return Ok((format!("ports = {}\n", ports.len()), 0)),
        ["-portname"] => {
            let mut text = "Index Port PortWWN                  Name\n".to_owned();
            text += &format!("{}\n", "=".repeat(50));
            for port in &ports {
                let wwn = &port.wwn;
                text += &format!("{:>4} {:>3}   {wwn:<23}  {}\n", port.number, port.number, port.name(room));
            }
            return Ok((text, 0));
        }
        _ => return Err(usage()),
    }
    let status = room.zone_status()?;
    let online = is_online(&own);
    let zoning = status.state.effective.map_or("OFF".to_owned(), |config| format!("ON ({config})"));
    let role = match (online, own.principal) {
        (true, true) => "Principal",
        (true, false) => "Subordinate",
        _ => "Disabled",
    };
    let fabric = own.vf_id.unwrap_or(128);
    let mut text = format!(
        "switchName:\t{}\nswitchType:\t170.0\nswitchState:\t{:<8} \nswitchMode:\tNative\nswitchRole:\t{role}\n\
         switchDomain:\t{}\nswitchId:\t{:06x}\nswitchWwn:\t{}\nzoning:\t\t{zoning}\nswitchBeacon:\tOFF\n\
         FC Router:\tOFF\nHIF Mode:\tOFF\nAllow XISL Use:\tOFF\n\
         LS Attributes:\t[FID: {fabric}, Base Switch: No, Default Switch: {}, Address Mode 0]\n\n",
        room.friendly_name(),
        if online { "Online" } else { "Offline" },
        own.domain.unwrap_or_default(),
        controller(own.domain),
        own.switch_name,
        if fabric == 128 { "Yes" } else { "No" },
    );
    text += "Index Port Address Media Speed       State   Proto\n";
    text += &format!("{}\n", "=".repeat(50));
    let mut logins: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let logged_in = room.logins()?.logins;
    let bases = model::bases(&logged_in);
    for login in logged_in {
        logins.entry(login.port).or_default().push(login.port_name);
    }
    let neighbours: Neighbours = (room.switches()?.into_iter())
        .map(|row| (room.shared.name_of(&row.switch), row))
        .map(|(name, row)| (row.switch, (row.switch_name, name)))
        .collect();
    let trunks = trunks(room)?;
    for port in &ports {
        let empty = Vec::new();
        let names = port.row.as_ref().and_then(|row| logins.get(&row.port)).unwrap_or(&empty);
        text += &format!(
            "{:>4} {:>3}   {}   {}    {:<4}\t  {:<9}   FC  {}\n",
            port.number,
            port.number,
            address(&own, port, &bases),
            if port.row.is_some() { "id" } else { "--" },
            speed(port),
            state(port),
            proto(port, names, &neighbours, &trunks),
        );
    }
    Ok((text, 0))
}

/// World-wide name and name for people of each switch.
type Neighbours = BTreeMap<String, (String, String)>;

fn state(port: &Port) -> &'static str {
    match &port.row {
        None => "No_Module",
        Some(row) if row.light => "Online",
        Some(_) if port.disabled() => "No_Sync",
        Some(_) => "No_Light",
    }
}

/// Master of each trunk port, by the name of the port.
fn trunks(room: &mut Room<'_>) -> Result<BTreeMap<String, u32>, Fault> {
    let number = |name: &str| name.rsplit_once(':').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
    let mut masters = BTreeMap::new();
    for isls in bundles(room)?.into_values().filter(|isls| isls.len() > 1) {
        let master = number(&isls[0].port);
        masters.extend(isls.into_iter().map(|isl| (isl.port, master)));
    }
    Ok(masters)
}

/// `trunkshow`: one group for each trunk; its first link is the master.
pub fn trunk_show(room: &mut Room<'_>, _: &[String]) -> Outcome {
    let number = |name: &str| name.rsplit_once(':').and_then(|(_, number)| number.parse::<u32>().ok()).unwrap_or(0);
    let switches: BTreeMap<String, SwitchRow> =
        room.switches()?.into_iter().map(|row| (row.switch.clone(), row)).collect();
    let mut text = String::new();
    let trunks = bundles(room)?.into_values().filter(|isls| isls.len() > 1);
    for (group, isls) in (1..).zip(trunks) {
        for (index, isl) in isls.iter().enumerate() {
            let far = isl.neighbour.rsplit_once(':').and_then(|(switch, _)| switches.get(switch));
            let (wwn, domain) = far.map_or(("", 0), |row| (&*row.switch_name, row.domain.unwrap_or_default()));
            let label = if index == 0 { format!("{group:>3}:") } else { "    ".to_owned() };
            let master = if index == 0 { " MASTER" } else { "" };
            let (near, far) = (number(&isl.port), number(&isl.neighbour));
            text += &format!("{label}{near:>3}->{far:>3} {wwn} {domain:>3} deskew 0{master}\n");
        }
    }
    match text.is_empty() {
        true => Ok(("No trunking links\n".to_owned(), 0)),
        false => Ok((text, 0)),
    }
}

fn proto(port: &Port, logins: &[String], neighbours: &Neighbours, trunks: &BTreeMap<String, u32>) -> String {
    if port.disabled() {
        return "Disabled (Persistent)".to_owned();
    }
    let Some(row) = &port.row else { return String::new() };
    match row.mode {
        PortMode::F => match logins {
            [] => "F-Port  ".to_owned(),
            [name] => format!("F-Port  {name} "),
            more => format!("F-Port  1 N Port + {} NPIV public ", more.len() - 1),
        },
        PortMode::E => {
            let switch = row.attached.rsplit_once(':').and_then(|(switch, _)| neighbours.get(switch));
            let (wwn, name) = switch.map_or(("", ""), |(wwn, name)| (&**wwn, &**name));
            match trunks.get(&row.port) {
                Some(master) if *master != port.number => format!("E-Port  (Trunk port, master is Port {master:>2} )"),
                Some(_) => format!("E-Port  {wwn} \"{name}\" (Trunk master)"),
                None => format!("E-Port  {wwn} \"{name}\""),
            }
        }
        PortMode::Isolated => format!("E-Port  segmented,({})", row.isolated.as_deref().unwrap_or_default()),
        PortMode::Down => String::new(),
    }
}

/// `islshow`.
pub fn isl_show(room: &mut Room<'_>, _: &[String]) -> Outcome {
    let rows: BTreeMap<String, SwitchRow> = room.switches()?.into_iter().map(|row| (row.switch.clone(), row)).collect();
    let trunks = trunks(room)?;
    let fabric = members(room)?.into_iter().find(|(row, _)| row.switch == room.switch);
    let split = |name: &str| name.rsplit_once(':').map(|(switch, port)| (switch.to_owned(), port.to_owned()));
    let mut lines = Vec::new();
    for isl in fabric.iter().flat_map(|(_, fabric)| &fabric.isls).filter(|isl| isl.state == "up") {
        let (Some((_, port)), Some((far, far_port))) = (split(&isl.port), split(&isl.neighbour)) else { continue };
        // A trunk has one line, that of its master.
        let master = trunks.get(&isl.port);
        if master.is_some_and(|master| master.to_string() != port) {
            continue;
        }
        let links = master.map_or(1, |master| trunks.values().filter(|other| *other == master).count());
        let digits: String = isl.rate.chars().take_while(char::is_ascii_digit).collect();
        let speed: u32 = digits.parse().unwrap_or_default();
        let (row, far) = (rows.get(&far), room.shared.name_of(&far));
        lines.push(format!(
            "{:>3}:{port:>3}->{far_port:>3} {} {:>3} {far:<22} sp: {speed:>2}.000G bw: {:>2}.000G {}\n",
            lines.len() + 1,
            row.map_or("", |row| &row.switch_name),
            row.and_then(|row| row.domain).unwrap_or_default(),
            speed * links as u32,
            if links > 1 { "TRUNK " } else { "" },
        ));
    }
    match lines.is_empty() {
        true => Ok(("No ISL found\n".to_owned(), 0)),
        false => Ok((lines.concat(), 0)),
    }
}

fn counters(room: &Room<'_>, port: &Port) -> BTreeMap<&'static str, u64> {
    let row = PortRow { number: port.number, ..port.row.clone().unwrap_or_default() };
    since_reset(room, &row)
}

/// `porterrshow`: two header lines, then plain integers in a fixed order.
pub fn errors(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let ports = every_or_chosen(room, words)?;
    let mut text = "          frames      enc    crc    crc    too    too    bad    enc   disc   link   loss   loss   \
                    frjt   fbsy    c3timeout    pcs    uncor\n"
        .to_owned();
    text += "       tx     rx      in    err    g_eof  shrt   long   eof     out   c3    fail    sync   sig                   \
             tx    rx     err    err\n";
    for port in &ports {
        let counted = counters(room, port);
        let value = |name: &str| counted.get(name).copied().unwrap_or_default();
        // Names without a counter cannot occur: a line here has neither encoding nor forward error
        // correction, light always carries words in synchronisation, and class 3 has no F_BSY.
        let columns = [
            "out-frames",
            "in-frames",
            "enc_in",
            "crc-errors",
            "in-crc-errors",
            "truncated-frames",
            "frames-too-long",
            "bad_eof",
            "enc_out",
            "class-3-discards",
            "link-failures",
            "loss_of_sync",
            "loss-of-signal",
            "frjt",
            "fbsy",
            "er_tx_c3_timeout",
            "er_rx_c3_timeout",
            "pcs_err",
            "uncor_err",
        ]
        .map(value);
        let columns: Vec<String> = columns.iter().map(|number| format!("{number:>6}")).collect();
        text += &format!("{:>3}: {}\n", port.number, columns.join(" "));
    }
    Ok((text, 0))
}

/// Ports that the arguments name, in the forms `3`, `0/3` and `1-4`.
pub fn chosen(room: &mut Room<'_>, words: &[String]) -> Result<Vec<Port>, Fault> {
    let words = match words {
        [option, rest @ ..] if option == "-i" => rest,
        words => words,
    };
    if words.is_empty() || words.iter().any(|word| word.starts_with('-')) {
        return Err(usage());
    }
    let numbers = words::ports(words).ok_or_else(usage)?;
    let (_, mut ports) = model::all(room)?;
    if let Some(number) = numbers.iter().find(|number| ports.iter().all(|port| port.number != **number)) {
        return Err(Fault::invalid(format!("Port {number} does not exist.")));
    }
    ports.retain(|port| numbers.contains(&port.number));
    Ok(ports)
}

/// All ports without arguments, or else those that the arguments name.
pub fn every_or_chosen(room: &mut Room<'_>, words: &[String]) -> Result<Vec<Port>, Fault> {
    if words.is_empty() { Ok(model::all(room)?.1) } else { chosen(room, words) }
}

/// `portstatsshow`: one block for each port; blocks are parted by an empty line.
pub fn statistics(room: &mut Room<'_>, arguments: &[String]) -> Outcome {
    let ports = chosen(room, arguments)?;
    let blocks = ports.iter().map(|port| {
        let counted = counters(room, port);
        let value = |name: &str| counted.get(name).copied().unwrap_or_default();
        let line = |name: &str, number: u64, text: &str| format!("{name:<24}{number:<20}{text}\n");
        let mut block = format!("port:  {}\n{}\n", port.number, "=".repeat(9));
        for (name, counter, text) in
            [("stat_wtx", "out-octets", "4-byte words transmitted"), ("stat_wrx", "in-octets", "4-byte words received")]
        {
            if let Some(bytes) = counted.get(counter) {
                block += &line(name, bytes / 4, text);
            }
        }
        block += &line("stat_ftx", value("out-frames"), "Frames transmitted");
        block += &line("stat_frx", value("in-frames"), "Frames received");
        block += &line("stat_c3_frx", value("class-3-frames"), "Class 3 frames received");
        for (name, counter, text) in [
            ("tim_txcrd_z", "tim_txcrd_z", "Time TX Credit Zero (2.5Us ticks)"),
            ("er_crc", "crc-errors", "Frames with CRC errors"),
            ("er_trunc", "truncated-frames", "Frames shorter than minimum"),
            ("er_toolong", "frames-too-long", "Frames longer than maximum"),
            ("er_rx_c3_timeout", "er_rx_c3_timeout", "Class 3 receive frames discarded due to timeout"),
            ("er_tx_c3_timeout", "er_tx_c3_timeout", "Class 3 transmit frames discarded due to timeout"),
            ("er_rx_c3_discards", "class3-in-discards", "Class 3 receive frames discarded"),
            ("er_crc_good_eof", "in-crc-errors", "Crc error with good eof"),
        ] {
            block += &line(name, value(counter), text);
        }
        block + &line("fec_cor_detected", 0, "Count of blocks that were corrected by FEC")
    });
    Ok((blocks.collect::<Vec<_>>().join("\n"), 0))
}

/// `portstatsclear`.
pub fn clear(room: &mut Room<'_>, arguments: &[String]) -> Outcome {
    let ports = chosen(room, arguments)?;
    ports.iter().for_each(|port| reset(room, port));
    Ok((String::new(), 0))
}

fn set_enabled(room: &mut Room<'_>, arguments: &[String], enabled: bool) -> Outcome {
    let (ports, switch) = (chosen(room, arguments)?, room.switch.clone());
    model::set_enabled(room, ports.iter().map(|port| (&*switch, port, enabled)))?;
    Ok((String::new(), 0))
}

/// `portdisable`.
pub fn disable(room: &mut Room<'_>, arguments: &[String]) -> Outcome {
    set_enabled(room, arguments, false)
}

/// `portenable`.
pub fn enable(room: &mut Room<'_>, arguments: &[String]) -> Outcome {
    set_enabled(room, arguments, true)
}

/// `portname`: without a name, prints the names.
pub fn name(room: &mut Room<'_>, arguments: &[String]) -> Outcome {
    let words = match arguments {
        [option, rest @ ..] if option == "-i" => rest,
        words => words,
    };
    let (which, name) = match words {
        [] if arguments.is_empty() => (None, None),
        [which] => (Some(which), None),
        [which, option, name] if option == "-n" => (Some(which), Some(name)),
        [which, name] if !name.starts_with('-') => (Some(which), Some(name)),
        _ => return Err(usage()),
    };
    let ports = every_or_chosen(room, which.map_or(&[], std::slice::from_ref))?;
    let Some(name) = name else {
        let lines = ports.iter().map(|port| format!("port {:>2}: {}\n", port.number, port.name(room)));
        return Ok((lines.collect(), 0));
    };
    if name.chars().count() > 128 || name.chars().any(|c| c.is_control() || c == ';') {
        return Err(Fault::invalid("The name of a port has at most 128 characters, without `;`."));
    }
    for port in ports {
        room.shared.lock().names.insert(port.key(), name.clone());
    }
    Ok((String::new(), 0))
}

/// `portshow`.
pub fn show(room: &mut Room<'_>, arguments: &[String]) -> Outcome {
    let own = room.own()?;
    let logins = room.logins()?.logins;
    let bases = model::bases(&logins);
    let mut text = String::new();
    for port in chosen(room, arguments)? {
        let row = port.row.clone().unwrap_or_default();
        let counted = counters(room, &port);
        let value = |name: &str| counted.get(name).copied().unwrap_or_default();
        let disabled = port.disabled();
        text += &format!(
            "portIndex: {:>3}\nportName: {}\nportHealth: {}\n\nAuthentication: None\nportDisableReason: {}\n\
             portCFlags: 0x{}\nportType:  18.0\nPOD Port: Port is licensed\nportState: {}\t{}   \nportPhys:  {}\n\
             portScn:   {}\n",
            port.number,
            port.name(room),
            if port.online() { "HEALTHY" } else { "OFFLINE" },
            if disabled { "Disabled by an operator" } else { "None" },
            if disabled { 0 } else { 1 },
            if port.online() { 1 } else { 2 },
            if port.online() { "Online" } else { "Offline" },
            state(&port),
            match row.mode {
                PortMode::F if port.online() => "32   F_Port    ",
                PortMode::E if port.online() => "16   E_Port    ",
                _ => "2    Offline   ",
            },
        );
        text += &format!(
            "portId:    {}\nportIfId:    4302{:04x}\nportWwn:   {}\nportWwn of device(s) connected:\n",
            address(&own, &port, &bases),
            port.number,
            port.wwn
        );
        let here: Vec<&str> =
            logins.iter().filter(|login| login.port == row.port).map(|login| &*login.port_name).collect();
        match here.is_empty() {
            true => text += "\tNone\n",
            false => here.iter().for_each(|name| text += &format!("\t{name}\n")),
        }
        let speed = port.row.as_ref().filter(|row| row.light).and_then(model::speed);
        let speed = speed.map_or_else(String::new, |bits| format!("N{}Gbps", bits / 1_000_000_000));
        text += &format!("Distance:  normal\nportSpeed: {speed}\n\n");
        text += &format!(
            "Frames sent: {}\nFrames received: {}\nDiscards: {}\n",
            value("out-frames"),
            value("in-frames"),
            value("class-3-discards")
        );
        for (name, counter) in [
            ("Link_failure", "link-failures"),
            ("Loss_of_sync", "loss_of_sync"),
            ("Loss_of_sig", "loss-of-signal"),
            ("Invalid_crc", "crc-errors"),
            ("Lr_in", "in-link-resets"),
            ("Lr_out", "out-link-resets"),
        ] {
            text += &format!("{:<14}{}\n", format!("{name}:"), value(counter));
        }
    }
    Ok((text, 0))
}
