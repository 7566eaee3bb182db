//! Costs of I/O on the processors of hosts.

use crate::labs::{lab, run};
use sanloom_api::results::{HostResult, Results};

/// Returns the results of one host with this table, whose storage is not the limit.
fn host(table: &str, workload: &str) -> HostResult {
    let text = format!(
        "[run]\nduration = \"200ms\"\nwarmup = \"20ms\"\n[switch.sw1]\n[host.server]\nqueue_depth = 256\n{table}\n\
         [storage.disk]\nrate = \"5000k/s\"\n[[link]]\nfrom = \"{{server,disk}}\"\nto = \"sw1\"\nrate = \"128GFC\"\n\
         [workload.load]\nhosts = \"server\"\ntargets = \"disk\"\n{workload}\n"
    );
    let results: Results = run(&lab(&text));
    results.hosts.into_iter().next().unwrap()
}

#[test]
fn throughput_over_cores_follows_the_law_of_scaling() {
    let (lock, coherence) = (0.05, 0.002);
    for cores in [1u32, 2, 4, 8, 16] {
        let n = f64::from(cores);
        let table = format!(
            "processor = {{ cores = {cores}, lock_share = {lock}, coherence_share = {coherence} }}\n\
             fc_cost = {{ per_command = \"20us\" }}"
        );
        let found = host(&table, "depth = 128\nsize = \"512B\"");
        let expected = n / (20e-6 * (1.0 + lock * (n - 1.0) + coherence * n * (n - 1.0)));
        let ratio = found.io.iops / expected;
        assert!((ratio - 1.0).abs() < 0.01, "{cores} cores: {} instead of {expected}", found.io.iops);
        assert!(found.cpu_utilisation > 0.99, "{cores} cores: {}", found.cpu_utilisation);
    }
}

#[test]
fn work_bound_to_an_adapter_uses_one_core() {
    let table = "processor = { cores = 4, affinity = \"adapter\" }\nfc_cost = { per_command = \"20us\" }";
    let found = host(table, "depth = 128\nsize = \"512B\"");
    assert!((found.io.iops / 50_000.0 - 1.0).abs() < 0.01, "{}", found.io.iops);
    assert!((found.cpu_utilisation - 0.25).abs() < 0.01, "{}", found.cpu_utilisation);
}

#[test]
fn processor_time_is_that_of_commands_and_data_and_is_reported_by_kind() {
    let table = "fc_cost = { per_command = \"10us\", per_kib_read = \"100ns\", per_kib_written = \"200ns\" }";
    for (share, per_kib) in [("1.0", 100.0e-9), ("0.0", 200.0e-9)] {
        let found = host(table, &format!("depth = 4\nsize = \"64KiB\"\nread_share = {share}"));
        let commands = found.io.ios_completed as f64;
        let work = |name: &str| found.cpu_work.iter().find(|work| work.name == name).map_or(0.0, |work| work.cpu_s);
        assert!((work("command") / (commands * 10e-6) - 1.0).abs() < 0.01, "{:?}", found.cpu_work);
        assert!((work("data") / (commands * 64.0 * per_kib) - 1.0).abs() < 0.01, "{:?}", found.cpu_work);
        let per_gb = (10e-6 + 64.0 * per_kib) / 65_536.0 * 1e9;
        assert!((found.cpu_s_per_gb / per_gb - 1.0).abs() < 0.01, "{} instead of {per_gb}", found.cpu_s_per_gb);
    }
}

#[test]
fn the_processor_of_an_hba_handles_one_command_after_the_other() {
    let table = "hba_processor = { per_read = \"28.4us\", per_write = \"48.5us\", per_kib = \"1us\" }";
    for (share, time) in [("1.0", 29.4e-6), ("0.0", 49.5e-6)] {
        let found = host(table, &format!("depth = 16\nsize = \"1KiB\"\nread_share = {share}"));
        assert!((found.io.iops * time - 1.0).abs() < 0.01, "{}", found.io.iops);
        assert!(found.hba_utilisation > 0.99, "{}", found.hba_utilisation);
    }
}

#[test]
fn adaptive_interrupts_wait_little_without_load_and_long_with_load() {
    let fixed = "interrupt = { cost = \"1us\", max_frames = 64, max_wait = \"200us\" }";
    let adaptive = "interrupt = { cost = \"1us\", max_frames = 64, max_wait = \"200us\", min_wait = \"2us\" }";
    let light = "depth = 1\nsize = \"512B\"";
    let (slow, fast) = (host(fixed, light), host(adaptive, light));
    assert!(slow.io.latency.mean_us > fast.io.latency.mean_us + 190.0, "{:?} {:?}", slow.io.latency, fast.io.latency);
    let heavy = "depth = 128\nsize = \"512B\"";
    let found = host(adaptive, heavy);
    let per_interrupt = found.io.ios_completed as f64 / found.interrupts as f64;
    assert!(per_interrupt > 20.0, "{per_interrupt} completions for an interrupt");
}
