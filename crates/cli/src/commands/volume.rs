//! `sanloom volume`: virtual disks of a running lab.

use crate::instance;
use clap::Subcommand;
use sanloom_api::control::{Answer, Request};
use sanloom_api::view::{Table, View};
use sanloom_api::volume::{Served, VolumeAction, VolumeRow};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::output;
use sanloom_console::outputs::{Json, Sets};
use sanloom_console::quantity;
use sanloom_console::report::format::{bytes, clean};
use sanloom_console::report::terminal::view;

/// Options of `sanloom volume`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// Commands for virtual disks.
#[derive(Subcommand, Debug)]
enum What {
    /// Create a volume from the extents of a pool
    #[command(
        after_help = "Example:\n  sanloom volume create lab.toml mail --pool disks --size 100GiB --storage switch"
    )]
    Create(CreateArgs),
    /// Extend a volume while hosts use it
    #[command(after_help = "Example:\n  sanloom volume extend lab.toml mail --size 200GiB")]
    Extend(ExtendArgs),
    /// Delete a volume and its data
    #[command(after_help = "Example:\n  sanloom volume delete lab.toml mail")]
    Delete(NameArgs),
    /// Map a volume to a LUN of a storage system
    #[command(after_help = "Example:\n  sanloom volume map lab.toml mail --storage switch --lun 4")]
    Map(MapArgs),
    /// Unmap a volume from its storage system; its data are kept
    #[command(after_help = "Example:\n  sanloom volume unmap lab.toml mail")]
    Unmap(NameArgs),
    /// Show volumes and pools; with a name, the location of the volume's blocks
    #[command(after_help = "Example:\n  sanloom volume show lab.toml --name mail")]
    Show(ShowArgs),
}

#[derive(clap::Args, Debug)]
struct NameArgs {
    #[command(flatten)]
    file: LabFile,
    /// Name of the volume
    #[arg(value_name = "VOLUME")]
    name: String,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    json: Json,
}

#[derive(clap::Args, Debug)]
struct CreateArgs {
    #[command(flatten)]
    at: NameArgs,
    /// Pool that provides the extents
    #[arg(long, value_name = "POOL")]
    pool: String,
    /// Size with its unit, for example 100GiB
    #[arg(long, value_name = "SIZE", value_parser = sanloom_lab::parse_size)]
    size: u64,
    /// Number of back ends over which the volume is striped; 1: linear
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = quantity::count::<u16>(0..=65_535))]
    width: u16,
    /// Size of a stripe
    #[arg(long, value_name = "SIZE", value_parser = sanloom_lab::parse_size, default_value = "64KiB")]
    stripe: u64,
    /// Storage system that serves the volume [default: none, until `sanloom volume map`]
    #[arg(long, value_name = "STORAGE")]
    storage: Option<String>,
    /// LUN in the storage system [default: the lowest free one]
    #[arg(long, value_name = "N", requires = "storage")]
    lun: Option<u16>,
}

#[derive(clap::Args, Debug)]
struct ExtendArgs {
    #[command(flatten)]
    at: NameArgs,
    /// New size with its unit
    #[arg(long, value_name = "SIZE", value_parser = sanloom_lab::parse_size)]
    size: u64,
}

#[derive(clap::Args, Debug)]
struct MapArgs {
    #[command(flatten)]
    at: NameArgs,
    /// Storage system with `medium = "volumes"`
    #[arg(long, value_name = "STORAGE")]
    storage: String,
    /// LUN in the storage system [default: the lowest free one]
    #[arg(long, value_name = "N")]
    lun: Option<u16>,
}

#[derive(clap::Args, Debug)]
struct ShowArgs {
    #[command(flatten)]
    file: LabFile,
    /// Volume whose block locations are shown
    #[arg(long, value_name = "VOLUME")]
    name: Option<String>,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    json: Json,
}

/// Sends the request to the running instance.
///
/// # Errors
/// When the lab is invalid, no instance of it is running, or the instance rejects the request.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Create(args) => {
            let served = args.storage.clone().map(|storage| Served { storage, lun: args.lun });
            let action = VolumeAction::Create {
                name: args.at.name.clone(),
                pool: args.pool.clone(),
                size_bytes: args.size,
                width: args.width,
                stripe_bytes: if args.width > 1 { args.stripe } else { 0 },
                served,
            };
            changed(&args.at, action, |row| {
                let layout = match row.width {
                    0 | 1 => "linear".to_owned(),
                    width => format!("{width} stripes of {}", bytes(row.stripe_bytes)),
                };
                format!("created: {}, {layout}, {}", bytes(row.size_bytes), serving(row))
            })
        }
        What::Extend(args) => {
            let action = VolumeAction::Extend { name: args.at.name.clone(), size_bytes: args.size };
            changed(&args.at, action, |row| format!("extended to {}", bytes(row.size_bytes)))
        }
        What::Delete(at) => {
            ask(&at.file, &at.sets, VolumeAction::Delete { name: at.name.clone() })?;
            let text = format!("{} deleted; its extents are wiped before they are used again\n", at.name);
            at.json.write_or_print(&serde_json::json!({ "deleted": at.name }), || text)
        }
        What::Map(args) => {
            let served = Served { storage: args.storage.clone(), lun: args.lun };
            changed(&args.at, VolumeAction::Map { name: args.at.name.clone(), served }, serving)
        }
        What::Unmap(at) => changed(at, VolumeAction::Unmap { name: at.name.clone() }, serving),
        What::Show(args) => {
            let Answer::View(table) = ask(&args.file, &args.sets, VolumeAction::Show { name: args.name.clone() })?
            else {
                return Err(instance::unexpected_answer());
            };
            args.json.write_or_print(&table, || view::render_live(&table, output::width()))
        }
    }
}

/// Changes a volume and prints the result in one line.
fn changed(at: &NameArgs, action: VolumeAction, describe: impl Fn(&VolumeRow) -> String) -> Result<(), Failure> {
    let row = match ask(&at.file, &at.sets, action)? {
        Answer::View(View { table: Table::Volumes(table), .. }) => table.volumes.into_iter().next(),
        _ => None,
    };
    let row = row.ok_or_else(instance::unexpected_answer)?;
    at.json.write_or_print(&row, || format!("{} {}\n", clean(&row.name), describe(&row)))
}

fn serving(row: &VolumeRow) -> String {
    match &row.served {
        Some(Served { storage, lun: Some(lun) }) => format!("is LUN {lun} of {}", clean(storage)),
        Some(Served { storage, lun: None }) => format!("is served by {}", clean(storage)),
        None => "is not served; `sanloom volume map` makes it a LUN".to_owned(),
    }
}

fn ask(file: &LabFile, sets: &Sets, action: VolumeAction) -> Result<Answer, Failure> {
    let lab = input::load_running(file, &sets.set)?.lab;
    instance::command(&lab, None, &Request::Volume { action })
}
