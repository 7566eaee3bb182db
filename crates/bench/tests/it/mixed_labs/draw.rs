//! Random labs that mix all planes: Fibre Channel, Ethernet with lossless and lossy priorities, and
//! InfiniBand, with the boxes that join them.

use super::faults;
use sanloom_bench::random_lab::Dice;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Parts that a lab may have, each with hosts of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Feature {
    /// A host with HBAs, and an array of Fibre Channel.
    Fibre,
    /// A host whose virtual links cross lossless Ethernet.
    Fcoe,
    /// A host and a storage system of iSCSI.
    Iscsi,
    /// A host and a storage system of SRP.
    Srp,
    /// A host of IPoIB behind a router to Ethernet.
    Ipoib,
    /// A gateway between iSCSI and Fibre Channel.
    IscsiGateway,
    /// A gateway between SRP and Fibre Channel.
    SrpGateway,
    /// A virtualization switch between iSCSI hosts and iSCSI storage systems.
    InBand,
    /// A metadata server, with hosts that hold its map.
    OutOfBand,
    /// A second switch of Fibre Channel behind TCP.
    Fcip,
}

impl Feature {
    pub(super) const ALL: [Feature; 10] = [
        Feature::Fibre,
        Feature::Fcoe,
        Feature::Iscsi,
        Feature::Srp,
        Feature::Ipoib,
        Feature::IscsiGateway,
        Feature::SrpGateway,
        Feature::InBand,
        Feature::OutOfBand,
        Feature::Fcip,
    ];
}

/// Plane of a link or box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Plane {
    Fibre,
    Ethernet,
    Infiniband,
    /// A link of Fibre Channel that another plane carries.
    Virtual,
}

/// A link with its ends, of which the second one is a switch.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub name: String,
    pub plane: Plane,
    pub from: String,
    pub to: String,
    /// True if the first end is a switch, too.
    pub is_inner: bool,
}

/// A lab in the making.
pub(super) struct Draft {
    pub dice: Dice,
    pub features: Vec<Feature>,
    /// Settings that the lab has, of [`super::variants::VARIANTS`].
    pub variants: BTreeSet<&'static str>,
    pub links: Vec<Link>,
    /// Switches with their planes.
    pub switches: Vec<(&'static str, Plane)>,
    /// Storage systems that can lose their power.
    pub storage: Vec<&'static str>,
    /// Hosts whose metadata server can be cut off.
    pub mapped_hosts: Vec<&'static str>,
    /// The hosts wait for paths as long as it takes, so no request may fail.
    pub is_patient: bool,
    /// End of the first workloads and of all faults, in ms.
    pub stop_ms: u64,
    nodes: String,
    cables: String,
    load: String,
}

/// A lab with its properties.
#[derive(Clone)]
pub(super) struct Drawn {
    pub text: String,
    pub features: Vec<Feature>,
    pub variants: BTreeSet<&'static str>,
    pub is_patient: bool,
    /// End of the first workloads and of all faults, in ms.
    pub stop_ms: u64,
}

/// End of the first workloads and of all faults, in ms: shorter than most time-outs, or longer.
const STOP_MS: [u64; 2] = [40, 2_000];
/// Start of the last workloads, in ms. Everything must have healed by then.
pub(super) const AFTER_MS: u64 = 90_000;
/// Duration of the last workloads, in ms.
pub(super) const AFTER_FOR_MS: u64 = 10;

/// Draws the lab of a seed. Each lab has hosts on all planes, and a box between planes.
pub(super) fn draw(seed: u64) -> Drawn {
    let mut dice = Dice::new(seed ^ 0x313a_11ab);
    let mut features: Vec<Feature> = Feature::ALL.into_iter().filter(|_| dice.chance(3, 5)).collect();
    let kinds: [&[Feature]; 4] = [
        &[Feature::Srp, Feature::Ipoib, Feature::SrpGateway],
        &[Feature::Fcoe, Feature::Iscsi, Feature::IscsiGateway, Feature::InBand, Feature::OutOfBand],
        &[Feature::Fibre, Feature::Fcoe, Feature::IscsiGateway, Feature::SrpGateway],
        &[Feature::IscsiGateway, Feature::SrpGateway, Feature::InBand, Feature::OutOfBand],
    ];
    for kind in kinds {
        if !kind.iter().any(|feature| features.contains(feature)) {
            features.push(dice.pick(kind));
        }
    }
    let is_patient = dice.chance(1, 2);
    let stop_ms = STOP_MS[usize::from(dice.chance(1, 4))];
    let mut draft = Draft {
        dice,
        features,
        variants: BTreeSet::new(),
        links: Vec::new(),
        switches: Vec::new(),
        storage: Vec::new(),
        mapped_hosts: Vec::new(),
        is_patient,
        stop_ms,
        nodes: String::new(),
        cables: String::new(),
        load: String::new(),
    };
    draft.switches();
    draft.array();
    draft.hosts_of_fibre_channel();
    draft.iscsi();
    draft.infiniband();
    draft.gateways();
    draft.volumes();
    let faults = faults::draw(&mut draft);
    let end_ms = AFTER_MS + 2 * AFTER_FOR_MS;
    let text = format!(
        "[run]\nduration = \"{end_ms}ms\"\nwarmup = \"0s\"\nseed = {seed}\nsample_interval = \"1s\"\n\
         [timers]\ne_d_tov = \"20ms\"\nr_a_tov = \"50ms\"\nhold_time = \"10ms\"\nf_s_tov = \"100ms\"\n\
         fspf_hello = \"1s\"\nfspf_dead = \"4s\"\n{}{}{}{faults}",
        draft.nodes, draft.cables, draft.load
    );
    Drawn { text, features: draft.features, variants: draft.variants, is_patient, stop_ms }
}

impl Draft {
    fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    pub(super) fn node(&mut self, text: &str) {
        self.nodes += text;
        self.nodes.push('\n');
    }

