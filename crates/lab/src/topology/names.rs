//! Compact lists of names: the reverse of range expansion.

use std::collections::BTreeMap;

/// Number of names and ranges that [`compress`] shows.
const MAX_PARTS: usize = 8;

/// Names as the lab file writes them, with ranges: `server1 server2 server3 core` becomes
/// `core, server{1..3}`, and `esx01 … esx40` becomes `esx{01..40}`. Only names that differ in their
/// first number share a range. A long list is cut.
pub fn compress<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    cut(&ranges(names), MAX_PARTS)
}

/// As [`compress`], with all names.
pub fn compress_all<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    ranges(names).join(", ")
}

/// Cuts a text of [`compress_all`] to a number of characters, if that is possible with one name.
pub fn fit(text: &str, width: usize) -> String {
    let parts: Vec<String> = text.split(", ").map(str::to_owned).collect();
    let fits = |count: &usize| cut(&parts, *count).chars().count() <= width;
    let count = (1..=parts.len()).rev().find(fits).unwrap_or(1);
    cut(&parts, count)
}

fn cut(parts: &[String], count: usize) -> String {
    let shown = parts[..parts.len().min(count)].join(", ");
    match parts.len().saturating_sub(count) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Names and ranges of names, sorted.
fn ranges<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let mut families: BTreeMap<(&str, &str), Vec<(u64, &str)>> = BTreeMap::new();
    // Sorted by the text before the number, then by the number.
    let mut parts: Vec<(&str, u64, String)> = Vec::new();
    for name in names {
        let digits = |c: char| c.is_ascii_digit();
        let start = name.find(digits).unwrap_or(name.len());
        let end = name[start..].find(|c| !digits(c)).map_or(name.len(), |i| start + i);
        match name[start..end].parse() {
            Ok(value) => families.entry((&name[..start], &name[end..])).or_default().push((value, &name[start..end])),
            Err(_) => parts.push((name, 0, name.to_owned())),
        }
    }
    for ((before, after), mut numbers) in families {
        numbers.sort_unstable();
        numbers.dedup();
        let mut rest = &numbers[..];
        while let Some(&(first, text)) = rest.first() {
            // A number with leading zeros sets the width of its range.
            let width = if text.starts_with('0') { text.len() } else { 1 };
            let fits = |&(&(value, text), wanted): &(&(u64, &str), u64)| {
                value == wanted && text == format!("{wanted:0width$}")
            };
            let run = rest.iter().zip(first..).take_while(fits).count();
            if run < 3 {
                parts.push((before, first, format!("{before}{text}{after}")));
                rest = &rest[1..];
            } else {
                parts.push((before, first, format!("{before}{{{text}..{}}}{after}", rest[run - 1].1)));
                rest = &rest[run..];
            }
        }
    }
    parts.sort();
    parts.into_iter().map(|(.., part)| part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_become_a_range() {
        assert_eq!(compress(["core", "s1", "s3", "s2", "s5"]), "core, s{1..3}, s5");
        assert_eq!(compress(["s1:0", "s2:0", "s3:0"]), "s{1..3}:0");
        assert_eq!(compress(["s01", "s02", "s03"]), "s{01..03}");
        assert_eq!(compress(["s8", "s9", "s10", "s08", "s09", "s010"]), "s08, s8, s09, s9, s010, s10");
        let esx: Vec<String> = (1..=500).map(|n| format!("esx{n:02}")).collect();
        assert_eq!(compress(esx.iter().map(String::as_str)), "esx{01..500}");
        assert_eq!(compress([]), "");
    }

    #[test]
    fn a_list_is_cut_only_where_it_must_be() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        assert_eq!(compress(names), "a, b, c, d, e, f, g, h and 2 more");
        let all = compress_all(names);
        assert_eq!(all, "a, b, c, d, e, f, g, h, i, j");
        assert_eq!(fit(&all, 28), all);
        assert_eq!(fit(&all, 27), "a, b, c, d, e, f and 4 more");
        assert_eq!(fit(&all, 3), "a and 9 more");
        assert_eq!(fit("", 3), "");
    }
}
