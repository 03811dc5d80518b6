//! Putting hooks into an agent's settings and taking them out again. What the file was before is kept in the data
//! folder, so that taking them out gives it back byte for byte unless it was changed meanwhile.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::edit::{EditError, add, commands, remove};
use super::input::Harness;
use super::plan::Target;

/// Larger files are no settings.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// A new file can be read by others as new files can; what is in it is no secret.
const NEW_FILE_MODE: u32 = 0o644;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Installed {
    Now,
    /// Nothing was changed.
    Already,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removed {
    /// The file is what it was before, byte for byte.
    Restored,
    /// Others have changed the file since: only what is Lanyard's was taken out.
    TakenOut,
    /// There was nothing of Lanyard's in it.
    Nothing,
}

/// How the hook is in an agent's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookState {
    Installed,
    /// Something of Lanyard's is there, and not what this program would install.
    Outdated,
    Absent,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    #[error("{path} is left as it is: {why}")]
    Unusable { path: PathBuf, why: String },
    #[error("cannot use {path}")]
    Io { path: PathBuf, source: std::io::Error },
}

/// What is remembered of a file that was edited.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    path: PathBuf,
    /// Hash of the file as it was left.
    left: String,
    /// There was a file before.
    existed: bool,
    /// Folders that were made for it, outermost first.
    made: Vec<PathBuf>,
}

/// Installs the hooks; a second time changes nothing.
pub(crate) fn install(target: &Target, data: &Path) -> Result<Installed, InstallError> {
    let path = real(&target.path());
    let before = read(&path)?;
    let text = before.as_deref().map(|bytes| text(&path, bytes)).transpose()?.unwrap_or_default();
    let wanted = wanted(target, &path, text)?;
    let Some(wanted) = wanted else { return Ok(Installed::Already) };
    let store = Store::of(data, &path);
    // A newer program over an older one: what was there before the older one is still what it was before.
    let earlier = store.record().filter(|record| is_as_left(record, before.as_deref()));
    let (existed, made) = if let Some(record) = earlier {
        (record.existed, record.made)
    } else {
        let clean = clean(target, &path, before.as_deref())?;
        store.keep(clean.as_deref())?;
        (clean.is_some(), make_folders(&path)?)
    };
    write(&path, wanted.as_bytes())?;
    store.remember(&Record { left: hash(wanted.as_bytes()), path: path.clone(), existed, made })?;
    Ok(Installed::Now)
}

/// Looks at the settings and changes nothing.
pub(crate) fn state(target: &Target) -> Result<HookState, InstallError> {
    let path = real(&target.path());
    let Some(now) = read(&path)? else { return Ok(HookState::Absent) };
    if wanted(target, &path, text(&path, &now)?)?.is_none() {
        return Ok(HookState::Installed);
    }
    let bare = clean(target, &path, Some(&now))?;
    Ok(if bare.as_deref() == Some(&now[..]) { HookState::Absent } else { HookState::Outdated })
}

/// Takes the hooks out again.
pub(crate) fn uninstall(target: &Target, data: &Path) -> Result<Removed, InstallError> {
    let path = real(&target.path());
    let store = Store::of(data, &path);
    let now = read(&path)?;
    if let Some(record) = store.record().filter(|record| is_as_left(record, now.as_deref())) {
        match store.kept(record.existed)? {
            Some(original) => write(&path, &original)?,
            None => delete(&path, &record.made)?,
        }
        store.forget();
        return Ok(Removed::Restored);
    }
    let Some(now) = now else {
        store.forget();
        return Ok(Removed::Nothing);
    };
    let clean = clean(target, &path, Some(&now))?;
    store.forget();
    match clean {
        Some(clean) if clean == now => Ok(Removed::Nothing),
        Some(clean) => write(&path, &clean).map(|()| Removed::TakenOut),
        None => delete(&path, &[]).map(|()| Removed::TakenOut),
    }
}

/// The file with the hooks in it; nothing when it has them already.
fn wanted(target: &Target, path: &Path, text: &str) -> Result<Option<String>, InstallError> {
    if target.harness == Harness::Opencode {
        let plugin = target.plugin();
        if !text.is_empty() && !is_our_plugin(text) {
            let why = "it is another plugin of that name".to_owned();
            return Err(InstallError::Unusable { path: path.to_owned(), why });
        }
        return Ok((text != plugin).then_some(plugin));
    }
    let unusable =
        |error: EditError| InstallError::Unusable { path: path.to_owned(), why: error.to_string() };
    let command = target.command();
    let found = commands(text).map_err(unusable)?;
    let ours: Vec<_> = found.iter().filter(|(_, command)| target.is_ours(command)).collect();
    let entries = target.entries();
    let has = |event: &str| ours.iter().filter(|(at, held)| at == event && *held == command).count() == 1;
    if ours.len() == entries.len() && entries.iter().all(|entry| has(entry.event)) {
        return Ok(None);
    }
    let bare = remove(text, &|command| target.is_ours(command)).map_err(unusable)?;
    add(&bare, &entries).map(Some).map_err(unusable)
}

