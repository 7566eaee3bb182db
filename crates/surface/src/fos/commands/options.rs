//! Commands that set options of a switch. The fabric has no such option, except the idle time of
//! sessions: the value is kept, and printed again.

use super::{Outcome, usage};
use crate::fos::room::Room;
use crate::fos::seconds;

/// Longest idle time of a session in minutes.
const MAX_IDLE_MIN: u32 = 99_999;

fn option(room: &Room<'_>, name: &str) -> Option<String> {
    room.shared.lock().options.get(name).cloned()
}

fn set(room: &Room<'_>, name: &'static str, value: &str) {
    room.shared.lock().options.insert(name, value.to_owned());
}

/// `timeout [MINUTES]`. It applies to later logins.
pub fn timeout(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let word = match words {
        [] => {
            let minutes = room.shared.lock().idle.as_secs() / 60;
            return Ok((format!("Current IDLE Timeout is {minutes} minutes\n"), 0));
        }
        [word] => word,
        _ => return Err(usage()),
    };
    let minutes = word.parse::<u32>().ok().filter(|minutes| *minutes <= MAX_IDLE_MIN);
    let minutes = minutes.ok_or_else(usage)?;
    room.shared.lock().idle = seconds(minutes * 60);
    let text = format!(
        "IDLE Timeout Changed to {minutes} minutes\nThe modified IDLE Timeout will be in effect after NEXT login\n"
    );
    Ok((text, 0))
}

/// `iodshow`.
pub fn in_order(room: &mut Room<'_>, _: &[String]) -> Outcome {
    let is_set = option(room, "in-order").is_some_and(|value| value == "on");
    Ok((format!("IOD is {}set\n", if is_set { "" } else { "not " }), 0))
}

/// `iodset` and `iodreset`.
pub fn set_in_order(room: &mut Room<'_>, on: bool) -> Outcome {
    set(room, "in-order", if on { "on" } else { "off" });
    in_order(room, &[])
}

/// `creditrecovmode [--show | --cfg MODE]`.
pub fn credit_recovery(room: &mut Room<'_>, words: &[String]) -> Outcome {
    const MODES: [(&str, &str); 3] =
        [("off", "Disabled"), ("onLrOnly", "Enabled with LrOnly"), ("onLrThresh", "Enabled with LrThresh")];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["--show"] => {
            let mode = option(room, "credit-recovery").unwrap_or_else(|| "off".to_owned());
            let text = MODES.iter().find(|(name, _)| *name == mode).map_or("Disabled", |(_, text)| text);
            Ok((format!("Internal port credit recovery is {text}\n"), 0))
        }
        ["--cfg", mode] if MODES.iter().any(|(name, _)| *name == mode) => {
            set(room, "credit-recovery", mode);
            Ok((String::new(), 0))
        }
        _ => Err(usage()),
    }
}

/// `fabricprincipal [--show | --enable [-p PRIORITY] [-f] | --disable]`.
pub fn principal(room: &mut Room<'_>, words: &[String]) -> Outcome {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["--show"] => {
            let priority = option(room, "principal");
            let mode = if priority.is_some() { "Enable" } else { "Disable" };
            let priority = priority.unwrap_or_else(|| "0x0".to_owned());
            // Parsers read the priority up to the end of the output.
            let text = format!("Principal Selection Mode: {mode}\n\nPrincipal Switch Selection Priority: {priority}\n");
            Ok((text, 0))
        }
        ["--enable", ref rest @ ..] => {
            let rest: Vec<&str> = rest.iter().copied().filter(|word| *word != "-f").collect();
            let priority = match rest[..] {
                [] => 1,
                ["-p", number] => {
                    let hex = number.strip_prefix("0x").unwrap_or(number);
                    u8::from_str_radix(hex, 16).ok().filter(|number| *number > 0).ok_or_else(usage)?
                }
                _ => return Err(usage()),
            };
            set(room, "principal", &format!("0x{priority:x}"));
            Ok(("Principal Selection Mode enabled\n".to_owned(), 0))
        }
        ["--disable"] | ["--disable", "-f"] => {
            room.shared.lock().options.remove("principal");
            Ok(("Principal Selection Mode disabled\n".to_owned(), 0))
        }
        _ => Err(usage()),
    }
}
