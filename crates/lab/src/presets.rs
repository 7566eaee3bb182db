//! Presets: lab files without nodes. A table for `*`, or the only table of a list, applies to all
//! elements.

/// Names and descriptions, in the order of the reference page.
pub(crate) const NAMES: [(&str, &str); 2] = [
    (
        "default",
        "A fabric of today: cut-through, one queue for each output at every input, paths chosen by exchange. All defaults are those of the tables above.",
    ),
    (
        "sansim-2004",
        "The simulator of the SANSim paper: 2GFC over 50 m, four buffers per switch port, 32 per controller, store-and-forward, frames sprayed over the ISLs.",
    ),
];

/// Presets of single switches: a lab file with one `[switch.NAME]` for each. A comment behind a
/// value names its source.
pub(crate) const SWITCHES: &str = include_str!("presets/switches.toml");

/// Names and models of the presets of switches, in the order of [`SWITCHES`].
pub(crate) const SWITCH_NAMES: [(&str, &str); 9] = [
    ("director-gen5", "a director of 16GFC, such as the Brocade DCX 8510-8"),
    ("director-gen6", "a director of 32GFC, such as the Brocade X6-8"),
    ("director-gen7", "a director of 64GFC, such as the Brocade X7-8"),
    ("fixed-port-2g", "a switch of 2GFC as in the GUPFS report: Brocade SilkWorm 3800, QLogic SANbox2-16"),
    ("fixed-port-8g", "a switch of 8GFC, such as the Brocade 5100"),
    ("fixed-port-16g", "a switch of 16GFC, such as the Brocade 6510"),
    ("fixed-port-32g", "a switch of 32GFC, such as the Brocade G620"),
    ("fixed-port-64g", "a switch of 64GFC, such as the Brocade G720"),
    ("mds-director-32g", "a director with a central arbiter, such as the Cisco MDS 9710 with modules of 32GFC"),
];

/// Presets of single hosts, in the form of [`SWITCHES`].
pub(crate) const HOSTS: &str = include_str!("presets/hosts.toml");

/// Names and models of the presets of hosts, in the order of [`HOSTS`].
pub(crate) const HOST_NAMES: [(&str, &str); 7] = [
    ("server-2003", "a server of 2003 with HBAs of 2GFC, NICs of 1 Gb/s and HCAs of 4x SDR, as in the GUPFS report"),
    (
        "server-2003-iscsi-hba",
        "the same server with iSCSI adapters of 1 Gb/s instead of HBAs and NICs, as in the GUPFS report",
    ),
    ("server-2011", "a server of 2011 with HBAs of 8GFC, NICs of 10 Gb/s and HCAs, as in the Open-FCoE slides"),
    ("server-2011-iscsi-hba", "the same server with iSCSI adapters of 10 Gb/s instead of HBAs and NICs"),
    (
        "server-2011-cna",
        "the same server with converged adapters (FCoE) of 10 Gb/s instead of HBAs, as in the Open-FCoE slides",
    ),
    ("server-2021", "a server of 2021 with HBAs of 32GFC, NICs of 100 Gb/s and HCAs"),
    ("server-2021-iscsi-hba", "the same server with iSCSI adapters of 100 Gb/s instead of HBAs and NICs"),
];

/// Returns the lines of a preset of a switch or host in `text`: key, value and source.
pub(crate) fn lines_of(
    text: &'static str,
    name: &str,
) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let end = format!(".{name}]");
    let lines = text.lines().skip_while(move |line| !(line.starts_with('[') && line.ends_with(&end))).skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter_map(|line| {
        let (key, rest) = line.split_once(" = ")?;
        let (value, source) = rest.split_once('#')?;
        Some((key, value.trim(), source.trim()))
    })
}

/// Returns the text of a preset.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    match name {
        "default" => Some(""),
        "sansim-2004" => Some(include_str!("presets/sansim-2004.toml")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use crate::diagnostic::Sink;
    use crate::schema;
    use crate::value::Places;
    use toml::de::{DeTable, DeValue};

    #[test]
    fn every_element_preset_is_valid_and_each_value_has_a_source() {
        check_presets("switch", SWITCHES, &SWITCH_NAMES);
        check_presets("host", HOSTS, &HOST_NAMES);
    }

    /// Returns the number of values in a table and the tables in it.
    fn values(table: &DeTable<'_>) -> usize {
        let value = |value: &DeValue<'_>| match value {
            DeValue::Table(table) => values(table),
            _ => 1,
        };
        table.values().map(|entry| value(entry.get_ref())).sum()
    }

    fn check_presets(name: &str, text: &'static str, known: &[(&str, &str)]) {
        let section = schema::section(name).unwrap();
        let root = DeTable::parse(text).unwrap();
        let DeValue::Table(presets) = root.get_ref()[name].get_ref() else { panic!("no presets") };
        let mut names: Vec<&str> = presets.keys().map(|name| name.get_ref().as_ref()).collect();
        let mut known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
        for (name, preset) in presets {
            let DeValue::Table(table) = preset.get_ref() else { panic!("{}", name.get_ref()) };
            let mut sink = Sink::default();
            check::table(section, table, Places::File, &mut sink);
            assert!(!sink.has_errors(), "{}", name.get_ref());
            let lines: Vec<_> = lines_of(text, name.get_ref()).collect();
            assert_eq!(lines.len(), values(table), "{}", name.get_ref());
            assert!(lines.iter().all(|(_, _, source)| !source.is_empty()), "{}", name.get_ref());
        }
    }
}
