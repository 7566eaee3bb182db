//! Action of a rule on a matching frame: [`Act`].

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Longest delay. It exceeds every reply timeout of a sender (R_A_TOV and time to retry).
const MAX_DELAY: Duration = Duration::from_secs(60);

/// Action on a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// The frame is discarded, and the sender of the request receives a reject with these codes:
    /// LS_RJT, CT reject, SW_RJT or BA_RJT. Frames that are not such requests do not match.
    Reject {
        /// Reason code.
        reason: u8,
        /// Reason explanation.
        explanation: u8,
    },
    /// The frame is discarded.
    Drop,
    /// The frame is forwarded after this time.
    Delay(Duration),
    /// One bit of the frame is inverted, so that its CRC is wrong.
    Corrupt,
}

impl Act {
    /// Name of the action in counters.
    pub fn name(self) -> &'static str {
        match self {
            Act::Reject { .. } => "reject",
            Act::Drop => "drop",
            Act::Delay(_) => "delay",
            Act::Corrupt => "corrupt",
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Reject { reason, explanation } => write!(f, "reject:{reason:02x}/{explanation:02x}"),
            Act::Delay(time) if time.subsec_nanos() == 0 => write!(f, "delay:{}s", time.as_secs()),
            Act::Delay(time) if time.subsec_micros() % 1_000 == 0 => write!(f, "delay:{}ms", time.as_millis()),
            Act::Delay(time) => write!(f, "delay:{}us", time.as_micros()),
            Act::Drop | Act::Corrupt => f.write_str(self.name()),
        }
    }
}

/// Parse error: the text is not an action.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is not an action on a frame: write reject:09/29 (reason and explanation), drop, delay:3s (at most 60s) or corrupt"
)]
pub struct BadAct(String);

impl FromStr for Act {
    type Err = BadAct;

    fn from_str(text: &str) -> Result<Act, BadAct> {
        let bad = || BadAct(text.chars().take(40).collect());
        let code = |digits: &str| match digits.len() {
            1 | 2 if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => u8::from_str_radix(digits, 16).ok(),
            _ => None,
        };
        match text.split_once(':') {
            None if text == "drop" => Ok(Act::Drop),
            None if text == "corrupt" => Ok(Act::Corrupt),
            Some(("reject", codes)) => {
                let (reason, explanation) = codes.split_once('/').ok_or_else(bad)?;
                let (reason, explanation) = code(reason).zip(code(explanation)).ok_or_else(bad)?;
                Ok(Act::Reject { reason, explanation })
            }
            Some(("delay", time)) => {
                let digits = time.bytes().take_while(u8::is_ascii_digit).count();
                let (number, unit) = time.split_at(digits);
                let number: u64 = number.parse().map_err(|_| bad())?;
                let unit_us = match unit {
                    "us" => 1,
                    "ms" => 1_000,
                    "s" => 1_000_000,
                    _ => return Err(bad()),
                };
                let time = Duration::from_micros(number.checked_mul(unit_us).ok_or_else(bad)?);
                Some(Act::Delay(time)).filter(|_| time <= MAX_DELAY).ok_or_else(bad)
            }
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_parsed_from_its_own_text() {
        for text in ["reject:09/29", "drop", "corrupt", "delay:3s", "delay:250ms", "delay:7us", "delay:60s"] {
            assert_eq!(text.parse::<Act>().unwrap().to_string(), text);
        }
        assert_eq!("reject:9/0".parse(), Ok(Act::Reject { reason: 9, explanation: 0 }));
        for wrong in [
            "",
            "reject",
            "reject:",
            "reject:09",
            "reject:109/29",
            "reject:+9/29",
            "reject:xx/29",
            "delay",
            "delay:3",
            "delay:s",
            "delay:61s",
            "delay:-1s",
            "delay:99999999999999999999s",
            "delay:18446744073709551615s",
            "drop:1",
            "Drop",
            "corrupt ",
        ] {
            let error = wrong.parse::<Act>().unwrap_err().to_string();
            assert!(error.contains("reject:09/29"), "{error}");
        }
    }
}
