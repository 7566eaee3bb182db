//! The Debian package: the program, its unit of systemd, man pages and completions.

use super::tree::{self, Manuals, packaging, set_mode};
use super::{Dist, copy, fresh, output, read, run, write};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Revision of the package, after the version of sanloom.
const REVISION: u32 = 1;

pub fn build(dist: &Dist) -> Result<Vec<PathBuf>, String> {
    let staging = dist.out.join("deb");
    fresh(&staging)?;
    let usr = staging.join("usr");
    let doc = usr.join("share/doc/sanloom");
    tree::stage(dist, &usr, Manuals::Compressed)?;
    let version = format!("{}-{REVISION}", dist.version);
    write(&doc.join("copyright"), copyright(dist)?)?;
    write(&doc.join("changelog.Debian"), changelog(dist, &version)?)?;
    run(Command::new("gzip").arg("-9n").arg(doc.join("changelog.Debian")))?;
    write(&doc.join("changelog"), read(&dist.root.join("CHANGELOG.md"))?)?;
    run(Command::new("gzip").arg("-9n").arg(doc.join("changelog")))?;
    for (file, to) in [
        ("systemd/sanloom@.service", "lib/systemd/system/sanloom@.service"),
        ("systemd/sysusers.conf", "lib/sysusers.d/sanloom.conf"),
        ("systemd/ethernet.conf", "share/doc/sanloom/ethernet.conf"),
        ("systemd/ports.conf", "share/doc/sanloom/ports.conf"),
        ("debian/lintian-overrides", "share/lintian/overrides/sanloom"),
    ] {
        copy(&dist.root.join("packaging").join(file), &usr.join(to))?;
        set_mode(&usr.join(to), 0o644)?;
    }
    fs::create_dir_all(staging.join("etc/sanloom")).map_err(|error| error.to_string())?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    // Debian counts KiB.
    let size = output(Command::new("du").args(["-sk", "--apparent-size"]).arg(&staging))?;
    let control = packaging(dist, "debian/control")?
        .replace("@VERSION@", &version)
        .replace("@ARCHITECTURE@", architecture)
        .replace("@SIZE@", size.split_whitespace().next().unwrap_or("0"));
    write(&staging.join("DEBIAN/control"), control)?;
    let files = Command::new("find").current_dir(&staging).args(["usr", "-type", "f", "-print0"]).output();
    let mut names: Vec<String> = String::from_utf8_lossy(&files.map_err(|error| format!("find: {error}"))?.stdout)
        .split_terminator('\0')
        .map(str::to_owned)
        .collect();
    names.sort();
    let sums = output(Command::new("md5sum").current_dir(&staging).arg("--").args(&names))?;
    write(&staging.join("DEBIAN/md5sums"), sums)?;
    for script in ["postinst", "prerm", "postrm"] {
        let to = staging.join("DEBIAN").join(script);
        copy(&dist.root.join("packaging/debian").join(script), &to)?;
        set_mode(&to, 0o755)?;
    }
    let package = dist.out.join(format!("sanloom_{version}_{architecture}.deb"));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.env("SOURCE_DATE_EPOCH", dist.time()).args(["--root-owner-group", "-Zxz", "-z6", "--build"]);
    run(dpkg.arg(&staging).arg(&package).stdout(std::process::Stdio::null()))?;
    Ok(vec![package])
}

/// Entry of this version; users read CHANGELOG.md.
fn changelog(dist: &Dist, version: &str) -> Result<String, String> {
    let date = output(Command::new("date").args(["-u", "-R", "-d", &format!("@{}", dist.time())]))?;
    let by = packaging(dist, "debian/control")?;
    let by = by.lines().find_map(|line| line.strip_prefix("Maintainer: ")).ok_or("control has no maintainer")?;
    Ok(format!("sanloom ({version}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- {by}  {date}"))
}

/// Machine-readable copyright, with the notices that the licences require.
fn copyright(dist: &Dist) -> Result<String, String> {
    let field = |text: &str| {
        let line = |line: &str| if line.trim().is_empty() { " .\n".to_owned() } else { format!(" {line}\n") };
        text.trim_end().lines().map(line).collect::<String>()
    };
    let mit = read(&dist.root.join("LICENSE-MIT"))?;
    let disksim = read(&dist.root.join("crates/bench/data/disk-traces/LICENCE-DiskSim-4.0.txt"))?;
    let uplot = read(&dist.root.join("crates/console/assets/uplot/LICENSE"))?;
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: sanloom\n\
         Source: https://github.com/sanloom/sanloom\n\
         Comment: The binary contains the crates of crates.txt, with their licences.\n\n\
         Files: *\nCopyright: sanloom developers\nLicense: Apache-2.0 or Expat\n\n\
         License: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n\n\
         License: Expat\n{}\n\
         Comment: Traces of disks and parameters of three presets, in the binary, are from DiskSim 4.0:\n{}\n\
         Comment: uPlot draws the charts of reports:\n{}",
        field(&mit),
        field(&disksim),
        field(&uplot)
    ))
}
