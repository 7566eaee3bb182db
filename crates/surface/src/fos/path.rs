//! Addresses of requests: [`Address`].

use super::fault::Fault;

/// Modules under their old names, which clients of early versions use.
const OLD_MODULES: [(&str, &[&str]); 4] = [
    ("zoning", &["brocade-zone"]),
    ("switch", &["brocade-fibrechannel-switch"]),
    ("fabric", &["brocade-fabric"]),
    ("logical-switch", &["brocade-fibrechannel-logical-switch"]),
];

/// Subject of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Opens a session.
    Login,
    /// Ends a session.
    Logout,
    /// List of modules.
    Modules,
    /// A resource.
    Running {
        /// Module with its prefix, such as `brocade-zone`.
        module: String,
        /// Object of the module.
        object: String,
    },
    /// An operation.
    Operation(String),
}

/// Path of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// Subject.
    pub target: Target,
    /// Decoded segments after the object: names and values of keys, and a leaf.
    pub rest: Vec<String>,
}

/// Returns true if the path names a module under its old name.
pub fn is_old(path: &str) -> bool {
    let module = path.strip_prefix("/rest/running/").and_then(|rest| rest.split('/').next());
    module.is_some_and(|module| OLD_MODULES.iter().any(|(old, _)| *old == module))
}

impl Address {
    /// Reads a raw path. Segments are decoded after the split, because keys may contain `%2F`.
    ///
    /// # Errors
    /// The interface has no such address.
    pub fn of(path: &str, old_uris: bool) -> Result<Address, Fault> {
        let path = path.strip_prefix("/rest/").ok_or_else(Fault::bad_uri)?;
        let path = path.strip_suffix('/').unwrap_or(path);
        let segments: Vec<String> = path.split('/').map(decode).collect::<Option<_>>().ok_or_else(Fault::bad_uri)?;
        let mut segments = segments.into_iter();
        let first = segments.next().unwrap_or_default();
        let target = match &*first {
            "login" => Target::Login,
            "logout" => Target::Logout,
            "brocade-module-version" => Target::Modules,
            "operations" => Target::Operation(segments.next().ok_or_else(Fault::bad_uri)?),
            "running" => {
                // Ansible's modules send `/rest/running//brocade-…`.
                let module = segments.find(|segment| !segment.is_empty()).ok_or_else(Fault::bad_uri)?;
                let object = segments.next().ok_or_else(Fault::bad_uri)?;
                let old = OLD_MODULES.iter().find(|(old, _)| old_uris && *old == module);
                let module = old.map_or(module, |(_, new)| new[0].to_owned());
                Target::Running { module, object }
            }
            _ => return Err(Fault::bad_uri()),
        };
        let rest: Vec<String> = segments.collect();
        match target {
            Target::Running { .. } => Ok(Address { target, rest }),
            _ if rest.is_empty() => Ok(Address { target, rest }),
            _ => Err(Fault::bad_uri()),
        }
    }
}

/// Decodes the `%` escapes of a segment.
fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|b| b.is_ascii_hexdigit()))?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

/// Virtual fabric that the query selects; `None` for no selection.
///
/// # Errors
/// The number is not valid.
pub fn virtual_fabric(query: Option<&str>) -> Result<Option<u32>, Fault> {
    let number = query.into_iter().flat_map(|query| query.split('&')).find_map(|part| part.strip_prefix("vf-id="));
    match number {
        None | Some("-1" | "") => Ok(None),
        Some(number) => match number.parse() {
            Ok(id @ 1..=128) => Ok(Some(id)),
            _ => Err(Fault::invalid(format!("vf-id={number} is not a virtual fabric; use a number from 1 to 128"))),
        },
    }
}
