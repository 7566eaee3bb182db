//! The part of HTTP/1.1 that a metrics scraper needs (RFC 9112): one GET per connection.

use sanloom_api::metrics::Format;
use std::io::{self, BufRead, Write};

/// Maximum number of header fields that are read.
const MAX_FIELDS: usize = 100;

/// Returns whether a line starts an HTTP request and not a JSON request.
pub fn is_request(line: &str) -> bool {
    line.starts_with("GET ") || line.starts_with("HEAD ")
}

/// Reads the header fields after the first line, and returns the format of metrics that they
/// accept.
///
/// # Errors
/// When the client disconnects or the time limit of `input` is over.
pub fn read_fields(input: &mut impl BufRead) -> io::Result<Format> {
    let mut accept = String::new();
    for _ in 0..MAX_FIELDS {
        let mut field = String::new();
        if input.read_line(&mut field)? == 0 || field.trim_end().is_empty() {
            break;
        }
        if let Some((_, value)) = field.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("accept")) {
            accept += &format!(",{value}");
        }
    }
    Ok(Format::accepted(&accept))
}

/// Answers a request whose header has been read. `metrics` is called if the request is for the
/// metrics.
///
/// # Errors
/// When the client disconnects.
pub fn answer(
    line: &str,
    format: Format,
    out: &mut impl Write,
    metrics: impl FnOnce() -> Option<String>,
) -> io::Result<()> {
    let mut words = line.split_ascii_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match path {
        _ if !is_request(line) => ("405 Method Not Allowed", plain, "only GET and HEAD are supported\n".to_owned()),
        "/metrics" => match metrics() {
            Some(text) => ("200 OK", format.content_type(), format.of(text)),
            None => ("503 Service Unavailable", plain, "the instance is shutting down\n".to_owned()),
        },
        _ => ("404 Not Found", plain, "only /metrics exists here\n".to_owned()),
    };
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    if method != "HEAD" {
        out.write_all(body.as_bytes())?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(line: &str) -> String {
        let mut out = Vec::new();
        let mut fields: &[u8] = b"Host: localhost\r\nAccept: */*\r\n\r\nmore";
        let format = read_fields(&mut fields).unwrap();
        answer(line, format, &mut out, || Some("numbers\n".to_owned())).unwrap();
        assert_eq!(fields, b"more", "the header is read and nothing else");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_format_of_metrics_is_that_of_the_accept_field() {
        for (field, expected) in [
            ("ACCEPT: application/openmetrics-text;version=1.0.0", Format::OpenMetrics),
            ("Accept: text/plain", Format::Prometheus),
            ("X-Accept: application/openmetrics-text", Format::Prometheus),
        ] {
            let text = format!("Host: localhost\r\n{field}\r\n\r\n");
            assert_eq!(read_fields(&mut text.as_bytes()).unwrap(), expected, "{field}");
        }
    }

    #[test]
    fn metrics_are_served_and_all_other_requests_are_rejected() {
        let good = response("GET /metrics HTTP/1.1\r\n");
        assert!(
            good.starts_with("HTTP/1.1 200 OK\r\n")
                && good.ends_with("Content-Length: 8\r\nConnection: close\r\n\r\nnumbers\n")
        );
        assert!(response("GET /metrics?name=x HTTP/1.1").ends_with("numbers\n"));
        assert!(response("HEAD /metrics HTTP/1.1").ends_with("\r\n\r\n"));
        assert!(response("GET / HTTP/1.1").starts_with("HTTP/1.1 404 "));
        assert!(response("GET").starts_with("HTTP/1.1 405 "));
        assert!(response("POST /metrics HTTP/1.1").starts_with("HTTP/1.1 405 "));
    }
}
