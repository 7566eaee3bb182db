//! Line editor of a terminal: [`Terminal`]. Bytes of a keyboard become lines, and bytes that the
//! terminal shows.

use std::mem::take;

/// Maximum length of a line in bytes.
pub const MAX_LINE: usize = 16 << 10;
/// Number of lines that the arrow keys bring back.
const MAX_HISTORY: usize = 50;
/// Erases the character before the cursor.
const ERASE: &[u8] = b"\x08 \x08";

/// Result of a byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Key {
    /// A complete line.
    Line(String),
    /// A line that is longer than [`MAX_LINE`]; it is discarded.
    TooLong,
    /// The user has discarded the line (Ctrl-C).
    Interrupt,
    /// The user has no more input (Ctrl-D in an empty line).
    End,
}

/// Position within an escape sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Escape {
    #[default]
    None,
    Started,
    /// After `ESC [` or `ESC O`.
    Sequence,
}

/// State of the editor.
#[derive(Debug, Default)]
pub struct Terminal {
    /// True for a pseudo-terminal: it shows input, and ends lines by a carriage return.
    pub shows: bool,
    line: Vec<u8>,
    is_too_long: bool,
    /// The last byte was a carriage return, so a line feed belongs to it.
    after_return: bool,
    escape: Escape,
    history: Vec<String>,
    /// Position in the history, from its end; 0 is the new line.
    recalled: usize,
}

impl Terminal {
    /// An editor. `shows` as the field.
    pub fn new(shows: bool) -> Terminal {
        Terminal { shows, ..Terminal::default() }
    }

    /// Takes a byte of the keyboard. Appends the bytes that the terminal shows to `shown`.
    pub fn take(&mut self, byte: u8, shown: &mut Vec<u8>) -> Option<Key> {
        let after_return = take(&mut self.after_return);
        if !self.shows {
            return match byte {
                b'\n' => Some(self.end_of_line()),
                // A null byte has no meaning here; a carriage return ends a line together with a
                // line feed.
                0 | b'\r' => None,
                _ => self.insert(byte),
            };
        }
        match self.escape {
            Escape::None => {}
            Escape::Started => {
                self.escape = if b"[O".contains(&byte) { Escape::Sequence } else { Escape::None };
                return None;
            }
            Escape::Sequence => {
                if (0x40..=0x7e).contains(&byte) {
                    self.escape = Escape::None;
                    self.recall(byte, shown);
                }
                return None;
            }
        }
        match byte {
            b'\n' if after_return => return None,
            b'\r' | b'\n' => {
                self.after_return = byte == b'\r';
                shown.extend(b"\r\n");
                return Some(self.end_of_line());
            }
            0x03 => {
                self.discard();
                shown.extend(b"^C\r\n");
                return Some(Key::Interrupt);
            }
            0x04 if self.line.is_empty() => return Some(Key::End),
            0x08 | 0x7f => self.erase(shown),
            0x15 => self.replace("", shown),
            0x17 => {
                while self.line.last() == Some(&b' ') {
                    self.erase(shown);
                }
                while self.line.last().is_some_and(|last| *last != b' ') {
                    self.erase(shown);
                }
            }
            0x1b => self.escape = Escape::Started,
            0..0x20 => {}
            _ => {
                if self.line.len() < MAX_LINE {
                    shown.push(byte);
                }
                return self.insert(byte);
            }
        }
        None
    }

    /// Line that the end of the input leaves, without its end.
    pub fn rest(&mut self) -> Option<String> {
        let is_empty = self.line.is_empty() && !self.is_too_long;
        match self.end_of_line() {
            Key::Line(line) if !is_empty => Some(line),
            _ => None,
        }
    }

    fn insert(&mut self, byte: u8) -> Option<Key> {
        match self.line.len() < MAX_LINE {
            true => self.line.push(byte),
            false => self.is_too_long = true,
        }
        None
    }

    fn discard(&mut self) {
        self.line.clear();
        self.is_too_long = false;
        self.recalled = 0;
    }

