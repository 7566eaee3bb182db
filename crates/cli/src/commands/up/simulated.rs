//! `sanloom up --simulated`: the fabric of a lab in virtual time, with the interfaces of a running
//! lab.

use super::{Args, failure, listen, record_of, report_ready};
use sanloom_console::exit::Failure;
use sanloom_console::interrupt;
use sanloom_console::paced::{Clients, Pacer};
use sanloom_console::run::{self, View};
use sanloom_lab::LoadedLab;
use sanloom_sim::run::go_on;
use std::sync::Arc;

/// Runs a lab in virtual time until it is terminated.
///
/// # Errors
/// When the lab runs already, or an address is not available.
pub(super) fn run(args: &Args, loaded: LoadedLab) -> Result<(), Failure> {
    let mut lab = loaded.lab;
    lab.live.registers_adapters = true;
    let lab = Arc::new(lab);
    let control = listen(&lab, None).map_err(failure)?;
    let record_of_instance = record_of(&lab, args);
    #[cfg(feature = "surface")]
    let folder = sanloom_live::runtime::plan::LabPaths::of(&lab);
    #[cfg(feature = "surface")]
    let login = crate::web::Login::new(folder.folder(), args.background.is_some());
    #[cfg(feature = "surface")]
    let (page, drawing) = super::page(args, lab.clone(), &control, &login, loaded.isolated)?;
    #[cfg(feature = "surface")]
    let management = super::management(args, &lab, &control, &login, &drawing)?;
    let mut unready = None;
    let mut pacer = Pacer::new(&control, args.pace, Clients::Operate, || {
        super::notify_service_manager();
        unready = args.ready_fd.map(report_ready).and_then(Result::err);
        tracing::info!(lab = lab.name, pace = %args.pace, links = lab.links.len(), "up, simulated");
    });
    let mut limit = |world: &mut _| pacer.limit_ps(world);
    let mut finished = run::run(&lab, View { limit: Some(&mut limit), ..View::default() });
    if !pacer.has_ended() {
        let totals = &finished.results.totals;
        let (requests, failed) = (totals.io.ios_completed, totals.io.ios_failed);
        tracing::info!(
            at_s = sanloom_sim::view::run_s(&finished.world),
            requests,
            failed,
            "the run of the lab is over; the fabric goes on"
        );
        go_on(&mut finished.world, &mut pacer);
    }
    drop(pacer);
    #[cfg(feature = "surface")]
    drop((page, management));
    drop(record_of_instance);
    tracing::info!(interrupted = interrupt::requested(), "down");
    unready.map_or(Ok(()), Err)
}
