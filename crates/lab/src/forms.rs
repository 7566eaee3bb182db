//! Values with several forms: arrival processes and size distributions.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use crate::diagnostic::Sink;
use crate::schema::Kind;
use crate::units::{self, SIZE};
use crate::value::{self, Places, UNKNOWN_WORD, Value};
use crate::{check, suggest};
use sanloom_fc::config::{Arrival, Rate, SizeDistribution, TimeDistribution};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One form of a value written as a table: the word that selects it, and its keys, all of which are
/// required.
pub(crate) struct Variant {
    pub word: &'static str,
    pub keys: &'static [(&'static str, Kind, &'static str)],
    pub meaning: &'static str,
    pub example: &'static str,
}

/// Key that selects the form of an arrival process.
pub(crate) const PROCESS: &str = "process";

/// Forms of an arrival process.
pub(crate) const ARRIVALS: &[Variant] = &[
    Variant {
        word: "poisson",
        keys: &[("rate", Kind::PerSecond, "\"2000/s\"")],
        meaning: "exponential times between requests; also written \"poisson 2000/s\"",
        example: "{ process = \"poisson\", rate = \"2000/s\" }",
    },
    Variant {
        word: "constant",
        keys: &[("rate", Kind::PerSecond, "\"2000/s\"")],
        meaning: "equal times; also written \"constant 2000/s\"",
        example: "{ process = \"constant\", rate = \"2000/s\" }",
    },
    Variant {
        word: "uniform",
        keys: &[("min", Kind::Time, "\"100us\""), ("max", Kind::Time, "\"900us\"")],
        meaning: "times between two bounds, each as likely",
        example: "{ process = \"uniform\", min = \"100us\", max = \"900us\" }",
    },
    Variant {
        word: "normal",
        keys: &[("mean", Kind::Time, "\"500us\""), ("deviation", Kind::Time, "\"100us\"")],
        meaning: "normally distributed times, drawn again if negative, which raises their mean: 100 us with a deviation of 100 us has a mean of 128.8 us (`gamma` keeps it)",
        example: "{ process = \"normal\", mean = \"500us\", deviation = \"100us\" }",
    },
    Variant {
        word: "on-off",
        keys: &[("rate", Kind::PerSecond, "\"5k/s\""), ("on", Kind::Time, "\"10ms\""), ("off", Kind::Time, "\"40ms\"")],
        meaning: "exponential times at `rate` in on-phases, silence in off-phases, both of fixed length",
        example: "{ process = \"on-off\", rate = \"5k/s\", on = \"10ms\", off = \"40ms\" }",
    },
    Variant {
        word: "gamma",
        keys: GAMMA,
        meaning: "times with this mean and standard deviation, never negative",
        example: "{ process = \"gamma\", mean = \"100us\", deviation = \"100us\" }",
    },
    Variant {
        word: "log-normal",
        keys: GAMMA,
        meaning: "times whose logarithm is normally distributed, with this mean and standard deviation",
        example: "{ process = \"log-normal\", mean = \"500us\", deviation = \"1ms\" }",
    },
    Variant {
        word: "pareto",
        keys: PARETO,
        meaning: "times with a heavy tail; up to a `shape` of 2 their variance is infinite",
        example: "{ process = \"pareto\", mean = \"500us\", shape = 1.5 }",
    },
    Variant {
        word: "pareto-on-off",
        keys: &[
            ("rate", Kind::PerSecond, "\"5k/s\""),
            ("on", Kind::Time, "\"10ms\""),
            ("off", Kind::Time, "\"40ms\""),
            ("shape", Kind::Number, "1.5"),
        ],
        meaning: "exponential times at `rate` in on-phases, silence in off-phases; the lengths of both have a heavy tail with these means. Many hosts together are self-similar",
        example: "{ process = \"pareto-on-off\", rate = \"5k/s\", on = \"10ms\", off = \"40ms\", shape = 1.5 }",
    },
    Variant {
        word: "markov",
        keys: &[
            ("rate", Kind::PerSecond, "\"5k/s\""),
            ("stay", Kind::Time, "\"10ms\""),
            ("other_rate", Kind::PerSecond, "\"200/s\""),
            ("other_stay", Kind::Time, "\"40ms\""),
        ],
        meaning: "Markov-modulated: exponential times at `rate` for exponential times of mean `stay`, then at `other_rate` for `other_stay`, and so on; a list of several has more states",
        example: "{ process = \"markov\", rate = \"5k/s\", stay = \"10ms\", other_rate = \"200/s\", other_stay = \"40ms\" }",
    },
];

