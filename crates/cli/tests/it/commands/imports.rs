//! `sanloom import` and `sanloom export`: the guide, whose commands run, and the options.

use crate::commands::tool::Bench;
use std::path::Path;
use std::process::Command;

/// Samples of the importer's tests.
const SAMPLES: [&str; 5] = ["fos_session.txt", "fos_supportshow.txt", "nxos_core.txt", "nxos_edge.txt", "rest.json"];

fn bench(name: &str) -> Bench {
    let bench = Bench::new(name);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/tests/it/import");
    for sample in SAMPLES {
        bench.write(sample, &std::fs::read_to_string(folder.join(sample)).expect("a sample"));
    }
    bench
}

/// Runs a line of the guide. `cat` and `sed` are those of the system.
fn output(bench: &Bench, line: &str) -> String {
    if let Some(words) = line.strip_prefix("sanloom ") {
        let ran = bench.run(words);
        assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
        return ran.stderr + &ran.stdout;
    }
    let output = Command::new("sh").args(["-c", line]).current_dir(bench.path(".")).output().expect("sh runs");
    assert!(output.status.success(), "{line}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_guide_shows_what_its_commands_print() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/guides/import.md");
    let page = std::fs::read_to_string(&path).expect("the guide");
    let bench = bench("import-guide");
    let mut real = String::new();
    let mut is_console = false;
    for line in page.lines() {
        match line {
            "```console" => is_console = true,
            "```" => is_console = false,
            _ if is_console && !line.starts_with("$ ") => continue,
            _ => {}
        }
        real += line;
        real += "\n";
        if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            real += &output(&bench, command);
        }
    }
    if std::env::var_os("SANLOOM_BLESS").is_some() {
        std::fs::write(&path, &real).expect("the guide can be written");
        return;
    }
    assert_eq!(page, real, "SANLOOM_BLESS=1 cargo test -p sanloom the_guide_shows writes it");
}

#[test]
fn check_whatif_and_zone_preview_work_on_an_imported_lab() {
    let bench = bench("import-use");
    assert_eq!(bench.run(&format!("import {} -o lab.toml", SAMPLES.join(" "))).code, 0);
    let check = bench.run("check lab.toml --json");
    assert_eq!(check.code, 0, "{}", check.stderr);
    let topology = &serde_json::from_str::<serde_json::Value>(&check.stdout).expect("JSON")["topology"];
    assert_eq!([&topology["switches"], &topology["isls"]], [6, 5]);
    assert_eq!(topology["fabrics"], serde_json::json!(["sanA1, sanA2", "core-b1, edge-b2", "sanC1, sanC2"]));
    assert!(bench.read("lab.toml").contains("[workload.imported1]"));
    let whatif = bench.run("whatif lab.toml --only switch --set run.duration=200ms");
    assert_eq!(whatif.code, 0, "{}", whatif.stderr);
    assert!(whatif.stdout.contains("sanA2"), "{}", whatif.stdout);
    bench.write("edits.toml", "[[edit]]\naction = \"delete\"\nzone = \"mail1_arr\"\n\n[[edit]]\naction = \"remove\"\nconfig = \"all-fabrics\"\nzones = \"mail1_arr\"\n\n[[edit]]\naction = \"remove\"\nconfig = \"prod_a\"\nzones = \"mail1_arr\"\n\n[[edit]]\naction = \"delete\"\nconfig = \"test_a\"\n");
    let preview = bench.run("zone preview lab.toml --edit edits.toml");
    assert_eq!(preview.code, 0, "{}", preview.stderr);
}

#[test]
fn strict_fails_on_a_line_without_a_place_and_json_lists_it() {
    let bench = bench("import-strict");
    let ran = bench.run("import nxos_core.txt --strict --json -o lab.toml");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let account: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let notes = account["notes"].as_array().expect("notes");
    let unplaced: Vec<&serde_json::Value> = notes.iter().filter(|note| note["kind"] == "unplaced").collect();
    assert_eq!(unplaced.len(), 1);
    assert_eq!(unplaced[0]["places"][0]["line"], 59);
    assert_eq!(bench.run("import rest.json --strict -o lab.toml --force").code, 0);
    assert_eq!(bench.run("import missing.txt -o lab2.toml").code, 2);
    assert_eq!(bench.run("import rest.json --storage x -o lab.toml").code, 2);
}

