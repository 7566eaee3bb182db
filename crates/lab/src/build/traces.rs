//! `trace` of a workload: replay of a file.

use super::workloads::CONFLICT;
use crate::check::MISSING_KEY;
use crate::diagnostic::Sink;
use crate::element::Element;
use crate::files;
use crate::schema;
use sanloom_fc::config::{TraceLoad, TraceSelection};
use sanloom_storage::trace::replay::{AddressMap, Think};
use sanloom_storage::trace::{Format, Pattern, Settings, TraceError, TraceReader};
use std::collections::BTreeSet;
use std::num::NonZeroU64;

/// Code of a trace that cannot be read, or has a mistake in its first requests.
pub(crate) const BAD_TRACE: &str = "bad-trace";

/// Requests that are read when a lab is checked; the others are read during the run.
const CHECKED: usize = 1_000;

/// Keys of a workload that a trace replaces.
const REPLACED: [&str; 11] = [
    "arrivals",
    "think_time",
    "size",
    "read_share",
    "location",
    "stride",
    "hot",
    "hot.requests",
    "hot.space",
    "hot.zipf",
    "hot.items",
];

/// Options of a command line in messages of the reader, and the keys that correspond to them.
const OPTIONS: [(&str, &str); 4] = [
    ("`--format`", "`trace.format`"),
    ("`--regex`", "`trace.regex`"),
    ("`--skip-unmatched`", "`trace.skip_unmatched`"),
    ("`--event`", "`trace.event`"),
];

/// Returns the trace of a workload, if it has one. `checked` are the traces that have been read.
pub(super) fn trace(
    element: &Element<'_>,
    label: &str,
    checked: &mut BTreeSet<String>,
    sink: &mut Sink,
) -> Option<TraceLoad> {
    let Some(name) = element.text("trace.file").filter(|_| element.is_given("trace.file")) else {
        for key in element.def.keys.iter().map(|key| key.path).filter(|path| path.starts_with("trace.")) {
            if element.is_given(key) {
                let reason = format!("`{key}` has no effect without `trace.file`");
                sink.error(MISSING_KEY, &element.origin(key), reason, "add trace.file = \"requests.spc.gz\"");
            }
        }
        return None;
    };
    for key in REPLACED.into_iter().filter(|key| element.is_given(key)) {
        let reason = format!("`{key}` has no effect, because the requests are those of the trace");
        sink.error(CONFLICT, &element.origin(key), reason, format!("remove `{key}` or `trace`"));
    }
    let is_closed = element.flag("trace.closed");
    if !is_closed {
        for key in ["depth", "trace.think_times"].into_iter().filter(|key| element.is_given(key)) {
            let reason = format!("`{key}` has no effect, because requests arrive at the times of the trace");
            sink.error(CONFLICT, &element.origin(key), reason, format!("add trace.closed = true, or remove `{key}`"));
        }
    }
    let file = files::path_beside(label, name);
    let reader = reader(element, sink)?;
    let load = TraceLoad {
        depth: is_closed.then(|| element.integer("depth").filter(|_| element.is_given("depth")).unwrap_or(1)),
        time_scale: element.number("trace.time_scale").unwrap_or(1.0),
        passes: NonZeroU64::new(element.integer("trace.passes").unwrap_or(0)),
        selection: selection(element, sink),
        map: map(element, sink)?,
        think: if element.flag("trace.think_times") { Think::Keep } else { Think::Drop },
        file,
        reader,
    };
    // Workloads of a range have the same file and format.
    let origin = element.origin("trace.file");
    if checked.insert(format!("{origin:?}"))
        && let Err(reason) = check(&load)
    {
        sink.error(BAD_TRACE, &origin, reason, "`sanloom trace inspect` reads a trace without a lab");
    }
    Some(load)
}

/// Reads the first requests of a trace.
fn check(load: &TraceLoad) -> Result<(), String> {
    let label = load.file.display();
    let file = files::open(&load.file)?;
    let wrong = |error: TraceError| format!("{label}: {}", in_lab(&error));
    let reader = TraceReader::new(file, &load.reader).map_err(wrong)?;
    let mut requests = 0;
    for request in reader.take(CHECKED) {
        request.map_err(wrong)?;
        requests += 1;
    }
    if requests == 0 { Err(format!("the trace {label} has no request")) } else { Ok(()) }
}