const GAMMA: &[(&str, Kind, &str)] = &[("mean", Kind::Time, "\"100us\""), ("deviation", Kind::Time, "\"100us\"")];
const PARETO: &[(&str, Kind, &str)] = &[("mean", Kind::Time, "\"500us\""), ("shape", Kind::Number, "1.5")];

/// Forms of a distribution of times.
pub(crate) const TIMES: &[Variant] = &[
    Variant {
        word: "exponential",
        keys: &[("mean", Kind::Time, "\"1ms\"")],
        meaning: "exponential with this mean",
        example: "{ distribution = \"exponential\", mean = \"1ms\" }",
    },
    Variant {
        word: "uniform",
        keys: &[("min", Kind::Time, "\"100us\""), ("max", Kind::Time, "\"900us\"")],
        meaning: "between two bounds, each as likely",
        example: "{ distribution = \"uniform\", min = \"100us\", max = \"900us\" }",
    },
    Variant {
        word: "gamma",
        keys: GAMMA,
        meaning: "with this mean and standard deviation, never negative",
        example: "{ distribution = \"gamma\", mean = \"1ms\", deviation = \"500us\" }",
    },
    Variant {
        word: "log-normal",
        keys: GAMMA,
        meaning: "with a normally distributed logarithm, and this mean and standard deviation",
        example: "{ distribution = \"log-normal\", mean = \"1ms\", deviation = \"2ms\" }",
    },
    Variant {
        word: "pareto",
        keys: PARETO,
        meaning: "with a heavy tail; up to a `shape` of 2 the variance is infinite",
        example: "{ distribution = \"pareto\", mean = \"1ms\", shape = 1.5 }",
    },
];

/// Key that selects the form of a size distribution.
pub(crate) const DISTRIBUTION: &str = "distribution";

const ANY_SIZE: Kind = Kind::Size { min: 512, max: u32::MAX as u64 };

/// Forms of a size distribution.
pub(crate) const SIZES: &[Variant] = &[
    Variant {
        word: "uniform",
        keys: &[("min", ANY_SIZE, "\"4KiB\""), ("max", ANY_SIZE, "\"64KiB\""), ("step", ANY_SIZE, "\"4KiB\"")],
        meaning: "multiples of `step` from `min` to `max`, each as likely",
        example: "{ distribution = \"uniform\", min = \"4KiB\", max = \"64KiB\", step = \"4KiB\" }",
    },
    Variant {
        word: "exponential",
        keys: &[("mean", ANY_SIZE, "\"16KiB\""), ("max", ANY_SIZE, "\"256KiB\"")],
        meaning: "exponential with this mean, rounded up to 512 bytes and cut at `max`",
        example: "{ distribution = \"exponential\", mean = \"16KiB\", max = \"256KiB\" }",
    },
];

const ARRIVAL_EXAMPLE: &str = "\"poisson 2000/s\"";
const SIZE_EXAMPLE: &str = "\"32KiB\"";

/// Reads one arrival process or a list of them.
pub(crate) fn arrivals(value: &Spanned<DeValue<'_>>, places: Places, sink: &mut Sink) -> Option<Vec<Arrival>> {
    match value.get_ref() {
        DeValue::Array(items) => {
            let found: Vec<Option<Arrival>> = items.iter().map(|item| arrival(item, places, sink)).collect();
            found.into_iter().collect()
        }
        _ => arrival(value, places, sink).map(|a| vec![a]),
    }
}

