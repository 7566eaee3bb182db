//! Ports.

use crate::fos::counters::counted;
use crate::fos::ports::speed;
use crate::nxos::pattern::Values;
use crate::nxos::reply::{Outcome, Problem, Shown, object, row, table};
use crate::nxos::session::{Placed, Session, interface, numbers};
use crate::nxos::show::rule;
use sanloom_api::view::{Dark, PortMode};
use serde_json::Value;

/// Speed of a port in Gbit/s.
pub fn gigabits(placed: &Placed) -> Option<u64> {
    placed.port.row.as_ref().and_then(speed).map(|bits| bits / 1_000_000_000)
}

/// Mode in which a port operates: `F`, `E` or `--`.
pub fn mode(placed: &Placed) -> &'static str {
    match placed.port.row.as_ref().filter(|_| placed.port.online()).map(|row| row.mode) {
        Some(PortMode::E) => "E",
        Some(PortMode::F) => "F",
        _ => "--",
    }
}

/// Word of the brief table, and reason of a port that is down.
fn state(placed: &Placed) -> (&'static str, Option<String>) {
    // NX-OS has no disabled switch; its ports show the nearest state.
    let has_switch_off = placed.port.row.as_ref().is_some_and(|row| row.dark == Some(Dark::SwitchDisabled));
    if placed.port.disabled() || has_switch_off {
        return ("down", Some("Administratively down".to_owned()));
    }
    let Some(row) = &placed.port.row else { return ("sfpAbsent", Some("SFP not present".to_owned())) };
    match &row.isolated {
        _ if placed.port.online() => ("up", None),
        Some(reason) => ("isolated", Some(format!("Isolation due to {reason}"))),
        _ if row.blocked => ("errDisabled", Some("Error disabled - duplicate port name".to_owned())),
        _ => ("notConnected", Some("Link failure or not-connected".to_owned())),
    }
}

/// Ports that a command names, or all.
pub fn chosen(session: &mut Session<'_>, names: Option<&str>) -> Result<Vec<Placed>, Problem> {
    let all = session.ports()?;
    let Some(names) = names else { return Ok(all) };
    let invalid = || Problem::Syntax(format!("Invalid interface format: {names}\n"));
    let wanted = numbers(names).ok_or_else(invalid)?;
    let found: Vec<Placed> = all.into_iter().filter(|placed| wanted.contains(&placed.port.number)).collect();
    if found.is_empty() { Err(invalid()) } else { Ok(found) }
}

/// `show interface brief`.
pub fn brief(session: &mut Session<'_>, _: &Values) -> Outcome {
    brief_of(session, None)
}

fn brief_of(session: &mut Session<'_>, names: Option<&str>) -> Outcome {
    let mut text = format!(
        "{}Interface  Vsan   Admin  Admin   Status          SFP    Oper  Oper   Port     Logical\n\
         \x20                 Mode   Trunk                          Mode  Speed  Channel   Type\n\
         \x20                        Mode                                 (Gbps)\n{}",
        rule(79),
        rule(79)
    );
    let mut rows = Vec::new();
    for placed in chosen(session, names)? {
        let settings = session.nx.lock().ports.get(&placed.port.number).cloned().unwrap_or_default();
        let (name, (status, _)) = (interface(placed.port.number), state(&placed));
        let (admin, trunk) = (settings.mode.as_deref().unwrap_or("auto"), settings.trunk.as_deref().unwrap_or("off"));
        let sfp = if placed.port.row.is_some() { "swl" } else { "--" };
        let rate = gigabits(&placed).filter(|_| placed.port.online()).map_or("--".to_owned(), |rate| rate.to_string());
        let mode = mode(&placed);
        let logical = match mode {
            "F" => "edge",
            "E" => "core",
            _ => "--",
        };
        let vsan = placed.vsan;
        text += &format!(
            "{name:<10} {vsan:<6} {admin:<6} {trunk:<7} {status:<15} {sfp:<6} {mode:<5} {rate:<6} {:<8} {logical}\n",
            "--"
        );
        let values: [(&str, Value); 10] = [
            ("interface", name.into()),
            ("vsan", vsan.into()),
            ("admin_mode", admin.into()),
            ("admin_trunk_mode", trunk.into()),
            ("status", status.into()),
            ("fcot_info", sfp.into()),
            ("oper_mode", mode.into()),
            ("oper_speed", rate.into()),
            ("port_channel", "--".into()),
            ("logical_type", logical.into()),
        ];
        rows.push(row(&values, []));
    }
    Ok(Shown::with(text, object([table("interface_brief_fc", rows)])))
}