    fn end_of_line(&mut self) -> Key {
        let line = String::from_utf8_lossy(&take(&mut self.line)).into_owned();
        let is_too_long = self.is_too_long;
        self.discard();
        if is_too_long {
            return Key::TooLong;
        }
        if self.shows && !line.trim().is_empty() && self.history.last() != Some(&line) {
            if self.history.len() == MAX_HISTORY {
                self.history.remove(0);
            }
            self.history.push(line.clone());
        }
        Key::Line(line)
    }

    /// Erases a character, which has one byte or several.
    fn erase(&mut self, shown: &mut Vec<u8>) {
        while let Some(byte) = self.line.pop() {
            if byte & 0xc0 != 0x80 {
                shown.extend(ERASE);
                return;
            }
        }
    }

    fn replace(&mut self, line: &str, shown: &mut Vec<u8>) {
        while !self.line.is_empty() {
            self.erase(shown);
        }
        self.discard();
        self.line.extend(line.as_bytes());
        shown.extend(line.as_bytes());
    }

    /// Arrow up and arrow down.
    fn recall(&mut self, byte: u8, shown: &mut Vec<u8>) {
        let position = match byte {
            b'A' if self.recalled < self.history.len() => self.recalled + 1,
            b'B' if self.recalled > 0 => self.recalled - 1,
            _ => return,
        };
        let at = self.history.len() - position;
        let line = self.history.get(at).cloned().unwrap_or_default();
        self.replace(&line, shown);
        self.recalled = position;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(terminal: &mut Terminal, bytes: &[u8]) -> (Vec<Key>, String) {
        let mut shown = Vec::new();
        let keys = bytes.iter().filter_map(|byte| terminal.take(*byte, &mut shown)).collect();
        (keys, String::from_utf8(shown).unwrap())
    }

    fn line(text: &str) -> Key {
        Key::Line(text.to_owned())
    }

    #[test]
    fn a_terminal_shows_what_is_typed_and_every_end_of_a_line_counts_once() {
        let mut terminal = Terminal::new(true);
        let (keys, shown) = typed(&mut terminal, b"one\rtwo\r\nthree\n\n");
        assert_eq!(keys, [line("one"), line("two"), line("three"), line("")]);
        assert_eq!(shown, "one\r\ntwo\r\nthree\r\n\r\n");
        let mut plain = Terminal::default();
        assert_eq!(typed(&mut plain, b"one\r\n\x03two\nrest"), (vec![line("one"), line("\x03two")], String::new()));
        assert_eq!((plain.rest(), plain.rest()), (Some("rest".to_owned()), None));
    }

    #[test]
    fn keys_erase_characters_words_and_lines() {
        let mut terminal = Terminal::new(true);
        let (keys, shown) = typed(&mut terminal, "aä\x7f\x7f\x7fok\r".as_bytes());
        assert_eq!((keys, &*shown), (vec![line("ok")], "aä\x08 \x08\x08 \x08ok\r\n"));
        assert_eq!(typed(&mut terminal, b"show all \x17me\r").0, [line("show me")]);
        assert_eq!(typed(&mut terminal, b"wrong\x15right\r").0, [line("right")]);
        assert_eq!(typed(&mut terminal, b"x\x03y\x04\r\x04").0, [Key::Interrupt, line("y"), Key::End]);
    }

    #[test]
    fn arrow_keys_bring_back_lines_and_other_sequences_are_ignored() {
        let mut terminal = Terminal::new(true);
        typed(&mut terminal, b"first\rsecond\r");
        assert_eq!(typed(&mut terminal, b"\x1b[A\x1b[A\x1b[A\r").0, [line("first")]);
        assert_eq!(typed(&mut terminal, b"\x1b[A\x1bOA\x1b[B\x1b[B\x1b[3~new\r").0, [line("new")]);
    }

    #[test]
    fn a_line_that_is_too_long_is_discarded_with_bounded_memory() {
        for shows in [true, false] {
            let mut terminal = Terminal::new(shows);
            let (keys, shown) = typed(&mut terminal, &[b'x'; 3 * MAX_LINE]);
            assert!(keys.is_empty() && terminal.line.len() == MAX_LINE && shown.len() <= MAX_LINE);
            assert_eq!(typed(&mut terminal, b"\nok\n").0, [Key::TooLong, line("ok")]);
        }
    }
}
