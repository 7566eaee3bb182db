//! Blocks, names and values of DiskSim's parameter files (DiskSim 4.0 manual, section 2.1).
//!
//! `type name { parameter = value, … }`, where a value is a number, words, a list in brackets, a
//! block, or `source FILE`. A comment starts with `#`.

use super::{Files, ImportError, MAX_BYTES, MAX_DEPTH};

/// Value of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    /// Number or words.
    Words(String),
    List(Vec<Value>),
    Block(Block),
}

/// Block of parameters.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Block {
    /// Type, such as `disksim_disk`.
    pub kind: String,
    /// Name; empty if there is none.
    pub name: String,
    pub entries: Vec<Entry>,
}

/// Parameter of a block.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Entry {
    pub key: String,
    pub value: Value,
    /// File and line, for messages.
    pub place: String,
}

impl Value {
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Words(words) => words.parse().ok().filter(|number: &f64| number.is_finite()),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Token<'t> {
    Word(&'t str),
    Mark(char),
}

/// Reads a file and the files that it names.
pub(super) struct Reader<'f> {
    files: Files<'f>,
    bytes: usize,
}

struct Cursor<'t> {
    file: &'t str,
    tokens: Vec<(usize, Token<'t>)>,
    at: usize,
}

impl<'t> Cursor<'t> {
    fn new(file: &'t str, text: &'t str) -> Cursor<'t> {
        let mut tokens = Vec::new();
        for (line, content) in text.lines().enumerate() {
            let content = content.split('#').next().unwrap_or("");
            let mut rest = content.trim_start();
            while let Some(first) = rest.chars().next() {
                let token = match first {
                    '{' | '}' | '[' | ']' | '=' | ',' => Token::Mark(first),
                    _ => {
                        let is_end = |c: char| c.is_whitespace() || "{}[]=,".contains(c);
                        Token::Word(&rest[..rest.find(is_end).unwrap_or(rest.len())])
                    }
                };
                let length = match token {
                    Token::Word(word) => word.len(),
                    Token::Mark(_) => 1,
                };
                tokens.push((line + 1, token));
                rest = rest[length..].trim_start();
            }
        }
        Cursor { file, tokens, at: 0 }
    }

    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).map(|token| token.1)
    }

    fn next(&mut self) -> Option<Token<'t>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    fn takes(&mut self, mark: char) -> bool {
        let is_there = self.peek() == Some(Token::Mark(mark));
        self.at += usize::from(is_there);
        is_there
    }

    fn place(&self) -> String {
        let last = self.at.min(self.tokens.len().saturating_sub(1));
        format!("{}:{}", self.file, self.tokens.get(last).map_or(1, |token| token.0))
    }

    fn error(&self, reason: &str, remedy: &str) -> ImportError {
        ImportError { place: self.place(), reason: reason.to_owned(), remedy: remedy.to_owned() }
    }

    /// Returns the words up to the next mark.
    fn words(&mut self) -> Vec<&'t str> {
        let mut words = Vec::new();
        while let Some(Token::Word(word)) = self.peek() {
            words.push(word);
            self.at += 1;
        }
        words
    }
}

