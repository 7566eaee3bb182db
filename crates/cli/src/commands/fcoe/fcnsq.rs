//! `fcnsq`: name server queries through a host that is logged in (the Open-FCoE slides).

use super::{RunFolder, ask, fc_id, hex, print_json, wwn};
use clap::ArgGroup;
use sanloom_api::fcoe::{FcoeAnswer, FcoeRequest, NameQuery, Named};
use sanloom_console::exit::Failure;
use sanloom_console::output;
use std::path::Path;

/// Options of `fcnsq`.
#[derive(clap::Args, Debug)]
#[command(group(ArgGroup::new("query").required(true)))]
pub struct Args {
    /// Host that sends the query: its interface, or its name
    #[arg(value_name = "HOST")]
    host: String,
    /// Port name of an FC-ID
    #[arg(long, value_name = "PORT_ID", value_parser = fc_id, group = "query")]
    gpn: Option<u32>,
    /// Node name of an FC-ID
    #[arg(long, value_name = "PORT_ID", value_parser = fc_id, group = "query")]
    gnn: Option<u32>,
    /// Symbolic name of the port with an FC-ID
    #[arg(long, value_name = "PORT_ID", value_parser = fc_id, group = "query")]
    gspn: Option<u32>,
    /// Symbolic name of a node
    #[arg(long, value_name = "WWNN", value_parser = hex, group = "query")]
    gsnn: Option<u64>,
    /// Every port that the host may see
    #[arg(long, group = "query")]
    all: bool,
    /// Print only the requested value
    #[arg(short, long)]
    quiet: bool,
    /// Print the answers as JSON
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
    #[command(flatten)]
    run: RunFolder,
}

/// Sends the query and prints the answer.
///
/// # Errors
/// When the host is not logged in, or the name server has no matching entry.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (path, _) = args.run.instance(&args.host)?;
    if args.all {
        return all(args, &path);
    }
    let id = args.gpn.or(args.gnn).or(args.gspn).unwrap_or(0);
    let (query, about, what) = match args.gsnn {
        Some(node_name) => (NameQuery::SymbolicNodeName { node_name }, wwn(node_name), "Symbolic Node Name"),
        None if args.gpn.is_some() => (NameQuery::PortName { port_id: id }, format!("0x{id:06X}"), "Port Name"),
        None if args.gnn.is_some() => (NameQuery::NodeName { port_id: id }, format!("0x{id:06X}"), "Node Name"),
        None => (NameQuery::SymbolicPortName { port_id: id }, format!("0x{id:06X}"), "Symbolic Port Name"),
    };
    let found = query_name(&path, query)?;
    if args.json {
        return print_json(&found);
    }
    let found = match found {
        Named::PortName { name } | Named::NodeName { name } => wwn(name),
        Named::SymbolicName { name } => name,
        other => format!("{other:?}"),
    };
    output::print(&match args.quiet {
        true => format!("{found}\n"),
        false => format!("{what} of {about}: {found}\n"),
    })
}

/// Lists all ports by walking through the name server.
fn all(args: &Args, path: &Path) -> Result<(), Failure> {
    let mut ports = Vec::new();
    let mut text = String::new();
    if !args.quiet {
        text += &format!("{:<8}  {:<18}  {:<18}  Symbolic Port Name\n", "FC-ID", "Port Name", "Node Name");
    }
    let mut last = None;
    loop {
        // After the last port the name server returns the first one again.
        let answer = query_name(path, NameQuery::Next { port_id: last.unwrap_or(0) })?;
        let Named::Port { port_id, port_name, node_name, symbolic_port_name, .. } = &answer else { break };
        let (port_id, port_name, node_name) = (*port_id, *port_name, *node_name);
        if last.is_some_and(|last| port_id <= last) {
            break;
        }
        last = Some(port_id);
        text += &format!("0x{port_id:06X}  {}  {}  {symbolic_port_name}\n", wwn(port_name), wwn(node_name));
        ports.push(answer);
    }
    if args.json {
        return print_json(&ports);
    }
    output::print(&text)
}

pub(super) fn query_name(path: &Path, query: NameQuery) -> Result<Named, Failure> {
    match ask(path, FcoeRequest::NameServer { query })? {
        Some(FcoeAnswer::Named { found }) => Ok(found),
        _ => Err(Failure::protocol("the name server sent an invalid answer")),
    }
}
