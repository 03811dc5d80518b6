//! `cargo xtask dist`: the packages of this platform, made from one staged tree.
//!
//! The programs are built with the profile `dist` or taken from a folder (`--bins`). Every file of a package comes from
//! the tree that `stage` makes, so that all packages hold the same.

mod deb;
mod npm;
mod platform;
mod published;
mod sbom;
mod shipped;
mod stage;
mod sums;
mod tarball;

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::Deserialize;

use self::platform::Platform;
use crate::{artifact, editor, process, web};

/// Bytes in a megabyte, as sizes of files are told.
const MB: u64 = 1_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct DistArgs {
    /// The cargo profile to build the programs with
    #[arg(long, value_name = "NAME", default_value = "dist", conflicts_with = "bins")]
    profile: String,
    /// Package the programs in this folder instead of building them
    #[arg(long, value_name = "DIR")]
    bins: Option<PathBuf>,
    /// Where the packages go [default: `dist/packages` in the target folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Make only this kind of package; may be given more than once [default: all]
    #[arg(long, value_name = "KIND")]
    only: Vec<PackageKind>,
    /// Largest size of the unpacked files, in MB
    #[arg(long, value_name = "MB", default_value_t = 40)]
    unpacked_max_mb: u64,
    /// Compress quickly instead of well
    #[arg(long)]
    fast: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PackageKind {
    Tarball,
    Deb,
    Npm,
    Vsix,
    Sbom,
}

/// Facts about the packages of one run.
#[derive(Debug)]
struct Release {
    version: String,
    platform: Platform,
    /// Time of every packaged file, in seconds: equal sources make equal packages.
    epoch: u64,
    fast: bool,
    /// The tree all packages are made from.
    tree: PathBuf,
    /// A folder for intermediate files; removed at the end.
    scratch: PathBuf,
    out: PathBuf,
}

pub(crate) fn run(args: &DistArgs) -> Result<()> {
    let metadata = metadata()?;
    let out = args.out.clone().unwrap_or_else(|| metadata.target_directory.join("dist/packages"));
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let out = out.canonicalize()?;
    let scratch = out.join(".scratch");
    clear(&scratch)?;
    let platform = Platform::host()?;
    let version = metadata.version()?;
    let name = format!("lanyard-{version}-{}", platform.target);
    let release = Release {
        epoch: epoch()?,
        fast: args.fast,
        tree: scratch.join(name),
        version,
        platform,
        scratch,
        out,
    };
    let made = make(&release, args);
    clear(&release.scratch)?;
    for path in made? {
        println!("{:>9.1} MB  {}", size_mb(fs::metadata(&path)?.len()), path.display());
    }
    Ok(())
}

/// Makes the packages and returns their paths.
fn make(release: &Release, args: &DistArgs) -> Result<Vec<PathBuf>> {
    let programs = match &args.bins {
        Some(folder) => [folder.join("lanyard"), folder.join("lanyard-shim")],
        None => build(&args.profile)?,
    };
    let shipped = shipped::packages(&release.platform.target)?;
    stage::stage(release, &programs, &shipped)?;
    let unpacked = stage::size(&release.tree)?;
    println!("{:>9.1} MB  unpacked", size_mb(unpacked));
    if unpacked > args.unpacked_max_mb * MB {
        bail!(
            "the unpacked files have {:.1} MB and may have {}: find out what grew, or raise --unpacked-max-mb",
            size_mb(unpacked),
            args.unpacked_max_mb
        );
    }
    let mut made = Vec::new();
    for kind in
        PackageKind::value_variants().iter().filter(|kind| args.only.is_empty() || args.only.contains(kind))
    {
        match kind {
            PackageKind::Tarball => made.push(tarball::make(release)?),
            PackageKind::Deb => made.extend(deb::make(release)?),
            PackageKind::Npm => made.extend(npm::make(release)?),
            // With programs that are there already nothing is built that was not named.
            PackageKind::Vsix if args.bins.is_some() && args.only.is_empty() => {}
            PackageKind::Vsix => made.extend(vsix(release)?),
            PackageKind::Sbom => made.push(sbom::make(release, &shipped)?),
        }
    }
    let installer = release.out.join("install.sh");
    fs::copy(release.tree.join("install.sh"), &installer)?;
    made.push(installer);
    made.push(sums::write(&release.out, &made)?);
    Ok(made)
}

/// The VS Code extension, where its tools are installed (`cargo xtask test --only editor` does it).
fn vsix(release: &Release) -> Result<Option<PathBuf>> {
    if !editor::is_installed() {
        eprintln!("the VS Code extension is left out: run `npm ci` in editors/vscode/ first");
        return Ok(None);
    }
    editor::install()?;
    let built = editor::package()?;
    let name = built.file_name().context("the extension's package has no name")?;
    let path = release.out.join(name);
    fs::copy(&built, &path).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(Some(path))
}

/// Builds both programs, with the dashboard inside.
fn build(profile: &str) -> Result<[PathBuf; 2]> {
    web::install().and_then(|()| web::build()).context("a package needs the dashboard")?;
    let messages = artifact::build(profile, true)?;
    let found = |name| artifact::program(name, &messages).with_context(|| format!("cargo built no `{name}`"));
    let programs = [found("lanyard")?, found("lanyard-shim")?];
    let page = fs::read(web::dist().join("index.html"))?;
    if !holds(&fs::read(&programs[0])?, &page) {
        bail!(
            "{} does not hold the dashboard: profile `{profile}` must inherit `release`",
            programs[0].display()
        );
    }
    Ok(programs)
}

fn holds(all: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && all.windows(part.len()).any(|window| window == part)
}

#[derive(Debug, Deserialize)]
struct Workspace {
    packages: Vec<WorkspaceMember>,
    target_directory: PathBuf,
}

#[derive(Debug, Deserialize)]
struct WorkspaceMember {
    name: String,
    version: String,
}

impl Workspace {
    fn version(&self) -> Result<String> {
        let found = self.packages.iter().find(|package| package.name == "lanyard");
        found.map(|package| package.version.clone()).context("the workspace has no package `lanyard`")
    }
}

fn metadata() -> Result<Workspace> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--locked"];
    serde_json::from_str(&process::read(&mut process::cargo(arguments))?)
        .context("`cargo metadata` printed something unknown")
}

/// `SOURCE_DATE_EPOCH`, else the time of the last commit.
fn epoch() -> Result<u64> {
    let text = if let Ok(text) = env::var("SOURCE_DATE_EPOCH") {
        text
    } else {
        let mut git = std::process::Command::new("git");
        git.args(["log", "-1", "--format=%ct"]).current_dir(process::root());
        process::read(&mut git).context("set SOURCE_DATE_EPOCH where there is no git repository")?
    };
    text.trim().parse().with_context(|| format!("`{}` is no number of seconds", text.trim()))
}

/// Removes a folder, if there is one.
fn clear(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit behind the point")]
fn size_mb(bytes: u64) -> f64 {
    bytes as f64 / MB as f64
}
