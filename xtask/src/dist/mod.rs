//! Packages for users: a static binary, a Debian package, the wheel, crates and a container.

mod crates;
mod deb;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Largest size of the stripped binary, in bytes. The profile `release` leaves parts of the program
/// without optimisation, so its binary is larger.
const MAX_BINARY: u64 = 25_000_000;
/// Parts in the order in which each can use the previous ones.
const PARTS: [&str; 5] = ["binary", "deb", "container", "wheel", "crates"];

/// Paths and names of one build.
struct Dist {
    root: PathBuf,
    /// `target/packages`; `target/dist` belongs to the profile.
    out: PathBuf,
    /// Profile of Cargo.
    profile: String,
    version: String,
}

/// Builds the requested parts into `target/packages`.
///
/// # Errors
/// A wrong argument, a missing tool, or a step that failed.
pub fn dist(args: &[String]) -> Result<(), String> {
    let mut profile = "dist".to_owned();
    let mut parts = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), PARTS.iter().find(|part| *part == arg)) {
            ("--profile", _) => profile = args.next().ok_or("--profile needs a name, such as release")?.clone(),
            (_, Some(part)) => parts.push(*part),
            _ => return Err(format!("no part is named `{arg}`; the parts are {}", PARTS.join(", "))),
        }
    }
    let root = crate::root();
    let manifest = read(&root.join("Cargo.toml"))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    let version = version.ok_or("Cargo.toml has no version")?.to_owned();
    let dist = Dist { out: root.join("target/packages"), root, profile, version };
    for part in PARTS.iter().filter(|part| parts.is_empty() || parts.contains(part)) {
        let made = match *part {
            "binary" => dist.binary(),
            "deb" => deb::build(&dist),
            "container" => dist.container(),
            "wheel" => dist.wheel(),
            _ => crates::build(&dist),
        };
        for path in made.map_err(|reason| format!("{part}: {reason}"))? {
            let size = fs::metadata(&path).map_or(0, |meta| meta.len());
            let path = path.strip_prefix(&dist.root).unwrap_or(&path).display().to_string();
            println!("{part}: {path}, {:.1} MB", size as f64 / 1e6);
        }
    }
    Ok(())
}

impl Dist {
    /// The static binary, its man pages and completions, and an archive of all.
    ///
    /// Only the last step, linking, differs from the usual build, so the libraries are shared with
    /// it. glibc is linked statically, because its `malloc` and string functions are faster than
    /// those of musl, and because the toolchain needs no second target.
    fn binary(&self) -> Result<Vec<PathBuf>, String> {
        let mut cargo = self.cargo();
        cargo.args(["rustc", "--quiet", "--locked", "--profile", &self.profile, "-p", "sanloom", "--bin", "sanloom"]);
        cargo.args(["--", "-C", "target-feature=+crt-static", "-C", "strip=symbols"]);
        // Relocations of a program at a random address take 4 MB without this.
        cargo.args(["-C", "link-arg=-Wl,-z,pack-relative-relocs"]);
        // The linker of the toolchain keeps one of several functions with the same code, which are
        // mostly instances of generic ones for types of the same layout.
        if cfg!(target_arch = "x86_64") {
            cargo.args(["-C", "link-arg=-Wl,--icf=all"]);
        }
        run(&mut cargo)?;
        fresh(&self.out.join("bin"))?;
        let binary = self.binary_path();
        copy(&self.root.join("target").join(&self.profile).join("sanloom"), &binary)?;
        let size = fs::metadata(&binary).map_err(|error| error.to_string())?.len();
        if size > MAX_BINARY && self.profile == "dist" {
            return Err(format!(
                "the binary has {size} bytes, more than {MAX_BINARY}; `nm --size-sort` of a build without strip lists what \
                 is large"
            ));
        }
        if !is_static(&fs::read(&binary).map_err(|error| error.to_string())?) {
            return Err("the binary needs a dynamic loader".to_owned());
        }
        let pages = self.pages();
        fresh(&pages)?;
        run(Command::new(&binary).arg("man").arg(&pages).stdout(std::process::Stdio::null()))?;
        // The archive has the layout of /usr/local.
        let name = format!("sanloom-{}-{}-linux", self.version, std::env::consts::ARCH);
        let staging = self.out.join("archive");
        fresh(&staging)?;
        tree::stage(self, &staging.join(&name), tree::Manuals::Plain)?;
        for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&self.root.join(file), &staging.join(&name).join("share/doc/sanloom").join(file))?;
        }
        let archive = self.out.join(format!("{name}.tar.gz"));
        run(self.tar().arg("-C").arg(&staging).arg("-f").arg(&archive).arg(&name))?;
        Ok(vec![binary, archive])
    }

    /// The context of the container: the recipe and the root folder of the image.
    fn container(&self) -> Result<Vec<PathBuf>, String> {
        let context = self.out.join("container");
        fresh(&context)?;
        tree::stage(self, &context.join("root/usr"), tree::Manuals::None)?;
        for folder in ["root/tmp", "root/var/lib/sanloom", "root/lab"] {
            fs::create_dir_all(context.join(folder)).map_err(|error| error.to_string())?;
            // The user of the image has no entry in a table of users.
            tree::set_mode(&context.join(folder), 0o1777)?;
        }
        copy(&self.root.join("packaging/Containerfile"), &context.join("Containerfile"))?;
        Ok(vec![context.join("Containerfile")])
    }

    /// The wheel, built by maturin: of the environment of the tests, or on PATH.
    fn wheel(&self) -> Result<Vec<PathBuf>, String> {
        let wheels = self.out.join("wheels");
        fresh(&wheels)?;
        let own = self.root.join("target/python/bin/maturin");
        let mut maturin = Command::new(if own.exists() { own } else { "maturin".into() });
        maturin.current_dir(&self.root).args(["build", "--quiet", "--locked", "--profile", &self.profile]);
        maturin.args(["--manifest-path", "crates/python/Cargo.toml", "--target-dir", "target", "--out"]);
        run(maturin.arg(&wheels)).map_err(|reason| format!("{reason}; tests/python/install.sh installs maturin"))?;
        entries(&wheels)
    }

    fn binary_path(&self) -> PathBuf {
        self.out.join("bin/sanloom")
    }

    /// Folder of the man pages and completions.
    fn pages(&self) -> PathBuf {
        self.out.join("pages")
    }

    fn cargo(&self) -> Command {
        let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
        cargo.current_dir(&self.root);
        cargo
    }

    /// `tar` that packs the same files into the same bytes.
    fn tar(&self) -> Command {
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--use-compress-program=gzip -9n", "-c"]);
        tar.arg(format!("--mtime=@{}", self.time()));
        tar
    }

    /// Time of the last commit, in seconds since 1970, so that packages of one commit are equal.
    fn time(&self) -> String {
        let output = Command::new("git").current_dir(&self.root).args(["log", "-1", "--format=%ct"]).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
        std::env::var("SOURCE_DATE_EPOCH").unwrap_or(if text.is_empty() { "0".to_owned() } else { text })
    }
}

