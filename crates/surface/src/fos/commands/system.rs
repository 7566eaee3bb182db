//! Commands about the switch as a machine: on, off, and the event log.

use super::Outcome;
use crate::fos::room::Room;
use crate::fos::{logging, system};

/// `switchdisable`: the same change as PATCH of `enabled-state` over REST.
pub fn disable(room: &mut Room<'_>, _: &[String]) -> Outcome {
    set_enabled(room, false)
}

/// `switchenable`.
pub fn enable(room: &mut Room<'_>, _: &[String]) -> Outcome {
    set_enabled(room, true)
}

fn set_enabled(room: &mut Room<'_>, enabled: bool) -> Outcome {
    system::set_enabled(room, enabled)?;
    Ok((String::new(), 0))
}

/// `errdump`.
pub fn error_dump(room: &mut Room<'_>, words: &[String]) -> Outcome {
    Ok((logging::dump(room, words)?, 0))
}

/// `errshow`. A switch waits for a key after each event; this one prints all of them.
pub fn error_show(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let text = logging::dump(room, words)?;
    let (version, events) = text.split_once("\n\n").unwrap_or((&text, ""));
    let events: Vec<String> = events.lines().map(|line| format!("{line}\n\n")).collect();
    Ok((format!("{version}\n\n{}", events.concat()), 0))
}
