//! What can go wrong with a file, said in terms of the file.

use std::fmt::{self, Write as _};
use std::io;

/// The result of everything in this crate.
pub type Result<T, E = SerializeError> = std::result::Result<T, E>;

/// The family of a [`SerializeError`]; callers choose their exception type by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused a read, a write or a rename.
    Io,
    /// The content is none of the formats this crate reads.
    UnknownFormat,
    /// A format that is recognised and not read: TorchScript, tar, deflated entries.
    Unsupported,
    /// The container (zip or stream) contradicts itself or ends early.
    Corrupt,
    /// The pickle contradicts itself.
    Unpickling,
    /// The pickle ends early.
    Truncated,
    /// The file names a byte order that there is not.
    ByteOrder,
    /// The pickle names a global that the policy does not let through.
    Global,
    /// A record or storage that was asked for, or is referred to, is not in the file.
    Missing,
    /// A record is smaller than what refers to it says.
    Size,
    /// A [`Limits`](crate::Limits) bound was exceeded.
    Limit,
    /// A value cannot be written.
    Pickling,
    /// There is no memory for what the file holds.
    Memory,
}

/// An error that names the record and the byte offset it concerns, where there is one.
#[derive(Debug)]
pub struct SerializeError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    record: Option<String>,
    offset: Option<u64>,
    source: Option<io::Error>,
}

impl SerializeError {
    /// An error of `kind` saying `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        SerializeError(Box::new(Inner {
            kind,
            message: message.into(),
            record: None,
            offset: None,
            source: None,
        }))
    }

    /// An operating system error during `action` (for example ``"open `a.pt`"``).
    pub fn io(action: impl fmt::Display, source: io::Error) -> Self {
        // What stands behind the error may be unable to say what it is, as an exception without memory for its text.
        let mut text = format!("could not {action}: ");
        if write!(text, "{source}").is_err() {
            text.push_str(source.kind().to_string().as_str());
        }
        let mut error = Self::new(ErrorKind::Io, text);
        error.0.source = Some(source);
        error
    }

    /// The same error, said about `record`. The innermost record wins.
    #[must_use]
    pub fn in_record(mut self, record: impl Into<String>) -> Self {
        self.0.record.get_or_insert_with(|| record.into());
        self
    }

    /// The same error at `offset` bytes into the record (or the file, where no record is named).
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// The family of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence without record and offset.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The record concerned.
    pub fn record(&self) -> Option<&str> {
        self.0.record.as_deref()
    }

    /// The byte offset concerned.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The operating system's error, for kind [`ErrorKind::Io`].
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }
}

impl fmt::Display for SerializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match (&self.0.record, self.0.offset) {
            (Some(record), Some(offset)) => write!(f, " (record `{record}`, offset {offset})"),
            (Some(record), None) => write!(f, " (record `{record}`)"),
            (None, Some(offset)) => write!(f, " (offset {offset})"),
            (None, None) => Ok(()),
        }
    }
}

impl std::error::Error for SerializeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e as _)
    }
}

/// Shorthand used throughout: an error of `kind` with a formatted message.
macro_rules! error {
    ($kind:ident, $($arg:tt)*) => {
        $crate::error::SerializeError::new($crate::error::ErrorKind::$kind, format!($($arg)*))
    };
}
pub(crate) use error;
