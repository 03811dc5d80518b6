//! The packages as their users meet them: made from programs that are built, installed into a clean folder, and used with
//! a PATH that has no cargo.
//!
//! The programs are those beside `xtask` in the target folder, or in `LANYARD_DIST_BINS`, to test what a release would ship.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![expect(clippy::disallowed_methods, reason = "real processes are waited for in real time")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(1);
/// In the environment of every process of a test: its folder.
const MARK: &str = "LY_TEST_FOLDER";
/// Programs of the system, node among them, and no cargo.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Programs without optimisation are larger than the limit of a release.
const UNPACKED_MAX_MB: &str = "400";

/// Commands from the package to a first answer.
const COMMANDS_MAX: usize = 3;
/// Times that a newcomer presses Enter; there are fewer questions.
const ANSWERS: usize = 10;

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        // sleep: the awaited change happens in another process.
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn is_release() -> bool {
    std::env::var_os("LANYARD_DIST_BINS").is_some()
}

/// The programs to package, without symbols: less to compress.
fn programs(folder: &Path) -> PathBuf {
    if let Some(folder) = std::env::var_os("LANYARD_DIST_BINS") {
        return folder.into();
    }
    let built = Path::new(env!("CARGO_BIN_EXE_xtask")).parent().unwrap();
    let stripped = folder.join("bins");
    std::fs::create_dir_all(&stripped).unwrap();
    for name in ["lanyard", "lanyard-shim"] {
        let program = built.join(name);
        assert!(
            program.is_file(),
            "{} is missing: `cargo build --workspace --bins` builds it",
            program.display()
        );
        let done = Command::new("strip").arg("-o").arg(stripped.join(name)).arg(&program).status();
        assert!(done.expect("strip, of binutils").success());
    }
    stripped
}

fn dist(out: &Path, bins: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["dist", "--fast", "--bins"])
        .arg(bins)
        .arg("--out")
        .arg(out)
        .args(words)
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap()
}

fn must(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}\n{text}\n{said}", output.status);
    text
}

fn must_fail(output: &Output, code: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(&format!("[{code}]")), "{}: {said}", output.status);
}

/// A clean folder with one kind of package in `packages`.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn with(kind: &str) -> Self {
        // In /tmp, since a socket's path must be short.
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        let place = Self { folder };
        let bins = programs(&place.path("."));
        must(&dist(&place.path("packages"), &bins, &["--only", kind, "--unpacked-max-mb", UNPACKED_MAX_MB]));
        std::fs::create_dir_all(place.path("home")).unwrap();
        std::fs::create_dir_all(place.path("work")).unwrap();
        std::fs::write(place.path("config.toml"), "[daemon]\nlisten = \"127.0.0.1:0\"\n").unwrap();
        place
    }

    fn path(&self, within: &str) -> PathBuf {
        self.folder.path().join(within)
    }

    /// The file in `packages` whose name ends so.
    fn package(&self, ending: &str) -> PathBuf {
        let all = std::fs::read_dir(self.path("packages")).unwrap().map(|entry| entry.unwrap().path());
        let mut found = all.filter(|path| path.to_str().unwrap().ends_with(ending));
        let first = found.next().unwrap_or_else(|| panic!("no package {ending}"));
        assert_eq!(found.next(), None, "{ending}");
        first
    }

    /// A command as in a new user's shell.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", PATH)
            .env("LANYARD_DATA_DIR", self.path("data"))
            .env("LANYARD_CONFIG", self.path("config.toml"))
            .env("npm_config_offline", "true")
            .env("npm_config_update_notifier", "false")
            .env(MARK, self.folder.path())
            .current_dir(self.path("work"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, program: impl AsRef<Path>, words: &[&str]) -> String {
        must(&self.command(program).args(words).output().unwrap())
    }

    /// A script on this machine's PATH.
    fn program(&self, name: &str, script: &str) {
        std::fs::create_dir_all(self.path("bin")).unwrap();
        std::fs::write(self.path("bin").join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        let runs = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.path("bin").join(name), runs).unwrap();
    }

    /// A command line on a terminal, whose user answers every question with Enter; what the terminal shows.
    fn on_terminal(&self, line: &str) -> String {
        let path =
            [self.path("home/.local/bin"), self.path("bin")].map(|folder| folder.display().to_string());
        let mut child = self
            .command("script")
            .args(["--quiet", "--return", "--command", line, "/dev/null"])
            .env("PATH", format!("{}:{}:{PATH}", path[0], path[1]))
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script, of util-linux");
        // The terminal keeps the lines until they are read.
        child.stdin.take().unwrap().write_all(&b"\n".repeat(ANSWERS)).unwrap();
        let output = child.wait_with_output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{line}: {}\n{shown}", output.status);
        shown
    }

    fn installer(&self, words: &[&str]) -> Output {
        let tarball = self.package(".tar.gz");
        self.command("sh").arg(self.path("packages/install.sh")).arg(&tarball).args(words).output().unwrap()
    }

    /// From the start of the daemon to an agent's answer, the dashboard, and the end of the daemon.
    fn use_it(&self, lanyard: &Path) {
        assert!(
            !PATH.split(':').any(|folder| Path::new(folder).join("cargo").exists()),
            "cargo is on {PATH}"
        );
        assert!(self.run(lanyard, &["--version"]).starts_with("lanyard "));
        let address = self.run(lanyard, &["up", "--detach"]);
        let answer = self.run(lanyard, &["run", "--agent", "demo", "/say installed and at work"]);
        assert!(answer.contains("installed and at work"), "{answer}");
        let page = page(address.trim().strip_prefix("http://").unwrap());
        assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("text/html"), "{page}");
        // Only a release build carries the pages.
        assert!(!is_release() || page.contains("<script"), "{page}");
        self.run(lanyard, &["down"]);
    }

    fn shown(&self, lanyard: &Path, session: &str) -> Value {
        serde_json::from_str(&self.run(lanyard, &["show", session, "--json"])).unwrap()
    }
}

