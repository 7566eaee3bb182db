//! `sanloom users`: the users of the page and of the management interfaces of a lab.

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::outputs::{Json, Sets};
use sanloom_live::runtime::plan::LabPaths;
use sanloom_surface::server::users::{Role, Users};
use serde::Serialize;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Write, stderr, stdin};
use std::path::PathBuf;

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
    role: String,
}

#[derive(clap::Args, Debug)]
struct RoleArgs {
    #[command(flatten)]
    user: UserArgs,
    /// New permission of the user
    #[arg(value_name = "ROLE", value_parser = roles())]
    role: String,
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

fn roles() -> PossibleValuesParser {
    PossibleValuesParser::new(Role::ALL.map(Role::word))
}

/// Shows or changes the user table.
///
/// # Errors
/// When the table cannot be read or written, or has no such user.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::List(args) => list(args),
        What::Add(args) => {
            let mut table = Table::of(&args.user)?;
            if table.role(&args.user.name).is_some() {
                return Err(Failure::usage(format_args!(
                    "the user {} exists; change it with `sanloom users role` or `sanloom users password`",
                    args.user.name
                )));
            }
            table.set(&args.user.name, role(&args.role), &password()?)
        }
        What::Remove(args) => {
            let mut table = Table::of(args)?;
            table.existing(&args.name)?;
            table.users.remove(&args.name);
            table.write()
        }
        What::Role(args) => {
            let mut table = Table::of(&args.user)?;
            table.existing(&args.user.name)?;
            table.users.set_role(&args.user.name, role(&args.role));
            table.write()
        }
        What::Password(args) => {
            let mut table = Table::of(args)?;
            let role = table.existing(&args.name)?;
            table.set(&args.name, role, &password()?)
        }
    }
}

fn role(word: &str) -> Role {
    // The parser of the command line permits the words of roles only.
    Role::from_word(word).unwrap_or(Role::View)
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let table = Table::read(&args.file, &args.sets)?;
    let rows: Vec<UserRow<'_>> = table.users.iter().map(|(name, role)| UserRow { name, role: role.word() }).collect();
    args.json.write_or_print(&rows, || {
        let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        rows.iter().map(|row| format!("{:width$}  {}\n", row.name, row.role)).collect()
    })
}

/// The user table of a lab.
struct Table {
    path: PathBuf,
    users: Users,
}

impl Table {
    fn of(args: &UserArgs) -> Result<Table, Failure> {
        Table::read(&args.file, &args.sets)
    }

    fn read(file: &LabFile, sets: &Sets) -> Result<Table, Failure> {
        let lab = input::load_running(file, &sets.set)?.lab;
        let path = LabPaths::of(&lab).folder().join("users");
        let users = match Users::read(&path).map_err(Failure::environment)? {
            Some(users) => users,
            None => Users::new().map_err(Failure::environment)?,
        };
        Ok(Table { path, users })
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
        self.users.set(name, role, password).map_err(Failure::usage)?;
        self.write()
    }

    fn write(&self) -> Result<(), Failure> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let written = fs::create_dir_all(folder).and_then(|()| self.users.write(&self.path));
        written.map_err(|error| Failure::environment(format_args!("cannot write {}: {error}", self.path.display())))
    }
}

/// Reads a password: at a terminal twice and without echo, otherwise the first line.
fn password() -> Result<String, Failure> {
    if !stdin().is_terminal() {
        return line().map_err(Failure::environment);
    }
    let read = |prompt: &str| hidden(prompt).map_err(Failure::environment);
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

/// Terminal whose echo is off.
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
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(stdin(), OptionalActions::Flush, &silent)?;
    let _restored = Silent(before);
    line()
}
