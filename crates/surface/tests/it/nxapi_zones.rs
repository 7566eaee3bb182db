//! NX-API with the zones of a switch behind it: scripts of `export zones`, changes of device
//! aliases, smart zones, and the zones in force.

use crate::client::Alone;
use proptest::prelude::*;
use sanloom_api::control::{Answer, Request as Ask, RequestError, ZoneAction, ZoneClient};
use sanloom_api::zone_database::{Database, Edit, Kind};
use sanloom_api::zoning::{ZonePort, ZoneStatus, ZoneTransaction};
use sanloom_fc::config::{ZoneDefault, ZoneMember};
use sanloom_fc::zoning::{
    DefinedZones, EffectiveZones, MemberRef, Transaction, ZoneDatabase, ZoneDefinition, ZoneEdit, ZoneLimits,
};
use sanloom_lab::export::{Dialect, zone_commands};
use sanloom_surface::fos::Shared as Common;
use sanloom_surface::nxos::{self, NxApi};
use sanloom_surface::server::http::Request;
use sanloom_surface::server::users::{Role, Users};
use sanloom_surface::server::{Bytes, Interface, Now, Peer};
use sanloom_surface::{Busy, Fabric};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

/// The switch of [`Alone`] with zones: the transactions of the fabric, without its other switches.
#[derive(Default)]
struct Zoned {
    committed: ZoneDatabase,
    open: Option<(Transaction, Option<ZoneClient>)>,
    ports: Vec<ZonePort>,
}

impl Zoned {
    fn status(&self) -> ZoneStatus {
        let transaction =
            self.open.as_ref().map(|(_, owner)| ZoneTransaction { owner: owner.clone(), ..ZoneTransaction::default() });
        ZoneStatus {
            committed: (&self.committed).into(),
            working: self.open.as_ref().map(|(open, _)| Database::from(&open.outcome().0)),
            transaction,
            ports: self.ports.clone(),
            ..ZoneStatus::default()
        }
    }

    fn edited(&self, edits: &[Edit]) -> Result<Transaction, String> {
        let open = self.open.as_ref().map(|(open, _)| open.clone());
        let mut open = open.unwrap_or_else(|| Transaction::begin(&self.committed, ZoneLimits::default()));
        for edit in edits {
            open.apply(ZoneEdit::try_from(edit).unwrap()).map_err(|problem| problem.to_string())?;
        }
        Ok(open)
    }

    fn commit(&mut self, open: &Transaction) -> Result<(), String> {
        let committed = open.commit().map_err(|problems| format!("{problems:?}"))?;
        (self.committed, self.open) = (committed, None);
        Ok(())
    }

    fn act(&mut self, client: Option<ZoneClient>, action: ZoneAction) -> Result<(), String> {
        match action {
            ZoneAction::As { client, action, .. } => self.act(Some(client), *action),
            ZoneAction::Show => Ok(()),
            ZoneAction::Edit { edits } => {
                self.open = Some((self.edited(&edits)?, client));
                Ok(())
            }
            ZoneAction::EditAndCommit { edits } => self.commit(&self.edited(&edits)?),
            ZoneAction::Commit => {
                let (open, _) = self.open.clone().ok_or("no transaction")?;
                self.commit(&open)
            }
            ZoneAction::Abort => {
                self.open = None;
                Ok(())
            }
            other => panic!("{other:?}"),
        }
    }

    /// Changes the committed database as another interface does.
    fn elsewhere(&mut self, edits: &[Edit]) {
        self.act(None, ZoneAction::EditAndCommit { edits: edits.to_vec() }).unwrap();
    }
}

impl Fabric for Zoned {
    fn ask(&mut self, request: Ask) -> Result<Answer, Busy> {
        match request {
            Ask::Zone { action, .. } => Ok(match self.act(None, action) {
                Ok(()) => Answer::Zones(Box::new(self.status())),
                Err(reason) => Answer::Failed(RequestError::from(reason)),
            }),
            request => Alone.ask(request),
        }
    }
}

/// A switch with its interface.
struct Switch {
    api: NxApi,
    fabric: Zoned,
}

