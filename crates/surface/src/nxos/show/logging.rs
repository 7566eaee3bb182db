//! The event log as a switch with NX-OS shows it.
//!
//! A line has the time, the name of the switch and the message as `%FACILITY-SEVERITY-MNEMONIC`.
//! Links and logins have the messages of a switch. All others have the identifier of the event log
//! as their mnemonic, because NX-OS has no message with the same meaning.

use super::super::pattern::Values;
use super::super::reply::{Outcome, Shown, failed};
use super::super::session::{Session, interface};
use super::system::host_name;
use crate::fos::switches::Date;
use sanloom_api::view::{EventRow, Severity};

/// `show logging logfile` and `show logging last NUMBER`. The output has no structure.
pub fn log_file(session: &mut Session<'_>, values: &Values) -> Outcome {
    let most = match values.get("NUMBER") {
        None => usize::MAX,
        Some(number) => number.parse().map_err(|_| failed("% Invalid number"))?,
    };
    let (host, now_s) = (host_name(session), session.room.now.unix_s);
    let mut rows = Vec::new();
    for (vsan, _) in session.vsans()? {
        session.select(vsan)?;
        rows.extend(session.room.events()?.events.into_iter().map(|row| (vsan, row)));
    }
    session.enter_home();
    rows.sort_by_key(|(_, row)| row.sequence);
    let first = rows.len().saturating_sub(most);
    Ok(Shown::text(rows[first..].iter().map(|(vsan, row)| line(row, *vsan, &host, now_s)).collect::<String>()))
}

/// Line of an event. An event without a time of day has the current one.
fn line(row: &EventRow, vsan: u16, host: &str, now_s: u64) -> String {
    let date = Date::of(row.unix_s.map_or(now_s, |unix_s| unix_s.max(0.0) as u64));
    let Date { year, day, hour, minute, second, .. } = date;
    let month = date.month_name();
    let times = if row.count > 1 { format!(" ({} times)", row.count) } else { String::new() };
    let message = message(row, vsan);
    format!("{year} {month} {day:>2} {hour:02}:{minute:02}:{second:02} {host} {message}{times}\n")
}

fn message(row: &EventRow, vsan: u16) -> String {
    let number = row.port.rsplit_once(':').and_then(|(_, number)| number.parse().ok());
    let port = number.map(interface).unwrap_or_default();
    let of_port = |name: &str, state: &str| format!("%PORT-5-{name}: %$VSAN {vsan}%$ Interface {port} is {state}");
    match &*row.id {
        "PORT-1001" => of_port("IF_UP", "up"),
        "PORT-1002" => of_port("IF_DOWN_LINK_FAILURE", "down (Link failure)"),
        "PORT-1004" => of_port("IF_DOWN_ADMIN_DOWN", "down (Administratively down)"),
        "SEC-1193" => {
            let parts =
                row.text.strip_prefix("Login failure attempt via ").and_then(|rest| rest.split_once(". IP Addr: "));
            let (place, address) = parts.unwrap_or_default();
            format!("%AUTHPRIV-3-SYSTEM_MSG: pam_aaa:Authentication failed from {address} - {place}")
        }
        id => {
            let severity = match row.severity {
                Severity::Critical => 2,
                Severity::Error => 3,
                Severity::Warning => 4,
                Severity::Info => 6,
            };
            let (facility, mnemonic) = (id.split('-').next().unwrap_or_default(), id.replace('-', "_"));
            format!("%{facility}-{severity}-{mnemonic}: %$VSAN {vsan}%$ {}", row.text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_shape_of_a_recorded_log() {
        let row = |id: &str, severity, text: &str| EventRow {
            id: id.to_owned(),
            severity,
            text: text.to_owned(),
            port: "sw1:4".to_owned(),
            unix_s: Some(1_774_604_764.0),
            count: 1,
            ..EventRow::default()
        };
        let of = |row: EventRow| line(&row, 10, "sw1", 0);
        let down = of(row("PORT-1002", Severity::Warning, "The link of port 4 is down."));
        let expected = "2026 Mar 27 09:46:04 sw1 %PORT-5-IF_DOWN_LINK_FAILURE: %$VSAN 10%$ Interface fc1/5 is down (Link failure)\n";
        assert_eq!(down, expected);
        let refused = row("SEC-1193", Severity::Warning, "Login failure attempt via SSH. IP Addr: 172.18.8.191");
        let refused = of(EventRow { count: 3, unix_s: None, ..refused });
        assert_eq!(
            refused,
            "1970 Jan  1 00:00:00 sw1 %AUTHPRIV-3-SYSTEM_MSG: pam_aaa:Authentication failed from 172.18.8.191 - SSH (3 times)\n"
        );
        let up = of(row("PORT-1001", Severity::Info, ""));
        assert!(up.ends_with("sw1 %PORT-5-IF_UP: %$VSAN 10%$ Interface fc1/5 is up\n"), "{up}");
        let shut = of(row("PORT-1004", Severity::Info, ""));
        assert!(
            shut.ends_with(
                " %PORT-5-IF_DOWN_ADMIN_DOWN: %$VSAN 10%$ Interface fc1/5 is down (Administratively down)\n"
            )
        );
        let other = of(row("FABR-1006", Severity::Error, "The switch has lost its domain."));
        assert!(other.ends_with(" sw1 %FABR-3-FABR_1006: %$VSAN 10%$ The switch has lost its domain.\n"), "{other}");
    }
}
