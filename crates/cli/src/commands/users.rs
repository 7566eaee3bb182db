//! `sanloom users`: the users of the page and of the management interfaces of a lab.

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::output;
use sanloom_console::outputs::{Json, Sets};
use sanloom_live::runtime::plan::LabPaths;
use sanloom_surface::server::users::{Role, Users};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufRead, IsTerminal, Write, stderr, stdin};
use std::path::{Path, PathBuf};

/// Byte of Ctrl-C.
const INTERRUPT: u8 = 3;

/// Options of `sanloom users`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// Commands for users.
#[derive(Subcommand, Debug)]
enum What {
    /// Add a user; the password comes from a prompt, or from the first line of standard input
    #[command(after_help = "Example:\n  sanloom users add lab.toml ada --role operate")]
    Add(AddArgs),
    /// List the users and their roles
    #[command(after_help = "Example:\n  sanloom users list lab.toml")]
    List(ListArgs),
    /// Remove a user
    #[command(after_help = "Example:\n  sanloom users remove lab.toml ada")]
    Remove(UserArgs),
    /// Change the role of a user
    #[command(after_help = "Example:\n  sanloom users role lab.toml ada view")]
    Role(RoleArgs),
    /// Change the password of a user
    #[command(after_help = "Example:\n  sanloom users password lab.toml ada")]
    Password(UserArgs),
}

#[derive(clap::Args, Debug)]
struct UserArgs {
    #[command(flatten)]
    file: LabFile,
    /// Name of the user
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    sets: Sets,
}

#[derive(clap::Args, Debug)]
struct AddArgs {
    #[command(flatten)]
    user: UserArgs,
    /// Permission of the user
    #[arg(long, value_name = "ROLE", default_value = "view", value_parser = roles())]
    role: Role,
}

#[derive(clap::Args, Debug)]
struct RoleArgs {
    #[command(flatten)]
    user: UserArgs,
    /// New permission of the user
    #[arg(value_name = "ROLE", value_parser = roles())]
    role: Role,
}

#[derive(clap::Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    file: LabFile,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    json: Json,
}

/// A user in JSON.
#[derive(Serialize)]
struct UserRow<'a> {
    name: &'a str,
    role: &'static str,
}

fn roles() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::word))
        .try_map(|word| Role::from_word(&word).ok_or_else(|| format!("`{word}` is no role")))
}

/// Shows or changes the user table.
///
/// # Errors
/// When the table cannot be read or written, or has no such user.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::List(args) => list(args),
        What::Add(args) => {
            let name = &args.user.name;
            let path = path(&args.user.file, &args.user.sets)?;
            Table::read(&path)?.absent(name)?;
            let password = password()?;
            Table::change(&path, |table| {
                table.absent(name)?;
                table.set(name, args.role, &password)
            })
        }
        What::Remove(args) => {
            let path = path(&args.file, &args.sets)?;
            Table::change(&path, |table| {
                table.existing(&args.name)?;
                table.users.remove(&args.name);
                Ok(())
            })
        }
        What::Role(args) => {
            let name = &args.user.name;
            let path = path(&args.user.file, &args.user.sets)?;
            Table::change(&path, |table| {
                table.existing(name)?;
                table.users.set_role(name, args.role);
                Ok(())
            })
        }
        What::Password(args) => {
            let path = path(&args.file, &args.sets)?;
            Table::read(&path)?.existing(&args.name)?;
            let password = password()?;
            Table::change(&path, |table| {
                let role = table.existing(&args.name)?;
                table.set(&args.name, role, &password)
            })
        }
    }
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let table = Table::read(&path(&args.file, &args.sets)?)?;
    let rows: Vec<UserRow<'_>> = table.users.iter().map(|(name, role)| UserRow { name, role: role.word() }).collect();
    args.json.write_or_print(&rows, || {
        let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        rows.iter().map(|row| format!("{:width$}  {}\n", row.name, row.role)).collect()
    })
}

/// Path of the user table of a lab. A symbolic link is followed.
fn path(file: &LabFile, sets: &Sets) -> Result<PathBuf, Failure> {
    let path = LabPaths::users(&input::load_running(file, &sets.set)?.lab);
    Ok(fs::canonicalize(&path).unwrap_or(path))
}

/// The user table of a lab.
struct Table {
    path: PathBuf,
    users: Users,
}

impl Table {
    fn read(path: &Path) -> Result<Table, Failure> {
        let failed = |error: io::Error| match error.kind() {
            // The error names the line.
            io::ErrorKind::InvalidData => Failure::environment(error),
            _ => Failure::environment(format_args!("cannot read {}: {error}", path.display())),
        };
        let users = match Users::read(path).map_err(failed)? {
            Some(users) => users,
            None => Users::new().map_err(Failure::environment)?,
        };
        Ok(Table { path: path.to_owned(), users })
    }

