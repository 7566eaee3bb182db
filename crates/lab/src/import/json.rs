//! A reader of JSON that keeps the line of each value, and which values were used.

use std::cell::Cell;

/// A value with its place.
#[derive(Debug)]
pub(super) struct Value {
    pub line: u32,
    pub kind: Kind,
    /// Set when the importer reads the value.
    pub used: Cell<bool>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Object(Vec<(String, Value)>),
    Array(Vec<Value>),
    /// Text, number, boolean or null, as text.
    Leaf(String),
}

/// A text that is no JSON, with the line of the error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BadJson {
    pub line: u32,
    pub reason: &'static str,
}

/// Greatest depth of nested values.
const MAX_DEPTH: u32 = 64;

/// True if a text that begins with a brace or bracket is JSON and not the output of a command.
pub(super) fn looks_like(text: &str) -> bool {
    let inner = text[1..].trim_start();
    inner.starts_with(['"', '{', '[', '}', ']'])
}

impl Value {
    pub fn get(&self, key: &str) -> Option<&Value> {
        match &self.kind {
            Kind::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns the elements of an array, or the value itself: some clients write a list of one as a
    /// plain object.
    pub fn items(&self) -> Box<dyn Iterator<Item = &Value> + '_> {
        match &self.kind {
            Kind::Array(items) => Box::new(items.iter()),
            _ => Box::new(std::iter::once(self)),
        }
    }

    /// Returns a leaf as text, and marks it as used.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.leaf()
    }

    pub fn leaf(&self) -> Option<&str> {
        match &self.kind {
            Kind::Leaf(text) => {
                self.used.set(true);
                Some(text)
            }
            _ => None,
        }
    }

    /// Returns a leaf as a number, and marks it as used.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.text(key)?.parse().ok()
    }
}

/// Reads all documents of a text.
pub(super) fn read(text: &str) -> (Vec<Value>, Option<BadJson>) {
    let mut parser = Parser { text: text.as_bytes(), at: 0, line: 1 };
    let mut documents = Vec::new();
    loop {
        parser.space();
        if parser.at >= parser.text.len() {
            return (documents, None);
        }
        match parser.value(0) {
            Ok(value) => documents.push(value),
            Err(error) => return (documents, Some(error)),
        }
    }
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    line: u32,
}

impl Parser<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn bad<T>(&self, reason: &'static str) -> Result<T, BadJson> {
        Err(BadJson { line: self.line, reason })
    }

    fn space(&mut self) {
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' => {}
                // A byte order mark.
                0xef if self.text[self.at..].starts_with(&[0xef, 0xbb, 0xbf]) => self.at += 2,
                _ => return,
            }
            self.at += 1;
        }
    }

    fn value(&mut self, depth: u32) -> Result<Value, BadJson> {
        if depth > MAX_DEPTH {
            return self.bad("nests too deeply");
        }
        self.space();
        let line = self.line;
        let kind = match self.peek() {
            b'{' => self.object(depth)?,
            b'[' => self.array(depth)?,
            b'"' => Kind::Leaf(self.string()?),
            _ => Kind::Leaf(self.word()?),
        };
        Ok(Value { line, kind, used: Cell::new(false) })
    }

    fn object(&mut self, depth: u32) -> Result<Kind, BadJson> {
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.space();
            match self.peek() {
                b'}' => {
                    self.at += 1;
                    return Ok(Kind::Object(members));
                }
                b',' if !members.is_empty() => {
                    self.at += 1;
                    continue;
                }
                b'"' => {}
                _ => return self.bad("is no JSON: a name or `}` was expected"),
            }
            let name = self.string()?;
            self.space();
            if self.peek() != b':' {
                return self.bad("is no JSON: `:` was expected");
            }
            self.at += 1;
            members.push((name, self.value(depth + 1)?));
        }
    }

    fn array(&mut self, depth: u32) -> Result<Kind, BadJson> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.space();
            match self.peek() {
                b']' => {
                    self.at += 1;
                    return Ok(Kind::Array(items));
                }
                b',' if !items.is_empty() => self.at += 1,
                0 => return self.bad("is no JSON: it ends inside a list"),
                _ => items.push(self.value(depth + 1)?),
            }
        }
    }

    fn string(&mut self) -> Result<String, BadJson> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let Some(&byte) = self.text.get(self.at) else { return self.bad("is no JSON: it ends inside a text") };
            self.at += 1;
            match byte {
                b'"' => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                b'\n' => return self.bad("is no JSON: a text ends at the end of its line"),
                b'\\' => {
                    let escaped = self.peek();
                    self.at += 1;
                    match escaped {
                        b'n' | b't' | b'r' | b'b' | b'f' => bytes.push(b' '),
                        b'u' => {
                            let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
                            let code = std::str::from_utf8(digits).ok().and_then(|d| u32::from_str_radix(d, 16).ok());
                            let Some(code) = code else { return self.bad("is no JSON: a bad escape") };
                            self.at += 4;
                            let c = char::from_u32(code).unwrap_or('\u{fffd}');
                            bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
                        }
                        0 => return self.bad("is no JSON: it ends inside a text"),
                        other => bytes.push(other),
                    }
                }
                other => bytes.push(other),
            }
        }
    }

    fn word(&mut self) -> Result<String, BadJson> {
        let start = self.at;
        while self.peek().is_ascii_alphanumeric() || b"+-.".contains(&self.peek()) {
            self.at += 1;
        }
        match self.text.get(start..self.at) {
            Some(word) if !word.is_empty() => Ok(String::from_utf8_lossy(word).into_owned()),
            _ => self.bad("is no JSON: a value was expected"),
        }
    }
}
