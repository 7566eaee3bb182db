//! Files of the page.

use crate::server::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use crate::server::http::{Request, Response, StatusCode};
use crate::server::{Bytes, text};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! files {
    ($($name:literal $kind:expr),* $(,)?) => {
        /// Name, type and content of each file.
        const FILES: &[(&str, &str, &[u8])] = &[$(($name, $kind, include_bytes!(concat!("../page/", $name)))),*];
    };
}

files! {
    "index.html" HTML,
    "style.css" STYLE,
    "icon.svg" IMAGE,
    "main.js" SCRIPT,
    "api.js" SCRIPT,
    "dom.js" SCRIPT,
    "map.js" SCRIPT,
    "packets.js" SCRIPT,
    "run.js" SCRIPT,
    "status.js" SCRIPT,
    "table.js" SCRIPT,
    "views.js" SCRIPT,
    "zones.js" SCRIPT,
}

/// Answers with a file of the page. Paths without a file are views of the page.
pub fn answer(request: &Request<Bytes>, folder: Option<&Path>) -> Response<Bytes> {
    let path = request.uri().path();
    let name = path.strip_prefix("/page/");
    let wanted = match (name, path) {
        (Some(name), _) => name,
        (None, "/favicon.ico") => "icon.svg",
        (None, "/") => "index.html",
        _ => return text(StatusCode::NOT_FOUND, "no such page"),
    };
    // Only listed names reach the folder.
    let Some((name, kind, built_in)) = FILES.iter().find(|(name, ..)| *name == wanted) else {
        return text(StatusCode::NOT_FOUND, "no such file");
    };
    let content = folder.and_then(|folder| fs::read(folder.join(name)).ok()).map(Bytes::from);
    let content = content.unwrap_or(Bytes::from_static(built_in));
    let digest = Sha256::digest(&content);
    let tag = format!("\"{}\"", digest[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let known = request.headers().get(IF_NONE_MATCH).is_some_and(|field| field.as_bytes() == tag.as_bytes());
    let mut response = Response::new(if known { Bytes::new() } else { content });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    response
}
