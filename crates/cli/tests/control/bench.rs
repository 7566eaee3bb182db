//! Measurements of a running switch: that something is measured, not how fast it is.

use crate::peer::run;

fn numbers(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&run(env!("CARGO_BIN_EXE_sanloom"), &[arguments, &["--json", "-"]].concat())).unwrap()
}

#[test]
fn forwarding_is_measured_beside_a_forwarder_that_looks_at_nothing() {
    let found = numbers(&["bench", "forward", "--rounds", "1"]);
    assert_eq!(found["frame_bytes"], 2172);
    for way in ["switch", "bare"] {
        assert!(found[way]["frames"].as_u64() > Some(1_000) && found[way]["frames_per_cpu_s"].as_f64() > Some(0.0));
    }
    let ratio =
        found["switch"]["frames_per_cpu_s"].as_f64().unwrap() / found["bare"]["frames_per_cpu_s"].as_f64().unwrap();
    assert!((found["ratio"].as_f64().unwrap() - ratio).abs() < 1e-9, "{found}");
}

#[test]
fn logins_over_the_wire_are_measured() {
    let found = numbers(&["bench", "fdisc", "--logins", "2500", "--window", "7"]);
    assert_eq!((&found["logins"], &found["window"]), (&2500.into(), &7.into()));
    for part in ["median_us", "p99_us"] {
        let values = found[part].as_array().unwrap();
        assert!(values.len() == 3 && values.iter().all(|value| value.as_f64() > Some(0.0)), "{found}");
    }
}

#[test]
fn a_chain_is_measured_beside_one_of_bare_datagrams() {
    let found = numbers(&["bench", "chain", "--rounds", "1", "--size", "8"]);
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["op"].as_str().unwrap()).collect::<Vec<_>>(), ["read", "write"]);
    for row in rows {
        let frames: f64 = row["frames"].as_array().unwrap().iter().filter_map(|frames| frames.as_f64()).sum();
        // A command, 8 KiB of data in four or five frames, a response; permission before data are written.
        assert!((5.5..9.5).contains(&frames), "{row}");
        assert!(row["mb_per_cpu_s"].as_f64() > Some(0.0) && row["bare_mb_per_cpu_s"].as_f64() > Some(0.0), "{row}");
    }
}