    /// Changes the table. Other commands that change it wait meanwhile.
    fn change(path: &Path, change: impl FnOnce(&mut Table) -> Result<(), Failure>) -> Result<(), Failure> {
        let failed = |error| Failure::environment(format_args!("cannot write {}: {error}", path.display()));
        let folder = path.parent().unwrap_or(path);
        fs::create_dir_all(folder).map_err(failed)?;
        let locked = File::open(folder).and_then(|folder| folder.lock().map(|()| folder)).map_err(failed)?;
        let mut table = Table::read(path)?;
        change(&mut table)?;
        table.users.write(path).map_err(failed)?;
        drop(locked);
        output::note(&format!("The users are in {}.", path.display()));
        Ok(())
    }

    /// Refuses a user that exists.
    fn absent(&self, name: &str) -> Result<(), Failure> {
        match self.role(name) {
            None => Ok(()),
            Some(_) => Err(Failure::usage(format_args!(
                "the user {name} exists; change it with `sanloom users role` or `sanloom users password`"
            ))),
        }
    }

    fn role(&self, name: &str) -> Option<Role> {
        self.users.iter().find(|(known, _)| *known == name).map(|(_, role)| role)
    }

    fn existing(&self, name: &str) -> Result<Role, Failure> {
        self.role(name).ok_or_else(|| {
            let names: Vec<&str> = self.users.iter().map(|(name, _)| name).collect();
            let known = if names.is_empty() { "no user".to_owned() } else { names.join(", ") };
            Failure::usage(format_args!("there is no user `{name}`; {} has {known}", self.path.display()))
        })
    }

    fn set(&mut self, name: &str, role: Role, password: &str) -> Result<(), Failure> {
        self.users.set(name, role, password).map_err(Failure::usage)
    }
}

/// Reads a password: at a terminal twice and without echo, otherwise the first line.
fn password() -> Result<String, Failure> {
    if !stdin().is_terminal() {
        return line().map_err(Failure::environment);
    }
    let read = |prompt: &str| {
        hidden(prompt).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => Failure::interrupted("nothing is changed"),
            _ => Failure::environment(error),
        })
    };
    let first = read("Password: ")?;
    match read("Again: ")? == first {
        true => Ok(first),
        false => Err(Failure::usage("the two passwords differ; nothing is changed")),
    }
}

/// Returns the next line of standard input without its end.
fn line() -> io::Result<String> {
    let mut line = String::new();
    stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Terminal whose echo and signals are off.
struct Silent(Termios);

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
        let _ = writeln!(stderr());
    }
}

fn hidden(prompt: &str) -> io::Result<String> {
    write!(stderr(), "{prompt}")?;
    let before = tcgetattr(stdin())?;
    let mut silent = before.clone();
    // A signal would end the program before the terminal is restored. Ctrl-C ends the line instead.
    silent.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    silent.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
    tcsetattr(stdin(), OptionalActions::Flush, &silent)?;
    let _restored = Silent(before);
    typed(|| {
        let mut byte = [0];
        let length = rustix::io::retry_on_intr(|| rustix::io::read(stdin(), &mut byte))?;
        Ok((length > 0).then_some(byte[0]))
    })
}

/// Returns a line from bytes, without its end.
///
/// # Errors
/// Ctrl-C is an error of the kind `Interrupted`.
fn typed(mut next: impl FnMut() -> io::Result<Option<u8>>) -> io::Result<String> {
    let mut line = Vec::new();
    while let Some(byte) = next()?.filter(|byte| *byte != b'\n') {
        if byte == INTERRUPT {
            return Err(io::ErrorKind::Interrupted.into());
        }
        line.push(byte);
    }
    String::from_utf8(line).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a password is a text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_line_ends_with_its_newline_and_ctrl_c_interrupts_it() {
        let typed = |bytes: &[u8]| {
            let mut bytes = bytes.iter().copied();
            typed(|| Ok(bytes.next())).map_err(|error| error.kind())
        };
        assert_eq!(typed(b"correct horse\nmore"), Ok("correct horse".to_owned()));
        assert_eq!(typed(b"no newline"), Ok("no newline".to_owned()));
        assert_eq!(typed(b"correct\x03horse\n"), Err(io::ErrorKind::Interrupted));
        assert_eq!(typed(b"\xff\n"), Err(io::ErrorKind::InvalidData));
    }
}