fn arrival(value: &Spanned<DeValue<'_>>, places: Places, sink: &mut Sink) -> Option<Arrival> {
    let origin = places.origin(value.span());
    let (word, fields) = match value.get_ref() {
        DeValue::Table(table) => variant(table, PROCESS, ARRIVALS, &origin, places, sink)?,
        DeValue::String(text) => {
            let (word, rate) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
            if word != "poisson" && word != "constant" {
                let remedy = match ARRIVALS.iter().find(|v| v.word == word) {
                    Some(variant) => format!("write it as a table: {}", variant.example),
                    None => suggest::remedy(
                        word,
                        ARRIVALS.iter().map(|v| v.word),
                        &format!("for example {ARRIVAL_EXAMPLE}"),
                    ),
                };
                let reason = format!("`{}` is not an arrival process", value::cut(text));
                sink.error(UNKNOWN_WORD, &origin, reason, remedy);
                return None;
            }
            match units::parse_rate(rate, "2000/s") {
                Ok(rate) => (ARRIVALS.iter().find(|v| v.word == word)?.word, vec![Value::PerSecond(rate)]),
                Err(bad) => {
                    sink.error(bad.code, &origin, bad.reason, bad.remedy);
                    return None;
                }
            }
        }
        other => {
            value::wrong_type(other, "an arrival process", ARRIVAL_EXAMPLE, &origin, sink);
            return None;
        }
    };
    Some(match (word, &fields[..]) {
        ("poisson", &[Value::PerSecond(rate)]) => Arrival::Poisson { rate: per_second(rate) },
        ("constant", &[Value::PerSecond(rate)]) => Arrival::Constant { rate: per_second(rate) },
        ("uniform", &[Value::Time(min), Value::Time(max)]) => Arrival::Uniform { min, max },
        ("normal", &[Value::Time(mean), Value::Time(deviation)]) => Arrival::Normal { mean, deviation },
        ("on-off", &[Value::PerSecond(rate), Value::Time(on), Value::Time(off)]) => {
            Arrival::OnOff { rate: per_second(rate), on, off }
        }
        ("pareto-on-off", &[Value::PerSecond(rate), Value::Time(on), Value::Time(off), Value::Number(shape)]) => {
            Arrival::ParetoOnOff { rate: per_second(rate), on, off, shape }
        }
        (
            "markov",
            &[Value::PerSecond(rate), Value::Time(stay), Value::PerSecond(other_rate), Value::Time(other_stay)],
        ) => Arrival::Markov { rates: [rate, other_rate].map(per_second), stays: [stay, other_stay] },
        (word, fields) => Arrival::Renewal(distribution(word, fields)?),
    })
}

fn distribution(word: &str, fields: &[Value]) -> Option<TimeDistribution> {
    Some(match (word, fields) {
        ("exponential", &[Value::Time(mean)]) => TimeDistribution::Exponential { mean },
        ("uniform", &[Value::Time(min), Value::Time(max)]) => TimeDistribution::Uniform { min, max },
        ("gamma", &[Value::Time(mean), Value::Time(deviation)]) => TimeDistribution::Gamma { mean, deviation },
        ("log-normal", &[Value::Time(mean), Value::Time(deviation)]) => TimeDistribution::LogNormal { mean, deviation },
        ("pareto", &[Value::Time(mean), Value::Number(shape)]) => TimeDistribution::Pareto { mean, shape },
        _ => return None,
    })
}

/// Reads a time or a distribution of times.
pub(crate) fn times(value: &Spanned<DeValue<'_>>, places: Places, sink: &mut Sink) -> Option<TimeDistribution> {
    let DeValue::Table(table) = value.get_ref() else {
        let found = value::check(&Kind::Time, "\"1ms\"", value, places, sink);
        return match found {
            Value::Time(time) => Some(TimeDistribution::Constant(time)),
            _ => None,
        };
    };
    let (word, fields) = variant(table, DISTRIBUTION, TIMES, &places.origin(value.span()), places, sink)?;
    distribution(word, &fields)
}

/// Converts thousandths per second to a rate.
pub(crate) fn per_second(thousandths: u64) -> Rate {
    Rate(thousandths as f64 / 1e3)
}

