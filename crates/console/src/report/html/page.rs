//! Common frame of all pages: head, style, navigation, scripts.

use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;

const STYLE: &str = include_str!("../../../assets/report.css");
const UPLOT_STYLE: &str = include_str!("../../../assets/uplot/uPlot.min.css");
const UPLOT_SCRIPT: &str = include_str!("../../../assets/uplot/uPlot.iife.min.js");
const UPLOT_LICENCE: &str = include_str!("../../../assets/uplot/LICENSE");
const CHARTS_SCRIPT: &str = include_str!("../../../assets/charts.js");
const TABLES_SCRIPT: &str = include_str!("../../../assets/tables.js");

/// Escapes the characters with a special meaning in HTML; the result is safe in elements and in
/// quoted attributes. Control characters other than tab and line feed become `?`.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            '\r' => {}
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

/// A part of a page with an entry in the navigation.
pub struct Section {
    id: &'static str,
    title: &'static str,
    body: String,
}

impl Section {
    /// Creates a section; `body` is HTML.
    pub fn new(id: &'static str, title: &'static str, body: String) -> Section {
        Section { id, title, body }
    }
}

/// Builder of a page.
pub struct Page {
    title: String,
    heading: String,
    sections: Vec<Section>,
    data: Option<String>,
    scripts: Vec<Cow<'static, str>>,
    charts: bool,
    footer: String,
}

impl Page {
    /// An empty page.
    pub fn new(title: &str) -> Page {
        Page {
            title: title.to_owned(),
            heading: String::new(),
            sections: Vec::new(),
            data: None,
            scripts: Vec::new(),
            charts: false,
            footer: String::new(),
        }
    }

    /// Sets name, description and facts at the top, all plain text.
    pub fn heading(&mut self, name: &str, description: &str, facts: &[String]) {
        let _ = writeln!(self.heading, "<h1>{}</h1>", escape(name));
        for paragraph in description.split("\n\n").filter(|p| !p.trim().is_empty()) {
            let _ = writeln!(self.heading, "<p>{}</p>", escape(paragraph.trim()));
        }
        self.heading.push_str("<ul class=\"facts\">");
        for fact in facts {
            let _ = write!(self.heading, "<li>{}</li>", escape(fact));
        }
        self.heading.push_str("</ul>\n");
    }

    /// Adds a section.
    pub fn section(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// Sets the values for the charts.
    pub fn data(&mut self, data: &Value) {
        // `<` could end the script element. In JSON it occurs only in strings, where the escape is
        // equivalent.
        let text = data.to_string().replace('<', "\\u003c");
        self.data = Some(text);
    }

    /// Includes the chart library.
    pub fn charts(&mut self) {
        self.charts = true;
    }

    /// Adds one of our scripts.
    pub fn script(&mut self, script: impl Into<Cow<'static, str>>) {
        self.scripts.push(script.into());
    }

    /// A line at the end, plain text.
    pub fn footer(&mut self, text: &str) {
        self.footer = escape(text);
    }

    /// Returns the complete page.
    pub fn finish(self) -> String {
        let mut out = String::with_capacity(256 * 1024);
        out.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        out.push_str(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n",
        );
        let _ = writeln!(out, "<title>{}</title>", escape(&self.title));
        out.push_str("<style>\n");
        if self.charts {
            out.push_str(UPLOT_STYLE);
            out.push('\n');
        }
        out.push_str(STYLE);
        out.push_str("</style>\n</head>\n<body>\n<header>\n");
        out.push_str(&self.heading);
        out.push_str("</header>\n<nav>");
        for section in &self.sections {
            let short = section.title.split([':', ',']).next().unwrap_or_default();
            let _ = write!(out, "<a href=\"#{}\">{}</a>", section.id, escape(short));
        }
        out.push_str("</nav>\n<main>\n");
        for section in &self.sections {
            let _ = writeln!(
                out,
                "<section id=\"{}\">\n<h2>{}</h2>\n{}</section>",
                section.id,
                escape(section.title),
                section.body
            );
        }
        let _ = writeln!(out, "</main>\n<footer>{} Made by sanloom.</footer>", self.footer);
        if let Some(data) = &self.data {
            let _ = writeln!(out, "<script type=\"application/json\" id=\"data\">{data}</script>");
        }
        if self.charts {
            let _ = writeln!(
                out,
                "<script>\n/* uPlot:\n{UPLOT_LICENCE}*/\n{UPLOT_SCRIPT}\n</script>\n<script>\n{CHARTS_SCRIPT}</script>"
            );
        }
        let _ = writeln!(out, "<script>\n{TABLES_SCRIPT}</script>");
        for script in self.scripts {
            let _ = writeln!(out, "<script>\n{script}</script>");
        }
        out.push_str("</body>\n</html>\n");
        out
    }
}

/// A page of sections without charts; used by drawings that are SVG already.
pub fn plain_page(
    title: &str,
    description: &str,
    facts: &[String],
    sections: Vec<(&'static str, &'static str, String)>,
) -> String {
    let mut page = Page::new(title);
    page.heading(title, description, facts);
    for (id, title, body) in sections {
        page.section(Section::new(id, title, body));
    }
    page.finish()
}
