//! Layout and mechanics: the block `dm_disk`.

use super::syntax::{Block, Entry, Reader, Value, short};
use super::{ImportError, Note};
use crate::disk::check::{MAX_CYLINDER, MAX_SKEW};
use crate::disk::config::{Mapping, SeekCurve, Zone};
use std::collections::BTreeSet;

/// Layout and mechanics of a disk.
pub(super) struct Layout {
    pub blocks: u64,
    pub surfaces: u32,
    pub mapping: Mapping,
    pub zones: Vec<Zone>,
    pub seek: SeekCurve,
    pub rpm: f64,
    pub head_switch_ms: f64,
    pub write_settle_ms: f64,
}

/// Parameters of a block, with a list of those that were read.
pub(super) struct Keys<'b> {
    pub block: &'b Block,
    used: BTreeSet<&'b str>,
}

impl<'b> Keys<'b> {
    pub fn new(block: &'b Block) -> Keys<'b> {
        Keys { block, used: BTreeSet::new() }
    }

    pub fn get(&mut self, key: &str) -> Option<&'b Entry> {
        let entry = self.block.entries.iter().find(|entry| entry.key == key)?;
        self.used.insert(&entry.key);
        Some(entry)
    }

    fn error(&self, key: &str, reason: &str) -> ImportError {
        let found = self.block.entries.iter().find(|entry| entry.key == key);
        let place = found.map_or_else(|| format!("block {} {}", self.block.kind, self.block.name), |e| e.place.clone());
        ImportError { place, reason: format!("`{key}` {reason}"), remedy: "correct the parameter".to_owned() }
    }

    /// Returns a number of a range, or the fallback if there is no such parameter.
    pub fn number(&mut self, key: &str, from: f64, to: f64, fallback: Option<f64>) -> Result<f64, ImportError> {
        let Some(entry) = self.get(key) else {
            return fallback.ok_or_else(|| self.error(key, "is missing"));
        };
        match entry.value.number() {
            Some(number) if (from..=to).contains(&number) => Ok(number),
            Some(number) => Err(self.error(key, &format!("is {number}; it must be from {from} to {to}"))),
            None => Err(self.error(key, "is not a number")),
        }
    }

    /// Returns a word in lower case; empty if there is no such parameter.
    pub fn word(&mut self, key: &str) -> String {
        match self.get(key).map(|entry| &entry.value) {
            Some(Value::Words(words)) => words.to_ascii_lowercase(),
            _ => String::new(),
        }
    }

    /// Returns the numbers of a list.
    fn numbers(&mut self, key: &str) -> Result<Vec<f64>, ImportError> {
        match self.get(key).map(|entry| &entry.value) {
            None => Ok(Vec::new()),
            Some(Value::List(list)) => list
                .iter()
                .map(|value| value.number().ok_or_else(|| self.error(key, "has an item that is not a number")))
                .collect(),
            Some(_) => Err(self.error(key, "is not a list")),
        }
    }

    /// Adds a note for each parameter that was not read and has not the neutral value 0.
    pub fn note_unused(&self, reasons: &[(&str, &str)], notes: &mut Vec<Note>) {
        for entry in &self.block.entries {
            if self.used.contains(entry.key.as_str()) || entry.value.number() == Some(0.0) {
                continue;
            }
            let value = match &entry.value {
                Value::Words(words) => short(words).to_owned(),
                Value::List(list) => format!("{} items", list.len()),
                Value::Block(block) => format!("block {}", block.kind),
            };
            let known = reasons.iter().find(|reason| reason.0 == entry.key).map(|reason| reason.1);
            let reason = known.unwrap_or("the model has no such parameter").to_owned();
            notes.push(Note { parameter: entry.key.clone(), value, reason });
        }
    }
}