/// Reads a size or a distribution of sizes.
pub(crate) fn sizes(value: &Spanned<DeValue<'_>>, places: Places, sink: &mut Sink) -> Option<SizeDistribution> {
    let origin = places.origin(value.span());
    let table = match value.get_ref() {
        DeValue::Table(table) => table,
        DeValue::Array(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
            value::wrong_type(value.get_ref(), "a size or a table of sizes", SIZE_EXAMPLE, &origin, sink);
            return None;
        }
        _ => {
            let found = value::check(&ANY_SIZE, SIZE_EXAMPLE, value, places, sink);
            return match found {
                Value::Size(bytes) => u32::try_from(bytes).ok().map(SizeDistribution::Fixed),
                _ => None,
            };
        }
    };
    if !table.keys().any(|key| key.get_ref() == DISTRIBUTION) {
        return weighted(table, places, sink);
    }
    let (word, fields) = variant(table, DISTRIBUTION, SIZES, &origin, places, sink)?;
    Some(match (word, &fields[..]) {
        ("uniform", &[Value::Size(min), Value::Size(max), Value::Size(step)]) => {
            let [min, max, step] = [min, max, step].map(u32::try_from);
            SizeDistribution::Uniform { min: min.ok()?, max: max.ok()?, step: step.ok()? }
        }
        ("exponential", &[Value::Size(mean), Value::Size(max)]) => {
            let [mean, max] = [mean, max].map(u32::try_from);
            SizeDistribution::Exponential { mean: mean.ok()?, max: max.ok()? }
        }
        _ => return None,
    })
}

/// Reads weighted sizes, `{ "4KiB" = 0.7, "64KiB" = 0.3 }`, in the order of the sizes.
fn weighted(table: &DeTable<'_>, places: Places, sink: &mut Sink) -> Option<SizeDistribution> {
    let mut weights: BTreeMap<u32, f64> = BTreeMap::new();
    let mut good = true;
    for (key, weight) in table {
        let origin = places.origin(key.span());
        let bytes = units::parse(key.get_ref(), &SIZE);
        let weight = match value::check(&Kind::Number, "0.7", weight, places, sink) {
            Value::Number(weight) => Some(weight),
            _ => None,
        };
        match (bytes, weight) {
            (Ok(bytes), Some(weight)) => match u32::try_from(bytes) {
                Ok(bytes) => *weights.entry(bytes).or_insert(0.0) += weight,
                Err(_) => {
                    good = false;
                    let reason = format!("a request of {bytes} bytes is too large");
                    sink.error(units::OUT_OF_RANGE, &origin, reason, "choose smaller sizes");
                }
            },
            (Err(bad), _) => {
                good = false;
                sink.error(bad.code, &origin, bad.reason, bad.remedy);
            }
            (Ok(_), None) => good = false,
        }
    }
    good.then(|| SizeDistribution::Weighted(weights.into_iter().collect()))
}

/// Returns the form that the `selector` key names, and its values in the order of the definition.
fn variant(
    table: &DeTable<'_>,
    selector: &'static str,
    variants: &'static [Variant],
    origin: &crate::diagnostic::Origin,
    places: Places,
    sink: &mut Sink,
) -> Option<(&'static str, Vec<Value>)> {
    let words = || variants.iter().map(|v| v.word);
    let list = words().collect::<Vec<_>>().join(", ");
    let Some((_, choice)) = table.iter().find(|(key, _)| key.get_ref() == selector) else {
        let reason = format!("the table has no `{selector}`");
        let remedy = format!("add `{selector}`, one of {list}");
        sink.error(check::MISSING_KEY, origin, reason, remedy);
        return None;
    };
    let word = choice.get_ref().as_str().unwrap_or("");
    let Some(variant) = variants.iter().find(|v| v.word == word) else {
        let remedy = suggest::remedy(word, words(), &format!("choose one of {list}"));
        let reason = format!("there is no {selector} `{}`", value::cut(word));
        sink.error(UNKNOWN_WORD, &places.origin(choice.span()), reason, remedy);
        return None;
    };
    for (key, _) in table {
        let name = key.get_ref();
        if name != selector && variant.keys.iter().all(|(known, ..)| known != name) {
            let names = variant.keys.iter().map(|&(name, ..)| name);
            check::unknown_key(name, &format!("a {word} {selector}"), names, &[], &places.origin(key.span()), sink);
        }
    }
    let mut values = Vec::new();
    for (name, kind, example) in variant.keys {
        match table.iter().find(|(key, _)| key.get_ref() == name) {
            Some((_, value)) => values.push(value::check(kind, example, value, places, sink)),
            None => {
                let reason = format!("`{name}` is missing");
                let remedy = format!("for example {}", variant.example);
                sink.error(check::MISSING_KEY, origin, reason, remedy);
                values.push(Value::Bad);
            }
        }
    }
    (!values.contains(&Value::Bad)).then_some((variant.word, values))
}