/// `show interface`, of all ports or some.
pub fn detailed(session: &mut Session<'_>, values: &Values) -> Outcome {
    let names = values.get("TEXT");
    if let Some(names) = names.and_then(|names| names.strip_suffix(" brief")) {
        return brief_of(session, Some(names));
    }
    if let Some(names) = names.and_then(|names| names.strip_suffix(" description")) {
        return super::parts::descriptions_of(session, Some(names));
    }
    if let Some(names) = names.and_then(|names| names.strip_suffix(" transceiver")) {
        return super::parts::transceivers_of(session, Some(names));
    }
    if let Some(names) = names.and_then(|names| names.strip_suffix(" counters")) {
        return counters_of(session, Some(names));
    }
    let (mut text, mut rows) = (String::new(), Vec::new());
    for placed in chosen(session, names)? {
        let settings = session.nx.lock().ports.get(&placed.port.number).cloned().unwrap_or_default();
        let given = session.description(&placed);
        let (name, (_, reason)) = (interface(placed.port.number), state(&placed));
        let up = if placed.port.online() { "up" } else { "down" };
        let reason_text = reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
        let (admin, trunk) = (settings.mode.as_deref().unwrap_or("auto"), settings.trunk.as_deref().unwrap_or("off"));
        text += &format!("{name} is {up}{reason_text}\n");
        if let Some(given) = &given {
            text += &format!("    Port description is {given}\n");
        }
        text += "    Hardware is Fibre Channel\n";
        let number = |value: u64| Value::from(value);
        let mut values: Vec<(&str, Value)> = vec![
            ("interface", name.into()),
            ("state", up.into()),
            ("oper_port_state", up.into()),
            ("hardware", "Fibre Channel".into()),
            ("admin_mode", admin.into()),
            ("admin_trunk_mode", trunk.into()),
            ("oper_mode", mode(&placed).into()),
            ("port_vsan", placed.vsan.into()),
        ];
        values.extend(reason.map(|reason| ("state_info", reason.into())));
        values.extend(given.map(|given| ("desc", given.into())));
        text += &format!("    Port WWN is {}\n", placed.port.wwn);
        values.push(("port_wwn", placed.port.wwn.clone().into()));
        if let Some(row) = &placed.port.row {
            let counters = counted(row);
            let count = |name: &str| counters.get(name).copied().unwrap_or_default();
            let discards = count("class3-in-discards");
            text += &format!("    Admin port mode is {admin}, trunk mode is {trunk}\n");
            text += &format!("    Port mode is {}\n    Port vsan is {}\n", mode(&placed), placed.vsan);
            if let Some(rate) = gigabits(&placed) {
                text += &format!("    Speed is {rate} Gbps\n");
                values.push(("oper_speed", format!("{rate} Gbps").into()));
            }
            text += &format!("    Transmit B2B Credit is {}\n", row.credits[1]);
            text += &format!("    Transmit B2B Credit remaining is {}\n", row.credits[0]);
            let (received, sent) = (row.bytes_received.unwrap_or_default(), row.bytes_sent.unwrap_or_default());
            text += &format!("      {} frames input,{received} bytes\n", row.frames_received);
            text += &format!("        {discards} discards,0 errors\n        {} invalid CRC\n", count("crc-errors"));
            text += &format!("      {} frames output,{sent} bytes\n", row.frames_sent);
            text += &format!("        {} discards,0 errors\n", count("class3-out-discards"));
            values.extend([
                ("oper_txbbcredit", Value::from(row.credits[1])),
                ("tx_b2b_credit_remain", row.credits[0].into()),
                ("rx_frames", number(row.frames_received)),
                ("rx_bytes", number(received)),
                ("rx_discard_frames", number(discards)),
                ("rx_invalid_crc", number(count("crc-errors"))),
                ("rx_too_long_frames", number(count("frames-too-long"))),
                ("rx_too_short_frames", number(count("truncated-frames"))),
                ("tx_frames", number(row.frames_sent)),
                ("tx_bytes", number(sent)),
            ]);
        }
        text.push('\n');
        rows.push(row(&values, []));
    }
    Ok(Shown::with(text, object([table("interface", rows)])))
}

/// `show interface counters`.
pub fn counters(session: &mut Session<'_>, _: &Values) -> Outcome {
    counters_of(session, None)
}

fn counters_of(session: &mut Session<'_>, names: Option<&str>) -> Outcome {
    let (mut text, mut rows) = (String::new(), Vec::new());
    for placed in chosen(session, names)? {
        let Some(port) = &placed.port.row else { continue };
        let counted = counted(port);
        let count = |name: &str| counted.get(name).copied().unwrap_or_default();
        let name = interface(placed.port.number);
        let values: [(&str, u64); 15] = [
            ("rx_frames", count("in-frames")),
            ("rx_bytes", count("in-octets")),
            ("rx_discard_frames", count("class3-in-discards")),
            ("rx_invalid_crc", count("crc-errors")),
            ("rx_too_long_frames", count("frames-too-long")),
            ("rx_too_short_frames", count("truncated-frames")),
            ("tx_frames", count("out-frames")),
            ("tx_bytes", count("out-octets")),
            ("tx_discard_frames", count("class3-out-discards")),
            ("rx_lrr", count("in-link-resets")),
            ("tx_lrr", count("out-link-resets")),
            ("link_failures", count("link-failures")),
            ("sync_losses", 0),
            ("signal_losses", count("loss-of-signal")),
            ("tx_bb_credit_transitions_to_zero", count("bb-credit-zero")),
        ];
        let [rx, rx_bytes, rx_lost, crc, long, short, tx, tx_bytes, tx_lost, lr_in, lr_out, fail, sync, signal, zero] =
            values.map(|(_, value)| value);
        let errors = crc + long + short;
        text += &format!(
            "{name}\n    {rx} frames input, {rx_bytes} bytes\n      {rx} class-3 frames, {rx_bytes} bytes\n      \
             {rx_lost} discards, {errors} errors, {crc} CRC/FCS\n      0 unknown class, {long} too long, {short} too \
             short\n    {tx} frames output, {tx_bytes} bytes\n      {tx} class-3 frames, {tx_bytes} bytes\n      \
             {tx_lost} discards, 0 errors\n    0 input OLS, {lr_in} LRR, 0 NOS, 0 loop inits\n    0 output OLS, \
             {lr_out} LRR, 0 NOS, 0 loop inits\n    {fail} link failures, {sync} sync losses, {signal} signal \
             losses\n    {zero} Transmit B2B credit transitions to zero\n\n"
        );
        let own = values.map(|(name, value)| (name.to_owned(), Value::from(value)));
        rows.push(row(&[("interface", name.into())], own));
    }
    Ok(Shown::with(text, object([table("counters", rows)])))
}
