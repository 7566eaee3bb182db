//! XML bodies.

use super::tree::{Content, Element};
use super::{MAX_DEPTH, MAX_ELEMENTS};
use quick_xml::Reader;
use quick_xml::events::Event;

/// Writes a document with one root.
pub fn write(root: &Element) -> String {
    let mut text = "<?xml version=\"1.0\"?>\n".to_owned();
    element(&mut text, root);
    text.push('\n');
    text
}

fn element(out: &mut String, element_: &Element) {
    let name = &element_.name;
    match &element_.content {
        Content::Children(children) if children.is_empty() => *out += &format!("<{name}/>"),
        Content::Children(children) => {
            *out += &format!("<{name}>");
            children.iter().for_each(|child| element(out, child));
            *out += &format!("</{name}>");
        }
        _ => *out += &format!("<{name}>{}</{name}>", escape(&element_.value())),
    }
}

/// Escapes a text for the content of an element or an attribute.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
    }
    out
}

/// Reads the elements of a body: one or several, with or without a prologue. Document types are
/// rejected, so a body cannot define entities.
///
/// # Errors
/// The first error of the body, in one sentence.
pub fn read(body: &str) -> Result<Vec<Element>, String> {
    let mut reader = Reader::from_str(body);
    reader.config_mut().expand_empty_elements = true;
    // The open elements with their text so far; the first entry collects the top level.
    let mut open: Vec<(Element, String)> = vec![(Element::container("", Vec::new()), String::new())];
    let mut count = 0;
    loop {
        let at = reader.buffer_position();
        let event = reader.read_event().map_err(|error| format!("the body is not XML: {error}, at byte {at}"))?;
        match event {
            Event::Start(start) => {
                count += 1;
                if open.len() > MAX_DEPTH {
                    return Err(format!("the body has more than {MAX_DEPTH} levels"));
                }
                if count > MAX_ELEMENTS {
                    return Err(format!("the body has more than {MAX_ELEMENTS} elements"));
                }
                let name = start.local_name();
                if !is_name(name.as_ref()) {
                    return Err(format!("the body has an element without a valid name, at byte {at}"));
                }
                open.push((Element::container(name.as_ref(), Vec::new()), String::new()));
            }
            Event::End(_) => {
                let Some((mut element, text)) = open.pop() else { return Err(unbalanced(at)) };
                if element.children().is_empty() && !text.is_empty() {
                    // White space around the text of a leaf belongs to the layout.
                    let text = text.trim();
                    if !text.is_empty() {
                        element.content = Content::Text(text.to_owned());
                    }
                } else if !text.trim().is_empty() {
                    return Err(format!("element `{}` has text beside its elements", element.name));
                }
                let Some((parent, _)) = open.last_mut() else { return Err(unbalanced(at)) };
                if let Content::Children(children) = &mut parent.content {
                    children.push(element);
                }
            }
            Event::Text(text) => push(&mut open, &text),
            Event::CData(text) => push(&mut open, &text),
            Event::GeneralRef(reference) => {
                let name: &str = &reference;
                let c = entity(name).ok_or_else(|| format!("the body refers to the unknown entity `{name}`"))?;
                push(&mut open, c.encode_utf8(&mut [0; 4]));
            }
            Event::DocType(_) => return Err("the body has a document type, which is not permitted".to_owned()),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) | Event::Empty(_) => {}
            Event::Eof => break,
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some((root, text)), true) if text.trim().is_empty() => Ok(root.children().to_vec()),
        (Some(_), true) => Err("the body has text outside of elements".to_owned()),
        _ => Err("the body ends within an element".to_owned()),
    }
}

/// Returns whether a text is the name of an element (Extensible Markup Language 1.0, section 2.3),
/// without the rare characters that are neither letters nor digits.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn push(open: &mut [(Element, String)], text: &str) {
    if let Some((_, into)) = open.last_mut() {
        *into += text;
    }
}

fn unbalanced(at: u64) -> String {
    format!("the body closes an element that is not open, at byte {at}")
}

/// Character of a predefined entity or a character reference.
fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|c| *c != '\0');
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => return None,
    })
}