#[test]
fn zones_of_several_fabrics_are_exported_one_by_one() {
    let bench = bench("export-config");
    assert_eq!(bench.run(&format!("import {} -o lab.toml", SAMPLES.join(" "))).code, 0);
    let refused = bench.run("export zones lab.toml --format fos");
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("--config"), "{}", refused.stderr);
    let vsan = bench.run("export zones lab.toml --format nxos --config prod_b");
    assert!(vsan.code == 2 && vsan.stderr.contains("--vsan"), "{}", vsan.stderr);
    let nxos = bench.run("export zones lab.toml --format nxos --config prod_b --vsan 20 -o b.txt");
    assert_eq!(nxos.code, 0, "{}", nxos.stderr);
    insta::assert_snapshot!(bench.read("b.txt") + "\n" + &bench.read("b.undo.txt"));
}

#[test]
fn an_existing_file_is_replaced_with_force_only() {
    let bench = bench("import-force");
    bench.write("lab.toml", "mine");
    let refused = bench.run("import rest.json -o lab.toml");
    assert!(refused.code == 2 && refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(bench.read("lab.toml"), "mine");
    assert_eq!(bench.run("import rest.json -o lab.toml --force").code, 0);
    assert!(bench.read("lab.toml").contains("[switch."));
    assert_eq!(bench.run("import rest.json -o new.toml").code, 0);
}

#[test]
fn an_import_into_dev_stdout_is_printed_and_a_reader_that_closes_early_ends_it() {
    let bench = bench("import-stdout");
    let printed = bench.run("import rest.json -o /dev/stdout");
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    assert!(printed.stdout.starts_with("#:schema sanloom.schema.json\n"), "{}", printed.stdout);
    assert_eq!(printed.stdout, bench.run("import rest.json").stdout);
    // A redirection to a file, which `-o` must not replace by another one.
    let command = format!("'{}' import rest.json -o /dev/stdout > lab.toml", crate::sanloom::SANLOOM);
    output(&bench, &command);
    assert_eq!(bench.read("lab.toml"), printed.stdout);
    assert!(bench.run("import rest.json --json=/dev/stdout -o /dev/stdout").stderr.contains("mixed"));
    // The reader is gone before the first byte, also behind the name of a link.
    for name in ["/dev/stdout", "/dev/fd/1", "-"] {
        let mut command = Command::new(crate::sanloom::SANLOOM);
        command.current_dir(bench.path(".")).args(["import", "rest.json", "-o", name]);
        let mut child =
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(0) && !text.contains("panic"), "{name}: {:?} {text}", ended.status);
    }
}

#[test]
fn a_lab_that_does_not_pass_its_own_check_is_written_and_an_error() {
    let bench = bench("import-invalid");
    // The switch has the world-wide name of the host.
    let name = "10:00:00:10:9b:1c:00:01";
    let head = format!("switchName: sw1\nswitchDomain: 1\nswitchWwn: {name}\n");
    let row = format!("Index Port Address Media Speed State Proto\n 0 0 010000 id N16 Online FC F-Port {name}\n");
    bench.write("sw1.txt", &(head + &row));
    let ran = bench.run("import sw1.txt -o invalid.toml");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("does not pass its own check"), "{}", ran.stderr);
    assert!(bench.read("invalid.toml").contains("[switch.sw1]"));
}

/// Zones in force that differ from their definitions.
const ONLY_IN_FORCE: &str = include_str!("../../../../../examples/zones-only-in-force.toml");

