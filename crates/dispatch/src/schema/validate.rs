//! Rules that a schema must keep however it was made.

use std::collections::HashSet;

use super::argument::Argument;
use super::error::{Result, SchemaError};
use super::function_schema::FunctionSchema;

impl FunctionSchema {
    /// Checks what the parser checks as it goes (names given once, defaults last, arguments by name after those by
    /// position, outputs marked as such), and that returns refer to alias sets that exist.
    pub fn check_valid(&self) -> Result<()> {
        self.check_names()?;
        self.check_order()?;
        self.check_aliases()
    }

    fn fail(&self, message: String) -> Result<()> {
        Err(SchemaError::whole(message, self))
    }

    fn check_names(&self) -> Result<()> {
        let mut names = HashSet::with_capacity(self.arguments.len());
        for (i, argument) in self.arguments.iter().enumerate() {
            if argument.name.is_empty() {
                return self.fail(format!("argument {i} has no name"));
            }
            if !names.insert(argument.name.as_str()) {
                return self.fail(format!("there are two arguments `{}`", argument.name));
            }
        }
        Ok(())
    }

    fn check_order(&self) -> Result<()> {
        let mut default_before: Option<&Argument> = None;
        let mut by_name_before: Option<&Argument> = None;
        for argument in &self.arguments {
            let name = &argument.name;
            if argument.is_out != (argument.kwarg_only && argument.is_write()) {
                return self.fail(format!(
                    "argument `{name}` must be an output exactly if it is written and given by name only"
                ));
            }
            if argument.kwarg_only {
                by_name_before = Some(argument);
                continue;
            }
            if let Some(other) = by_name_before {
                return self.fail(format!(
                    "argument `{name}` is given by position but follows `{}`, which is not",
                    other.name
                ));
            }
            match (default_before, &argument.default) {
                (_, Some(_)) => default_before = Some(argument),
                (Some(other), None) => {
                    return self.fail(format!(
                        "argument `{name}` has no default but follows `{}`, which has one",
                        other.name
                    ));
                }
                (None, None) => {}
            }
        }
        match self.returns.iter().find(|r| r.default.is_some()) {
            Some(_) => self.fail("a return has a default".to_owned()),
            None => Ok(()),
        }
    }

    /// A return with named sets belongs to one that some argument has. A vararg schema may have others.
    fn check_aliases(&self) -> Result<()> {
        if self.is_vararg {
            return Ok(());
        }
        for (i, returned) in self.returns.iter().enumerate() {
            let Some(alias) = &returned.alias else { continue };
            let mut sets = alias.named_sets().peekable();
            let Some(&set) = sets.peek() else { continue };
            if self.alias_of_return(i).is_none() {
                return self.fail(format!("return {i} has the alias set `{set}`, which no argument has"));
            }
            if alias.is_write && !self.arguments.iter().any(|a| a.is_write() && a.may_alias(returned)) {
                return self.fail(format!(
                    "return {i} is marked as written, but no argument with the alias set `{set}` is"
                ));
            }
        }
        Ok(())
    }
}
