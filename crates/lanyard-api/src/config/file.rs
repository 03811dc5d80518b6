//! The config file as it is on disk: read once, with a digest that tells whether it was changed since.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use lanyard_core::text::content_hash;

use super::Config;

/// Bytes a config file may have; a config with every setting and fifty agents has a twentieth of that.
pub const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// A config file that was read and understood.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    pub path: PathBuf,
    pub config: Config,
    /// Hash of the text; of the empty text when there is no file.
    pub digest: String,
    /// Whether the file exists.
    pub present: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path} is not a valid config: {message}")]
    Parse {
        path: PathBuf,
        message: String,
        /// The same without the lines of the file, which may hold secrets.
        brief: String,
    },
}

impl ConfigError {
    pub(super) fn syntax(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let place = error.span().and_then(|span| text.get(..span.start)).map(|before| {
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
            format!("line {line}, column {column}: ")
        });
        let brief = format!("{}{}", place.unwrap_or_default(), error.message());
        Self::Parse { path: path.to_owned(), message: error.to_string(), brief }
    }

    pub(super) fn refused(path: &Path, message: String) -> Self {
        Self::Parse { path: path.to_owned(), brief: message.clone(), message }
    }

    /// The error without any line of the file, for those who may not read the file.
    #[must_use]
    pub fn brief(&self) -> String {
        match self {
            Self::Read { path, source } => format!("cannot read {}: {source}", path.display()),
            Self::Parse { path, brief, .. } => {
                format!("{} is not a valid config: {brief}", path.display())
            }
        }
    }
}

impl ConfigFile {
    /// Reads a config file. A missing file is the default config.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::of(path, Self::text(path)?.as_deref())
    }

    /// The file of a text that was read; of none when there is no file.
    pub fn of(path: &Path, text: Option<&str>) -> Result<Self, ConfigError> {
        let (present, text) = (text.is_some(), text.unwrap_or_default());
        let config = Config::parse(path, text)?;
        Ok(Self { path: path.to_owned(), config, digest: content_hash(text.as_bytes()), present })
    }

    /// The text of a config file; none when there is no file.
    pub fn text(path: &Path) -> Result<Option<String>, ConfigError> {
        let fail = |source| ConfigError::Read { path: path.to_owned(), source };
        // A FIFO in its place would hold the reader for ever.
        let found = path.metadata().and_then(|found| {
            if found.is_file() {
                return File::open(path);
            }
            Err(std::io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
        });
        let file = match found {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(fail(source)),
        };
        let mut text = String::new();
        file.take(CONFIG_BYTES_MAX + 1).read_to_string(&mut text).map_err(fail)?;
        if text.len() as u64 > CONFIG_BYTES_MAX {
            let what = format!("it has more than {CONFIG_BYTES_MAX} bytes");
            return Err(fail(std::io::Error::new(ErrorKind::FileTooLarge, what)));
        }
        Ok(Some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_named_with_its_place_and_without_the_line() {
        let text = "[limits]\ndepth = 3\n[agents.a]\nenv = { A_TOKEN = \"hidden\", }\nspeed = 1\n";
        let error = Config::parse(Path::new("/c.toml"), text).unwrap_err();
        assert!(error.brief().starts_with("/c.toml is not a valid config: line "), "{}", error.brief());
        assert!(!error.brief().contains("hidden") && !error.brief().contains('\n'), "{}", error.brief());
    }

    #[test]
    fn a_missing_file_is_the_default_and_a_huge_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        assert!(!ConfigFile::read(&path).unwrap().present);
        std::fs::write(&path, "#".repeat(usize::try_from(CONFIG_BYTES_MAX).unwrap() + 1)).unwrap();
        let error = ConfigFile::read(&path).unwrap_err();
        assert!(error.brief().contains("more than 1048576 bytes"), "{}", error.brief());
        assert!(ConfigFile::read(folder.path()).unwrap_err().brief().contains("not a regular file"));
        std::fs::write(&path, "[daemon]\n").unwrap();
        let first = ConfigFile::read(&path).unwrap();
        std::fs::write(&path, "[daemon]\n\n").unwrap();
        let second = ConfigFile::read(&path).unwrap();
        assert!(first.present && first.digest != second.digest);
    }
}