/// No daemon, supervisor or agent outlives its test.
impl Drop for Place {
    fn drop(&mut self) {
        let mark = format!("{MARK}={}", self.folder.path().display());
        let since = Instant::now();
        loop {
            let mut left = 0;
            for entry in std::fs::read_dir("/proc").unwrap().flatten() {
                let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
                let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else { continue };
                let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
                if environ.split(|byte| *byte == 0).any(|held| held == mark.as_bytes()) {
                    left += 1;
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
            if left == 0 || since.elapsed() > PATIENCE {
                return;
            }
            // sleep: between two looks at processes that end.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The dashboard's first page, with its head.
fn page(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn fnd_n16_the_tarball_is_verified_installed_used_and_removed() {
    let place = Place::with("tarball");
    must(&place.installer(&["--prefix", "../p"]));
    for file in [
        "bin/lanyard-shim",
        "share/man/man1/lanyard.1",
        "share/man/man1/lanyard-run.1",
        "share/bash-completion/completions/lanyard",
        "share/zsh/site-functions/_lanyard",
        "share/fish/vendor_completions.d/lanyard.fish",
        "share/doc/lanyard/LICENSE-MIT",
        "share/doc/lanyard/THIRD-PARTY.txt",
    ] {
        assert!(place.path("p").join(file).metadata().is_ok_and(|file| file.len() > 0), "{file} is missing");
    }
    let unit = std::fs::read_to_string(place.path("p/share/systemd/user/lanyard.service")).unwrap();
    assert!(unit.contains("/p/bin/lanyard\" up\n"), "{unit}");
    place.use_it(&place.path("p/bin/lanyard"));

    // Again, and to the default place: the answer says whether it is on the PATH.
    must(&place.installer(&["--prefix", "../p"]));
    let said = place.installer(&[]).stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("home/.local/bin is not on the PATH"), "{said}");
    assert!(place.path("home/.local/bin/lanyard").is_file());

    std::fs::write(place.path("p/share/mine"), "kept").unwrap();
    must(&place.installer(&["--prefix", "../p", "--uninstall"]));
    assert!(!place.path("p/bin").exists() && !place.path("p/share/man").exists());
    assert_eq!(std::fs::read_to_string(place.path("p/share/mine")).unwrap(), "kept");
    assert!(place.path("data").is_dir(), "sessions stay");
    must_fail(&place.installer(&["--prefix", "../p", "--uninstall"]), "not_installed");

    // One byte more is another tarball.
    let tarball = place.package(".tar.gz");
    std::fs::OpenOptions::new().append(true).open(&tarball).unwrap().write_all(b"x").unwrap();
    must_fail(&place.installer(&["--prefix", "../q"]), "checksum_wrong");
    std::fs::remove_file(place.path("packages/SHA256SUMS")).unwrap();
    must_fail(&place.installer(&["--prefix", "../q"]), "checksums_missing");
    assert!(!place.path("q/bin").exists());
}

/// A new user at a terminal of a machine without Rust, who types commands and answers every question with Enter.
struct Newcomer<'a> {
    place: &'a Place,
    commands: usize,
}

impl<'a> Newcomer<'a> {
    /// The machine has an agent, no cargo, no config, and no systemd of the user.
    fn at(place: &'a Place) -> Self {
        std::fs::remove_file(place.path("config.toml")).unwrap();
        place.program(
            "gemini",
            "[ \"$1\" = --version ] && { echo 1.0.0; exit; }\nexec lanyard scripted-agent --otherwise '/say hello, newcomer'",
        );
        place.program("systemctl", "echo 'Failed to connect to bus' >&2\nexit 1");
        for tool in ["cargo", "rustc"] {
            let looked_for = format!("command -v {tool} || echo 'there is none'");
            assert!(place.on_terminal(&looked_for).contains("there is none"), "{tool} is on the PATH");
        }
        Self { place, commands: 0 }
    }

    fn types(&mut self, line: &str) -> String {
        self.commands += 1;
        self.place.on_terminal(line)
    }

    /// Installs, and comes to an agent's first answer.
    fn comes_to_an_answer(mut self, install: &str) {
        // The usual port is taken, so that the daemon of the test takes another.
        let _port = std::net::TcpListener::bind("127.0.0.1:7717").ok();
        self.types(install);
        let start = self.types("lanyard");
        assert!(start.contains("the default agent is gemini"), "{start}");
        assert!(start.contains("The daemon cannot be a service here"), "{start}");
        let answer = self.types("lanyard run what does this project do");
        assert!(answer.contains("hello, newcomer"), "{answer}");
        assert!(self.commands <= COMMANDS_MAX, "{} commands to a first answer", self.commands);
    }
}

/// Issue 22: from the package to a first answer of an agent, on a terminal, in at most three commands.
#[test]
fn a_newcomer_has_a_first_answer_after_three_commands() {
    let place = Place::with("tarball");
    let (installer, tarball) = (place.path("packages/install.sh"), place.package(".tar.gz"));
    Newcomer::at(&place).comes_to_an_answer(&format!("sh {} {}", installer.display(), tarball.display()));
}

/// The same with npm, whose script stands between the supervisor and the agent too. `--prefix` stands for the folder that the user's npm installs programs into.
#[test]
fn a_newcomer_with_npm_has_a_first_answer_after_three_commands() {
    let place = Place::with("npm");
    let prefix = place.path("home/.local").display().to_string();
    let packages = place.path("packages").display().to_string();
    Newcomer::at(&place)
        .comes_to_an_answer(&format!("npm install --global --prefix {prefix} {packages}/*.tgz"));
}

#[test]
fn an_upgrade_in_place_leaves_a_running_agent_at_work() {
    let place = Place::with("tarball");
    must(&place.installer(&["--prefix", "../p"]));
    let lanyard = place.path("p/bin/lanyard");
    place.run(&lanyard, &["up", "--detach"]);
    let steps = "/run echo $PPID >> pids\n/ask May I go on?\n/run echo $PPID >> pids\n/say went on";
    let session = place.run(&lanyard, &["run", "--agent", "demo", "--detach", steps]);
    let session = session.trim().rsplit(' ').next().unwrap();
    let gate = |shown: &Value| {
        let gates = shown["gates"].as_array().cloned().unwrap_or_default();
        gates
            .iter()
            .find(|gate| gate["status"]["name"] == "open")
            .map(|gate| gate["id"].as_str().unwrap().to_owned())
    };
    until("the agent asks", || gate(&place.shown(&lanyard, session)).is_some());

    let before = std::fs::metadata(&lanyard).unwrap();
    must(&place.installer(&["--prefix", "../p"]));
    let after = std::fs::metadata(&lanyard).unwrap();
    assert_ne!(std::os::unix::fs::MetadataExt::ino(&before), std::os::unix::fs::MetadataExt::ino(&after));
    // The daemon whose file was replaced starts further agents.
    let answer = place.run(&lanyard, &["run", "--agent", "demo", "/say before the restart"]);
    assert!(answer.contains("before the restart"), "{answer}");

    place.run(&lanyard, &["down"]);
    place.run(&lanyard, &["up", "--detach"]);
    let gate = gate(&place.shown(&lanyard, session)).expect("the question outlives the upgrade");
    place.run(&lanyard, &["answer", &gate, "allow"]);
    until("the turn ends", || place.shown(&lanyard, session)["active_turn"].is_null());
    assert!(place.run(&lanyard, &["logs", session]).contains("went on"));
    let pids = std::fs::read_to_string(place.path("work/pids")).unwrap();
    let pids: Vec<&str> = pids.lines().collect();
    assert!(pids.len() == 2 && pids[0] == pids[1], "one process from first to last: {pids:?}");
    place.run(&lanyard, &["down"]);
}

#[test]
fn the_debian_package_has_its_files_where_debian_looks_and_works() {
    let place = Place::with("deb");
    let package = place.package(".deb");
    let about = place.run("dpkg-deb", &["--field", package.to_str().unwrap()]);
    assert!(about.contains("Package: lanyard\n") && about.contains("Depends: libc6 (>= 2."), "{about}");
    place.run("dpkg", &["-x", package.to_str().unwrap(), place.path("root").to_str().unwrap()]);
    for file in [
        "bin/lanyard-shim",
        "share/man/man1/lanyard.1.gz",
        "share/bash-completion/completions/lanyard",
        "share/zsh/vendor-completions/_lanyard",
        "share/fish/vendor_completions.d/lanyard.fish",
        "share/doc/lanyard/copyright",
    ] {
        assert!(place.path("root/usr").join(file).is_file(), "{file} is missing");
    }
    let unit = std::fs::read_to_string(place.path("root/usr/lib/systemd/user/lanyard.service")).unwrap();
    assert!(
        unit.contains("\nExecStart=/usr/bin/lanyard up\n") && unit.contains("\nKillMode=process\n"),
        "{unit}"
    );
    place.use_it(&place.path("root/usr/bin/lanyard"));
}

#[test]
fn the_npm_packages_start_the_program_of_this_platform() {
    let place = Place::with("npm");
    std::fs::write(place.path("work/package.json"), "{\"private\":true}").unwrap();
    let all: Vec<PathBuf> =
        std::fs::read_dir(place.path("packages")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let packed: Vec<&str> = all
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "tgz"))
        .filter_map(|path| path.to_str())
        .collect();
    assert_eq!(packed.len(), 2, "{packed:?}");
    let mut words = vec!["install", "--no-audit", "--no-fund"];
    words.extend(&packed);
    place.run("npm", &words);
    assert!(place.run("npx", &["--no-install", "lanyard", "--version"]).starts_with("lanyard "));
    let lanyard = place.path("work/node_modules/.bin/lanyard");
    place.use_it(&lanyard);
    // The exit code is the program's.
    let misused = place.command(&lanyard).args(["ls", "--no-such-option"]).output().unwrap();
    assert_eq!(misused.status.code(), Some(2), "{misused:?}");
    // A signal reaches the program: the daemon ends by it, and ends well.
    let mut daemon =
        place.command(&lanyard).arg("up").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the daemon is up", || {
        place.command(&lanyard).arg("status").env("LANYARD_NO_START", "1").status().unwrap().success()
    });
    rustix::process::kill_process(rustix::process::Pid::from_child(&daemon), rustix::process::Signal::TERM)
        .unwrap();
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
}

#[test]
fn checksums_and_the_bill_of_materials_are_right_and_repeatable() {
    let place = Place::with("sbom");
    place.run("sh", &["-c", "cd ../packages && sha256sum --check --strict SHA256SUMS"]);
    let bill: Value = serde_json::from_slice(&std::fs::read(place.package(".cdx.json")).unwrap()).unwrap();
    assert_eq!((bill["bomFormat"].as_str(), bill["specVersion"].as_str()), (Some("CycloneDX"), Some("1.5")));
    let components = bill["components"].as_array().unwrap();
    let has = |name: &str| components.iter().any(|component| component["name"] == name);
    assert!(has("rusqlite") && has("tokio"), "of the program");
    assert!(!has("proptest") && !has("expect-test") && !has("lanyard-core"), "of tests, and our own");
    let hashed =
        |component: &Value| component["hashes"][0]["content"].as_str().is_some_and(|sum| sum.len() == 64);
    // The lock file of the dashboard's packages has other checksums.
    let of_cargo =
        |component: &&Value| component["purl"].as_str().is_some_and(|purl| purl.starts_with("pkg:cargo/"));
    assert!(
        components.iter().filter(of_cargo).count() > 100 && components.iter().filter(of_cargo).all(hashed)
    );

    let bins = programs(&place.path("."));
    let tarball = |out: &str| {
        let words = ["--only", "tarball", "--unpacked-max-mb", UNPACKED_MAX_MB];
        must(&dist(&place.path(out), &bins, &words));
        std::fs::read_to_string(place.path(out).join("SHA256SUMS")).unwrap()
    };
    assert_eq!(tarball("first"), tarball("second"));
    let too_large = dist(&place.path("third"), &bins, &["--unpacked-max-mb", "1"]);
    let said = String::from_utf8_lossy(&too_large.stderr);
    assert!(!too_large.status.success() && said.contains("MB and may have 1"), "{said}");
}
