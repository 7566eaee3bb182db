//! Checks of the header against other sites in the same browser: [`check`].
//!
//! A page of another site can reach the server in two ways. It can make its own name resolve to the
//! address of the server; then the header `Host` has that name. Or it sends requests across sites;
//! then the header `Origin` has the other site. The server refuses most of the latter for all
//! surfaces; the page refuses changes from other hosts of the same site as well.

use super::api::Refusal;
use crate::server::http::header::{CONTENT_TYPE, HOST};
use crate::server::http::{Method, Request, StatusCode};
use crate::server::{Bytes, Peer, is_of_other_site, text};
use std::net::IpAddr;

/// Returns the response to a request that is refused.
pub fn check(request: &Request<Bytes>, peer: &Peer, names: &[String]) -> Result<(), Refusal> {
    let headers = request.headers();
    let field = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let host = field(HOST);
    if headers.get_all(HOST).iter().count() != 1 || !is_own(host, names) {
        let reason = "the page is not known by this host name; use its address or localhost";
        return Err(text(StatusCode::MISDIRECTED_REQUEST, reason).into());
    }
    let foreign = is_of_other_site(request.method(), headers, peer);
    let site = field(crate::server::http::header::HeaderName::from_static("sec-fetch-site"));
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    if foreign || changes && !matches!(site, "" | "same-origin" | "none") {
        return Err(text(StatusCode::FORBIDDEN, "the request comes from another site").into());
    }
    let kind = field(CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    if changes && !kind.eq_ignore_ascii_case("application/json") {
        return Err(text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the request as application/json").into());
    }
    Ok(())
}

/// True for an address, `localhost`, and the names. A browser that resolves a foreign name to this
/// server sends that name.
fn is_own(host: &str, names: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_own_names_are_hosts() {
        let names = ["lab.example".to_owned()];
        for own in ["127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "localhost:1", "LOCALHOST", "lab.example:8443"] {
            assert!(is_own(own, &names), "{own}");
        }
        for foreign in ["", "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example:80"]
        {
            assert!(!is_own(foreign, &names), "{foreign}");
        }
    }
}
