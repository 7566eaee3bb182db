//! The files of an installed program below `/usr` or `/usr/local`.

use super::{Dist, copy, entries, output, read, run, write};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Form of the man pages and completions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manuals {
    None,
    Plain,
    /// As Debian requires it.
    Compressed,
}

/// Puts the program, its man pages, completions, documents and examples into `usr`.
pub fn stage(dist: &Dist, usr: &Path, manuals: Manuals) -> Result<(), String> {
    copy(&dist.binary_path(), &usr.join("bin/sanloom"))?;
    let doc = usr.join("share/doc/sanloom");
    let examples = dist.root.join("examples");
    copy_tree(&examples, &doc.join("examples"))?;
    write(&doc.join("crates.txt"), licences(dist)?)?;
    if manuals == Manuals::None {
        return set_modes(usr);
    }
    for page in entries(&dist.pages().join("man1"))? {
        let to = usr.join("share/man/man1").join(page.file_name().unwrap_or_default());
        copy(&page, &to)?;
        if manuals == Manuals::Compressed {
            run(Command::new("gzip").arg("-9nf").arg(&to))?;
        }
    }
    let completions = dist.pages().join("completions");
    for (shell, to) in [
        ("bash", "bash-completion/completions/sanloom"),
        (
            "zsh",
            if manuals == Manuals::Compressed {
                "zsh/vendor-completions/_sanloom"
            } else {
                "zsh/site-functions/_sanloom"
            },
        ),
        ("fish", "fish/vendor_completions.d/sanloom.fish"),
    ] {
        copy(&completions.join(format!("sanloom.{shell}")), &usr.join("share").join(to))?;
    }
    set_modes(usr)
}

/// Names, versions and licences of the crates in the binary.
fn licences(dist: &Dist) -> Result<String, String> {
    let mut tree = dist.cargo();
    tree.args(["tree", "--locked", "-p", "sanloom", "-e", "normal,no-proc-macro", "--prefix", "none"]);
    let text = output(tree.args(["--format", "{p}: {l}"]))?;
    // Crates of the workspace are named with the folder of the build.
    let crates = text.lines().filter(|line| !line.contains(" (/") && !line.is_empty());
    let mut crates: Vec<&str> = crates.map(|line| line.trim_end_matches(" (*)")).collect();
    crates.sort_unstable();
    crates.dedup();
    Ok(format!("Crates that are compiled into sanloom, and their licences.\n\n{}\n", crates.join("\n")))
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), String> {
    for path in entries(from)? {
        let to = to.join(path.file_name().unwrap_or_default());
        match path.is_dir() {
            true => copy_tree(&path, &to)?,
            false => copy(&path, &to)?,
        }
    }
    Ok(())
}

/// Sets the usual modes, regardless of those of the checkout.
fn set_modes(folder: &Path) -> Result<(), String> {
    set_mode(folder, 0o755)?;
    for path in entries(folder)? {
        if path.is_dir() {
            set_modes(&path)?;
        } else {
            let is_program = path.parent().is_some_and(|folder| folder.ends_with("bin"));
            set_mode(&path, if is_program { 0o755 } else { 0o644 })?;
        }
    }
    Ok(())
}

pub fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    let set = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set.map_err(|error| format!("{}: {error}", path.display()))
}

/// Text of a file of `packaging`.
pub fn packaging(dist: &Dist, name: &str) -> Result<String, String> {
    read(&dist.root.join("packaging").join(name))
}
