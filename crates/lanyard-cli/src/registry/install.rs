//! Installing an agent's package into a folder of Lanyard's own. A folder is new for each install and becomes the agent's
//! when the config names it, so an install that fails changes nothing.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lanyard_core::text::{one_line, without_escapes};
use serde_json::Value;

use super::{AgentPackage, Installer, RegistryAgent};
use crate::failure::Failure;

/// How long an install may take.
const INSTALL_MAX: Duration = Duration::from_mins(15);
/// How often an install is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Bytes of the installer's output that are read, and characters of its last line that are shown.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
const WORDS_CHARS_MAX: usize = 300;
/// The folder of npm's own that holds what was installed.
const MODULES: &str = "node_modules";

/// An agent that was installed: its folder, and the command that starts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstalledAgent {
    pub(crate) folder: PathBuf,
    pub(crate) command: Vec<String>,
}

/// Installs a package into `folder`, which does not exist yet. Nothing of it is left after an error.
pub(crate) fn install(agent: &RegistryAgent, folder: &Path) -> Result<InstalledAgent, Failure> {
    let (installer, package) = agent.package()?;
    let failed = |error: std::io::Error| {
        let title = format!("cannot make {}: {error}", folder.display());
        Failure::local("agent_folder_unwritable", title, "check the data folder")
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let program = run(installer, package, folder)
        .and_then(|()| check(installer, package, folder))
        .and_then(|()| program(installer, package, folder));
    match program {
        Ok(program) => {
            let command = std::iter::once(program.display().to_string()).chain(package.args.iter().cloned());
            Ok(InstalledAgent { folder: folder.to_owned(), command: command.collect() })
        }
        Err(failure) => {
            let _ = std::fs::remove_dir_all(folder);
            Err(failure)
        }
    }
}

fn run(installer: Installer, package: &AgentPackage, folder: &Path) -> Result<(), Failure> {
    let mut command = Command::new(installer.program());
    match installer {
        // No script of the package runs before somebody starts the agent.
        Installer::Npm => command
            .args(["install", "--prefix"])
            .arg(folder)
            .args(["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--"])
            .arg(&package.spec),
        Installer::Uv => command
            .args(["tool", "install", "--"])
            .arg(&package.spec)
            .env("UV_TOOL_DIR", folder.join("tools"))
            .env("UV_TOOL_BIN_DIR", folder.join("bin")),
    };
    let spawned =
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = spawned.spawn().map_err(|error| {
        let title = format!("cannot start `{}`: {error}", installer.program());
        Failure::local("installer_missing", title, "install it, or install the agent by hand")
    })?;
    let stderr = child.stderr.take();
    // Read to its end: a full pipe would hold the installer up.
    let reader = std::thread::spawn(move || {
        let (mut text, mut rest) = (Vec::new(), [0; 4096]);
        if let Some(mut stderr) = stderr {
            let _ = stderr.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut text);
            while stderr.read(&mut rest).is_ok_and(|read| read > 0) {}
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut waited = Duration::ZERO;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if waited < INSTALL_MAX => std::thread::sleep(LOOK_EVERY),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
        }
        waited += LOOK_EVERY;
    };
    let Some(status) = status else {
        let title = format!("`{}` took more than {} s", installer.program(), INSTALL_MAX.as_secs());
        return Err(Failure::local("install_timeout", title, "nothing was changed; look at the network"));
    };
    if status.success() {
        return Ok(());
    }
    let words = without_escapes(&reader.join().unwrap_or_default());
    let told = words.lines().rev().find(|line| line.to_lowercase().contains("err")).or(words.lines().last());
    let told = told.map(|line| format!(": {}", one_line(line, WORDS_CHARS_MAX))).unwrap_or_default();
    let title = format!("`{}` could not install {} ({status}){told}", installer.program(), package.spec);
    Err(Failure::local("install_failed", title, "nothing was changed; run it again when the cause is mended"))
}

/// The package is the one whose checksum the registry has.
fn check(installer: Installer, package: &AgentPackage, folder: &Path) -> Result<(), Failure> {
    let (Some(wanted), Installer::Npm) = (&package.integrity, installer) else { return Ok(()) };
    let lock = read_json(&folder.join("package-lock.json"))?;
    let name = installed_name(folder)?;
    let found = lock["packages"][format!("{MODULES}/{name}")]["integrity"].as_str().unwrap_or("none");
    if found == wanted {
        return Ok(());
    }
    let title = format!("the checksum of {} is {found}, and the registry has {wanted}", package.spec);
    Err(Failure::local("install_checksum", title, "nothing was changed; do not trust this package"))
}

/// The name of the package that was asked for, which npm writes as the only dependency.
fn installed_name(folder: &Path) -> Result<String, Failure> {
    let manifest = read_json(&folder.join("package.json"))?;
    let names = manifest["dependencies"].as_object();
    names.and_then(|names| names.keys().next()).cloned().ok_or_else(|| odd("npm installed no package"))
}

/// The program of the package.
fn program(installer: Installer, package: &AgentPackage, folder: &Path) -> Result<PathBuf, Failure> {
    let (bins, name) = match installer {
        Installer::Npm => {
            let name = installed_name(folder)?;
            let manifest = read_json(&folder.join(MODULES).join(&name).join("package.json"))?;
            let short = name.rsplit('/').next().unwrap_or(&name).to_owned();
            let only = match &manifest["bin"] {
                Value::Object(bins) if bins.len() == 1 => bins.keys().next().cloned(),
                Value::Object(bins) if bins.contains_key(&short) => Some(short),
                Value::String(_) => Some(short),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
            };
            (folder.join(MODULES).join(".bin"), only)
        }
        Installer::Uv => {
            let name = package.spec.split(['=', '[', '>', '<', '~']).next().unwrap_or_default();
            (folder.join("bin"), Some(name.to_owned()))
        }
    };
    let name =
        package.bin.clone().or(name).ok_or_else(|| odd("the package does not say which program it is"))?;
    let path = bins.join(&name);
    if name.contains('/') || !path.is_file() {
        return Err(odd(&format!("the package has no program `{}`", one_line(&name, WORDS_CHARS_MAX))));
    }
    Ok(path)
}

fn read_json(path: &Path) -> Result<Value, Failure> {
    let read = std::fs::read(path).map_err(|error| error.to_string());
    let parsed = read.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
    parsed.map_err(|why| odd(&format!("{} cannot be read: {why}", path.display())))
}

fn odd(what: &str) -> Failure {
    Failure::local("install_failed", what, "nothing was changed; install the agent by hand")
}