/// The file without anything of Lanyard's; nothing when no file is left.
fn clean(target: &Target, path: &Path, now: Option<&[u8]>) -> Result<Option<Vec<u8>>, InstallError> {
    let Some(now) = now else { return Ok(None) };
    let text = text(path, now)?;
    if target.harness == Harness::Opencode {
        return Ok((!is_our_plugin(text)).then(|| now.to_vec()));
    }
    let bare = remove(text, &|command| target.is_ours(command))
        .map_err(|error| InstallError::Unusable { path: path.to_owned(), why: error.to_string() })?;
    Ok(Some(bare.into_bytes()))
}

fn is_our_plugin(text: &str) -> bool {
    text.starts_with("// Written by `lanyard hook install opencode`")
}

/// The backup of one file.
struct Store {
    record: PathBuf,
    original: PathBuf,
}

impl Store {
    fn of(data: &Path, path: &Path) -> Self {
        let name = &hash(path.as_os_str().as_encoded_bytes())[..32];
        let dir = data.join("hooks");
        Self { record: dir.join(format!("{name}.json")), original: dir.join(format!("{name}.original")) }
    }

    fn record(&self) -> Option<Record> {
        serde_json::from_slice(&std::fs::read(&self.record).ok()?).ok()
    }

    fn keep(&self, original: Option<&[u8]>) -> Result<(), InstallError> {
        let dir = self.original.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|source| io(dir, source))?;
        private(&self.original, original.unwrap_or_default())
    }

    fn remember(&self, record: &Record) -> Result<(), InstallError> {
        let text = serde_json::to_vec_pretty(record).map_err(|error| io(&self.record, error.into()))?;
        private(&self.record, &text)
    }

    fn kept(&self, existed: bool) -> Result<Option<Vec<u8>>, InstallError> {
        if !existed {
            return Ok(None);
        }
        std::fs::read(&self.original).map(Some).map_err(|source| io(&self.original, source))
    }

    fn forget(&self) {
        let _ = std::fs::remove_file(&self.record);
        let _ = std::fs::remove_file(&self.original);
    }
}

fn is_as_left(record: &Record, now: Option<&[u8]>) -> bool {
    now.is_some_and(|now| hash(now) == record.left)
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Behind a link stands the file that is meant: a link must stay one.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(io(path, source)),
        Ok(found) if found.len() > FILE_BYTES_MAX || !found.is_file() => {
            let why = format!("it is no file of at most {FILE_BYTES_MAX} bytes");
            return Err(InstallError::Unusable { path: path.to_owned(), why });
        }
        Ok(_) => {}
    }
    std::fs::read(path).map(Some).map_err(|source| io(path, source))
}

fn text<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, InstallError> {
    std::str::from_utf8(bytes)
        .map_err(|_| InstallError::Unusable { path: path.to_owned(), why: "it is not UTF-8".to_owned() })
}

/// All at once: an agent that reads it meanwhile sees the old file or the new one.
fn write(path: &Path, bytes: &[u8]) -> Result<(), InstallError> {
    let mode = std::fs::metadata(path).map_or(NEW_FILE_MODE, |found| found.permissions().mode() & 0o7777);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".lanyard-{}", std::process::id()));
    let beside = path.with_file_name(name);
    let written = || -> std::io::Result<()> {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(bytes)?;
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    written().map_err(|source| {
        let _ = std::fs::remove_file(&beside);
        io(path, source)
    })
}

fn private(path: &Path, bytes: &[u8]) -> Result<(), InstallError> {
    let written = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    written().map_err(|source| io(path, source))
}

/// Makes the folders the file needs; answers which were made, outermost first.
fn make_folders(path: &Path) -> Result<Vec<PathBuf>, InstallError> {
    let above = path.ancestors().skip(1);
    let mut missing: Vec<PathBuf> = above.take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
    missing.reverse();
    for dir in &missing {
        std::fs::create_dir(dir).map_err(|source| io(dir, source))?;
    }
    Ok(missing)
}

fn delete(path: &Path, made: &[PathBuf]) -> Result<(), InstallError> {
    std::fs::remove_file(path).map_err(|source| io(path, source))?;
    for dir in made.iter().rev() {
        // Other files may have been added to it.
        let _ = std::fs::remove_dir(dir);
    }
    Ok(())
}

fn io(path: &Path, source: std::io::Error) -> InstallError {
    InstallError::Io { path: path.to_owned(), source }
}
