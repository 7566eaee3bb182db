//! Long campaigns, before a release or before an issue is called resolved.

use std::process::Command;

/// Runs each campaign with many more cases than CI does.
///
/// # Errors
///
/// A campaign found something.
pub fn soak(_args: &[String]) -> Result<(), String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    for (package, test) in [("sanloom-sim", "frame_path"), ("sanloom-sim", "random_labs")] {
        eprintln!("soak: {package}, {test}");
        let status = Command::new(&cargo)
            .args(["test", "--release", "-p", package, "--test", test])
            .env("PROPTEST_CASES", "20000")
            .env("SANLOOM_SEEDS", "20000")
            .status();
        if !status.map_err(|e| format!("cargo: {e}"))?.success() {
            return Err(format!("{test} found something"));
        }
    }
    Ok(())
}
