//! `PTR_CPU_ALLOC_CONF`: the allocator's settings, as `name:value` separated by commas.

use crate::core::os;
use crate::{Error, Result};

/// The environment variable's name.
pub(super) const VARIABLE: &str = "PTR_CPU_ALLOC_CONF";

/// Settings read once, at the first allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Config {
    /// The initial limit on reserved bytes.
    pub(super) limit: Option<usize>,
    /// The most cached bytes to keep; if not given, see `Heap::cache_cap`.
    pub(super) cache_max: Option<usize>,
    /// Whether large blocks ask for huge pages.
    pub(super) huge_pages: bool,
    /// The most that is kept cached if `cache_max` is not given: half of the machine's memory.
    pub(super) cache_ceiling: usize,
}

impl Default for Config {
    fn default() -> Config {
        let cache_ceiling = os::total_memory().map_or(usize::MAX, |bytes| bytes / 2);
        Config { limit: None, cache_max: None, huge_pages: true, cache_ceiling }
    }
}

impl Config {
    /// Reads the environment.
    pub(super) fn from_env() -> Result<Config> {
        match std::env::var(VARIABLE) {
            Ok(text) => Config::parse(&text),
            Err(_) => Ok(Config::default()),
        }
    }

    /// Reads settings such as `limit:8GiB,cache_max:512MB,huge_pages:false`.
    pub(super) fn parse(text: &str) -> Result<Config> {
        let mut config = Config::default();
        for setting in text.split(',').map(str::trim).filter(|s| !s.is_empty()) {
            let (name, value) = setting
                .split_once(':')
                .ok_or_else(|| Error::value(format!("{VARIABLE}: expected name:value, got '{setting}'")))?;
            let (name, value) = (name.trim(), value.trim());
            match name {
                "limit" => config.limit = Some(parse_bytes(name, value)?),
                "cache_max" => config.cache_max = Some(parse_bytes(name, value)?),
                "huge_pages" => config.huge_pages = parse_bool(name, value)?,
                _ => {
                    return Err(Error::value(format!(
                        "{VARIABLE}: unknown setting '{name}'; known are limit, cache_max and huge_pages"
                    )))
                }
            }
        }
        Ok(config)
    }
}

fn parse_bool(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(Error::value(format!("{VARIABLE}: {name}: expected true or false, got '{value}'"))),
    }
}

/// A number of bytes with an optional unit; `KB`, `MB`, `GB` are powers of 1000, `K`, `KiB` and so on of 1024.
fn parse_bytes(name: &str, value: &str) -> Result<usize> {
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let scale: Option<usize> = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "kb" => Some(1000),
        "mb" => Some(1000 * 1000),
        "gb" => Some(1000 * 1000 * 1000),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        "t" | "tib" => Some(1 << 40),
        _ => None,
    };
    let bytes = number.parse::<usize>().ok().zip(scale).and_then(|(n, s)| n.checked_mul(s));
    bytes.ok_or_else(|| {
        Error::value(format!("{VARIABLE}: {name}: expected a number of bytes such as 512MiB, got '{value}'"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_settings() {
        let config = Config::parse(" limit:8GiB, cache_max:512MB,huge_pages:false,").unwrap();
        assert_eq!(config.limit, Some(8 << 30));
        assert_eq!(config.cache_max, Some(512_000_000));
        assert!(!config.huge_pages);
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    #[test]
    fn names_what_is_wrong() {
        for (text, part) in [
            ("limt:1", "unknown setting 'limt'"),
            ("limit", "expected name:value"),
            ("limit:-1", "expected a number of bytes"),
            ("limit:99999999999999G", "expected a number of bytes"),
            ("limit:1x", "got '1x'"),
            ("huge_pages:2", "expected true or false"),
        ] {
            let message = Config::parse(text).unwrap_err().to_string();
            assert!(message.contains(part) && message.contains(VARIABLE), "{message}");
        }
    }
}
