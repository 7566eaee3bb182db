//! The grid of a sweep: keys with their values, points, and the shard to simulate.

use sanloom_api::results::Setting;
use sanloom_console::hash::Fnv;
use sanloom_lab::Override;

/// A key and its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    key: String,
    values: Vec<String>,
}

/// One of several equal parts of the grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// From 0.
    index: u64,
    count: u64,
}

/// All combinations of the values of several keys. Point 0 has the first value of each; the last
/// key changes fastest.
pub struct Grid {
    axes: Vec<Axis>,
    shard: Shard,
    size: u64,
}

/// Maximum number of points; more indicate a mistyped command.
const MAX_POINTS: u64 = 1_000_000;

/// Parses `key=a,b,c`. Commas in quotes, brackets or braces do not separate.
///
/// # Errors
/// The key or a value is missing, or a value occurs twice.
pub fn parse_axis(argument: &str) -> Result<Axis, String> {
    let whole = Override::parse(argument)
        .filter(|set| !set.key.is_empty())
        .ok_or("write it as key=a,b,c, for example workload.reads.depth=1,2,4")?;
    let values = split(&whole.value);
    if values.iter().any(String::is_empty) {
        return Err("a value is empty; write it as key=a,b,c".into());
    }
    if let Some(twice) = values.iter().enumerate().find(|(i, value)| values[..*i].contains(value)) {
        return Err(format!("the value {} occurs twice", twice.1));
    }
    Ok(Axis { key: whole.key, values })
}

/// Parses `i/n`, with i from 1 to n.
///
/// # Errors
/// The text is not a valid shard.
pub fn parse_shard(argument: &str) -> Result<Shard, String> {
    let numbers = argument
        .split_once('/')
        .and_then(|(index, count)| Some((index.trim().parse::<u64>().ok()?, count.trim().parse::<u64>().ok()?)));
    match numbers {
        Some((index, count)) if (1..=count).contains(&index) => Ok(Shard { index: index - 1, count }),
        _ => Err("write it as i/n with i from 1 to n, for example 2/4".into()),
    }
}

