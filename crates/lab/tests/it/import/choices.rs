//! Decisions of the user: options that exclude each other, or that have no effect.

use sanloom_lab::import::{Choices, Imported, NoteKind, Source, import};
use sanloom_wire::Wwpn;

const HOST: &str = "10:00:00:10:9b:1c:01:01";
const STORAGE: &str = "50:00:09:73:00:18:1c:04";
const ABSENT: &str = "10:00:00:10:9b:1c:99:99";

const TEXT: &str = "switchName: sw1\nswitchDomain: 1\nIndex Port Address  Media  Speed   State         Proto\n\
    0   0   010000   id    N16\tOnline      FC  F-Port  10:00:00:10:9b:1c:01:01\n\
    1   1   010100   id    N16\tOnline      FC  F-Port  50:00:09:73:00:18:1c:04\n";

fn ports(names: &[&str]) -> Vec<Wwpn> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn run(choices: &Choices) -> Imported {
    import(&[Source { name: "in.txt".to_owned(), text: TEXT.to_owned() }], choices)
}

/// Texts and reasons of the notes of a kind.
fn notes(imported: &Imported, kind: NoteKind) -> Vec<String> {
    let of_kind = imported.account.notes.iter().filter(|note| note.kind == kind);
    of_kind.map(|note| format!("{} {}", note.text, note.reason)).collect()
}

#[test]
fn a_choice_for_a_port_that_no_input_has_is_reported() {
    let absent = || ports(&[ABSENT]);
    for (choices, option) in [
        (Choices { storage: absent().into_iter().collect(), ..Choices::default() }, "--storage"),
        (Choices { hosts: absent().into_iter().collect(), ..Choices::default() }, "--host"),
        (Choices { nodes: vec![("esx1".to_owned(), absent())], ..Choices::default() }, "--node esx1"),
    ] {
        let unplaced = notes(&run(&choices), NoteKind::Unplaced);
        let expected = format!("{ABSENT} of {option} is logged in at no switch of the inputs");
        assert_eq!(unplaced, [expected], "{option}");
    }
    let fitting = Choices {
        storage: ports(&[STORAGE]).into_iter().collect(),
        hosts: ports(&[HOST]).into_iter().collect(),
        nodes: vec![("esx1".to_owned(), ports(&[HOST]))],
    };
    assert_eq!(notes(&run(&fitting), NoteKind::Unplaced), [""; 0]);
}

#[test]
fn a_chosen_node_whose_ports_have_both_roles_is_reported_as_two() {
    let choices = Choices { nodes: vec![("box".to_owned(), ports(&[HOST, STORAGE]))], ..Choices::default() };
    let imported = run(&choices);
    let conflicts = notes(&imported, NoteKind::Conflict);
    assert!(
        conflicts.iter().any(|note| note.starts_with("--node box") && note.ends_with("box, box-2")),
        "{conflicts:?}"
    );
}

#[test]
fn choices_that_exclude_each_other_are_named() {
    let both = Choices {
        storage: ports(&[HOST]).into_iter().collect(),
        hosts: ports(&[HOST]).into_iter().collect(),
        ..Choices::default()
    };
    assert_eq!(
        both.contradictions(),
        [format!("{HOST} is chosen for a host and for storage; keep --host or --storage")]
    );
    let two = Choices {
        nodes: vec![("a".to_owned(), ports(&[HOST])), ("b".to_owned(), ports(&[HOST]))],
        ..Choices::default()
    };
    assert_eq!(two.contradictions(), [format!("{HOST} is chosen for the nodes a and b; name it with --node once")]);
    let mixed = Choices {
        storage: ports(&[STORAGE]).into_iter().collect(),
        hosts: ports(&[HOST]).into_iter().collect(),
        nodes: vec![("box".to_owned(), ports(&[HOST, STORAGE]))],
    };
    assert_eq!(mixed.contradictions().len(), 1, "{:?}", mixed.contradictions());
}
