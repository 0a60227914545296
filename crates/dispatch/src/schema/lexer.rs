//! Cuts schema text into tokens, one at a time and without allocating.

/// What a token is; its text is the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ident,
    /// A number without sign; float if it has a point or an exponent, imaginary if it ends in `j`.
    Number,
    /// A quoted string, quotes included.
    Str,
    /// A string without its closing quote on the same line.
    OpenStr,
    LParen,
    RParen,
    LBracket,
    RBracket,
    Comma,
    Equals,
    Star,
    Bang,
    Pipe,
    Question,
    Minus,
    Plus,
    Dot,
    Colon,
    ColonColon,
    Arrow,
    Ellipsis,
    /// Anything else: one character.
    Unknown,
    End,
}

impl Kind {
    /// How errors name it.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Kind::Ident => "a name",
            Kind::Number => "a number",
            Kind::Str => "a string",
            Kind::OpenStr => "an unterminated string",
            Kind::LParen => "'('",
            Kind::RParen => "')'",
            Kind::LBracket => "'['",
            Kind::RBracket => "']'",
            Kind::Comma => "','",
            Kind::Equals => "'='",
            Kind::Star => "'*'",
            Kind::Bang => "'!'",
            Kind::Pipe => "'|'",
            Kind::Question => "'?'",
            Kind::Minus => "'-'",
            Kind::Plus => "'+'",
            Kind::Dot => "'.'",
            Kind::Colon => "':'",
            Kind::ColonColon => "'::'",
            Kind::Arrow => "'->'",
            Kind::Ellipsis => "'...'",
            Kind::Unknown => "an unexpected character",
            Kind::End => "the end of the text",
        }
    }
}

/// A token: its kind and the bytes it covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Reads tokens from left to right.
pub(super) struct Lexer<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, pos: 0 }
    }

    fn byte(&self, at: usize) -> u8 {
        // 0 stands for the end; a NUL in the text is an unknown character in every place that matters.
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    /// End of the run of bytes from `at` that satisfy `inside`.
    fn run(&self, mut at: usize, inside: impl Fn(u8) -> bool) -> usize {
        let bytes = self.text.as_bytes();
        while at < bytes.len() && inside(bytes[at]) {
            at += 1;
        }
        at
    }

    fn skip_blanks(&mut self) {
        loop {
            self.pos = self.run(self.pos, |b| b.is_ascii_whitespace() || b == 0x0b);
            if self.byte(self.pos) != b'#' {
                return;
            }
            self.pos = self.run(self.pos, |b| b != b'\n');
        }
    }

    /// The next token; `End` again and again at the end.
    pub(super) fn next(&mut self) -> Token {
        self.skip_blanks();
        let start = self.pos;
        let (kind, end) = self.scan(start);
        self.pos = end;
        Token { kind, start, end }
    }

    fn scan(&self, start: usize) -> (Kind, usize) {
        if start >= self.text.len() {
            return (Kind::End, start);
        }
        let single = |kind| (kind, start + 1);
        match self.byte(start) {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                (Kind::Ident, self.run(start + 1, |b| b.is_ascii_alphanumeric() || b == b'_'))
            }
            b'0'..=b'9' => (Kind::Number, self.number(start)),
            b'.' if self.byte(start + 1).is_ascii_digit() => (Kind::Number, self.number(start)),
            b'.' if self.text[start..].starts_with("...") => (Kind::Ellipsis, start + 3),
            b'-' if self.byte(start + 1) == b'>' => (Kind::Arrow, start + 2),
            b':' if self.byte(start + 1) == b':' => (Kind::ColonColon, start + 2),
            b'"' | b'\'' => self.string(start),
            b'(' => single(Kind::LParen),
            b')' => single(Kind::RParen),
            b'[' => single(Kind::LBracket),
            b']' => single(Kind::RBracket),
            b',' => single(Kind::Comma),
            b'=' => single(Kind::Equals),
            b'*' => single(Kind::Star),
            b'!' => single(Kind::Bang),
            b'|' => single(Kind::Pipe),
            b'?' => single(Kind::Question),
            b'-' => single(Kind::Minus),
            b'+' => single(Kind::Plus),
            b'.' => single(Kind::Dot),
            b':' => single(Kind::Colon),
            _ => (Kind::Unknown, start + self.text[start..].chars().next().map_or(1, char::len_utf8)),
        }
    }

    fn number(&self, start: usize) -> usize {
        let digits = |at| self.run(at, |b| b.is_ascii_digit());
        let mut end = digits(start);
        if self.byte(end) == b'.' {
            end = digits(end + 1);
        }
        if matches!(self.byte(end), b'e' | b'E') {
            let exponent = end + 1 + usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            if self.byte(exponent).is_ascii_digit() {
                end = digits(exponent);
            }
        }
        end + usize::from(self.byte(end) == b'j')
    }

    fn string(&self, start: usize) -> (Kind, usize) {
        let bytes = self.text.as_bytes();
        let quote = bytes[start];
        let mut at = start + 1;
        while at < bytes.len() && bytes[at] != b'\n' {
            match bytes[at] {
                b if b == quote => return (Kind::Str, at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        (Kind::OpenStr, at.min(bytes.len()))
    }
}