    /// Adds a link with further keys.
    fn link(&mut self, plane: Plane, from: &str, to: &str, keys: &str) {
        let name = format!("link{}", self.links.len());
        let rate = match plane {
            Plane::Fibre => format!("rate = \"{}\"\n", self.dice.pick(&["4GFC", "8GFC", "16GFC"])),
            Plane::Ethernet => format!("rate = \"{}\"\nmtu = 2500\n", self.dice.pick(&["1GbE", "10GbE"])),
            Plane::Infiniband => format!("rate = \"{}\"\n", self.dice.pick(&["1xSDR", "4xQDR"])),
            Plane::Virtual => String::new(),
        };
        let is_inner = self.switches.iter().any(|switch| switch.0 == from);
        let section = match (is_inner && plane != Plane::Ethernet, plane) {
            (true, Plane::Fibre | Plane::Virtual | Plane::Infiniband) => "isl",
            _ => "link",
        };
        let _ = write!(self.cables, "[[{section}]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{rate}{keys}");
        self.links.push(Link { name, plane, from: from.to_owned(), to: to.to_owned(), is_inner });
    }

    /// Adds two links of one trunk between the switches of Fibre Channel.
    fn trunk(&mut self) {
        let rate = self.dice.pick(&["4GFC", "8GFC", "16GFC"]);
        let first = self.links.len();
        let _ = write!(
            self.cables,
            "[[isl]]\nname = \"link{{{first}..{}}}\"\nfrom = \"sw1\"\nto = \"sw2\"\nrate = \"{rate}\"\ncount = 2\nbundle = true\n",
            first + 1
        );
        for number in [first, first + 1] {
            let (from, to) = ("sw1".to_owned(), "sw2".to_owned());
            self.links.push(Link { name: format!("link{number}"), plane: Plane::Fibre, from, to, is_inner: true });
        }
    }

    fn tor(&mut self) -> &'static str {
        self.dice.pick(&["tor1", "tor2"])
    }

