//! Reads types and their alias annotations.

use super::alias::{self, AliasInfo, AliasSet, WILDCARD};
use super::error::{Result, SchemaError};
use super::lexer::Kind;
use super::parser::Parser;
use super::type_::Type;

/// How deep types may nest. Printing, comparing and dropping a type recurse, so the parser bounds them.
const MAX_TYPE_DEPTH: usize = 32;

/// A type with its alias annotation, and how deep it nests.
pub(super) struct ParsedType {
    pub(super) ty: Type,
    pub(super) alias: Option<AliasInfo>,
    pub(super) depth: usize,
}

impl Parser<'_> {
    /// A type; `outer` counts the types it is inside of.
    pub(super) fn ty(&mut self, outer: usize) -> Result<ParsedType> {
        if outer >= MAX_TYPE_DEPTH {
            return Err(self.too_deep());
        }
        let mut parsed = self.base_type(outer)?;
        loop {
            if self.kind() == Kind::Question {
                self.advance();
                if !parsed.ty.is_optional() {
                    parsed = self.wrap(parsed, outer, Type::optional)?;
                }
            } else if self.kind() == Kind::LBracket {
                self.advance();
                let size = self.list_size()?;
                parsed = self.wrap(parsed, outer, |t| Type::List(Box::new(t), size))?;
                parsed.alias = match (parsed.alias.take(), self.alias()?) {
                    (None, own) => own,
                    (Some(elements), None) => Some(AliasInfo::of_elements(elements)),
                    (Some(elements), Some(own)) => Some(AliasInfo { contained: vec![elements], ..own }),
                };
            } else {
                break;
            }
        }
        Ok(parsed)
    }

    fn wrap(&self, inner: ParsedType, outer: usize, build: impl FnOnce(Type) -> Type) -> Result<ParsedType> {
        let depth = inner.depth + 1;
        if outer + depth > MAX_TYPE_DEPTH {
            return Err(self.too_deep());
        }
        Ok(ParsedType { ty: build(inner.ty), alias: inner.alias, depth })
    }

    fn too_deep(&self) -> SchemaError {
        self.error_at(self.current(), format!("the type nests deeper than {MAX_TYPE_DEPTH} levels"))
    }

    /// What follows the `[` of a list type: a size or nothing, and the `]`.
    fn list_size(&mut self) -> Result<Option<u32>> {
        if self.eat(Kind::RBracket) {
            return Ok(None);
        }
        let token = self.current();
        if token.kind != Kind::Number {
            return Err(self.expected("']' or a list size"));
        }
        let Ok(size) = self.text_of(token).parse::<u32>() else {
            return Err(self.expected("a list size, a whole number below 2**32"));
        };
        self.advance();
        self.expect(Kind::RBracket, "after the list size")?;
        Ok(Some(size))
    }

    fn base_type(&mut self, outer: usize) -> Result<ParsedType> {
        if self.kind() == Kind::LParen {
            let (types, depth) = self.type_list(outer)?;
            return Ok(ParsedType { ty: Type::Tuple(types), alias: None, depth });
        }
        let token = self.current();
        let name = self.ident("a type")?;
        let (ty, depth) = match name {
            "Dict" => {
                self.expect(Kind::LParen, "after `Dict`")?;
                let key = self.part(outer)?;
                self.expect(Kind::Comma, "between the key and value types of `Dict`")?;
                let value = self.part(outer)?;
                self.expect(Kind::RParen, "after the value type of `Dict`")?;
                (Type::Dict(Box::new(key.ty), Box::new(value.ty)), 1 + key.depth.max(value.depth))
            }
            "Union" => {
                if self.kind() != Kind::LParen {
                    return Err(self.expected("'(' after `Union`"));
                }
                let (types, depth) = self.type_list(outer)?;
                if types.len() < 2 {
                    return Err(self.error_at(
                        token,
                        format!("expected at least two types in `Union`, found {}", types.len()),
                    ));
                }
                (Type::Union(types), depth)
            }
            "Future" | "Await" | "RRef" => {
                self.expect(Kind::LParen, "before the type inside")?;
                let inner = self.part(outer)?;
                self.expect(Kind::RParen, "after the type inside")?;
                let boxed = Box::new(inner.ty);
                let ty = match name {
                    "Future" => Type::Future(boxed),
                    "Await" => Type::Await(boxed),
                    _ => Type::RRef(boxed),
                };
                (ty, 1 + inner.depth)
            }
            "__torch__" => (self.class_type()?, 1),
            _ => match Type::from_name(name) {
                Some(ty) => (ty, 1),
                None if name.starts_with(|c: char| c.is_ascii_lowercase()) => (Type::Var(name.to_owned()), 1),
                None => {
                    let shown: String = name.chars().take(40).collect();
                    let message = format!(
                        "expected a type such as Tensor, SymInt, int, float, bool or Scalar, found `{shown}`"
                    );
                    return Err(self.error_at(token, message));
                }
            },
        };
        Ok(ParsedType { ty, alias: self.alias()?, depth })
    }

    /// A part of a tuple, `Dict` and the like. Its annotation is dropped, as PyTorch does: memory is tracked for
    /// arguments, lists and their elements only. Anonymous sets in it do not count, as they will not be printed.
    fn part(&mut self, outer: usize) -> Result<ParsedType> {
        let fresh_sets = self.fresh_sets;
        let part = self.ty(outer + 1)?;
        self.fresh_sets = fresh_sets;
        Ok(part)
    }

    /// Types in parentheses and how deep the type made of them nests.
    fn type_list(&mut self, outer: usize) -> Result<(Vec<Type>, usize)> {
        self.expect(Kind::LParen, "before the types")?;
        let (mut types, mut depth) = (Vec::new(), 0);
        if !self.eat(Kind::RParen) {
            loop {
                let element = self.part(outer)?;
                depth = depth.max(element.depth);
                types.push(element.ty);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
            if !self.eat(Kind::RParen) {
                return Err(self.expected("',' or ')' after a type"));
            }
        }
        Ok((types, depth + 1))
    }

    /// The rest of `__torch__.torch.classes.<namespace>.<name>`, kept whole.
    fn class_type(&mut self) -> Result<Type> {
        let mut path = String::from("__torch__");
        for fixed in ["torch", "classes"] {
            self.expect(Kind::Dot, "in the class name")?;
            let token = self.current();
            let part = self.ident("a class name")?;
            if part != fixed {
                return Err(self.error_at(
                    token,
                    format!(
                        "expected `{fixed}`: classes are named __torch__.torch.classes.<namespace>.<name>"
                    ),
                ));
            }
            path.push('.');
            path.push_str(part);
        }
        for what in ["the namespace of the class", "the name of the class"] {
            self.expect(Kind::Dot, "in the class name")?;
            path.push('.');
            path.push_str(self.ident(what)?);
        }
        Ok(Type::Class(path))
    }

    fn alias(&mut self) -> Result<Option<AliasInfo>> {
        if self.eat(Kind::Bang) {
            let set = format!("${}", self.fresh_sets);
            self.fresh_sets += 1;
            return Ok(Some(AliasInfo::new(&set, true)));
        }
        if !self.eat(Kind::LParen) {
            return Ok(None);
        }
        let before = self.alias_set()?;
        let is_write = self.eat(Kind::Bang);
        let after = if self.eat(Kind::Arrow) { self.alias_set()? } else { before.clone() };
        self.expect(Kind::RParen, "after the alias annotation")?;
        Ok(Some(AliasInfo { is_write, before, after, contained: Vec::new() }))
    }

    /// `a`, `a|b` or `*`.
    fn alias_set(&mut self) -> Result<AliasSet> {
        let mut sets = AliasSet::new();
        loop {
            let set = if self.eat(Kind::Star) { WILDCARD } else { self.ident("an alias set or '*'")? };
            sets.push(set.to_owned());
            if !self.eat(Kind::Pipe) {
                break;
            }
        }
        alias::normalize(&mut sets);
        Ok(sets)
    }
}
