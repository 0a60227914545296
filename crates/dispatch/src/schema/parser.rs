//! Reads names, arguments and whole schemas: recursive descent with one token of look-ahead. Types and defaults are read
//! in `parse_type` and `parse_default`.

use std::collections::HashSet;

use super::argument::Argument;
use super::error::{Result, SchemaError};
use super::function_schema::FunctionSchema;
use super::lexer::{Kind, Lexer, Token};
use super::operator_name::OperatorName;
use super::parse_type::ParsedType;
use super::type_::Type;

/// From this many arguments on, repeated names are looked for with a hash set.
const HASH_NAMES_FROM: usize = 32;

/// A list of arguments and whether it ended in `...`.
type ArgumentList = (Vec<Argument>, bool);

/// The reader of one text.
pub(super) struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    current: Token,
    /// How many anonymous sets, the `!` without parentheses, there were.
    pub(super) fresh_sets: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Parser<'a> {
        let mut lexer = Lexer::new(text);
        let current = lexer.next();
        Parser { text, lexer, current, fresh_sets: 0 }
    }

    /// A schema and nothing after it.
    pub(super) fn whole_schema(mut self) -> Result<FunctionSchema> {
        let name = self.operator_name()?;
        let (arguments, is_vararg) = self.arguments()?;
        self.expect(Kind::Arrow, "after the arguments")?;
        let (returns, is_varret) = self.returns()?;
        self.expect(Kind::End, "after the returns")?;
        Ok(FunctionSchema { name, arguments, returns, is_vararg, is_varret })
    }

    /// A type without annotations and nothing after it.
    pub(super) fn whole_type(mut self) -> Result<Type> {
        let start = self.current;
        let ParsedType { ty, alias, .. } = self.ty(0)?;
        self.expect(Kind::End, "after the type")?;
        match alias {
            Some(_) => Err(self.error_at(start, "expected a type without alias annotations")),
            None => Ok(ty),
        }
    }

    /// An operator name and nothing after it.
    pub(super) fn whole_operator_name(mut self) -> Result<OperatorName> {
        let name = self.operator_name()?;
        self.expect(Kind::End, "after the operator name")?;
        Ok(name)
    }

    // ---- tokens

    pub(super) fn kind(&self) -> Kind {
        self.current.kind
    }

    pub(super) fn current(&self) -> Token {
        self.current
    }

    pub(super) fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    /// Returns the current token and moves on.
    pub(super) fn advance(&mut self) -> Token {
        std::mem::replace(&mut self.current, self.lexer.next())
    }

    /// Moves on if the current token is of that kind.
    pub(super) fn eat(&mut self, kind: Kind) -> bool {
        let found = self.current.kind == kind;
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect(&mut self, kind: Kind, place: &str) -> Result<Token> {
        if self.current.kind == kind {
            return Ok(self.advance());
        }
        Err(self.expected(&format!("{} {place}", kind.describe())))
    }

    /// "expected …, found …" at the current token.
    pub(super) fn expected(&self, what: &str) -> SchemaError {
        let token = self.current;
        let found = match token.kind {
            Kind::Ident | Kind::Number | Kind::Str | Kind::Unknown => {
                let shown: String =
                    self.text_of(token).chars().take(40).flat_map(char::escape_default).collect();
                format!("{} `{shown}`", token.kind.describe())
            }
            kind => kind.describe().to_owned(),
        };
        self.error_at(token, format!("expected {what}, found {found}"))
    }

    pub(super) fn error_at(&self, token: Token, message: impl Into<String>) -> SchemaError {
        SchemaError::at(message, self.text, token.start, token.end)
    }

    // ---- names

    /// A name that is no keyword: those cannot be used from Python.
    pub(super) fn ident(&mut self, what: &str) -> Result<&'a str> {
        if self.current.kind != Kind::Ident {
            return Err(self.expected(what));
        }
        let text = self.text_of(self.current);
        if is_keyword(text) {
            return Err(self.error_at(self.current, format!("expected {what}, found the keyword `{text}`")));
        }
        self.advance();
        Ok(text)
    }

    fn operator_name(&mut self) -> Result<OperatorName> {
        let first = self.ident("an operator name")?;
        let name = if self.eat(Kind::ColonColon) {
            let base = self.ident("an operator name after the namespace")?;
            [first, "::", base].concat()
        } else {
            first.to_owned()
        };
        let mut overload = String::new();
        if self.eat(Kind::Dot) {
            let token = self.current;
            self.ident("an overload name").map(|text| overload.push_str(text))?;
            if overload == "default" {
                let message = "`default` is no overload name: it stands for the overload without a name";
                return Err(self.error_at(token, message));
            }
        }
        Ok(OperatorName { name, overload })
    }

    // ---- arguments and returns

    fn arguments(&mut self) -> Result<ArgumentList> {
        self.expect(Kind::LParen, "before the arguments")?;
        let mut arguments = Vec::with_capacity(8);
        let mut names = Names::default();
        let mut kwarg_only = false;
        if self.eat(Kind::RParen) {
            return Ok((arguments, false));
        }
        loop {
            match self.kind() {
                Kind::Ellipsis => {
                    self.advance();
                    self.expect(Kind::RParen, "after '...', which must come last")?;
                    return Ok((arguments, true));
                }
                Kind::Star if kwarg_only => {
                    return Err(self.error_at(self.current, "expected an argument, found a second '*'"));
                }
                Kind::Star => {
                    self.advance();
                    kwarg_only = true;
                }
                _ => {
                    let (argument, span) = self.argument(kwarg_only)?;
                    self.check_order(&arguments, &argument, span)?;
                    if !names.insert(&arguments, &argument.name) {
                        return Err(
                            self.error_at(span, format!("there is already an argument `{}`", argument.name))
                        );
                    }
                    arguments.push(argument);
                }
            }
            if self.eat(Kind::Comma) {
                continue;
            }
            if self.eat(Kind::RParen) {
                return Ok((arguments, false));
            }
            return Err(self.expected("',' or ')' after an argument"));
        }
    }

    /// A positional argument that must be given cannot follow one that may be left out.
    fn check_order(&self, earlier: &[Argument], argument: &Argument, span: Token) -> Result<()> {
        match earlier.last() {
            Some(last) if last.default.is_some() && argument.default.is_none() && !argument.kwarg_only => {
                let message = format!(
                    "argument `{}` has no default but follows `{}`, which has one",
                    argument.name, last.name
                );
                Err(self.error_at(span, message))
            }
            _ => Ok(()),
        }
    }

    /// An argument, and its name's token for errors.
    fn argument(&mut self, kwarg_only: bool) -> Result<(Argument, Token)> {
        let ParsedType { ty, alias, .. } = self.ty(0)?;
        let span = self.current;
        let name = self.ident("an argument name")?.to_owned();
        let default = if self.eat(Kind::Equals) { Some(self.default_value(&ty)?) } else { None };
        let is_out = kwarg_only && alias.as_ref().is_some_and(|a| a.is_write);
        Ok((Argument { name, ty, alias, default, kwarg_only, is_out }, span))
    }

    /// `...`, one return, or a list of them in parentheses.
    fn returns(&mut self) -> Result<ArgumentList> {
        if self.eat(Kind::Ellipsis) {
            return Ok((Vec::new(), true));
        }
        if !self.eat(Kind::LParen) {
            return Ok((vec![self.return_value()?], false));
        }
        let mut returns = Vec::new();
        if self.eat(Kind::RParen) {
            return Ok((returns, false));
        }
        loop {
            if self.eat(Kind::Ellipsis) {
                self.expect(Kind::RParen, "after '...', which must come last")?;
                return Ok((returns, true));
            }
            returns.push(self.return_value()?);
            if self.eat(Kind::Comma) {
                continue;
            }
            if self.eat(Kind::RParen) {
                return Ok((returns, false));
            }
            return Err(self.expected("',' or ')' after a return"));
        }
    }

    fn return_value(&mut self) -> Result<Argument> {
        let ParsedType { ty, alias, .. } = self.ty(0)?;
        let name =
            if self.kind() == Kind::Ident { self.ident("a return name")?.to_owned() } else { String::new() };
        Ok(Argument { alias, ..Argument::new(name, ty) })
    }
}

/// Finds repeated names: a scan while there are few, a hash set from then on.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    /// False if one of the `earlier` arguments has that name.
    fn insert(&mut self, earlier: &[Argument], name: &str) -> bool {
        if earlier.len() < HASH_NAMES_FROM {
            return earlier.iter().all(|a| a.name != name);
        }
        if self.0.is_empty() {
            self.0.extend(earlier.iter().map(|a| a.name.clone()));
        }
        self.0.insert(name.to_owned())
    }
}

/// Words that PyTorch's lexer, which is that of TorchScript, does not take for names.
pub(super) fn is_keyword(text: &str) -> bool {
    matches!(
        text,
        "False"
            | "None"
            | "True"
            | "and"
            | "as"
            | "assert"
            | "break"
            | "class"
            | "continue"
            | "def"
            | "del"
            | "elif"
    ) || matches!(
        text,
        "else"
            | "for"
            | "global"
            | "if"
            | "import"
            | "in"
            | "is"
            | "not"
            | "or"
            | "pass"
            | "raise"
            | "return"
    ) || matches!(text, "while" | "with")
}