/// True if an ELF file for this machine names no dynamic loader (program header PT_INTERP).
fn is_static(elf: &[u8]) -> bool {
    let number = |at: usize, length: usize| {
        let bytes = elf.get(at..at + length)?;
        Some(bytes.iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    let interpreter = || {
        let (offset, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        Some((0..count).any(|header| number(offset + header * size, 4) == Some(3)))
    };
    elf.starts_with(b"\x7fELF\x02\x01") && interpreter() == Some(false)
}

/// Runs a command that must succeed.
fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
}

/// Output of a command that must succeed.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Makes an empty folder.
fn fresh(folder: &Path) -> Result<(), String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a file and the folders above it.
fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, content));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a file with its mode, and makes the folders above it.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().unwrap_or(to);
    let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(from, to));
    copied.map(|_| ()).map_err(|error| format!("{}: {error}", from.display()))
}

/// Files of a folder, in order.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let read = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile takes over the levels of `release` for the crates that it does not name.
    #[test]
    fn the_published_program_has_no_crate_without_optimisation() {
        let manifest = fs::read_to_string(crate::root().join("Cargo.toml")).unwrap();
        let section = |name: &str| -> Vec<(String, String)> {
            let lines =
                manifest.lines().skip_while(|line| *line != name).skip(1).take_while(|line| !line.starts_with('['));
            let level = |line: &str| {
                let (of, level) = line.split_once(".opt-level = ")?;
                Some((of.to_owned(), level.to_owned()))
            };
            lines.filter_map(level).collect()
        };
        let (release, dist) = (section("[profile.release.package]"), section("[profile.dist.package]"));
        assert!(release.len() > 50 && dist.iter().any(|(of, _)| of == "\"*\""));
        for (of, _) in &release {
            let level = dist.iter().find(|(other, _)| other == of);
            assert!(level.is_some(), "[profile.dist.package] does not name {of}, so it has the level of release");
        }
        for (of, level) in &dist {
            assert!(matches!(&**level, "3" | "\"s\"" | "\"z\""), "{of} has the level {level}");
        }
    }

    #[test]
    fn a_program_with_a_dynamic_loader_is_not_static() {
        let mut elf = vec![0; 64 + 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[32], elf[54], elf[56]) = (64, 56, 1);
        elf[64] = 1;
        assert!(is_static(&elf));
        elf[64] = 3;
        assert!(!is_static(&elf));
        assert!(!is_static(b"#!/bin/sh\n"));
        assert!(!is_static(b"\x7fELF\x02\x01"), "cut off");
    }
}
