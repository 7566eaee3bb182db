//! Labs with zones.

/// Returns a lab with these switches and two disks behind `ports`, such as `sw{1..2}`. The disks
/// are in the zone `z12`, which is in force.
pub fn two_disks(switches: &str, ports: &str) -> String {
    format!(
        r#"
{switches}
[storage."disk{{1..2}}"]
lun_size = "1MiB"

[zoning]
default = "closed"

[[zone]]
name = "z12"
members = ["disk1", "disk2"]

[[link]]
from = "disk{{1..2}}"
to = "{ports}"
"#
    )
}
