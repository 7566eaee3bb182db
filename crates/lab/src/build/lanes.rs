//! Lanes of InfiniBand: arbitration tables, and the lane of each service level.

use super::iscsi::expanded;
use super::workloads::CONFLICT;
use crate::diagnostic::{Origin, Sink};
use crate::document::Budget;
use crate::element::Element;
use crate::{units, value};
use sanloom_fc::config::{LaneArbitration, LaneSettings, LaneWeight, MAX_DATA_LANES, SERVICE_LEVELS};

/// Returns the settings of a switch or of the subnet.
pub(super) fn settings(element: &Element<'_>, budget: &mut Budget, sink: &mut Sink) -> LaneSettings {
    let mut levels = [None; SERVICE_LEVELS];
    let limits = [SERVICE_LEVELS as u64 - 1, MAX_DATA_LANES.into()];
    for ((level, lane), origin) in pairs(element, "levels", ["service level", "lane"], limits, budget, sink) {
        let level_of = &mut levels[usize::from(level)];
        if level_of.is_some_and(|other| other != lane) {
            let reason = format!("service level {level} has two lanes");
            sink.error(CONFLICT, &origin, reason, "name each service level once");
        }
        *level_of = Some(lane);
    }
    LaneSettings { arbitration: arbitration(element, budget, sink), levels }
}

fn arbitration(element: &Element<'_>, budget: &mut Budget, sink: &mut Sink) -> Option<LaneArbitration> {
    let mut table = |key| {
        let limits = [u64::from(MAX_DATA_LANES) - 1, 255];
        let pairs = pairs(element, key, ["lane", "weight"], limits, budget, sink);
        pairs.into_iter().map(|((lane, weight), _)| LaneWeight { lane, weight }).collect()
    };
    let (high, low) = (table("arbitration.high"), table("arbitration.low"));
    element.has_table("arbitration").then(|| LaneArbitration {
        high,
        low: element.is_given("arbitration.low").then_some(low),
        limit: element.integer("arbitration.limit").unwrap_or(0),
    })
}

/// Returns the pairs of numbers of a key, such as `"0:64"`, whose parts have these names and
/// highest values.
fn pairs(
    element: &Element<'_>,
    key: &str,
    names: [&str; 2],
    limits: [u64; 2],
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<((u8, u8), Origin)> {
    let mut all = Vec::new();
    for (text, origin) in expanded(element, key, budget, sink) {
        let Some((first, second)) = text.split_once(':') else {
            let reason = format!("`{}` is not a {} and a {}", value::cut(&text), names[0], names[1]);
            sink.error(value::WRONG_TYPE, &origin, reason, "join both numbers with a colon, such as \"0:1\"");
            continue;
        };
        let first = number(first, names[0], limits[0], &origin, sink);
        let second = number(second, names[1], limits[1], &origin, sink);
        all.extend(first.zip(second).map(|pair| (pair, origin)));
    }
    all
}

fn number(text: &str, name: &str, limit: u64, origin: &Origin, sink: &mut Sink) -> Option<u8> {
    let found = text.parse::<u8>().ok().filter(|number| u64::from(*number) <= limit);
    if found.is_none() {
        let reason = format!("`{}` is not a {name} from 0 to {limit}", value::cut(text));
        sink.error(units::OUT_OF_RANGE, origin, reason, "choose a number in this range");
    }
    found
}
