//! Lists of names as ranges: the reverse of what the lab file does.

use std::collections::BTreeMap;

/// `server1 server2 server3 core` becomes `core, server{1..3}`; names that differ in one number only share a range.
pub fn compress<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut families: BTreeMap<(&str, &str), Vec<(u64, &str)>> = BTreeMap::new();
    let mut singles: Vec<&str> = Vec::new();
    for name in names {
        let digits = |c: char| c.is_ascii_digit();
        let start = name.find(digits).unwrap_or(name.len());
        let end = name[start..].find(|c| !digits(c)).map_or(name.len(), |i| start + i);
        let number = &name[start..end];
        match number.parse() {
            Ok(value) if number == "0" || !number.starts_with('0') => {
                families.entry((&name[..start], &name[end..])).or_default().push((value, name));
            }
            _ => singles.push(name),
        }
    }
    // Sorted by what stands before the number, then by the number.
    let mut parts: Vec<(&str, u64, String)> = singles.into_iter().map(|name| (name, 0, name.to_owned())).collect();
    for ((before, after), mut numbers) in families {
        numbers.sort_unstable();
        numbers.dedup();
        let mut rest = &numbers[..];
        while let Some(&(first, name)) = rest.first() {
            let run = (rest.iter().zip(first..)).take_while(|((n, _), wanted)| n == wanted).count();
            if run < 3 {
                parts.push((before, first, name.to_owned()));
                rest = &rest[1..];
            } else {
                parts.push((before, first, format!("{before}{{{first}..{}}}{after}", rest[run - 1].0)));
                rest = &rest[run..];
            }
        }
    }
    parts.sort();
    let mut parts: Vec<String> = parts.into_iter().map(|(.., part)| part).collect();
    if parts.len() > 8 {
        let more = parts.len() - 8;
        parts.truncate(8);
        return format!("{} and {more} more", parts.join(", "));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_become_a_range() {
        assert_eq!(compress(["core", "s1", "s3", "s2", "s5"]), "core, s{1..3}, s5");
        assert_eq!(compress(["s1:0", "s2:0", "s3:0"]), "s{1..3}:0");
        assert_eq!(compress(["s01", "s02", "s03"]), "s01, s02, s03");
        assert_eq!(compress([]), "");
    }
}
