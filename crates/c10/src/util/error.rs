//! The one error type of the engine.
//!
//! An [`Error`] is one word, so that `Result<Tensor>` stays in registers; formatting happens out of line and
//! only on failure. The [`ErrorKind`] decides which Python exception a user sees.

use std::any::Any;
use std::backtrace::Backtrace;
use std::fmt;
use std::sync::OnceLock;

/// What went wrong, in the classes a user can catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// RuntimeError: the default.
    Runtime,
    /// IndexError: an index or dimension is out of range.
    Index,
    /// ValueError: an argument has the right type and a wrong value.
    Value,
    /// TypeError: an argument has a wrong type.
    Type,
    /// NotImplementedError: no kernel, or a feature that is not there.
    NotImplemented,
    /// OutOfMemoryError: an allocation failed or passed a limit.
    OutOfMemory,
    /// LinAlgError: a decomposition failed.
    LinAlg,
    /// DistError: a collective or a store failed.
    Dist,
    /// OverflowError: a number does not fit.
    Overflow,
    /// AttributeError.
    Attribute,
    /// KeyError.
    Key,
    /// ImportError.
    Import,
    /// A mistake of ours, shown as a RuntimeError that asks for a report.
    Internal,
    /// An exception that came from outside (from Python) and travels through the core unchanged.
    Foreign,
}

/// The result type of every fallible function of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: a kind, a message, and lines of context added on the way up.
pub struct Error(Box<ErrorInner>);

struct ErrorInner {
    kind: ErrorKind,
    message: String,
    context: Vec<String>,
    foreign: Option<Box<dyn Any + Send + Sync>>,
    backtrace: Option<Backtrace>,
}

/// Whether `PTR_ERROR_BACKTRACE=1` asks for a backtrace in every error.
fn backtraces_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| std::env::var_os("PTR_ERROR_BACKTRACE").is_some_and(|v| v != "0" && !v.is_empty()))
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        $($(#[$doc])*
        #[cold]
        pub fn $name(message: impl Into<String>) -> Self {
            Self::new(ErrorKind::$kind, message)
        })*
    };
}

impl Error {
    /// An error of the given kind.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::new_inner(kind, message.into(), None)
    }

    /// An error whose message is formatted here, out of line.
    #[cold]
    #[inline(never)]
    pub fn from_format(kind: ErrorKind, message: fmt::Arguments<'_>) -> Self {
        Self::new_inner(kind, message.to_string(), None)
    }

    #[cold]
    #[inline(never)]
    fn new_inner(kind: ErrorKind, message: String, foreign: Option<Box<dyn Any + Send + Sync>>) -> Self {
        let backtrace = backtraces_wanted().then(Backtrace::force_capture);
        Self(Box::new(ErrorInner { kind, message, context: Vec::new(), foreign, backtrace }))
    }

    constructors! {
        /// A RuntimeError.
        runtime => Runtime;
        /// An IndexError.
        index => Index;
        /// A ValueError.
        value => Value;
        /// A TypeError (`type` is a Rust keyword).
        type_ => Type;
        /// A NotImplementedError.
        not_implemented => NotImplemented;
        /// An OutOfMemoryError.
        out_of_memory => OutOfMemory;
        /// A LinAlgError.
        lin_alg => LinAlg;
        /// A DistError.
        dist => Dist;
        /// An OverflowError.
        overflow => Overflow;
        /// An AttributeError.
        attribute => Attribute;
        /// A KeyError.
        key => Key;
        /// An ImportError.
        import => Import;
        /// A mistake of ours.
        internal => Internal;
    }

    /// An exception from outside, kept whole so that it can be raised again as what it was.
    #[cold]
    pub fn foreign(payload: Box<dyn Any + Send + Sync>, message: impl Into<String>) -> Self {
        Self::new_inner(ErrorKind::Foreign, message.into(), Some(payload))
    }

    /// A failed [`internal_assert!`](crate::internal_assert).
    #[cold]
    #[inline(never)]
    pub fn internal_assert_failed(
        condition: &str,
        file: &str,
        line: u32,
        message: fmt::Arguments<'_>,
    ) -> Self {
        let message = message.to_string();
        let separator = if message.is_empty() { "" } else { ": " };
        Self::internal(format!(
            "internal assertion `{condition}` failed at {file}:{line}{separator}{message}. \
             This is a bug in ptr, please report it."
        ))
    }

    /// Adds a line of context, shown below the message.
    #[cold]
    #[must_use]
    pub fn context(mut self, line: impl Into<String>) -> Self {
        self.0.context.push(line.into());
        self
    }

    /// The same error with another kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without context.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The lines of context, innermost first.
    pub fn context_lines(&self) -> &[String] {
        &self.0.context
    }

    /// The exception carried by a [`ErrorKind::Foreign`] error.
    pub fn foreign_payload(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.0.foreign.as_deref()
    }

    /// Takes the carried exception out.
    pub fn take_foreign(&mut self) -> Option<Box<dyn Any + Send + Sync>> {
        self.0.foreign.take()
    }

    /// The backtrace, when `PTR_ERROR_BACKTRACE=1`.
    pub fn backtrace(&self) -> Option<&Backtrace> {
        self.0.backtrace.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        for line in &self.0.context {
            write!(f, "\n{line}")?;
        }
        if let Some(backtrace) = &self.0.backtrace {
            write!(f, "\nBacktrace:\n{backtrace}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::runtime(error.to_string())
    }
}

impl From<fmt::Error> for Error {
    fn from(error: fmt::Error) -> Self {
        Self::runtime(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(n: i64) -> Result<i64> {
        check!(n != 0, "f(): n must not be 0, got {n}");
        check_index!(n < 10, "f(): {n} is out of range");
        internal_assert!(n != 5, "n is {n}");
        if n == 7 {
            bail!(Value, "f(): got {}", n);
        }
        Ok(n)
    }

    #[test]
    fn one_word() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn macros_choose_the_kind() {
        let kind = |n| fails(n).err().map(|e| e.kind());
        assert_eq!(kind(0), Some(ErrorKind::Runtime));
        assert_eq!(kind(12), Some(ErrorKind::Index));
        assert_eq!(kind(5), Some(ErrorKind::Internal));
        assert_eq!(kind(7), Some(ErrorKind::Value));
        assert_eq!(kind(1), None);
    }

    #[test]
    fn context_follows_the_message() {
        let error = Error::value("bad pad").context("while calling pad()");
        assert_eq!(error.message(), "bad pad");
        assert!(error.to_string().starts_with("bad pad\nwhile calling pad()"));
    }

    #[test]
    fn foreign_payload_comes_back_whole() {
        let mut error = Error::foreign(Box::new(42_i32), "from Python");
        assert_eq!(error.kind(), ErrorKind::Foreign);
        assert_eq!(error.foreign_payload().and_then(|p| p.downcast_ref()), Some(&42_i32));
        assert!(error.take_foreign().is_some());
        assert!(error.foreign_payload().is_none());
    }
}