impl Switch {
    fn new() -> Switch {
        // Passwords are hashed slowly.
        static USERS: LazyLock<Arc<Users>> = LazyLock::new(|| {
            let mut users = Users::new().unwrap();
            users.set("admin", Role::Administer, "password").unwrap();
            Arc::new(users)
        });
        let api = NxApi::new("sw1", USERS.clone(), Common::default(), nxos::Shared::default());
        let committed = ZoneDatabase { default_zone: ZoneDefault::Closed, ..ZoneDatabase::default() };
        Switch { api, fabric: Zoned { committed, ..Zoned::default() } }
    }

    /// Outputs of a message.
    fn send(&mut self, kind: &str, input: &str) -> Vec<Value> {
        let message = json!({"ins_api": {"version": "1.0", "type": kind, "chunk": "0", "sid": null, "input": input,
                                         "output_format": "json"}});
        let request = Request::builder().method("POST").uri("/ins");
        let request = request.header("authorization", "Basic YWRtaW46cGFzc3dvcmQ=");
        let request = request.header("content-type", "application/json").body(Bytes::from(message.to_string()));
        let address = "127.0.0.1:1000".parse().unwrap();
        let peer = Peer { address, local: address, tls: false };
        let response = self.api.handle(Now::default(), &request.unwrap(), &peer, &mut self.fabric);
        let mut answer: Value = serde_json::from_slice(response.body()).unwrap();
        let output = answer["ins_api"]["outputs"]["output"].take();
        if let Value::Array(outputs) = output { outputs } else { vec![output] }
    }

    /// Changes of one message that all succeed.
    fn configure(&mut self, commands: &[&str]) {
        let outputs = self.send("cli_conf", &commands.join(" ;"));
        let failed = outputs.iter().find(|output| output["code"] != "200");
        assert_eq!(failed, None, "{}", commands.join("\n"));
    }

    /// Sends a script in one message, without its remarks.
    fn run(&mut self, script: &str) {
        let lines = script.lines().map(str::trim).filter(|line| !line.starts_with('!'));
        let lines: Vec<&str> = lines.collect();
        if !lines.is_empty() {
            self.configure(&lines);
        }
    }

    fn show(&mut self, command: &str) -> String {
        let output = self.send("cli_show_ascii", command).remove(0);
        assert_eq!(output["code"], "200", "{output}");
        output["body"].as_str().unwrap().to_owned()
    }
}

fn dialect(is_enhanced: bool) -> Dialect {
    Dialect::NxOs { vsan: 1, is_enhanced }
}

type Lists = (BTreeSet<String>, BTreeSet<String>);

fn set<T: ToString>(list: &[T]) -> BTreeSet<String> {
    list.iter().map(ToString::to_string).collect()
}

/// A database without the order of members: objects, the zones in force, the default zone.
#[derive(Debug, PartialEq)]
struct Content {
    objects: BTreeMap<String, Lists>,
    in_force: Option<(String, BTreeMap<String, Lists>)>,
    default: ZoneDefault,
}

fn content(database: &ZoneDatabase) -> Content {
    let DefinedZones { aliases, zones, configs } = &*database.defined;
    let aliases = aliases.iter().map(|(name, own)| (format!("alias {name}"), (set(own), BTreeSet::new())));
    let zones = zones.iter().map(|(name, own)| (format!("zone {name}"), (set(&own.members), set(&own.principals))));
    let configs = configs.iter().map(|(name, own)| (format!("zoneset {name}"), (set(own), BTreeSet::new())));
    let in_force = database.effective.as_ref().map(|effective| {
        let zones = effective.zones.iter();
        let zones = zones.map(|zone| (zone.name.clone(), (set(&zone.members), set(&zone.principals))));
        (effective.name.clone(), zones.collect())
    });
    let objects = aliases.chain(zones).chain(configs).collect();
    Content { objects, in_force, default: database.default_zone }
}

/// Builds `before` on a new switch by a script, makes the change, and undoes it.
fn check(is_enhanced: bool, before: &ZoneDatabase, after: &ZoneDatabase) {
    let mut switch = Switch::new();
    if is_enhanced {
        switch.configure(&["zone mode enhanced vsan 1"]);
    }
    let dialect = dialect(is_enhanced);
    switch.run(&zone_commands(dialect, &dialect.fresh(before), before).unwrap().commands);
    assert_eq!(content(&switch.fabric.committed), content(before));
    let script = zone_commands(dialect, before, after).unwrap();
    switch.run(&script.commands);
    assert_eq!(content(&switch.fabric.committed), content(after), "{}", script.commands);
    switch.run(&script.undo);
    assert_eq!(content(&switch.fabric.committed), content(before), "undo of\n{}\n{}", script.commands, script.undo);
}

