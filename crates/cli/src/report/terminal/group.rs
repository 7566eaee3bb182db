//! Many alike elements as one row: `server1..4`.

use crate::report::format::clean;

/// Elements that one row stands for.
pub struct Group<'a, T> {
    /// Name of the element, or of the range.
    pub name: String,
    /// The elements.
    pub members: Vec<&'a T>,
}

/// How far the value of a member may be from that of the group's first, as a share: the first that gives few enough
/// groups.
const ALIKE: [f64; 4] = [0.05, 0.15, 0.4, f64::INFINITY];

/// One group for each element, if there are at most `single`; else neighbours whose names differ in a number that counts
/// up, and whose values are alike, share a group. How alike they must be gives way until there are at most `most` groups,
/// or nothing helps.
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
    let mut first_number = 0;
    for element in elements {
        let (stem, number) = split(name(element));
        let this = value(element);
        let joins = may_join
            && match (last, number) {
                (Some((last_stem, last_number, first)), Some(number)) => {
                    last_stem == stem
                        && last_number.checked_add(1) == Some(number)
                        && (alike.is_infinite() || (this - first).abs() <= alike * first.abs())
                }
                _ => false,
            };
        match (out.last_mut(), joins) {
            (Some(group), true) => {
                group.members.push(element);
                let number = number.unwrap_or_default();
                group.name = format!("{}{first_number}..{number}", clean(stem));
                last = last.map(|(stem, _, first)| (stem, number, first));
            }
            _ => {
                out.push(Group { name: clean(name(element)), members: vec![element] });
                first_number = number.unwrap_or_default();
                last = number.map(|number| (stem, number, this));
            }
        }
    }
    out
}

/// Cuts the number off the end of a name.
fn split(name: &str) -> (&str, Option<u64>) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (stem, number) = name.split_at(name.len() - digits);
    (stem, number.parse().ok())
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
        assert_eq!(names(&elements, 2, 9), ["server1..2 2", "server3..4 2", "backup 1"]);
        assert_eq!(names(&elements, 5, 9).len(), 5);
    }

    #[test]
    fn a_gap_in_the_numbers_or_another_stem_begins_a_row() {
        let elements = [("a1", 1.0), ("a3", 1.0), ("b4", 1.0), ("5", 1.0), ("6", 1.0)];
        assert_eq!(names(&elements, 0, 9), ["a1 1", "a3 1", "b4 1", "5..6 2"]);
    }

    #[test]
    fn rows_give_way_until_they_are_few_enough() {
        let elements = [("a1", 1.0), ("a2", 1.1), ("a3", 1.3), ("a4", 9.0), ("a5", 0.0)];
        assert_eq!(names(&elements, 0, 5).len(), 5);
        assert_eq!(names(&elements, 0, 4).len(), 4);
        assert_eq!(names(&elements, 0, 3), ["a1..3 3", "a4 1", "a5 1"]);
        assert_eq!(names(&elements, 0, 1), ["a1..5 5"]);
    }

    #[test]
    fn a_number_that_no_integer_holds_stays_alone() {
        let elements = [("a99999999999999999999999", 1.0), ("a18446744073709551615", 1.0)];
        assert_eq!(names(&elements, 0, 9).len(), 2);
    }
}