/// Reads layout and mechanics.
pub(super) fn layout(model: &Block, reader: &mut Reader<'_>, notes: &mut Vec<Note>) -> Result<Layout, ImportError> {
    let mut keys = Keys::new(model);
    let surfaces = keys.number("Number of data surfaces", 1.0, 1024.0, None)? as u32;
    let blocks = keys.number("Block count", 1.0, 1e15, None)? as u64;
    keys.get("Number of cylinders");
    let inner = |keys: &mut Keys<'_>, key: &str, kind: &str| match keys.get(key).map(|entry| entry.value.clone()) {
        Some(Value::Block(block)) if block.kind == kind => Ok(block),
        Some(_) => Err(keys.error(key, &format!("is not a block {kind}; other models are not supported"))),
        None => Err(keys.error(key, "is missing")),
    };
    let layout = inner(&mut keys, "Layout Model", "dm_layout_g1")?;
    let mechanics = inner(&mut keys, "Mechanical Model", "dm_mech_g1")?;
    keys.note_unused(&[], notes);
    let (mapping, zones) = zones(&layout, surfaces, blocks, notes)?;

    let mut keys = Keys::new(&mechanics);
    let seek = seek(&mut keys, reader, notes)?;
    let rpm = keys.number("Rotation speed (in rpms)", 60.0, 1e6, None)?;
    let head_switch_ms = keys.number("Head switch time", 0.0, 1e6, None)?;
    let settle_ms = keys.number("Add. write settling delay", -1e6, 1e6, Some(0.0))?;
    if settle_ms < 0.0 {
        notes.push(Note {
            parameter: "Add. write settling delay".to_owned(),
            value: settle_ms.to_string(),
            reason: "a negative delay is not modelled; 0 was taken".to_owned(),
        });
    }
    if !["trackswitchplusrotation", ""].contains(&keys.word("Access time type").as_str()) {
        return Err(keys.error("Access time type", "is not trackSwitchPlusRotation; no other access is modelled"));
    }
    let of_seeks = "another form of the seek curve is in use";
    keys.note_unused(
        &[
            ("Single cylinder seek time", of_seeks),
            ("Average seek time", of_seeks),
            ("Full strobe seek time", of_seeks),
            ("HPL seek equation values", of_seeks),
            ("First ten seek times", of_seeks),
            ("Full seek curve", of_seeks),
            ("Percent error in rpms", "the speed of rotation has no error"),
        ],
        notes,
    );
    Ok(Layout { blocks, surfaces, mapping, zones, seek, rpm, head_switch_ms, write_settle_ms: settle_ms.max(0.0) })
}

