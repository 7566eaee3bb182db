//! `fcping`: ECHO to a port (FC-LS), through a host that is logged in (the Open-FCoE slides).

use super::fcnsq::query_name;
use super::{RunFolder, ask, fc_id, hex, print_json};
use clap::ArgGroup;
use sanloom_api::fcoe::{FcoeAnswer, FcoeRequest, NameQuery, Named};
use sanloom_console::exit::Failure;
use sanloom_console::quantity;
use sanloom_console::{interrupt, output};
use serde::Serialize;
use std::time::Duration;

/// Options of `fcping`.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true, group(ArgGroup::new("destination").required(true)))]
pub struct Args {
    /// Host that sends the requests: its interface, or its name
    #[arg(short = 'h', long = "host", value_name = "SOURCE")]
    host: String,
    /// Send to this FC-ID
    #[arg(short = 'F', value_name = "FC-ID", value_parser = fc_id, group = "destination")]
    port_id: Option<u32>,
    /// Send to the port with this name
    #[arg(short = 'P', value_name = "WWPN", value_parser = hex, group = "destination")]
    port_name: Option<u64>,
    /// Send to the first port of the node with this name
    #[arg(short = 'N', value_name = "WWNN", value_parser = hex, group = "destination")]
    node_name: Option<u64>,
    /// Number of requests [default: until Ctrl-C]
    #[arg(short, value_name = "COUNT", value_parser = quantity::count::<u64>(0..=u64::MAX))]
    count: Option<u64>,
    /// Interval between requests in seconds, at most a day
    #[arg(short, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Payload of a request in bytes, a multiple of four up to 2108
    #[arg(short, value_name = "BYTES", default_value_t = 32, value_parser = echo_bytes)]
    size: u16,
    /// Send requests without an interval
    #[arg(short)]
    flood: bool,
    /// Print the summary only
    #[arg(short)]
    quiet: bool,
    /// Print the summary only, as JSON
    #[arg(long)]
    json: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[command(flatten)]
    run: RunFolder,
}

/// Summary of the replies.
#[derive(Serialize)]
struct Summary {
    /// Destination address.
    port_id: u32,
    sent: u64,
    received: u64,
    /// Average round-trip time in milliseconds; `None` without replies.
    average_ms: Option<f64>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let with_unit = || sanloom_lab::parse_time(text).ok().map(|time| time.as_secs_f64());
    let seconds = text.parse().ok().or_else(with_unit).filter(|seconds| (0.0..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "write seconds from 0 to 86400, such as 0.5 or 500ms".to_owned())
}

/// Parses the payload size in bytes, a multiple of four because FC words have four bytes.
fn echo_bytes(text: &str) -> Result<u16, String> {
    let bytes = quantity::size::<u16>(0..=2_108, quantity::BYTES)(text).ok().filter(|bytes| bytes.is_multiple_of(4));
    bytes.ok_or_else(|| "write a multiple of four, from 0 to 2108".to_owned())
}

/// Sends ECHO requests and prints the replies.
///
/// # Errors
/// When the host is not logged in, the port is unknown, or no reply arrived.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (path, _) = args.run.instance(&args.host)?;
    let query = match (args.port_id, args.port_name, args.node_name) {
        (None, Some(port_name), _) => Some(NameQuery::PortIdOfPort { port_name }),
        (None, None, Some(node_name)) => Some(NameQuery::PortIdOfNode { node_name }),
        _ => None,
    };
    let port_id = match query.map(|query| query_name(&path, query)).transpose()? {
        Some(Named::PortId { port_id }) => port_id,
        Some(_) => return Err(Failure::protocol("the name server sent an invalid answer")),
        None => args.port_id.unwrap_or(0),
    };
    if !args.json {
        output::print(&format!("sending echo to 0x{port_id:06X}\n"))?;
    }
    let (mut sent, mut received, mut micros_sum) = (0_u64, 0_u64, 0_u64);
    while !interrupt::requested() && args.count.is_none_or(|count| sent < count) {
        if sent > 0 && !args.flood && !interrupt::pause(args.interval) {
            break;
        }
        sent += 1;
        let line = match ask(&path, FcoeRequest::Echo { port_id, bytes: args.size }) {
            Ok(Some(FcoeAnswer::Echoed { micros, same: true })) => {
                received += 1;
                micros_sum += micros;
                format!("echo {sent:4} accepted {:28.3} ms\n", micros as f64 / 1e3)
            }
            Ok(_) => format!("echo {sent:4} returned different data\n"),
            Err(failure) => format!("echo {sent:4} {}\n", failure.message),
        };
        if !args.quiet && !args.json {
            output::print(&line)?;
        }
    }
    let average_ms = (received > 0).then(|| micros_sum as f64 / received as f64 / 1e3);
    if args.json {
        print_json(&Summary { port_id, sent, received, average_ms })?;
    } else {
        let lost = sent - received;
        let share = if sent > 0 { lost as f64 / sent as f64 * 100.0 } else { 0.0 };
        let average = average_ms.unwrap_or(0.0);
        output::print(&format!(
            "{sent} frames sent, {received} received {lost} errors, {share:.3}% loss, avg. rt time {average:.3} ms\n"
        ))?;
    }
    if received == 0 { Err(Failure::protocol("no echo came back")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_times_and_sizes_are_rejected() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(echo_bytes("2108"), Ok(2_108));
        for wrong in ["nan", "inf", "-1", "86401", "x"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        for wrong in ["30", "2112", "-4", "x"] {
            assert!(echo_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