fn split(values: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut depth, mut quote) = (0_u32, None);
    for c in values.chars() {
        if c == ',' && depth == 0 && quote.is_none() {
            parts.push(String::new());
            continue;
        }
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            ('[' | '{' | '(', None) => depth += 1,
            (']' | '}' | ')', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

impl Axis {
    /// Returns the argument of `--set`.
    pub fn argument(&self) -> String {
        format!("{}={}", self.key, self.values.join(","))
    }
}

impl Grid {
    /// Returns the combinations of `axes`; only those of `shard` are simulated.
    pub fn new(axes: Vec<Axis>, shard: Option<Shard>) -> Grid {
        let size = axes.iter().fold(1_u64, |size, axis| size.saturating_mul(axis.values.len() as u64));
        let shard = shard.unwrap_or(Shard { index: 0, count: 1 });
        Grid { axes, shard, size }
    }

    /// Returns the number of points if it exceeds the maximum.
    pub fn too_large(&self) -> Option<u64> {
        (self.size > MAX_POINTS).then_some(self.size)
    }

    /// Returns the points of the shard, in order. Neighbours belong to different shards, because
    /// neighbours have similar cost.
    pub fn points(&self) -> impl Iterator<Item = u64> + use<> {
        let shard = self.shard;
        (0..self.size).filter(move |point| point % shard.count == shard.index)
    }

    /// Returns whether a point belongs to the grid, in any shard.
    pub fn contains(&self, point: u64) -> bool {
        point < self.size
    }

    /// Returns the value of each key at a point.
    pub fn settings(&self, point: u64) -> Vec<Setting> {
        let mut rest = point;
        let mut settings: Vec<Setting> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let count = axis.values.len() as u64;
                let value = axis.values[(rest % count) as usize].clone();
                rest /= count;
                Setting { key: axis.key.clone(), value }
            })
            .collect();
        settings.reverse();
        settings
    }

    /// Returns the values of a point as overrides of the lab.
    pub fn overrides(&self, point: u64) -> Vec<Override> {
        self.settings(point).into_iter().map(|setting| Override { key: setting.key, value: setting.value }).collect()
    }

    /// Formats the values of a point for a message.
    pub fn describe(&self, point: u64) -> String {
        let settings: Vec<String> =
            self.settings(point).iter().map(|setting| format!("{}={}", setting.key, setting.value)).collect();
        settings.join(", ")
    }

    /// Returns a hash of everything that decides the content of the rows. The shard does not.
    pub fn id(&self, lab_text: &str, metrics: &[String], replications: u32) -> String {
        let mut hash = Fnv::new();
        hash.add(env!("CARGO_PKG_VERSION"));
        hash.add(lab_text);
        for axis in &self.axes {
            hash.add(&axis.key);
            for value in &axis.values {
                hash.add(value);
            }
            hash.add("");
        }
        for metric in metrics {
            hash.add(metric);
        }
        if replications > 1 {
            hash.add(&replications.to_string());
        }
        hash.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(axes: &[&str], shard: Option<&str>) -> Grid {
        let axes = axes.iter().filter_map(|axis| parse_axis(axis).ok()).collect();
        Grid::new(axes, shard.and_then(|shard| parse_shard(shard).ok()))
    }

    #[test]
    fn the_last_key_changes_fastest() {
        let grid = grid(&["a=1,2", "b=x,y,z"], None);
        let points: Vec<String> = grid.points().map(|point| grid.describe(point)).collect();
        assert_eq!(points, ["a=1, b=x", "a=1, b=y", "a=1, b=z", "a=2, b=x", "a=2, b=y", "a=2, b=z"]);
    }

    #[test]
    fn commas_in_brackets_and_quotes_belong_to_a_value() {
        let axis = parse_axis("w.size={ \"4KiB\" = 0.5, \"8KiB\" = 0.5 },\"a,b\",4KiB");
        let values = axis.map(|axis| axis.values);
        assert_eq!(values, Ok(vec!["{ \"4KiB\" = 0.5, \"8KiB\" = 0.5 }".into(), "\"a,b\"".into(), "4KiB".into()]));
    }

    #[test]
    fn rejects_empty_and_repeated_values() {
        assert!(parse_axis("a=1,,2").is_err());
        assert!(parse_axis("a=1,1").is_err());
        assert!(parse_axis("a").is_err());
        assert!(parse_axis("=1").is_err());
    }

    #[test]
    fn shards_are_a_partition() {
        let whole: Vec<u64> = grid(&["a=1,2,3", "b=1,2,3"], None).points().collect();
        let mut union: Vec<u64> = ["1/4", "2/4", "3/4", "4/4"]
            .iter()
            .flat_map(|shard| grid(&["a=1,2,3", "b=1,2,3"], Some(shard)).points())
            .collect();
        union.sort_unstable();
        assert_eq!(union, whole);
    }

    #[test]
    fn rejects_a_shard_outside_of_its_range() {
        for bad in ["0/4", "5/4", "1/0", "1", "a/b", "-1/2"] {
            assert!(parse_shard(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_id_tells_labs_grids_and_columns_apart_and_no_shards() {
        let id = |lab: &str, axes: &[&str], shard, metric: &str| grid(axes, shard).id(lab, &[metric.into()], 1);
        let base = id("x", &["a=1,2"], None, "m");
        assert_eq!(base, id("x", &["a=1,2"], Some("1/2"), "m"));
        for other in [
            id("y", &["a=1,2"], None, "m"),
            id("x", &["a=1,2,3"], None, "m"),
            id("x", &["a=1", "b=2"], None, "m"),
            id("x", &["a=1,2"], None, "n"),
        ] {
            assert_ne!(base, other);
        }
    }
}