/// Reads the zones, and reduces them by their spares and slipped blocks.
fn zones(
    layout: &Block,
    surfaces: u32,
    blocks: u64,
    notes: &mut Vec<Note>,
) -> Result<(Mapping, Vec<Zone>), ImportError> {
    let mut keys = Keys::new(layout);
    let mapping = match keys.number("LBN-to-PBN mapping scheme", 0.0, 100.0, Some(0.0))? as u32 {
        0 => Mapping::Normal,
        1 | 2 => Mapping::Serpentine,
        _ => return Err(keys.error("LBN-to-PBN mapping scheme", "is not 0, 1 or 2; no other order is modelled")),
    };
    let scheme = keys.number("Sparing scheme used", 0.0, 100.0, Some(0.0))? as u32;
    let range = keys.number("Rangesize for sparing", 0.0, 1e7, Some(1.0))?.max(1.0) as u64;
    let list = match keys.get("Zones").map(|entry| &entry.value) {
        Some(Value::List(list)) if !list.is_empty() => list,
        _ => return Err(keys.error("Zones", "is not a list of zones")),
    };
    let mut zones = Vec::with_capacity(list.len());
    let (mut slipped, mut defects) = (0, 0);
    for (index, value) in list.iter().enumerate() {
        let Value::Block(block) = value else { return Err(keys.error("Zones", "has an item that is not a block")) };
        let mut keys = Keys::new(block);
        let mut number = |key, to| keys.number(key, 0.0, to, None);
        let first_cylinder = number("First cylinder number", MAX_CYLINDER)? as u32;
        let last_cylinder = number("Last cylinder number", MAX_CYLINDER)? as u32;
        let blocks_per_track = number("Blocks per track", 1e6)? as u32;
        let first_block_offset = number("Offset of first block", MAX_SKEW)?.round() as u32;
        let track_skew = number("Skew for track switch", MAX_SKEW)?.round() as u32;
        let cylinder_skew = number("Skew for cylinder switch", MAX_SKEW)?.round() as u32;
        let empty_blocks = number("Empty space at zone front", 1e15)? as u64;
        let spares = keys.number("Number of spares", 0.0, 1e15, Some(0.0))? as u64;
        let slips = keys.numbers("slips")?;
        defects += keys.numbers("defects")?.len();
        slipped += slips.len();
        keys.note_unused(&[], notes);
        let cylinders = u64::from(last_cylinder.saturating_sub(first_cylinder)) + 1;
        let per_track = u64::from(blocks_per_track);
        let all = cylinders * u64::from(surfaces) * per_track;
        let is_last = index + 1 == list.len();
        let mut zone = Zone {
            first_cylinder,
            last_cylinder,
            blocks_per_track,
            first_block_offset,
            track_skew,
            cylinder_skew,
            empty_blocks,
            spare_blocks: 0,
            spare_blocks_per_track: 0,
            spare_blocks_per_cylinder: 0,
        };
        match scheme {
            0 => {}
            1 | 11 => zone.spare_blocks = spares.saturating_mul(per_track),
            2 | 4 => zone.spare_blocks_per_cylinder = spares.min(1 << 30) as u32,
            3 => zone.spare_blocks_per_track = spares.min(1 << 30) as u32,
            // The model has no spares in front of a cylinder, so these are behind it.
            5 | 6 => zone.spare_blocks_per_cylinder = spares.min(1 << 30) as u32,
            7 if is_last => zone.spare_blocks = spares,
            7 => {}
            8 => zone.spare_blocks = spares.saturating_mul(cylinders.div_ceil(range)),
            _ => zone.spare_blocks = spares,
        }
        if matches!(scheme, 1 | 9 | 11) {
            // A slipped block moves all blocks behind it to the next one. Slips in the first half
            // of a zone count as empty blocks in front of it. A scheme of tracks slips tracks.
            let unit = if matches!(scheme, 1 | 11) { per_track } else { 1 };
            let middle = (all / unit) as f64 / 2.0;
            let early = slips.iter().filter(|slip| **slip < middle).count() as u64;
            let taken = if scheme == 9 { slips.len() as u64 } else { 0 };
            zone.empty_blocks += early * unit;
            zone.spare_blocks = zone.spare_blocks.saturating_add(taken).saturating_sub(early * unit);
        }
        zones.push(zone);
    }
    keys.note_unused(&[], notes);
    fit(&mut zones, surfaces, blocks);
    let mut note = |parameter: &str, value: usize, reason: &str| {
        if value > 0 {
            let (parameter, value) = (parameter.to_owned(), format!("{value} blocks"));
            notes.push(Note { parameter, value, reason: reason.to_owned() });
        }
    };
    note("slips", slipped, "only their number in each half of a zone is used, not their positions");
    note("defects", defects, "the medium of the model has no defects");
    if matches!(scheme, 5 | 6) {
        note("Sparing scheme used", scheme as usize, "spares are behind a cylinder, not in front of it");
    }
    Ok((mapping, zones))
}

/// Reduces the spare blocks if the zones would hold too few blocks, from the last zone on.
fn fit(zones: &mut [Zone], surfaces: u32, blocks: u64) {
    let held: u64 = zones.iter().map(|zone| zone.data_blocks(surfaces).unwrap_or(0)).sum();
    let mut missing = blocks.saturating_sub(held);
    for zone in zones.iter_mut().rev() {
        let taken = missing.min(zone.spare_blocks);
        zone.spare_blocks -= taken;
        missing -= taken;
    }
}

