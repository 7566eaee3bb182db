//! Parts of the switch: modules, features, its time of operation, transceivers.

use super::interfaces::chosen;
use super::rule;
use crate::fos::switches::{Date, PRODUCT};
use crate::nxos::pattern::Values;
use crate::nxos::reply::{Outcome, Shown, object, table};
use crate::nxos::session::{Session, interface};
use serde_json::json;

/// Features that are always enabled.
const FEATURES: [&str; 2] = ["npiv", "nxapi"];

/// `show module`: the switch has one slot.
pub fn modules(session: &mut Session<'_>, _: &Values) -> Outcome {
    let ports = session.ports()?.len();
    let (kind, model) = ("Fibre Channel ports of a laboratory", PRODUCT);
    let text = format!(
        "Mod  Ports  Module-Type                         Model              Status\n\
         ---  -----  ----------------------------------- ------------------ ----------\n\
         1    {ports:<6} {kind:<35} {model:<18} active *\n"
    );
    let row = json!({"modinf": 1, "ports": ports, "modtype": kind, "model": model, "status": "active *"});
    Ok(Shown::with(text, object([table("modinfo", vec![row])])))
}

/// `show feature`.
pub fn features(_: &mut Session<'_>, _: &Values) -> Outcome {
    let mut text = "Feature Name          Instance  State\n--------------------  --------  --------\n".to_owned();
    text.extend(FEATURES.iter().map(|name| format!("{name:<20}  {:<8}  enabled\n", 1)));
    let rows = FEATURES.iter().map(|name| {
        json!({
            "cfcFeatureCtrlName2": name,
            "cfcFeatureCtrlInstanceNum2": "1",
            "cfcFeatureCtrlOpStatus2": "enabled",
        })
    });
    Ok(Shown::with(text, object([table("cfcFeatureCtrlTable", rows.collect())])))
}

/// `show system uptime`. The fabric has one time of operation, so that of the kernel is the same.
pub fn uptime(session: &mut Session<'_>, _: &Values) -> Outcome {
    // The table of switches has the time since the start.
    session.vsans()?;
    let up = session.room.uptime_s.max(0.0) as u64;
    let start = Date::line(session.room.now.unix_s.saturating_sub(up));
    let [days, hours, minutes, seconds] = [up / 86_400, up / 3_600 % 24, up / 60 % 60, up % 60];
    let time = format!("{days} days, {hours} hours, {minutes} minutes, {seconds} seconds");
    let text = format!(
        "System start time:          {start}\nSystem uptime:              {time}\nKernel uptime:              {time}\n"
    );
    let body = json!({
        "sys_st_time": start,
        "sys_up_days": days,
        "sys_up_hrs": hours,
        "sys_up_mins": minutes,
        "sys_up_secs": seconds,
        "kn_up_days": days,
        "kn_up_hrs": hours,
        "kn_up_mins": minutes,
        "kn_up_secs": seconds,
    });
    Ok(Shown::with(text, body))
}

/// `show interface description`.
pub fn descriptions(session: &mut Session<'_>, _: &Values) -> Outcome {
    descriptions_of(session, None)
}

/// `show interface description`, of some ports.
pub fn descriptions_of(session: &mut Session<'_>, names: Option<&str>) -> Outcome {
    let mut text = format!("{}Interface       Description\n{}", rule(79), rule(79));
    let mut rows = Vec::new();
    for placed in chosen(session, names)? {
        let given = session.description(&placed).unwrap_or_else(|| "--".to_owned());
        let name = interface(placed.port.number);
        text += &format!("{name:<15} {given}\n");
        rows.push(json!({"interface": name, "description": given}));
    }
    Ok(Shown::with(text, object([table("interface", rows)])))
}

/// `show interface transceiver`.
pub fn transceivers(session: &mut Session<'_>, _: &Values) -> Outcome {
    transceivers_of(session, None)
}

/// `show interface transceiver`, of some ports. A port with a link has a plain transceiver.
pub fn transceivers_of(session: &mut Session<'_>, names: Option<&str>) -> Outcome {
    let (mut text, mut rows) = (String::new(), Vec::new());
    for placed in chosen(session, names)? {
        let name = interface(placed.port.number);
        match &placed.port.row {
            None => {
                text += &format!("{name} sfp is not present\n\n");
                rows.push(json!({"interface_sfp": name, "sfp": "not present"}));
            }
            Some(row) => {
                text +=
                    &format!("{name} sfp is present\n    Name is {PRODUCT}\n    Nominal bit rate is {}\n\n", row.rate);
                rows.push(json!({"interface_sfp": name, "sfp": "present", "name": PRODUCT, "nom_bitrate": row.rate}));
            }
        }
    }
    Ok(Shown::with(text, object([table("interface_trans", rows)])))
}