#[test]
fn zones_that_are_only_in_force_are_neither_enabled_nor_edited() {
    let bench = bench("export-only-in-force");
    bench.write("old.toml", ONLY_IN_FORCE);
    bench.write("new.toml", &ONLY_IN_FORCE.replace("[\"server1\", \"disk1\"]", "[\"server1\", \"disk1\", \"1,7\"]"));
    let ran = bench.run("export zones new.toml --from old.toml --format fos -o saved.txt");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("leaves the zones in force as they are"), "{}", ran.stderr);
    assert_eq!(bench.read("saved.txt"), "zoneadd \"backup\", \"1,7\"\ncfgsave\ny\n");
    let set = "--set zoning.effective=prod";
    let ran = bench.run(&format!("export zones new.toml {set} --from old.toml --format fos -o enabled.txt"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(bench.read("enabled.txt"), "zoneadd \"backup\", \"1,7\"\ncfgenable \"prod\"\ny\n");
    assert!(bench.read("enabled.undo.txt").contains("cfgcreate \"prod_effective\", \"backup_effective\"\n"));
    let ran = bench.run("export zones new.toml --config prod_effective --format fos");
    assert!(ran.code == 2 && ran.stderr.contains("name `prod` with --config"), "{}", ran.stderr);
}

#[test]
fn a_file_in_utf_16_is_read_as_in_utf_8() {
    let bench = bench("import-utf16");
    let text = bench.read("fos_session.txt");
    let bytes: Vec<u8> = [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(bench.run("import fos_session.txt -o plain.toml").code, 0);
    std::fs::write(bench.path("fos_session.txt"), bytes).expect("the file can be written");
    assert_eq!(bench.run("import fos_session.txt -o wide.toml").code, 0);
    assert_eq!(bench.read("plain.toml"), bench.read("wide.toml"));
}

/// Two fabrics that use the same names, and a virtual fabric of two.
const EXAMPLE: &str = include_str!("../../../../../examples/export-names.toml");

#[test]
fn the_undo_for_one_of_two_fabrics_keeps_zoning_on_with_the_names_of_its_switches() {
    let bench = bench("export-names");
    bench.write("old.toml", EXAMPLE);
    bench.write("new.toml", &EXAMPLE.replace("\"esx:1\", \"array:1\"", "\"esx:1\", \"array:1\", \"1,7\""));
    let ran = bench.run("export zones new.toml --from old.toml --config PROD-2 --format fos -o change.txt");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // Earlier files are replaced on request only, the script and the one that undoes it.
    let again = "export zones new.toml --from old.toml --config PROD-2 --format fos";
    for output in ["-o change.txt", "-o other.txt --undo change.undo.txt"] {
        let refused = bench.run(&format!("{again} {output}"));
        assert!(refused.code == 2 && refused.stderr.contains("replace it with --force"), "{}", refused.stderr);
        assert_eq!(bench.run(&format!("{again} {output} --force")).code, 0);
    }
    let ran = bench.run("export zones new.toml --from old.toml --config PROD-2 --format nxos --vsan 20 -o nx.txt");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let files = ["change.txt", "change.undo.txt", "nx.txt", "nx.undo.txt"].map(|name| bench.read(name));
    let nx = |word: &str| {
        format!(
            "configure terminal\nzone name z_esx vsan 20\n  {word} domain-id 1 port-number 7\n\
             zoneset activate name PROD vsan 20\nend\ncopy running-config startup-config\n"
        )
    };
    let expected = [
        "zoneadd \"z_esx\", \"1,7\"\ncfgenable \"PROD\"\ny\n".to_owned(),
        "zoneremove \"z_esx\", \"1,7\"\ncfgenable \"PROD\"\ny\n".to_owned(),
        nx("member"),
        nx("no member"),
    ];
    assert_eq!(files, expected);
}

#[test]
fn zones_of_several_virtual_fabrics_need_a_choice() {
    let bench = bench("export-fid");
    let head = "[host.\"h{1..2}\"]\n[storage.\"d{1..2}\"]\n[[link]]\nfrom = \"h{1..2}\"\nto = \"v{1..2}\"\n[[link]]\nfrom = \"d{1..2}\"\nto = \"v{1..2}\"\n";
    let switch = |n: u32| {
        format!(
            "[switch.v{n}]\nvirtual_fabric = {{ chassis = \"c\", id = {n}, ports = [\"{}\", \"{}\"] }}\n",
            n * 10,
            n * 10 + 1
        )
    };
    let zone = |n: u32| format!("[[zone]]\nname = \"z{n}\"\nmembers = [\"h{n}\", \"d{n}\"]\nvirtual_fabric = {n}\n");
    let config = "[[zone_config]]\nname = \"c\"\nzones = [\"z1\", \"z2\"]\n";
    bench.write("lab.toml", &[&switch(1), &switch(2), head, &zone(1), &zone(2), config].concat());
    let refused = bench.run("export zones lab.toml --format fos");
    assert!(refused.code == 2 && refused.stderr.contains("--fid: 1, 2"), "{}", refused.stderr);
    let ran = bench.run("export zones lab.toml --format fos --fid 2");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("z2") && !ran.stdout.contains("z1"), "{}", ran.stdout);
    for absent in ["--format fos --fid 3", "--format nxos --vsan 3"] {
        let ran = bench.run(&format!("export zones lab.toml {absent}"));
        assert!(ran.code == 2 && ran.stdout.is_empty(), "{absent}: {}", ran.stdout);
        assert!(
            ran.stderr.contains("the lab has no virtual fabric 3") && ran.stderr.contains(": 1, 2"),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(bench.run("export zones lab.toml --format nxos --fid 2").code, 2);
    assert_eq!(bench.run("export zones lab.toml --format fos --vsan 2").code, 2);
}

#[test]
fn a_port_that_is_chosen_for_both_roles_is_refused() {
    let bench = bench("import-choices");
    let port = "10:00:00:10:9b:1c:01:01";
    let ran = bench.run(&format!("import fos_session.txt --host {port} --storage {port}"));
    assert!(ran.code == 2 && ran.stdout.is_empty(), "{}", ran.stdout);
    assert!(ran.stderr.contains(&format!("{port} is chosen for a host and for storage")), "{}", ran.stderr);
}