fn seek(keys: &mut Keys<'_>, reader: &mut Reader<'_>, notes: &mut Vec<Note>) -> Result<SeekCurve, ImportError> {
    let kind = keys.word("Seek type");
    let ms = |keys: &mut Keys<'_>, key| keys.number(key, 0.0, 1e6, None);
    match kind.as_str() {
        "linear" | "curve" | "threepoint" | "constant" => {
            let single_ms = ms(keys, "Single cylinder seek time")?;
            if kind == "constant" {
                return Ok(SeekCurve::Linear { single_ms, full_ms: single_ms });
            }
            let full_ms = ms(keys, "Full strobe seek time")?;
            if kind == "linear" {
                return Ok(SeekCurve::Linear { single_ms, full_ms });
            }
            Ok(SeekCurve::ThreePoint { single_ms, average_ms: ms(keys, "Average seek time")?, full_ms })
        }
        "hpl" | "hplplus10" => {
            let values = keys.numbers("HPL seek equation values")?;
            let [boundary, short_constant_ms, short_factor_ms, long_constant_ms, long_factor_ms, one] = values[..]
            else {
                return Err(keys.error("HPL seek equation values", "does not have six numbers"));
            };
            let mut first_ms = match kind.as_str() {
                "hpl" => Vec::new(),
                _ => keys.numbers("First ten seek times")?,
            };
            if one >= 0.0 && first_ms.is_empty() {
                first_ms.push(one);
            }
            Ok(SeekCurve::SquareRootThenLinear {
                boundary_cylinders: boundary.clamp(0.0, MAX_CYLINDER) as u32,
                short_constant_ms,
                short_factor_ms,
                long_constant_ms,
                long_factor_ms,
                first_ms: first_ms.into(),
            })
        }
        "extracted" => {
            let file = match keys.get("Full seek curve").map(|entry| &entry.value) {
                Some(Value::Words(file)) => file.clone(),
                _ => return Err(keys.error("Full seek curve", "is not the name of a file")),
            };
            let text = reader.text(&file, &format!("Full seek curve = {}", short(&file)))?;
            points(&file, &text, notes)
        }
        _ => Err(keys.error(
            "Seek type",
            "is not linear, curve, constant, hpl, hplplus10 or extracted; no other curve is modelled",
        )),
    }
}

/// Reads a `.seek` file: a first line with the number of points, then distance and time of each.
fn points(file: &str, text: &str, notes: &mut Vec<Note>) -> Result<SeekCurve, ImportError> {
    let mut points: Vec<(u32, f64)> = Vec::new();
    for (line, content) in text.lines().enumerate() {
        let content = content.split('#').next().unwrap_or("").trim();
        if content.is_empty() || content.starts_with("Seek distances measured") {
            continue;
        }
        let mut columns = content.split([',', ' ', '\t', ':']).filter(|column| !column.is_empty());
        let pair = columns.next().and_then(|x| x.parse::<f64>().ok()).zip(columns.next().and_then(|y| y.parse().ok()));
        let valid = pair.filter(|(x, ms): &(f64, f64)| (0.0..=MAX_CYLINDER).contains(x) && (0.0..=1e6).contains(ms));
        let Some((x, ms)) = valid else {
            return Err(ImportError {
                place: format!("{file}:{}", line + 1),
                reason: format!("`{}` is not a distance in cylinders and a time in ms", short(content)),
                remedy: "write a line such as 100, 2.145".to_owned(),
            });
        };
        points.push((x as u32, ms));
    }
    points.sort_by_key(|point| point.0);
    let read = points.len();
    points.dedup_by_key(|point| point.0);
    // A seek of 0 cylinders takes no time in the model.
    points.retain(|point| point.0 > 0);
    if points.len() < read {
        notes.push(Note {
            parameter: "Full seek curve".to_owned(),
            value: format!("{} points", read - points.len()),
            reason: "a distance of 0, or a distance that is there twice".to_owned(),
        });
    }
    if points.is_empty() {
        return Err(ImportError {
            place: file.to_owned(),
            reason: "the file has no seek points".to_owned(),
            remedy: "write a line such as 100, 2.145 for each measured distance".to_owned(),
        });
    }
    Ok(SeekCurve::Table { points: points.into() })
}
