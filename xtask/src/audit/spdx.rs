//! Licence expressions: can one be met with the licences we accept?
//!
//! `OR` and `AND` with brackets, `WITH` an exception, and the `/` that old manifests have for
//! `OR`. Reads by recursive descent: `OR` binds loosest, then `AND`, then `WITH`.

use anyhow::{Result, bail};

/// Whether some choice among the alternatives needs only accepted licences. An exception is part
/// of the name: `A WITH b` is accepted when the list has it, or has plain `A`, because an
/// exception only grants more.
pub(super) fn satisfiable(expression: &str, accepted: &[&str]) -> Result<bool> {
    let tokens = tokens(expression);
    let mut reader = LicenceReader { rest: &tokens, accepted };
    let met = reader.alternatives()?;
    match reader.rest.first() {
        None => Ok(met),
        Some(token) => bail!("`{token}` is not expected there"),
    }
}

fn tokens(expression: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in expression.chars() {
        match c {
            '(' | ')' => spaced.extend([' ', c, ' ']),
            '/' => spaced.push_str(" OR "),
            _ => spaced.push(c),
        }
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

struct LicenceReader<'a> {
    rest: &'a [String],
    accepted: &'a [&'a str],
}

impl LicenceReader<'_> {
    fn alternatives(&mut self) -> Result<bool> {
        let mut met = self.conditions()?;
        while self.take("OR") {
            // Read in any case: what follows must be well formed even if it does not matter.
            met |= self.conditions()?;
        }
        Ok(met)
    }

    fn conditions(&mut self) -> Result<bool> {
        let mut met = self.licence()?;
        while self.take("AND") {
            met &= self.licence()?;
        }
        Ok(met)
    }

    fn licence(&mut self) -> Result<bool> {
        if self.take("(") {
            let met = self.alternatives()?;
            if !self.take(")") {
                bail!("a bracket is not closed");
            }
            return Ok(met);
        }
        let name = self.name()?;
        let mut met = self.accepts(&name);
        if self.take("WITH") {
            let exception = self.name()?;
            met |= self.accepts(&format!("{name} WITH {exception}"));
        }
        Ok(met)
    }

    fn name(&mut self) -> Result<String> {
        match self.rest.split_first() {
            None => bail!("a licence is missing at the end"),
            Some((token, _)) if ["OR", "AND", "WITH", "(", ")"].contains(&token.as_str()) => {
                bail!("a licence is missing before `{token}`")
            }
            Some((token, rest)) => {
                self.rest = rest;
                Ok(token.clone())
            }
        }
    }

    fn take(&mut self, wanted: &str) -> bool {
        match self.rest.split_first() {
            Some((token, rest)) if token == wanted => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn accepts(&self, name: &str) -> bool {
        self.accepted.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `MIT`, `Zlib` and `A WITH e` accepted: met, not met, or the error.
    fn check(expression: &str) -> String {
        match satisfiable(expression, &["MIT", "Zlib", "A WITH e"]) {
            Ok(true) => "yes".to_owned(),
            Ok(false) => "no".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn one_accepted_alternative_is_enough() {
        assert_eq!(check("MIT"), "yes");
        assert_eq!(check("GPL-3.0"), "no");
        assert_eq!(check("GPL-3.0 OR MIT"), "yes");
        assert_eq!(check("GPL-3.0/MIT"), "yes");
        assert_eq!(check("GPL-3.0 / LGPL-3.0"), "no");
    }

    #[test]
    fn all_joined_licences_must_be_accepted() {
        assert_eq!(check("MIT AND Zlib"), "yes");
        assert_eq!(check("MIT AND GPL-3.0"), "no");
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert_eq!(check("MIT OR Zlib AND GPL-3.0"), "yes");
        assert_eq!(check("(MIT OR Zlib) AND GPL-3.0"), "no");
        assert_eq!(check("(GPL-3.0 OR MIT) AND Zlib"), "yes");
        assert_eq!(check("((MIT))AND(Zlib)"), "yes");
    }

    #[test]
    fn an_exception_is_part_of_the_name() {
        assert_eq!(check("A WITH e"), "yes");
        assert_eq!(check("A"), "no");
        assert_eq!(check("A WITH other"), "no");
        assert_eq!(check("MIT WITH other"), "yes");
        assert_eq!(check("A WITH e OR A"), "yes");
    }

    #[test]
    fn a_malformed_expression_is_an_error_and_not_a_no() {
        assert_eq!(check(""), "a licence is missing at the end");
        assert_eq!(check("MIT OR"), "a licence is missing at the end");
        assert_eq!(check("OR MIT"), "a licence is missing before `OR`");
        assert_eq!(check("(MIT"), "a bracket is not closed");
        assert_eq!(check("MIT Zlib"), "`Zlib` is not expected there");
        assert_eq!(check("MIT)"), "`)` is not expected there");
    }
}
