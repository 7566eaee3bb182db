//! `sanloom reproduce gupfs`: the GUPFS report, the evaluation of SAN fabrics at NERSC in 2003.

mod bridges;
mod figures;
mod labs;

pub use figures::by_size;

use super::verdict::{Bound, Kind, Verdict, sort_by_statement};
use super::{About, SeededArgs};
use labs::{Case, Fabric, Measured};
use sanloom_console::exit::Failure;
use sanloom_console::report::html::escape;
use sanloom_console::report::{file, json, plot};
use sanloom_console::{output, pool};
use std::collections::BTreeMap;

/// Large requests that keep the line busy.
const LARGE: (u32, u32) = (512, 8);
/// Requests one at a time, of a size at which the difference of the switches is hidden.
const SMALL: (u32, u32) = (16, 1);

/// Requests of the comparison of Fibre Channel with iSCSI. Linux of the time cut longer ones.
const SIZES_KIB: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

fn load(fabric: Fabric, write: bool, (size_kib, depth): (u32, u32)) -> Case {
    Case::Load { fabric, write, size_kib, depth }
}

fn cases() -> Vec<Case> {
    let mut cases = vec![Case::ThreeSwitches, load(Fabric::Trunk, false, LARGE), load(Fabric::FourPorts, false, LARGE)];
    let alone = [
        Fabric::Direct,
        Fabric::SanBox,
        Fabric::SilkWorm,
        Fabric::Server,
        Fabric::SoftwareIscsi,
        Fabric::Router,
        Fabric::RouterHba,
    ];
    cases.extend(alone.into_iter().flat_map(|fabric| SIZES_KIB.map(|size| load(fabric, false, (size, 1)))));
    for fabric in [Fabric::Direct, Fabric::SanBox, Fabric::SilkWorm] {
        cases.extend([false, true].map(|write| load(fabric, write, LARGE)));
    }
    cases.extend(bridges::cases());
    cases.sort_unstable();
    cases.dedup();
    cases
}

/// Our number, unless a rate that it needs is 0.
fn known(ours: f64) -> Option<f64> {
    (ours.is_finite() && ours > 0.0).then_some(ours)
}

fn judged(measured: &BTreeMap<Case, Measured>) -> Vec<Verdict> {
    let rate = |case: Case| measured.get(&case).map_or(0.0, |measured| measured.bytes_per_s);
    let mb = |case: Case| measured.get(&case).map_or(0.0, Measured::document_mb_per_s);
    let ratio = |case: Case, to: Case| 100.0 * rate(case) / rate(to);
    let (read, write) = (|fabric| load(fabric, false, LARGE), |fabric| load(fabric, true, LARGE));
    let shown =
        |id: &str, what: &str, paper, ours, unit| Verdict::shown(Kind::Prediction, id, what, paper, known(ours), unit);
    let of_line = "the document rounds, and the line of 2GFC carries 201.6 of its MB/s";
    let of_chart = "the document compares two curves";
    let mut verdicts = Vec::new();
    for (id, fabric, name) in
        [("direct", Fabric::Direct, "direct attachment"), ("sanbox", Fabric::SanBox, "through the SANbox2-16")]
    {
        verdicts.push(
            shown(&format!("G1-read-{id}"), &format!("reads in the cache, {name}"), 200.0, mb(read(fabric)), "MB/s")
                .of("G1")
                .predicted(0.01)
                .tolerance_reason(of_line),
        );
        verdicts.push(
            shown(&format!("G1-write-{id}"), &format!("writes to the cache, {name}"), 200.0, mb(write(fabric)), "MB/s")
                .of("G1")
                .predicted(0.01)
                .tolerance_reason(of_line),
        );
    }
    let equal = |statement, id: &str, what: &str, ours| {
        shown(id, what, 100.0, ours, "%").of(statement).predicted(0.005).tolerance_reason(of_chart)
    };
    verdicts.extend([
        equal("G2", "G2-read", "reads: SANbox2-16 / direct", ratio(read(Fabric::SanBox), read(Fabric::Direct))),
        equal("G3", "G3-sanbox", "writes: SANbox2-16 / direct", ratio(write(Fabric::SanBox), write(Fabric::Direct))),
        equal(
            "G3",
            "G3-silkworm",
            "writes: SilkWorm 3800 / direct",
            ratio(write(Fabric::SilkWorm), write(Fabric::Direct)),
        ),
        Verdict::shown(
            Kind::Fit,
            "G4",
            "large reads: SilkWorm 3800 / direct",
            96.5,
            known(ratio(read(Fabric::SilkWorm), read(Fabric::Direct))),
            "%",
        )
        .of("G4")
        .held(0.005)
        .tolerance_reason("the document writes 3 to 4 %")
        .note(format!(
            "{} ns between the frames towards the host were chosen; the document names no cause.",
            labs::SILKWORM_GAP_NS
        )),
        shown(
            "G5",
            "reads of 16 KiB, one at a time: SilkWorm 3800 / SANbox2-16",
            100.0,
            ratio(load(Fabric::SilkWorm, false, SMALL), load(Fabric::SanBox, false, SMALL)),
            "%",
        )
        .of("G5")
        .predicted(0.02)
        .tolerance_reason("the document sees a difference only above 16 KB")
        .note("The gap of G4 is the same; the time of the array, assumed as 100 us, hides it."),
        shown(
            "G6",
            "isolated ports in the fabric of three switches",
            6.0,
            measured.get(&Case::ThreeSwitches).map_or(0.0, |measured| measured.isolated_ports as f64),
            "ports",
        )
        .of("G6")
        .predicted(0.0)
        .tolerance_reason("\"a total failure\": both ends of each of the three links")
        .note("examples/vendor-three-switches.toml has the reasons, as we read the document."),
        shown("G7", "trunk of four paths of 2 Gb/s", 4.0 * 200.0, mb(load(Fabric::Trunk, false, LARGE)), "MB/s")
            .of("G7")
            .predicted(0.02)
            .tolerance_reason(of_line),
        Verdict::shown(
            Kind::Input,
            "G7-makers",
            "lines of such a trunk that stay single between two makers",
            4.0,
            labs::single_lines().ok().map(|lines| lines as f64),
            "lines",
        )
        .of("G7")
        .held(0.0)
        .tolerance_reason("the document names no exception")
        .note("The rule is the document's: makers support trunks between their own switches only."),
        shown("G17", "storage with four ports of 2 Gb/s", 750.0, mb(load(Fabric::FourPorts, false, LARGE)), "MB/s")
            .of("G17")
            .bounded(Bound::AtLeast)
            .note("The document says \"more than 750\"; the four lines carry 806."),
    ]);
    verdicts.extend(iscsi(measured));
    verdicts.extend(adapters(measured));
    verdicts.extend(bridges::judged(measured));
    verdicts
}

