//! Faults of all planes, at random places and times.

use super::draw::{Draft, Feature, Link, Plane};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Draws faults, some of which affect the same link.
pub(super) fn draw(draft: &mut Draft) -> String {
    let mut text = String::new();
    let many = draft.dice.spread(1, 12);
    let focus = draft.dice.chance(1, 4).then(|| draft.dice.index(draft.links.len()));
    let mut is_moved = false;
    let mut raised = BTreeSet::new();
    let stop_ms = draft.stop_ms;
    for _ in 0..many {
        let at_us = draft.dice.range(0, stop_ms * 750);
        let ends = match draft.dice.chance(4, 5) {
            true => format!("until = \"{}us\"\n", draft.dice.range(at_us + 1, stop_ms * 1_000)),
            false => String::new(),
        };
        let place = match draft.dice.range(0, 5) {
            0 => switch(draft),
            1 => storage(draft),
            2 if draft.features.contains(&Feature::OutOfBand) => {
                // A second move of the same disk would wait for the first one.
                let moves = draft.dice.chance(1, 2) && !is_moved;
                is_moved |= moves;
                match moves {
                    true => {
                        let to = draft.dice.pick(&["metadisk1", "metadisk2"]);
                        let _ = write!(
                            text,
                            "[[fault]]\nat = \"{at_us}us\"\nkind = \"volume-move\"\nvolume = \"volume2\"\nto = \"{to}\"\n"
                        );
                        continue;
                    }
                    false => "kind = \"metadata-cut\"\nhost = \"mapped\"\n".to_owned(),
                }
            }
            _ => {
                let number = focus.unwrap_or_else(|| draft.dice.index(draft.links.len()));
                let link = draft.links[number].clone();
                of_link(draft, &link)
            }
        };
        let _ = write!(text, "[[fault]]\nat = \"{at_us}us\"\n{ends}{place}");
        // A link that came up cannot come up once more.
        let comes_up = ends.is_empty() && place.contains("link-down") && draft.dice.chance(1, 2);
        if comes_up && raised.insert(place.clone()) {
            let up_us = draft.dice.range(at_us + 1, stop_ms * 1_000 - 1);
            let _ = write!(text, "[[fault]]\nat = \"{up_us}us\"\n{}", place.replace("link-down", "link-up"));
        }
    }
    text
}

fn switch(draft: &mut Draft) -> String {
    let switches = draft.switches.clone();
    let (name, _) = draft.dice.pick(&switches);
    format!("kind = \"switch-reset\"\nswitch = \"{name}\"\n")
}

fn storage(draft: &mut Draft) -> String {
    let storage = draft.storage.clone();
    let name = draft.dice.pick(&storage);
    format!("kind = \"power-failure\"\nstorage = \"{name}\"\n")
}

fn of_link(draft: &mut Draft, link: &Link) -> String {
    let dice = &mut draft.dice;
    let name = &link.name;
    let kind = match link.plane {
        Plane::Fibre => dice.pick(&[
            "link-down",
            "port-down",
            "frame-loss",
            "crc-errors",
            "slow-receiver",
            "withheld-credits",
            "lost-r-rdy",
        ]),
        Plane::Virtual => "link-down",
        Plane::Ethernet => {
            dice.pick(&["link-down", "port-down", "frame-loss", "crc-errors", "reordering", "pause-storm"])
        }
        Plane::Infiniband => dice.pick(&[
            "link-down",
            "port-down",
            "frame-loss",
            "crc-errors",
            "lost-credit-updates",
            "withheld-credits",
        ]),
    };
    // A switch has no fault of an interface.
    let is_of_interface = kind == "pause-storm" || (kind == "withheld-credits" && link.plane == Plane::Infiniband);
    if is_of_interface && link.is_inner {
        return format!("kind = \"link-down\"\nlink = \"{name}\"\n");
    }
    let end = match dice.chance(1, 2) && !is_of_interface {
        true => &link.to,
        false => &link.from,
    };
    let probability = dice.pick(&["0.001", "0.01", "0.1", "0.5", "1.0"]);
    let direction = dice.pick(&["forward", "backward", "both"]);
    let keys = match kind {
        "link-down" => String::new(),
        "frame-loss" | "crc-errors" => format!("probability = {probability}\ndirection = \"{direction}\"\n"),
        "reordering" => {
            let delay = dice.spread(1, 2_000);
            format!("probability = {probability}\ndirection = \"{direction}\"\ndelay = \"{delay}us\"\n")
        }
        "slow-receiver" => format!("end = \"{end}\"\ndelay = \"{}us\"\n", dice.spread(1, 5_000)),
        "lost-r-rdy" | "lost-credit-updates" => format!("end = \"{end}\"\nprobability = {probability}\n"),
        "pause-storm" if dice.chance(1, 2) => format!("end = \"{end}\"\npriorities = [3]\n"),
        _ => format!("end = \"{end}\"\n"),
    };
    format!("kind = \"{kind}\"\nlink = \"{name}\"\n{keys}")
}