fn port(number: u64) -> String {
    format!("10:00:00:00:00:00:00:{number:02x}")
}

fn member(text: &str) -> ZoneMember {
    text.parse().unwrap()
}

/// Zones with device aliases by name and port, and the members of each zone by name. All are in
/// force.
fn database(aliases: &[(&str, u64)], zones: &[(&str, &[&str])]) -> ZoneDatabase {
    let mut defined = DefinedZones::default();
    for (name, number) in aliases {
        defined.aliases.insert((*name).to_owned(), vec![member(&port(*number))]);
    }
    let reference = |name: &&str| match defined.aliases.contains_key(*name) {
        true => MemberRef::Alias((*name).to_owned()),
        false => MemberRef::Member(member(name)),
    };
    let zone =
        |members: &[&str]| ZoneDefinition { members: members.iter().map(reference).collect(), principals: Vec::new() };
    let zones = zones.iter().map(|(name, members)| ((*name).to_owned(), zone(members)));
    let zones: BTreeMap<_, _> = zones.collect();
    defined.configs.insert("x".to_owned(), zones.keys().cloned().collect());
    defined.zones = zones;
    in_force(defined, Some("x"), ZoneDefault::Closed)
}

fn in_force(defined: DefinedZones, config: Option<&str>, default_zone: ZoneDefault) -> ZoneDatabase {
    let mut database = ZoneDatabase { defined: Arc::new(defined), effective: None, default_zone };
    if let Some(name) = config {
        let zones = database.resolve(name).unwrap();
        database.effective = Some(Arc::new(EffectiveZones { name: name.to_owned(), zones }));
    }
    database
}

#[test]
fn a_host_whose_alias_gets_another_port_stays_in_its_zones() {
    let disk = port(10);
    let zones: &[(&str, &[&str])] = &[("z1", &["h1", &disk]), ("z2", &["h2", &disk])];
    let before = database(&[("h1", 1), ("h2", 2)], zones);
    for is_enhanced in [false, true] {
        // Another port; the ports of both in exchange; the port of an alias that is removed; zones
        // of one alias alone.
        check(is_enhanced, &before, &database(&[("h1", 7), ("h2", 2)], zones));
        check(is_enhanced, &before, &database(&[("h1", 2), ("h2", 1)], zones));
        check(is_enhanced, &before, &database(&[("h1", 2)], &[("z1", &["h1", &disk]), ("z2", &["h1", &disk])]));
        let lone: &[(&str, &[&str])] = &[("z1", &["h1"]), ("z2", &["h2", "h1"])];
        check(is_enhanced, &database(&[("h1", 1), ("h2", 2)], lone), &database(&[("h1", 2), ("h2", 1)], lone));
    }
}

#[test]
fn zones_keep_a_device_alias_that_is_removed_and_added_in_one_session() {
    let mut switch = Switch::new();
    let disk = port(10);
    let zones: &[(&str, &[&str])] = &[("z1", &["h1", &disk])];
    let before = database(&[("h1", 1)], zones);
    let dialect = dialect(false);
    switch.run(&zone_commands(dialect, &dialect.fresh(&before), &before).unwrap().commands);
    let add = format!("device-alias name h1 pwwn {}", port(7));
    switch.configure(&["device-alias database", "no device-alias name h1", &add, "device-alias commit"]);
    switch.configure(&["zoneset activate name x vsan 1"]);
    assert_eq!(content(&switch.fabric.committed), content(&database(&[("h1", 7)], zones)));
    // Without a new port, the alias leaves its zones.
    switch.configure(&["device-alias database", "no device-alias name h1", &add, "no device-alias name h1"]);
    switch.configure(&["device-alias commit"]);
    let zones: &[(&str, &[&str])] = &[("z1", &[&disk])];
    assert_eq!(content(&switch.fabric.committed).objects, content(&database(&[], zones)).objects);
}