/// Statements about iSCSI adapters behind the router, with reads one at a time.
fn adapters(measured: &BTreeMap<Case, Measured>) -> Vec<Verdict> {
    let of = |fabric, size_kib| measured.get(&load(fabric, false, (size_kib, 1)));
    let sizes = SIZES_KIB.len() as f64;
    let count = |holds: &dyn Fn(u32) -> bool| SIZES_KIB.iter().filter(|size| holds(**size)).count() as f64;
    let rate = |fabric, size_kib| of(fabric, size_kib).map_or(0.0, |of| of.bytes_per_s);
    let cost = |fabric, size_kib| of(fabric, size_kib).map_or(0.0, |of| of.cpu_s_per_gb);
    let slower = count(&|size| {
        let (hba, software) = (rate(Fabric::RouterHba, size), rate(Fabric::Router, size));
        hba > 0.0 && hba < software
    });
    let dearer = count(&|size| {
        let (hba, fc) = (cost(Fabric::RouterHba, size), cost(Fabric::Server, size));
        fc > 0.0 && hba > fc
    });
    let half = 100.0 * cost(Fabric::RouterHba, 64) / cost(Fabric::Router, 64);
    vec![
        Verdict::shown(
            Kind::Fit,
            "G12",
            "sizes from 1 to 128 KiB at which an iSCSI adapter is slower than software",
            sizes,
            Some(slower),
            "sizes",
        )
        .of("G12")
        .held(0.0)
        .tolerance_reason("an ordering holds at every size")
        .note(
            "The processor of the adapter is an assumption: 80 us for a command, 25 us for a PDU and 10 us for a KiB. This \
             decides the order, so this is no prediction.",
        ),
        Verdict::shown(
            Kind::Fit,
            "G13",
            "processor time per byte, reads of 64 KiB: adapter / software",
            50.0,
            known(half),
            "%",
        )
        .of("G13")
        .held(0.1)
        .tolerance_reason("the document writes \"about half\"")
        .note("The time of the driver was chosen as half of that of software iSCSI, which the document has measured."),
        Verdict::shown(
            Kind::Fit,
            "G14",
            "sizes at which an iSCSI adapter takes more processor time per byte than an HBA of 2GFC",
            sizes,
            Some(dearer),
            "sizes",
        )
        .of("G14")
        .held(0.0)
        .tolerance_reason("an ordering holds at every size")
        .note("The time of the driver, chosen for G13, decides the order, so this is no prediction."),
    ]
}