    fn ib(&mut self) -> &'static str {
        self.dice.pick(&["ib1", "ib2"])
    }

    /// Returns a switch of Fibre Channel.
    fn san(&mut self) -> &'static str {
        self.dice.pick(&["sw1", "sw2"])
    }

    /// Two switches of each plane. Switches of Fibre Channel are joined by cable, by TCP, or by a
    /// virtual link over lossless Ethernet.
    fn switches(&mut self) {
        self.node("[switch.\"sw{1..2}\"]\nfcoe = { keep_alive = \"250ms\" }");
        let keys = self.ethernet_keys();
        self.node(&format!("[ethernet_switch.\"tor{{1..2}}\"]\n{keys}"));
        let subnet = self.subnet();
        self.node(&subnet);
        self.switches = vec![
            ("sw1", Plane::Fibre),
            ("sw2", Plane::Fibre),
            ("tor1", Plane::Ethernet),
            ("tor2", Plane::Ethernet),
            ("ib1", Plane::Infiniband),
            ("ib2", Plane::Infiniband),
        ];
        self.link(Plane::Ethernet, "tor1", "tor2", "");
        self.link(Plane::Infiniband, "ib1", "ib2", "");
        if self.dice.chance(1, 2) {
            self.link(Plane::Infiniband, "ib1", "ib2", "");
        }
        let needs_ethernet = self.has(Feature::Fcoe) || self.has(Feature::Fcip);
        if needs_ethernet {
            for switch in ["sw1", "sw2"] {
                let tor = self.tor();
                self.link(Plane::Ethernet, switch, tor, "");
            }
        }
        match (self.has(Feature::Fcip), needs_ethernet && self.dice.chance(1, 2)) {
            (true, _) => self.link(Plane::Virtual, "sw1", "sw2", "fcip = { keep_alive = \"200ms\" }\n"),
            (false, true) => self.link(Plane::Virtual, "sw1", "sw2", "ethernet = { vlan = 100, priority = 3 }\n"),
            (false, false) => match self.varies("trunk", 3) {
                true => self.trunk(),
                false => (0..self.dice.range(1, 2)).for_each(|_| self.link(Plane::Fibre, "sw1", "sw2", "")),
            },
        }
    }

    /// Keys of a host. A patient host repeats until its paths return.
    fn host_keys(&mut self) -> String {
        let timeout = self.dice.pick(&["60ms", "200ms"]);
        let policy = self.dice.pick(&["round-robin", "least-queue"]);
        let (retries, no_path) = match self.is_patient {
            true => (60, 600),
            false => (self.dice.range(0, 3), self.dice.range(0, 2)),
        };
        format!(
            "command_timeout = \"{timeout}\"\nabort_timeout = \"60ms\"\nreset_timeout = \"60ms\"\nretries = {retries}\n\
             multipath = {{ policy = \"{policy}\", fast_io_fail = \"100ms\", polling_interval = \"100ms\", \
             no_path_retry = {no_path} }}"
        )
    }

    fn host(&mut self, name: &str, more: &str) {
        let keys = self.host_keys();
        self.node(&format!("[host.{name}]\n{keys}{more}"));
    }

    fn storage(&mut self, name: &'static str, more: &str) {
        self.storage.push(name);
        self.node(&format!("[storage.{name}]\n{more}"));
    }

    fn load(&mut self, hosts: &str, targets: &str) {
        let size = self.dice.pick(&["4KiB", "16KiB", "64KiB"]);
        let reads = self.dice.pick(&["0.0", "0.5", "1.0"]);
        let is_long = self.stop_ms == STOP_MS[1];
        let how = match !is_long && self.dice.chance(1, 2) {
            true => format!("depth = {}", self.dice.range(1, 4)),
            false => {
                let rate = self.dice.range(200, 1_500) / if is_long { 10 } else { 1 };
                format!("arrivals = \"poisson {rate}/s\"")
            }
        };
        let stop_ms = self.stop_ms;
        let (number, location) =
            (self.load.matches("[workload.load").count(), self.dice.pick(&["random", "sequential"]));
        let what = format!(
            "hosts = {hosts}\ntargets = \"{targets}\"\nsize = \"{size}\"\nread_share = {reads}\nlocation = \"{location}\"\n"
        );
        let _ = write!(
            self.load,
            "[workload.load{number}]\n{what}{how}\nstop = \"{stop_ms}ms\"\n\
             [workload.after{number}]\n{what}arrivals = \"constant 500/s\"\nstart = \"{AFTER_MS}ms\"\n\
             stop = \"{}ms\"\n",
            AFTER_MS + AFTER_FOR_MS
        );
    }

    /// The array of Fibre Channel, which every lab has, with a port at each switch.
    fn array(&mut self) {
        let controllers = match self.dice.chance(1, 4) {
            true => "\ncontrollers = { count = 2, takeover = \"5ms\" }",
            false => "",
        };
        let rate = self.dice.pick(&["5k/s", "20k/s"]);
        self.storage("array", &format!("ports = 2\nrate = \"{rate}\"\nlun_size = \"64MiB\"{controllers}"));
        self.link(Plane::Fibre, "array", "sw1", "");
        self.link(Plane::Fibre, "array", "sw2", "");
    }

    fn hosts_of_fibre_channel(&mut self) {
        if self.has(Feature::Fibre) || self.has(Feature::Fcip) {
            let hbas = self.dice.range(1, 2);
            self.host("fibre", &format!("\nhbas = {hbas}"));
            for _ in 0..hbas {
                let switch = self.san();
                self.link(Plane::Fibre, "fibre", switch, "");
            }
            self.load("\"fibre\"", "array");
        }
        if self.has(Feature::Fcoe) {
            let ports = self.dice.range(1, 2);
            self.host("converged", &format!("\nhbas = {ports}"));
            for _ in 0..ports {
                let tor = self.tor();
                self.link(Plane::Ethernet, "converged", tor, "");
            }
            for _ in 0..ports {
                let switch = self.san();
                self.link(Plane::Virtual, "converged", switch, "ethernet = { vlan = 100, priority = 3 }\n");
            }
            self.load("\"converged\"", "array");
        }
    }

    /// iSCSI over Ethernet, and over InfiniBand through a router.
    fn iscsi(&mut self) {
        if !self.has(Feature::Iscsi) && !self.has(Feature::Ipoib) {
            return;
        }
        self.storage("ipdisk", "rate = \"20k/s\"\nlun_size = \"64MiB\"\niscsi = { portals = \"192.0.2.1:3260\" }");
        let tor = self.tor();
        self.link(Plane::Ethernet, "ipdisk", tor, "");
        if self.has(Feature::Iscsi) {
            let digest = self.dice.pick(&["never", "always"]);
            let sessions = self.dice.range(1, 2);
            let tcp = self.tcp_keys();
            self.host("server", &format!("\niscsi = {{ sessions = {sessions}, data_digest = \"{digest}\"{tcp} }}"));
            for _ in 0..self.dice.range(1, 2) {
                let tor = self.tor();
                self.link(Plane::Ethernet, "server", tor, "");
            }
            self.load("\"server\"", "ipdisk");
        }
        if self.has(Feature::Ipoib) {
            let mode = self.dice.pick(&["datagram", "connected"]);
            let levels = [self.ipoib_level(), self.ipoib_level()];
            self.host("blade", &format!("\nipoib = {{ mode = \"{mode}\"{} }}", levels[0]));
            self.node(&format!(
                "[host.router]\nipoib = {{ mode = \"datagram\"{} }}\nip_router = {{ per_packet = \"2us\", queue = 64 }}",
                levels[1]
            ));
            for host in ["blade", "router"] {
                let ib = self.ib();
                self.link(Plane::Infiniband, host, ib, "");
            }
            let tor = self.tor();
            self.link(Plane::Ethernet, "router", tor, "");
            self.load("\"blade\"", "ipdisk");
        }
    }

    fn infiniband(&mut self) {
        if !self.has(Feature::Srp) {
            return;
        }
        let [host, storage] = self.srp_keys();
        self.storage("ibdisk", &format!("rate = \"20k/s\"\nlun_size = \"64MiB\"\n{storage}"));
        self.host("node", &host);
        for end in ["ibdisk", "node"] {
            for _ in 0..self.dice.range(1, 2) {
                let ib = self.ib();
                self.link(Plane::Infiniband, end, ib, "");
            }
        }
        self.load("\"node\"", "ibdisk");
    }

    fn gateways(&mut self) {
        for (feature, name, port, client, plane, kind) in [
            (
                Feature::IscsiGateway,
                "bridge",
                "bridgeport",
                "client",
                Plane::Ethernet,
                "iscsi = { portals = \"192.0.2.7:3260\" }",
            ),
            (Feature::SrpGateway, "card", "cardport", "cell", Plane::Infiniband, ""),
        ] {
            if !self.has(feature) {
                continue;
            }
            let [of_host, of_target] = match feature {
                Feature::SrpGateway => self.srp_keys(),
                _ => [String::new(), kind.to_owned()],
            };
            let grain = self.dice.pick(&["command", "pdu", "frame"]);
            let mode = match self.dice.chance(1, 2) {
                true => format!(", mode = \"transparent\", hosts = \"{client}\""),
                false => String::new(),
            };
            let target = self.dice.pick(&["array:0", "array:1", "array", "array"]);
            let ports = if target == "array" { self.dice.range(1, 2) } else { 1 };
            self.node(&format!("[host.{port}]\nhbas = {ports}"));
            let keys = format!(
                "{of_target}\ngateway = {{ host = \"{port}\", target_port = \"{target}\", forwarding = \"{grain}\"{mode} }}"
            );
            self.storage(name, &keys);
            self.host(client, &of_host);
            self.mask(client, name);
            for _ in 0..ports {
                let switch = self.san();
                self.link(Plane::Fibre, port, switch, "");
            }
            for end in [name, client] {
                let to = if plane == Plane::Ethernet { self.tor() } else { self.ib() };
                self.link(plane, end, to, "");
            }
            self.load(&format!("\"{client}\""), name);
        }
    }

    /// Virtual disks on two storage systems of iSCSI: behind a virtualization switch, or with a map
    /// at the hosts.
    fn volumes(&mut self) {
        for (feature, number, name, client) in
            [(Feature::InBand, 1, "box", "guest"), (Feature::OutOfBand, 2, "meta", "mapped")]
        {
            if !self.has(feature) {
                continue;
            }
            let disks = [["boxdisk1", "boxdisk2"], ["metadisk1", "metadisk2"]][number - 1];
            let forward = self.dice.chance(1, 2);
            match feature {
                Feature::InBand => {
                    let iscsi = format!("iscsi = {{ portals = \"192.0.2.9:3260\", forward = {forward} }}");
                    self.storage(
                        name,
                        &format!(
                            "medium = \"volumes\"\n{iscsi}\ngateway = {{ per_command = \"5us\", per_kib = \"50ns\" }}"
                        ),
                    );
                    let tor = self.tor();
                    self.link(Plane::Ethernet, name, tor, "");
                }
                _ => {
                    let keys = "round_trip = \"200us\", service = \"50us\", entries = 64, fence_after = \"20ms\", \
                                retry = \"5ms\", give_up = \"30s\", copy_rate = \"16Gb/s\"";
                    self.storage(name, &format!("medium = \"volumes\"\nout_of_band = {{ {keys} }}"));
                    self.mapped_hosts.push(client);
                }
            }
            self.node(&format!("[pool.pool{number}]\nextent = \"1MiB\""));
            for (disk, which) in disks.into_iter().zip(1..) {
                let portal = format!("192.0.2.{}:3260", 10 * number + which);
                self.storage(
                    disk,
                    &format!("rate = \"20k/s\"\nlun_size = \"64MiB\"\niscsi = {{ portals = \"{portal}\" }}"),
                );
                self.node(&format!(
                    "[back_end.{disk}]\npool = \"pool{number}\"\ntarget = \"iqn.2026-11.example.sanloom:{disk}\"\n\
                     portals = \"{portal}\""
                ));
                let tor = self.tor();
                self.link(Plane::Ethernet, disk, tor, "");
            }
            let width = match feature {
                Feature::InBand => "width = 2\nstripe = \"64KiB\"\n",
                _ => "",
            };
            self.node(&format!(
                "[volume.volume{number}]\npool = \"pool{number}\"\nsize = \"16MiB\"\n{width}storage = \"{name}\"\nlun = 0"
            ));
            self.host(client, "");
            let tor = self.tor();
            self.link(Plane::Ethernet, client, tor, "");
            self.load(&format!("\"{client}\""), &format!("{name}:lun0"));
        }
    }
}
