//! Back ends that redirect the switch to another portal: reports and logs contain the portal that
//! the session really uses.

use crate::iscsi_switch::alua::until_shown;
use crate::iscsi_switch::bed::{Bed, Switch, back_end};
use crate::sanloom::SANLOOM;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::run;
use std::fs;

/// Storage at a portal that redirects logins, and the same storage at the other portal.
fn storage(bed: &Bed, name: &str, portal: &str, more: &str) -> sanloom_test_support::started::Process {
    let lab = format!(
        "[live]\nfolder = \"{}\"\n[storage.disk]\nlun_size = \"32MiB\"\niscsi = {{ portals = \"{portal}\"{more} }}\n",
        bed.path(name)
    );
    let file = format!("{name}.toml");
    fs::write(bed.path(&file), lab).unwrap();
    bed.up(&file)
}

#[test]
fn a_session_that_was_redirected_is_shown_and_logged_where_it_is() {
    for (name, how) in [("redirected", ""), ("redirected-for-good", ", redirect_permanent = true")] {
        let bed = Bed::new(name);
        let [here, there] = [free_port(), free_port()];
        let _new = storage(&bed, "new", &there, "");
        let _old = storage(&bed, "old", &here, &format!(", redirect = \"{there}\"{how}"));
        let lab = format!("[pool.disks]\nextent = \"1MiB\"\n{}", back_end("disk", "disks", &[&here]));
        let mut switch = Switch::start(&bed, &lab);
        let row = until_shown(&bed, |row| row.portal.is_some());
        assert_eq!((row.portal.as_ref(), row.redirected_by.as_ref()), (Some(&there), Some(&here)));
        let shown = run(SANLOOM, &["show", "paths", &bed.path("switch.toml"), "--live"]);
        assert!(shown.contains(&format!("{there}, redirected by {here}")), "{shown}");
        let log = bed.log();
        let logins: Vec<&str> = log.lines().filter(|line| line.contains("logged in target=")).collect();
        let says =
            |line: &str| line.contains(&format!("portal={there}")) && line.contains(&format!("redirected_by={here}"));
        assert!(logins.len() == 1 && says(logins[0]));
        switch.stop();
    }
}
