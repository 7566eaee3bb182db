//! Tests of the configuration in force among several fabrics.

use super::part::in_force;

/// Two fabrics with a host and a disk each. `zones` ends the lab.
fn lab(zones: &str) -> sanloom_fc::san::Lab {
    let text = format!(
        "[switch.\"{{a,b}}\"]\n[host.\"h{{a,b}}\"]\n[storage.\"d{{a,b}}\"]\n\
         [[link]]\nfrom = \"h{{a,b}}\"\nto = \"{{a,b}}\"\n[[link]]\nfrom = \"d{{a,b}}\"\nto = \"{{a,b}}\"\n{zones}"
    );
    crate::load("lab.toml", &text, &[]).unwrap_or_else(|wrong| panic!("{wrong}")).lab
}

const ZONES: &str = "[zoning]\neffective = \"all-fabrics\"\n\
    [[zone]]\nname = \"own_a\"\nmembers = [\"ha\", \"da\"]\n\
    [[zone]]\nname = \"own_b\"\nmembers = [\"hb\", \"db\"]\n\
    [[zone]]\nname = \"more_b\"\nmembers = [\"db\"]\n\
    [[zone]]\nname = \"test_a\"\nmembers = [\"da\"]\n\
    [[zone]]\nname = \"shared\"\nmembers = [\"ha\", \"hb\"]\n";

fn config(name: &str, zones: &[&str]) -> String {
    format!("[[zone_config]]\nname = \"{name}\"\nzones = {zones:?}\n")
}

fn found(configs: &[(&str, &[&str])], of: &str, zones: &[&str]) -> Result<Option<String>, String> {
    let lab = lab(&(ZONES.to_owned() + &configs.iter().map(|(name, zones)| config(name, zones)).collect::<String>()));
    let zones: Vec<String> = zones.iter().map(|zone| (*zone).to_owned()).collect();
    in_force(&lab, &lab.zone_database, of, &zones).map_err(|problem| problem.to_string())
}

#[test]
fn a_zone_that_both_fabrics_share_does_not_choose_the_configuration_of_the_other_one() {
    let configs: &[(&str, &[&str])] = &[
        ("all-fabrics", &["own_a", "own_b", "more_b", "shared"]),
        ("prod_a", &["own_a", "shared"]),
        ("prod_b", &["own_b", "more_b", "shared"]),
        ("night_a", &["own_a", "test_a", "shared"]),
    ];
    // The configuration of fabric B is larger and has the shared zone, too.
    assert_eq!(found(configs, "night_a", &["shared"]), Ok(Some("prod_a".to_owned())));
    assert_eq!(found(configs, "prod_a", &[]), Ok(Some("prod_a".to_owned())));
    assert_eq!(found(configs, "prod_b", &[]), Ok(Some("prod_b".to_owned())));
    // A configuration that is still empty, and gets a zone of fabric B.
    assert_eq!(found(configs, "new", &["more_b"]), Ok(Some("prod_b".to_owned())));
}

#[test]
fn a_fabric_with_zoning_off_has_no_configuration_in_force() {
    let configs: &[(&str, &[&str])] = &[
        ("all-fabrics", &["own_b", "more_b", "shared"]),
        ("prod_b", &["own_b", "more_b", "shared"]),
        ("off_a", &["own_a", "shared"]),
    ];
    assert_eq!(found(configs, "off_a", &[]), Ok(None));
    assert_eq!(found(configs, "prod_b", &[]), Ok(Some("prod_b".to_owned())));
}

#[test]
fn a_configuration_of_shared_zones_only_is_not_guessed() {
    let configs: &[(&str, &[&str])] = &[
        ("all-fabrics", &["own_a", "own_b", "shared"]),
        ("prod_a", &["own_a", "shared"]),
        ("prod_b", &["own_b", "shared"]),
        ("both", &["shared"]),
    ];
    let problem = found(configs, "both", &[]).unwrap_err();
    assert!(problem.contains("set `effective` in [zoning]"), "{problem}");
}

/// A configuration in force whose ports do not tell its fabric may be that of the fabric in
/// question, whose zoning an undo script must not disable.
#[test]
fn zoning_is_off_only_if_each_configuration_in_force_is_of_another_fabric() {
    let configs: &[(&str, &[&str])] = &[
        ("all-fabrics", &["own_b", "shared"]),
        ("prod_a", &["shared"]),
        ("prod_b", &["own_b", "shared"]),
        ("night_a", &["own_a"]),
    ];
    let problem = found(configs, "night_a", &[]).unwrap_err();
    assert!(problem.contains("set `effective` in [zoning]"), "{problem}");
}
