//! Error answers: [`Fault`].

use super::tree::Element;

/// An error of the management interface, with the words that clients compare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// HTTP status.
    pub status: u16,
    /// RESTCONF error tag.
    pub tag: &'static str,
    /// Text for people; clients compare some of them.
    pub message: String,
    /// Number of the error; -1 if it has none of its own.
    pub code: i32,
    /// Module that reports the error.
    pub module: &'static str,
}

impl Fault {
    fn new(status: u16, tag: &'static str, message: impl Into<String>) -> Fault {
        Fault { status, tag, message: message.into(), code: -1, module: "rest" }
    }

    /// The operation failed.
    pub fn failed(message: impl Into<String>) -> Fault {
        Fault::new(400, "operation-failed", message)
    }

    /// A value or the body is wrong.
    pub fn invalid(message: impl Into<String>) -> Fault {
        Fault::new(400, "invalid-value", message)
    }

    /// A leaf that the resource does not have.
    pub fn unknown(message: impl Into<String>) -> Fault {
        Fault::new(400, "unknown-element", message)
    }

    /// The object exists already.
    pub fn exists(message: impl Into<String>) -> Fault {
        Fault::new(400, "data-exists", message)
    }

    /// The object does not exist.
    pub fn missing(message: impl Into<String>) -> Fault {
        Fault::new(404, "data-missing", message)
    }

    /// A list is empty. Clients compare the text.
    pub fn empty(text: &'static str) -> Fault {
        Fault::new(404, "operation-failed", text)
    }

    /// An address that the interface does not know.
    pub fn bad_uri() -> Fault {
        Fault { code: 5, ..Fault::new(400, "operation-failed", "Invalid REST URI") }
    }

    /// A missing or wrong login.
    pub fn login(message: impl Into<String>) -> Fault {
        Fault::new(401, "access-denied", message)
    }

    /// The user's role does not permit the operation.
    pub fn denied(message: impl Into<String>) -> Fault {
        Fault::new(403, "access-denied", message)
    }

    /// Too many sessions.
    pub fn sessions() -> Fault {
        Fault { code: 14, ..Fault::new(403, "operation-failed", "Max limit for REST sessions reached") }
    }

    /// The resource does not have this verb.
    pub fn method() -> Fault {
        Fault::new(
            405,
            "operation-failed",
            "the resource does not permit this method; OPTIONS lists the permitted ones",
        )
    }

    /// The zone transaction of another client is open.
    pub fn outstanding(message: impl Into<String>) -> Fault {
        Fault { code: -3, module: "zone", ..Fault::failed(message) }
    }

    /// The switch has no virtual fabrics.
    pub fn no_virtual_fabrics() -> Fault {
        Fault { code: 16_715_785, module: "cal", ..Fault::failed("VF feature is not enabled") }
    }

    /// The fabric does not answer in time, or the interface limits its clients.
    pub fn unavailable() -> Fault {
        Fault::new(503, "operation-failed", "Service Unavailable")
    }

    /// The body is too large.
    pub fn too_big() -> Fault {
        Fault::new(413, "too-big", "the body of the request is larger than 4 MiB")
    }

    /// The type of the body is not supported.
    pub fn media_type() -> Fault {
        Fault::new(
            415,
            "invalid-value",
            "the Content-Type is not supported; use application/yang-data+xml or application/yang-data+json",
        )
    }

    /// Content of the body. The XML form has the namespace of RESTCONF on its root.
    pub fn tree(&self) -> Element {
        let error = Element::entry(
            "error",
            vec![
                Element::text("error-type", "application"),
                Element::text("error-tag", self.tag),
                Element::text("error-app-tag", "Error"),
                Element::text("error-message", &self.message),
                Element::container(
                    "error-info",
                    vec![Element::number("error-code", self.code), Element::text("error-module", self.module)],
                ),
            ],
        );
        Element::container("errors", vec![error])
    }
}

/// Namespace of the root of an XML error.
pub const NAMESPACE: &str = "urn:ietf:params:xml:ns:yang:ietf-restconf";
