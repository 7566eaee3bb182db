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
        "The simulator of document 001: 2GFC over 50 m, four buffers per switch port, 32 per controller, store-and-forward, frames sprayed over the ISLs.",
    ),
];

/// Returns the text of a preset.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    match name {
        "default" => Some(""),
        "sansim-2004" => Some(include_str!("presets/sansim-2004.toml")),
        _ => None,
    }
}
