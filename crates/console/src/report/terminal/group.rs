//! Rows for several similar elements, named in the range notation of the lab file: `server{1..4}`.

use crate::report::format::clean;

/// Elements that share a row.
pub struct Group<'a, T> {
    /// Name of the element, or of the range as a lab file writes it: `esx{01..04}`.
    pub name: String,
    pub members: Vec<&'a T>,
}

/// Largest difference between the value of a member and that of the first member, as a share of the
/// latter. The first entry that yields few enough groups is used.
const ALIKE: [f64; 4] = [0.05, 0.15, 0.4, f64::INFINITY];

/// Returns one group for each element if there are at most `single`. Otherwise neighbours with
/// consecutive numbers in their names and similar values share a group. The values may differ more
/// until there are at most `most` groups.
pub fn groups<'a, T>(
    elements: &'a [T],
    single: usize,
    most: usize,
    name: impl Fn(&T) -> &str,
    value: impl Fn(&T) -> f64,
) -> Vec<Group<'a, T>> {
    let mut out = Vec::new();
    for alike in ALIKE {
        let joins = elements.len() > single;
        out = grouped_by(elements, joins, alike, &name, &value);
        if out.len() <= most {
            break;
        }
    }
    out
}

fn grouped_by<'a, T>(
    elements: &'a [T],
    may_join: bool,
    alike: f64,
    name: &impl Fn(&T) -> &str,
    value: &impl Fn(&T) -> f64,
) -> Vec<Group<'a, T>> {
    let mut out: Vec<Group<'a, T>> = Vec::new();
    let mut last: Option<(&str, u64, f64)> = None;
    let mut first_digits = "";
    for element in elements {
        let (stem, digits) = split(name(element));
        // Numbers with leading zeros belong to a range if they have as many digits as the others.
        let number: Option<u64> = digits.parse().ok();
        let same_width =
            digits.len() == first_digits.len() || !digits.starts_with('0') && !first_digits.starts_with('0');
        let this = value(element);
        let joins = may_join
            && match (last, number) {
                (Some((last_stem, last_number, first)), Some(number)) => {
                    last_stem == stem
                        && same_width
                        && last_number.checked_add(1) == Some(number)
                        && (alike.is_infinite() || (this - first).abs() <= alike * first.abs())
                }
                _ => false,
            };
        match (out.last_mut(), joins) {
            (Some(group), true) => {
                group.members.push(element);
                group.name = format!("{}{{{first_digits}..{digits}}}", clean(stem));
                last = last.map(|(stem, _, first)| (stem, number.unwrap_or_default(), first));
            }
            _ => {
                out.push(Group { name: clean(name(element)), members: vec![element] });
                first_digits = digits;
                last = number.map(|number| (stem, number, this));
            }
        }
    }
    out
}

/// Splits a name before the digits at its end.
fn split(name: &str) -> (&str, &str) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name.split_at(name.len() - digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(elements: &[(&str, f64)], single: usize, most: usize) -> Vec<String> {
        groups(elements, single, most, |e| e.0, |e| e.1)
            .into_iter()
            .map(|group| format!("{} {}", group.name, group.members.len()))
            .collect()
    }

    #[test]
    fn neighbours_that_are_alike_share_a_row() {
        let elements = [("server1", 46.0), ("server2", 46.5), ("server3", 58.0), ("server4", 58.0), ("backup", 58.0)];
        assert_eq!(names(&elements, 2, 9), ["server{1..2} 2", "server{3..4} 2", "backup 1"]);
        assert_eq!(names(&elements, 5, 9).len(), 5);
    }

    #[test]
    fn a_gap_in_the_numbers_or_another_stem_begins_a_row() {
        let elements = [("a1", 1.0), ("a3", 1.0), ("b4", 1.0), ("5", 1.0), ("6", 1.0)];
        assert_eq!(names(&elements, 0, 9), ["a1 1", "a3 1", "b4 1", "{5..6} 2"]);
    }

    #[test]
    fn names_keep_the_zeros_of_the_lab() {
        let elements = [("esx08", 1.0), ("esx09", 1.0), ("esx10", 1.0), ("esx011", 1.0)];
        assert_eq!(names(&elements, 0, 9), ["esx{08..10} 3", "esx011 1"]);
    }

    #[test]
    fn rows_give_way_until_they_are_few_enough() {
        let elements = [("a1", 1.0), ("a2", 1.1), ("a3", 1.3), ("a4", 9.0), ("a5", 0.0)];
        assert_eq!(names(&elements, 0, 5).len(), 5);
        assert_eq!(names(&elements, 0, 4).len(), 4);
        assert_eq!(names(&elements, 0, 3), ["a{1..3} 3", "a4 1", "a5 1"]);
        assert_eq!(names(&elements, 0, 1), ["a{1..5} 5"]);
    }

    #[test]
    fn a_number_beyond_the_integer_range_is_not_grouped() {
        let elements = [("a99999999999999999999999", 1.0), ("a18446744073709551615", 1.0)];
        assert_eq!(names(&elements, 0, 9).len(), 2);
    }
}
