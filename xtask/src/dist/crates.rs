//! The crates, as `cargo publish` would upload them.

use super::{Dist, copy, entries, fresh, read, run, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packs every crate that is published, after the checks of `cargo publish --dry-run`. The crates
/// are not on crates.io yet, so the build of the packed crates is a step of its own: it takes them
/// from the folder that this function unpacks.
pub fn build(dist: &Dist) -> Result<Vec<PathBuf>, String> {
    let (packed, unpacked) = (dist.out.join("crates"), dist.out.join("unpacked"));
    let target = dist.out.join("publish");
    fresh(&target)?;
    let mut cargo = dist.cargo();
    cargo.args(["publish", "--workspace", "--dry-run", "--no-verify", "--allow-dirty", "--quiet", "--locked"]);
    run(cargo.arg("--target-dir").arg(&target))?;
    fresh(&packed)?;
    fresh(&unpacked)?;
    let mut crates = Vec::new();
    // A dry run of `cargo publish` leaves the files in the inner folder, `cargo package` in the
    // outer one.
    let folders = [target.join("package"), target.join("package/tmp-crate")];
    let files: Vec<Vec<PathBuf>> = folders.iter().filter_map(|folder| entries(folder).ok()).collect();
    for from in files.concat() {
        if from.extension().is_none_or(|extension| extension != "crate") {
            continue;
        }
        let to = packed.join(from.file_name().unwrap_or_default());
        fs::rename(&from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
        run(Command::new("tar").arg("-xzf").arg(&to).arg("-C").arg(&unpacked))?;
        crates.push(to);
    }
    if crates.is_empty() {
        return Err(format!("cargo left no crates in {}", target.display()));
    }
    write(&unpacked.join("Cargo.toml"), workspace(&unpacked, &read(&dist.root.join("Cargo.toml"))?)?)?;
    copy(&dist.root.join("Cargo.lock"), &unpacked.join("Cargo.lock"))?;
    // Drops what is not published from the lock file, and keeps every version.
    let mut metadata = dist.cargo();
    metadata.current_dir(&unpacked).args(["metadata", "--offline", "--quiet", "--format-version", "1"]);
    run(metadata.stdout(std::process::Stdio::null()))?;
    fs::remove_dir_all(&target).map_err(|error| format!("{}: {error}", target.display()))?;
    Ok(crates)
}

/// Manifest of a workspace in which the unpacked crates depend on one another. It has the profiles
/// of `manifest` for libraries from crates.io, which are therefore those of the usual build.
fn workspace(unpacked: &Path, manifest: &str) -> Result<String, String> {
    let mut patches = String::new();
    let mut names = Vec::new();
    for folder in entries(unpacked)?.iter().filter(|path| path.is_dir()) {
        let folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = folder.rsplit_once('-').map_or(&*folder, |(name, _)| name);
        patches += &format!("{name} = {{ path = \"{folder}\" }}\n");
        names.push(name.to_owned());
    }
    let profiles: String = manifest
        .split_inclusive('\n')
        .skip_while(|line| !line.starts_with("[profile."))
        .filter(|line| !line.starts_with("sanloom"))
        .collect();
    // Only whether they compile and work matters, not their speed.
    let fast: String = names.iter().map(|name| format!("{name}.opt-level = 0\n")).collect();
    let profiles = profiles.replace("[profile.release.package]\n", &format!("[profile.release.package]\n{fast}"));
    Ok(format!("[workspace]\nresolver = \"3\"\nmembers = [\"sanloom*\"]\n\n[patch.crates-io]\n{patches}\n{profiles}"))
}
