//! Robustness against arbitrary text in the languages that operators type: expressions and actions
//! of rules, and paths of numbers.

use proptest::prelude::*;
use sanloom_api::inject::{Act, Direction, Matcher, Seen};
use sanloom_api::results::{HostResult, Metrics, Results, is_metric_path};
use sanloom_wire::Header;

const WORDS: [&str; 22] = [
    "els", "d_id", "s_id", "r_ctl", "type", "ox_id", "==", "!=", "<", ">=", "&&", "||", "!", "(", ")", "PLOGI", "0x22",
    "010200", "drop", "delay", ":", "every 3",
];
const PARTS: [&str; 12] =
    ["hosts", "totals", ".", "*", "sum(", ")", "mean(", "server1", "db.example", "iops", "count(", " "];

fn joined<const N: usize>(words: [&'static str; N], space: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..12).prop_map(move |words| words.join(space))
}

proptest! {
    #[test]
    fn no_expression_panics(text in prop_oneof![".{0,80}", joined(WORDS, " ")], payload in prop::collection::vec(0u8.., 0..64)) {
        let header = Header::parse(&[7; 24]).unwrap();
        match text.parse::<Matcher>() {
            Ok(matcher) => _ = matcher.holds(&Seen { direction: Direction::In, header: &header, payload: &payload }),
            Err(bad) => prop_assert!(!bad.to_string().is_empty()),
        }
    }

    #[test]
    fn an_action_survives_its_text(text in prop_oneof![".{0,40}", joined(WORDS, "")]) {
        if let Ok(act) = text.parse::<Act>() {
            prop_assert_eq!(act.to_string().parse::<Act>().ok(), Some(act));
        }
    }

    #[test]
    fn every_text_that_finds_a_number_has_the_syntax_of_a_path(path in prop_oneof![".{0,40}", joined(PARTS, "")]) {
        let host = |name: &str| HostResult { name: name.into(), ..HostResult::default() };
        let results = Results { hosts: vec![host("server1"), host("db.example")], ..Results::default() };
        if Metrics::new(&results).get(&path).is_some() {
            prop_assert!(is_metric_path(&path), "{}", path);
        }
    }
}
