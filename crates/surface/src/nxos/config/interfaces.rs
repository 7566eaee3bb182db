//! Changes of ports.

use crate::fos::ports::set_enabled;
use crate::nxos::pattern::Values;
use crate::nxos::reply::{Outcome, Problem, failed};
use crate::nxos::session::{Place, Placed, Session, done, interface, numbers};
use crate::nxos::settings::PortSettings;
use crate::nxos::show::interfaces::{gigabits, mode};

/// Longest description of a port in characters.
const MAX_DESCRIPTION: usize = 80;
/// Speeds that a port can have in Mbit/s.
const SPEEDS: [&str; 8] = ["1000", "2000", "4000", "8000", "10000", "16000", "32000", "64000"];

/// `interface NAMES`.
pub fn interfaces(session: &mut Session<'_>, values: &Values) -> Outcome {
    let names = values.text("TEXT");
    let invalid = || Problem::Syntax(format!("Invalid interface format: {names}\n"));
    let wanted = numbers(names).ok_or_else(invalid)?;
    let all = session.ports()?;
    if let Some(missing) = wanted.iter().find(|number| all.iter().all(|placed| placed.port.number != **number)) {
        return Err(failed(format_args!("% The switch has no interface {}", interface(*missing))));
    }
    session.place = Place::Interfaces(wanted);
    done()
}

/// Ports of the place.
fn chosen(session: &mut Session<'_>) -> Result<Vec<Placed>, Problem> {
    let Place::Interfaces(wanted) = session.place.clone() else { return Ok(Vec::new()) };
    Ok(session.ports()?.into_iter().filter(|placed| wanted.contains(&placed.port.number)).collect())
}

fn enable(session: &mut Session<'_>, enabled: bool) -> Outcome {
    let ports = chosen(session)?;
    set_enabled(&mut session.room, ports.iter().map(|placed| (&*placed.switch, &placed.port, enabled)))?;
    done()
}

/// `shutdown`.
pub fn shut(session: &mut Session<'_>, _: &Values) -> Outcome {
    enable(session, false)
}

/// `no shutdown`.
pub fn no_shut(session: &mut Session<'_>, _: &Values) -> Outcome {
    enable(session, true)
}

/// `switchport description TEXT`, and its removal.
pub fn description(session: &mut Session<'_>, values: &Values) -> Outcome {
    let text = values.get("TEXT");
    if text.is_some_and(|text| text.chars().count() > MAX_DESCRIPTION || text.chars().any(char::is_control)) {
        return Err(failed("% A description has at most 80 characters"));
    }
    for placed in chosen(session)? {
        let shared = session.room.shared.of(&placed.switch);
        let mut settings = shared.lock();
        match text {
            Some(text) => settings.names.insert(placed.port.key(), text.to_owned()),
            None => settings.names.remove(&placed.port.key()),
        };
    }
    done()
}

fn set(session: &mut Session<'_>, change: impl Fn(&mut PortSettings, &Placed) -> Result<(), Problem>) -> Outcome {
    for placed in chosen(session)? {
        let mut settings = session.nx.lock();
        change(settings.ports.entry(placed.port.number).or_default(), &placed)?;
    }
    done()
}

/// `switchport speed RATE`. The rate of a link is that of the lab, so a rate must agree with it.
pub fn speed(session: &mut Session<'_>, values: &Values) -> Outcome {
    let rate = values.text("TEXT").to_ascii_lowercase();
    let most = rate.strip_prefix("auto max ");
    if rate != "auto" && !SPEEDS.contains(&most.unwrap_or(&rate)) {
        return Err(Problem::Syntax("% Invalid command\n".to_owned()));
    }
    set(session, |settings, placed| {
        let own = gigabits(placed).map(|rate| rate * 1_000);
        let wanted = rate.rsplit(' ').next().and_then(|rate| rate.parse::<u64>().ok());
        let fits = match (wanted, own) {
            (Some(wanted), Some(own)) if most.is_some() => wanted >= own,
            (Some(wanted), Some(own)) => wanted == own,
            _ => true,
        };
        if !fits {
            let (name, own) = (interface(placed.port.number), own.unwrap_or_default());
            return Err(failed(format_args!("% The link of {name} has {own} Mbit/s in the lab; change it there")));
        }
        settings.speed = Some(rate.clone()).filter(|rate| rate != "auto");
        Ok(())
    })
}

/// `no switchport speed`.
pub fn no_speed(session: &mut Session<'_>, _: &Values) -> Outcome {
    set(session, |settings, _| {
        settings.speed = None;
        Ok(())
    })
}

/// `switchport mode MODE`. The mode of a port follows from its link.
pub fn port_mode(session: &mut Session<'_>, values: &Values) -> Outcome {
    let wanted = values.text("MODE").to_owned();
    if !["auto", "E", "F", "Fx"].contains(&&*wanted) {
        return Err(Problem::Syntax("% Invalid command\n".to_owned()));
    }
    set(session, |settings, placed| {
        let own = mode(placed);
        if own != "--" && wanted != "auto" && wanted.get(..1) != Some(own) {
            let name = interface(placed.port.number);
            return Err(failed(format_args!("% The link of {name} in the lab makes it an {own} port")));
        }
        settings.mode = Some(wanted.clone()).filter(|mode| mode != "auto");
        Ok(())
    })
}

/// `no switchport mode`.
pub fn no_mode(session: &mut Session<'_>, _: &Values) -> Outcome {
    set(session, |settings, _| {
        settings.mode = None;
        Ok(())
    })
}

/// `switchport trunk mode MODE`. It has no effect: a link carries one VSAN.
pub fn trunk_mode(session: &mut Session<'_>, values: &Values) -> Outcome {
    let wanted = values.text("MODE").to_ascii_lowercase();
    if !["on", "off", "auto"].contains(&&*wanted) {
        return Err(Problem::Syntax("% Invalid command\n".to_owned()));
    }
    set(session, |settings, _| {
        settings.trunk = Some(wanted.clone()).filter(|mode| mode != "off");
        Ok(())
    })
}

/// `no switchport trunk mode`.
pub fn no_trunk_mode(session: &mut Session<'_>, _: &Values) -> Outcome {
    set(session, |settings, _| {
        settings.trunk = None;
        Ok(())
    })
}
