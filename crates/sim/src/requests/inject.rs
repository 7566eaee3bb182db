//! Requests that inject faults into the frames of a port, in the language of `api::inject`.

use super::{Place, port_named};
use crate::net::injection::Damage;
use crate::world::World;
use crate::world::operator::{self, Operator};
use sanloom_api::inject::{Act, Field, Matcher, RuleRow, RulesView};

/// Maximum number of rules.
const MAX_RULES: usize = 256;

/// Adds a rule.
pub(super) fn add(world: &mut World, row: RuleRow) -> Result<(), String> {
    let place = port_named(world, &row.port)?;
    if world.lab.links[usize::from(place.link)].fcoe.is_some() {
        return Err(format!(
            "the frames of `{}` travel over Ethernet; name a port of Fibre Channel, or use a [[fault]] of the Ethernet link",
            row.port
        ));
    }
    let matcher: Matcher = row.matches.parse().map_err(|bad| format!("{bad}"))?;
    let act: Act = row.act.parse().map_err(|bad| format!("{bad}"))?;
    let damage = match act {
        Act::Drop => Damage::Lost,
        Act::Corrupt => Damage::Corrupt,
        Act::Reject { .. } => {
            return Err("the switches of a simulation reject nothing on request; use drop or corrupt, or `sanloom up` without --simulated".to_owned());
        }
        Act::Delay(_) => {
            return Err("frames of a simulated line keep their order, so none is delayed alone; use drop or corrupt, or `sanloom up` without --simulated".to_owned());
        }
    };
    if uses(&matcher, Field::Parameter) {
        return Err(
            "a simulation knows no `parameter` of frames on a line; select frames by seq_cnt or length".to_owned()
        );
    }
    if rules(world).rules.len() >= MAX_RULES {
        return Err(format!("there are {MAX_RULES} rules, which is the maximum; remove some with `--clear`"));
    }
    let port = canonical(world, &place);
    operator::inject(world, (place.link, place.end), RuleRow { act: act.to_string(), port, ..row }, matcher, damage);
    Ok(())
}

/// Removes the rules of a port, or all. Returns the rules before.
pub(super) fn clear(world: &mut World, port: Option<&str>) -> Result<RulesView, String> {
    let port = port.map(|port| port_named(world, port)).transpose()?.map(|place| canonical(world, &place));
    let before = rules(world);
    operator::clear_injections(world, port.as_deref());
    Ok(before)
}

/// Returns the name of a port in the list of rules.
fn canonical(world: &World, place: &Place) -> String {
    format!("{}:{}", world.lab.switches[usize::from(place.switch)].name, place.port)
}

fn rules(world: &World) -> RulesView {
    operator::state(world).map(Operator::rules).unwrap_or_default()
}

fn uses(matcher: &Matcher, field: Field) -> bool {
    match matcher {
        Matcher::All(list) | Matcher::Any(list) => list.iter().any(|one| uses(one, field)),
        Matcher::Not(one) => uses(one, field),
        Matcher::Is(comparison) => comparison.field == field,
    }
}