impl<'f> Reader<'f> {
    pub fn new(files: Files<'f>) -> Reader<'f> {
        Reader { files, bytes: 0 }
    }

    /// Returns the text of a file, within the limit of all files.
    pub fn text(&mut self, file: &str, place: &str) -> Result<String, ImportError> {
        let error =
            |reason: String, remedy: &str| ImportError { place: place.to_owned(), reason, remedy: remedy.to_owned() };
        let text = (self.files)(file).map_err(|why| {
            error(format!("the file {file} cannot be read: {why}"), "put it beside the file that names it")
        })?;
        self.bytes += text.len();
        if self.bytes > MAX_BYTES {
            let reason = format!("the files have more than {MAX_BYTES} bytes");
            return Err(error(reason, "give the parameter file of a single disk"));
        }
        Ok(text)
    }

    /// Returns all blocks of a text, and of the files that it names.
    pub fn blocks(&mut self, file: &str, text: &str, depth: usize) -> Result<Vec<Block>, ImportError> {
        let mut cursor = Cursor::new(file, text);
        let mut blocks = Vec::new();
        while let Some(token) = cursor.peek() {
            let words = cursor.words();
            if words.is_empty() {
                // Instances and topologies have lists and punctuation of their own.
                cursor.next();
                continue;
            }
            if let Some(name) = source(&words) {
                blocks.extend(self.source(name, &cursor, depth)?);
                if cursor.peek() == Some(Token::Mark('{')) {
                    return Err(cursor.error("a block follows `source FILE`", "start the block with its type"));
                }
                // `source` may stand before the next block without a mark between them.
                continue;
            }
            if cursor.peek() == Some(Token::Mark('{')) {
                let (names, first) = after_source(&words);
                if let Some(name) = first {
                    blocks.extend(self.source(name, &cursor, depth)?);
                }
                blocks.push(self.block(names, &mut cursor, depth)?);
            } else if let (_, Some(name)) = after_source(&words) {
                blocks.extend(self.source(name, &cursor, depth)?);
            }
            debug_assert!(token != Token::Mark('{') || cursor.at > 0);
        }
        Ok(blocks)
    }

    fn source(&mut self, name: &str, cursor: &Cursor<'_>, depth: usize) -> Result<Vec<Block>, ImportError> {
        // Blocks inside the deepest file still have room.
        if depth + 4 >= MAX_DEPTH {
            return Err(cursor.error("files name each other without an end", "remove one of the `source` lines"));
        }
        let place = cursor.place();
        let text = self.text(name, &place)?;
        self.blocks(name, &text, depth + 1)
    }

    /// Reads a block whose type and name are read already.
    fn block(&mut self, words: &[&str], cursor: &mut Cursor<'_>, depth: usize) -> Result<Block, ImportError> {
        if depth >= MAX_DEPTH {
            return Err(cursor.error("blocks are nested too deeply", "remove the inner blocks"));
        }
        cursor.takes('{');
        let mut block = Block {
            kind: words.first().copied().unwrap_or("").to_owned(),
            name: words.get(1..).unwrap_or(&[]).join(" "),
            entries: Vec::new(),
        };
        loop {
            if cursor.takes('}') {
                return Ok(block);
            }
            if cursor.takes(',') {
                continue;
            }
            let place = cursor.place();
            if cursor.peek().is_none() {
                return Err(cursor.error(&format!("the block {} does not end", block.kind), "add a brace }"));
            }
            let key = cursor.words().join(" ");
            if key.is_empty() || !cursor.takes('=') {
                let reason = format!("`{}` is not followed by = and a value", short(&key));
                return Err(cursor.error(&reason, "write parameter = value, with a comma behind it and } at the end"));
            }
            let value = self.value(cursor, depth)?;
            block.entries.push(Entry { key, value, place });
        }
    }

    fn value(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Value, ImportError> {
        if depth >= MAX_DEPTH {
            return Err(cursor.error("lists are nested too deeply", "remove the inner lists"));
        }
        if cursor.takes('[') {
            let mut list = Vec::new();
            loop {
                if cursor.takes(']') {
                    return Ok(Value::List(list));
                }
                if cursor.takes(',') {
                    continue;
                }
                list.push(self.value(cursor, depth + 1)?);
            }
        }
        let words = cursor.words();
        if words.is_empty() {
            return Err(cursor.error("a value is missing", "write a number, a word, a list or a block"));
        }
        if let Some(name) = source(&words) {
            let blocks = self.source(name, cursor, depth)?;
            let error = || cursor.error(&format!("{name} has no block"), "name the file with the block");
            return blocks.into_iter().next().map(Value::Block).ok_or_else(error);
        }
        if cursor.peek() == Some(Token::Mark('{')) {
            return self.block(&words, cursor, depth + 1).map(Value::Block);
        }
        Ok(Value::Words(words.join(" ")))
    }
}

/// Returns the file of `source FILE`.
fn source<'t>(words: &[&'t str]) -> Option<&'t str> {
    match words {
        ["source", file] => Some(*file),
        _ => None,
    }
}

/// Splits words that end with the type and the name of a block; they may start with `source FILE`.
fn after_source<'w, 't>(words: &'w [&'t str]) -> (&'w [&'t str], Option<&'t str>) {
    match words {
        ["source", file, rest @ ..] => (rest, Some(*file)),
        _ => (words, None),
    }
}

/// Returns the start of a text, for messages.
pub(super) fn short(text: &str) -> &str {
    text.char_indices().nth(60).map_or(text, |(at, _)| &text[..at])
}