#[test]
fn the_name_of_an_fcalias_that_another_interface_deletes_is_free_for_a_device_alias() {
    for looks in [false, true] {
        let mut switch = Switch::new();
        let one = format!("member pwwn {}", port(1));
        switch.configure(&["fcalias name m vsan 1", &one]);
        assert!(switch.show("show fcalias vsan 1").contains("fcalias name m vsan 1"));
        switch.fabric.elsewhere(&[Edit::Delete { kind: Kind::Alias, name: "m".to_owned() }]);
        if looks {
            switch.show("show zone status vsan 1");
        }
        let add = format!("device-alias name m pwwn {}", port(1));
        switch.configure(&["device-alias database", &add, "device-alias commit"]);
        switch.configure(&["zone name z1 vsan 1", "member device-alias m"]);
        assert!(switch.show("show zone vsan 1").contains("  device-alias m [pwwn 10:00:00:00:00:00:00:01]\n"));
    }
}

#[test]
fn a_smart_zone_may_begin_and_end_with_targets() {
    let [target, host, other] = [1, 2, 3].map(port);
    let mut switch = Switch::new();
    let targets = format!("member pwwn {target} target");
    switch.configure(&["zone smart-zoning enable vsan 1", "zone name pp vsan 1", &targets]);
    assert!(switch.show("show zone name pp vsan 1").contains(&format!("  pwwn {target} target\n")));
    assert!(switch.fabric.committed.defined.zones.is_empty(), "a zone of targets permits nothing");
    let again = switch.send("cli_conf", &format!("zone name pp vsan 1 ;{targets}"));
    assert_eq!(again[1]["clierror"], "% Duplicate member\n");
    let [hosts, others] = [&host, &other].map(|name| format!("member pwwn {name} init"));
    switch.configure(&["zone name pp vsan 1", &hosts, "zoneset name x vsan 1", "member pp"]);
    let whole = content(&switch.fabric.committed);
    let lists = |hosts: &[&String]| (set(hosts), set(&[&target]));
    assert_eq!(whole.objects["zone pp"], lists(&[&host]));
    // The last initiator leaves, and another one comes: the zone stays in its zone set.
    switch.configure(&["zone name pp vsan 1", &format!("no {hosts}")]);
    assert!(switch.fabric.committed.defined.zones.is_empty());
    switch.configure(&["zone name pp vsan 1", &others, "zoneset activate name x vsan 1"]);
    let end = content(&switch.fabric.committed);
    assert_eq!(end.objects["zone pp"], lists(&[&other]));
    assert_eq!((&end.objects["zoneset x"], end.in_force.unwrap().1.len()), (&whole.objects["zoneset x"], 1));
    // A target that leaves before the first initiator comes is forgotten.
    switch.configure(&["zone name q vsan 1", &targets, &format!("no {targets}"), &hosts]);
    assert_eq!(content(&switch.fabric.committed).objects["zone q"], (set(&[&host]), BTreeSet::new()));
}

#[test]
fn zones_in_force_show_the_ports_of_each_kind_of_member_that_are_online() {
    let mut switch = Switch::new();
    let on = |port_name: String, node: &str, port_id: &str, domain: u8, switch_port: u16| ZonePort {
        port_name,
        node_name: node.to_owned(),
        port_id: port_id.to_owned(),
        domain,
        switch_port,
        ..ZonePort::default()
    };
    let (node, other) = ("20:00:00:00:00:00:00:01", "20:00:00:00:00:00:00:09");
    switch.fabric.ports =
        vec![on(port(1), node, "010100", 1, 1), on(port(2), node, "020300", 2, 3), on(port(3), other, "010500", 1, 5)];
    let name = format!("member pwwn {}", port(3));
    switch.configure(&[
        "zone name z vsan 1",
        &name,
        &format!("member nwwn {node}"),
        "member domain-id 1 port-number 5",
        "member domain-id 1 port-number 6",
        "member fcid 0x020300",
        "member fcid 0x020400",
        "zoneset name x vsan 1",
        "member z",
        "zoneset activate name x vsan 1",
    ]);
    let text = switch.show("show zoneset active vsan 1");
    let expected = format!(
        "zoneset name x vsan 1\n  zone name z vsan 1\n  * fcid 0x010500 [pwwn {}]\n  \
         * fcid 0x010100 [nwwn {node}]\n  * fcid 0x020300 [nwwn {node}]\n  \
         * fcid 0x010500 [domain-id 1 port-number 5]\n    domain-id 1 port-number 6\n  \
         * fcid 0x020300\n    fcid 0x020400\n\n",
        port(3)
    );
    assert_eq!(text, expected);
    let output = switch.send("cli_show", "show zoneset active vsan 1").remove(0);
    let rows =
        output["body"].pointer("/TABLE_zoneset/ROW_zoneset/TABLE_zone/ROW_zone/TABLE_member/ROW_member").unwrap();
    let online: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["online_fcid"].as_str().unwrap()).collect();
    assert_eq!(online, ["0x010500", "0x010100", "0x020300", "0x010500", "", "0x020300", ""]);
    // The importer of real configurations reads the kind of each member.
    let source = sanloom_lab::import::Source {
        name: "sw1.txt".to_owned(),
        text: format!(
            "sw1# show flogi database\nfc1/1  1  0x010500  {} {other}\nsw1# show zoneset active\n{text}",
            port(3)
        ),
    };
    let imported = sanloom_lab::import::import(&[source], &sanloom_lab::import::Choices::default());
    let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab));
    let effective = loaded.lab.zone_database.effective.as_ref().unwrap();
    assert_eq!(
        set(&effective.zones[0].members),
        set(&switch.fabric.committed.effective.as_ref().unwrap().zones[0].members)
    );
}