/// The text of an error with keys of a lab instead of options of a command.
fn in_lab(error: &TraceError) -> String {
    OPTIONS.iter().fold(error.to_string(), |text, (option, key)| text.replace(option, key))
}

fn reader(element: &Element<'_>, sink: &mut Sink) -> Option<Settings> {
    let format = element.choice("trace.format", schema::TRACE_FORMATS);
    let given = |key: &str| element.is_given(key);
    let pattern = match element.text("trace.regex").filter(|_| given("trace.regex")) {
        Some(expression) => match Pattern::new(expression) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let remedy = "correct the expression; the groups are those of `sanloom trace inspect --regex`";
                sink.error(BAD_TRACE, &element.origin("trace.regex"), in_lab(&error), remedy);
                return None;
            }
        },
        None => None,
    };
    for key in ["trace.offset_unit", "trace.length_unit", "trace.skip_unmatched"] {
        if pattern.is_none() && given(key) {
            let reason = format!("`{key}` has no effect without `trace.regex`");
            sink.error(CONFLICT, &element.origin(key), reason, format!("add `trace.regex`, or remove `{key}`"));
        }
    }
    let unit_ps = element.choice("trace.time_unit", schema::TRACE_TIME_UNITS).filter(|_| given("trace.time_unit"));
    if unit_ps.is_some() && pattern.is_none() && format != Some(Format::Mqsim) {
        let reason = "`trace.time_unit` has an effect with `trace.regex` and the format `mqsim` only";
        sink.error(CONFLICT, &element.origin("trace.time_unit"), reason, "remove it");
    }
    let defaults = Settings::default();
    Some(Settings {
        format,
        reorder: element.integer("trace.reorder").unwrap_or(defaults.reorder),
        event: element.choice("trace.event", schema::TRACE_EVENTS).unwrap_or(defaults.event),
        mqsim_unit_ps: unit_ps.unwrap_or(defaults.mqsim_unit_ps),
        pattern: pattern.map(|pattern| {
            let unit_ps = unit_ps.unwrap_or(1_000_000);
            let pattern = pattern.time_unit_ps(unit_ps).response_unit_ps(unit_ps);
            pattern
                .skip_unmatched(element.flag("trace.skip_unmatched"))
                .offset_unit_bytes(element.size("trace.offset_unit").unwrap_or(1))
                .length_unit_bytes(element.size("trace.length_unit").unwrap_or(1))
        }),
    })
}

fn selection(element: &Element<'_>, sink: &mut Sink) -> TraceSelection {
    let is_split = element.flag("trace.split");
    match element.text("trace.device").filter(|_| element.is_given("trace.device")) {
        Some(_) if is_split => {
            let reason = "`trace.device` selects one device, so there is nothing to split";
            sink.error(CONFLICT, &element.origin("trace.split"), reason, "remove one of the two");
            TraceSelection::Split
        }
        Some(device) => TraceSelection::Device(device.to_owned()),
        None if is_split => TraceSelection::Split,
        None => TraceSelection::All,
    }
}

fn map(element: &Element<'_>, sink: &mut Sink) -> Option<AddressMap> {
    let map = element.choice("trace.map", schema::TRACE_MAPS).unwrap_or(schema::TraceMap::Wrap);
    let space = element.size("trace.space").filter(|_| element.is_given("trace.space"));
    match (map, space.and_then(NonZeroU64::new)) {
        (schema::TraceMap::Linear, Some(source_bytes)) => Some(AddressMap::Linear { source_bytes }),
        (schema::TraceMap::Linear, None) => {
            let reason = "`trace.space` is missing: how large were the devices of the trace?";
            let remedy = "add it; `sanloom trace inspect` prints the end of each device";
            sink.error(MISSING_KEY, &element.origin("trace.map"), reason, remedy);
            None
        }
        (_, Some(_)) => {
            let reason = "`trace.space` has no effect without `trace.map = \"linear\"`";
            sink.error(CONFLICT, &element.origin("trace.space"), reason, "add it, or remove `trace.space`");
            None
        }
        (schema::TraceMap::Wrap, None) => Some(AddressMap::Wrap),
        (schema::TraceMap::Keep, None) => Some(AddressMap::Keep),
    }
}