/// Statements about software iSCSI beside Fibre Channel, with reads one at a time.
fn iscsi(measured: &BTreeMap<Case, Measured>) -> Vec<Verdict> {
    let of = |fabric, size_kib| measured.get(&load(fabric, false, (size_kib, 1)));
    let both = |size_kib| of(Fabric::SoftwareIscsi, size_kib).zip(of(Fabric::Server, size_kib));
    let rate = |size_kib| both(size_kib).map_or(0.0, |(iscsi, fc)| 100.0 * iscsi.bytes_per_s / fc.bytes_per_s);
    let cpu = |size_kib| both(size_kib).map_or(0.0, |(iscsi, fc)| 100.0 * fc.cpu / iscsi.cpu);
    let within = SIZES_KIB.iter().filter(|&&size| (55.0..=80.0).contains(&rate(size))).count() as f64;
    let fastest = SIZES_KIB.map(|size| of(Fabric::SoftwareIscsi, size).map_or(0.0, |of| of.bytes_per_s / 1e6));
    let fastest = fastest.into_iter().fold(0.0, f64::max);
    let costs = "The costs are those of the preset server-2003; none was fitted to the document.";
    let of_curve = "the document gives the ends of a curve, and no sizes";
    let shown =
        |id: &str, what: &str, paper, ours, unit| Verdict::shown(Kind::Prediction, id, what, paper, known(ours), unit);
    vec![
        shown("G8-small", "reads of 1 KiB, one at a time: iSCSI / FC", 80.0, rate(1), "%")
            .of("G8")
            .predicted(0.04)
            .tolerance_reason(of_curve)
            .note(costs)
            .known_miss(
                "The interrupts of this NIC are exactly 125 us apart. A response of one frame never waits, and the second \
                 frame of a longer one waits almost as long: 55 % at 2 KiB. The document names neither driver nor settings.",
            ),
        shown("G8-large", "reads of 128 KiB, one at a time: iSCSI / FC", 60.0, rate(128), "%")
            .of("G8")
            .predicted(0.05)
            .tolerance_reason(of_curve)
            .note(costs),
        shown(
            "G8-all",
            "sizes from 1 to 128 KiB at which iSCSI reaches 55 to 80 % of FC",
            SIZES_KIB.len() as f64,
            within,
            "sizes",
        )
        .of("G8")
        .predicted(0.0)
        .tolerance_reason("the document gives 60 to 80 % for all its sizes")
        .note("From 55 %, because the lines are to each other as 57 to 100.")
        .known_miss("As above: the interrupts of this NIC decide at the smallest sizes."),
        shown("G9", "fastest iSCSI read up to 128 KiB", 100.0, fastest, "MB/s")
            .of("G9")
            .bounded(Bound::AtMost)
            .note("The document says \"less than 100\"; longer requests would reach 115 MB/s, but Linux of the time cut them."),
        shown("G10", "processor load of reads of 64 KiB: FC / iSCSI", 12.5, cpu(64), "%")
            .of("G10")
            .predicted(0.24)
            .tolerance_reason(of_curve)
            .note(costs),
        shown("G11", "processor load of reads of 4 KiB: FC / iSCSI", 50.0, cpu(4), "%")
            .of("G11")
            .predicted(0.2)
            .tolerance_reason(of_curve)
            .note(costs),
    ]
}

/// Runs the reproduction.
///
/// # Errors
/// If a prediction misses unexpectedly, or an output cannot be written.
pub fn run(args: &SeededArgs) -> Result<(), Failure> {
    let folder = args.results.prepare("gupfs")?;
    let cases = cases();
    let labs = cases.iter().map(|case| case.lab(args.seed)).collect::<Result<Vec<_>, _>>()?;
    let finished = pool::all(args.threads, "runs", &labs, |_, lab| labs::measure(lab))?;
    let measured: Option<Vec<Measured>> = finished.into_iter().collect();
    let measured = measured.ok_or_else(|| Failure::interrupted("not all runs are finished; nothing was written"))?;
    let measured = cases.into_iter().zip(measured).collect();
    let mut verdicts = judged(&measured);
    sort_by_statement(&mut verdicts);
    let plots = figures::plots(&measured);
    if let Some(folder) = &folder {
        output::written(file::write(&folder.join("figures.json"), |out| json::write_value(out, &plots)))?;
    }
    let left_out: String = bridges::NOT_CHECKED.iter().map(|text| format!("<li>{}</li>\n", escape(text))).collect();
    let sections = [
        ("figures", "Figures in the style of the document, whose originals are lost", plot::drawings(&plots)),
        ("left-out", "Statements that are not checked", format!("<ul>\n{left_out}</ul>\n")),
    ];
    let title = "GUPFS, SAN Fabric Technology Evaluations (2004): Fibre Channel, iSCSI, SRP, IPoIB and gateways";
    let note = "Its figures are lost, so the numbers are those of its text. The report lists the statements that are not checked.";
    let command = format!("sanloom reproduce gupfs --seed {}", args.seed);
    let about = About { heading: "GUPFS, reproduced", title, note: Some(note), command };
    args.results.publish(folder.as_deref(), &about, &verdicts, &sections)
}
