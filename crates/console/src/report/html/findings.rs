//! Findings: causes, and the hosts or links that they affect.

use super::page::escape;
use super::{Cell, Table};
use crate::remedy;
use crate::report::format::seconds;
use sanloom_api::results::{Finding, FindingKind, Results};
use std::fmt::Write as _;

/// Maximum number of victims in a table; the rest is counted.
const VICTIMS: usize = 50;
/// Maximum number of findings with a card; the rest is counted.
const FINDINGS: usize = 40;

/// Renders one card per finding.
pub fn render(results: &Results) -> String {
    if results.findings.is_empty() {
        return "<p class=\"none\">Nothing stands out: no slow receiver starves others, nothing stalls, no deadlock.\
                </p>\n"
            .into();
    }
    let mut out = String::new();
    for (i, finding) in results.findings.iter().take(FINDINGS).enumerate() {
        card(&mut out, i, finding);
    }
    if results.findings.len() > FINDINGS {
        let _ = writeln!(
            out,
            "<p class=\"note\">{FINDINGS} of {} findings. The JSON results have all.</p>",
            results.findings.len()
        );
    }
    out
}

fn card(out: &mut String, i: usize, finding: &Finding) {
    let grave = match finding.kind {
        FindingKind::Deadlock
        | FindingKind::HeadroomLoss
        | FindingKind::CongestionSpreading
        | FindingKind::CongestionLoss
        | FindingKind::IoFailures
        | FindingKind::DataLoss
        | FindingKind::SlowDrain
        | FindingKind::NoPath
        | FindingKind::BrokenTrace => "bad",
        FindingKind::CreditLoss
        | FindingKind::DcbMismatch
        | FindingKind::Stall
        | FindingKind::IsolatedLink
        | FindingKind::LoginsRejected
        | FindingKind::ZonesUnchanged => "warn",
        FindingKind::Bottleneck | FindingKind::StorageBound => "info",
    };
    let _ = writeln!(
        out,
        "<article class=\"finding {grave}\">\n<h3><span class=\"badge\">{}</span> {}</h3>",
        escape(finding.kind.words()),
        escape(&finding.title)
    );
    if !finding.detail.is_empty() {
        let _ = writeln!(out, "<p>{}</p>", escape(&finding.detail));
    }
    if let Some(from) = finding.from_s {
        let until = match finding.until_s {
            Some(until) => format!("until {} s ({})", until, seconds(until - from)),
            None => "to the end".into(),
        };
        let _ = writeln!(out, "<p class=\"note\">From {from} s {}.</p>", escape(&until));
    }
    if !finding.cycle.is_empty() {
        let ports: Vec<String> = finding
            .cycle
            .iter()
            .chain(finding.cycle.first())
            .map(|port| format!("<code>{}</code>", escape(port)))
            .collect();
        let _ = writeln!(out, "<p class=\"cycle\">Each waits for credit of the next: {}</p>", ports.join(" → "));
    }
    if !finding.victims.is_empty() {
        victims(out, i, finding);
    }
    if !finding.remedies.is_empty() {
        remedies(out, finding);
    } else if !finding.remedy.is_empty() {
        let _ = writeln!(out, "<p><strong>Remedy:</strong> {}</p>", escape(&finding.remedy));
    }
    out.push_str("</article>\n");
}

/// The remedies that were tried, each with its gain and the command that repeats it.
fn remedies(out: &mut String, finding: &Finding) {
    out.push_str("<p><strong>Remedies</strong>, tried on this lab with the same seed:</p>\n<ul>\n");
    for remedy in &finding.remedies {
        let _ = writeln!(
            out,
            "<li>{}: {}.<pre class=\"command\">{}</pre></li>",
            escape(&remedy.what),
            escape(&remedy::effect(remedy)),
            escape(&remedy.command)
        );
    }
    out.push_str("</ul>\n");
}

fn victims(out: &mut String, i: usize, finding: &Finding) {
    out.push_str("<div class=\"cause\">");
    if let Some(culprit) = &finding.culprit {
        let _ = write!(
            out,
            "<div class=\"culprit\"><span>culprit</span><strong>{}</strong></div><div class=\"arrow\">starves</div>",
            escape(culprit)
        );
    }
    out.push_str("<div class=\"victims\"><span>victims</span>");
    let mut table = Table::new("victims")
        .text("Name")
        .number("MB/s without")
        .number("MB/s with")
        .number("Lost")
        .number("Waited for credit")
        .cap(VICTIMS, "The JSON results have all.");
    for victim in &finding.victims {
        // For links only the waiting time is known, not the throughput without the fault.
        let known = victim.before_bytes_per_s > 0.0;
        let unknown = || Cell::number(0.0, "–".to_owned());
        table.row(vec![
            Cell::text(&victim.name),
            if known { Cell::mb_per_s(victim.before_bytes_per_s) } else { unknown() },
            Cell::mb_per_s(victim.during_bytes_per_s),
            if known { Cell::share(victim.loss(), "wait") } else { unknown() },
            Cell::number(victim.credit_wait_s, seconds(victim.credit_wait_s)),
        ]);
    }
    // Several findings may have such a table, and an id must be unique.
    let html = table.html().replacen("id=\"t-victims\"", &format!("id=\"t-victims-{i}\""), 1);
    out.push_str(&html);
    out.push_str("</div></div>\n");
    let _ = writeln!(out, "<div class=\"chart\" data-chart=\"finding\" data-finding=\"{i}\"></div>");
}
