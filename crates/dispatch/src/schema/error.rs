//! The error of the schema language: what was expected, what was found, and where.

use std::fmt;

/// Result of everything that reads or judges a schema.
pub type Result<T> = std::result::Result<T, SchemaError>;

/// Widest part of the offending line that is shown; schemas may come from hostile files.
const MAX_SHOWN: usize = 160;

/// A schema that cannot be read or that breaks a rule.
///
/// `Display` gives the message, the offending line, and a caret line below the offending token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    message: String,
    /// The offending line, cut to a window, control characters replaced by spaces.
    line: String,
    /// Byte offset in the whole text; `None` for a rule about the schema as a whole.
    position: Option<usize>,
    /// Where the caret starts, in characters of `line`.
    caret: usize,
    /// How many characters it underlines.
    width: usize,
}

impl SchemaError {
    /// An error at the bytes `start..end` of `text`.
    pub(super) fn at(message: impl Into<String>, text: &str, start: usize, end: usize) -> SchemaError {
        let start = floor_char_boundary(text, start);
        let end = floor_char_boundary(text, end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let from = floor_char_boundary(text, line_start.max(start.saturating_sub(MAX_SHOWN / 2)));
        let to = floor_char_boundary(text, line_end.min(from + MAX_SHOWN));
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        SchemaError {
            message: shortened(message.into()),
            line: text[from..to].chars().map(plain).collect(),
            position: Some(start),
            caret: text[from..start].chars().count(),
            width: text[start..end.clamp(start, to.max(start))].chars().count().max(1),
        }
    }

    /// An error about a schema as a whole, which is shown as it prints.
    pub(super) fn whole(message: impl Into<String>, schema: &dyn fmt::Display) -> SchemaError {
        let line = shortened(schema.to_string());
        SchemaError { message: shortened(message.into()), line, position: None, caret: 0, width: 0 }
    }

    /// What was expected and what was found, without the text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Byte offset of the offending token in the text that was parsed, where there is one.
    pub fn position(&self) -> Option<usize> {
        self.position
    }
}

/// `text`, cut where it is too long to help: names and types in it are as long as the schema's author wants.
fn shortened(mut text: String) -> String {
    const MAX: usize = 4 * MAX_SHOWN;
    if text.len() > MAX {
        text.truncate(floor_char_boundary(&text, MAX));
        text.push_str("...");
    }
    text
}

/// Largest character boundary of `text` that is not above `index`.
fn floor_char_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:\n{}", self.message, self.line)?;
        if self.position.is_some() {
            write!(f, "\n{:caret$}{:~<width$} <--- HERE", "", "", caret = self.caret, width = self.width)?;
        }
        Ok(())
    }
}

impl std::error::Error for SchemaError {}