/// Databases in which names keep their kinds, but for aliases, which have one port or several.
fn any_database() -> impl Strategy<Value = ZoneDatabase> {
    let ports = Just((1..=6_u64).collect::<Vec<_>>()).prop_shuffle();
    let zones = proptest::collection::vec((0..4_u8, any::<u16>(), any::<u16>(), any::<u16>()), 4);
    let kinds = proptest::collection::vec(0..4_u8, 5);
    let configs = proptest::collection::vec(any::<u8>(), 2);
    (ports, kinds, zones, configs, 0..3_usize, any::<bool>()).prop_map(
        |(ports, kinds, zones, configs, effective, open)| {
            let mut defined = DefinedZones::default();
            for (at, (name, kind)) in ["a", "b", "c", "d", "e"].into_iter().zip(kinds).enumerate() {
                let members = match kind {
                    0 => continue,
                    1 | 2 => vec![member(&port(ports[at]))],
                    _ => vec![member(&port(ports[at])), member("1,7"), member(&port(ports[(at + 1) % 6]))],
                };
                defined.aliases.insert(name.to_owned(), members);
            }
            let mut all: Vec<MemberRef> = defined.aliases.keys().cloned().map(MemberRef::Alias).collect();
            let plain = ["2,3", "1,9", "wwnn:20:00:00:00:00:00:00:01", "0x010203"].map(str::to_owned);
            all.extend((1..=6).map(port).chain(plain).map(|text| MemberRef::Member(member(&text))));
            for (name, (kind, bits, sparse, roles)) in ["p", "q", "r", "s"].into_iter().zip(zones) {
                let is_in = |at: usize, bits: u16| bits >> at & 1 == 1;
                let chosen = |bits: u16| -> Vec<MemberRef> {
                    all.iter()
                        .enumerate()
                        .filter(|(at, _)| is_in(*at, bits))
                        .map(|(_, member)| member.clone())
                        .collect()
                };
                let mut members = chosen(bits & sparse);
                if members.is_empty() {
                    members.push(all[usize::from(bits) % all.len()].clone());
                }
                let mut principals = if kind > 1 { chosen(roles & !sparse) } else { Vec::new() };
                principals.retain(|own| !members.contains(own));
                if kind > 0 {
                    defined.zones.insert(name.to_owned(), ZoneDefinition { members, principals });
                }
            }
            let zones: Vec<String> = defined.zones.keys().cloned().collect();
            for (name, bits) in ["x", "y"].into_iter().zip(configs) {
                let own = zones.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, zone)| zone.clone());
                let own: Vec<String> = own.collect();
                if !own.is_empty() {
                    defined.configs.insert(name.to_owned(), own);
                }
            }
            let config = defined.configs.keys().nth(effective).cloned();
            in_force(defined, config.as_deref(), if open { ZoneDefault::Open } else { ZoneDefault::Closed })
        },
    )
}

proptest! {
    #[test]
    fn a_script_makes_its_change_and_its_undo_restores_the_zones(
        before in any_database(),
        after in any_database(),
        is_enhanced in any::<bool>(),
    ) {
        check(is_enhanced, &before, &after);
    }
}
