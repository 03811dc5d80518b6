//! The definition of the image, read as a builder reads it, with the rules of hadolint that concern it. Where `buildah` and
//! the base image are at hand, docs/decisions/0057 says how it is built.

#![expect(clippy::unwrap_used, reason = "a test fails where its file is not as it should be")]

use std::path::Path;
use std::process::{Command, Stdio};

/// Instructions that an image of Lanyard uses.
const KNOWN: [&str; 11] =
    ["FROM", "ARG", "RUN", "COPY", "USER", "WORKDIR", "ENV", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"];

/// Each instruction with its words, continued lines joined and comments left out.
fn instructions() -> Vec<(String, String)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/Containerfile");
    let text = std::fs::read_to_string(file).unwrap();
    let text: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let joined = text.join("\n").replace("\\\n", " ");
    let lines = joined.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, rest)| (name.into(), rest.trim().into()))
        .collect()
}

fn of(name: &str) -> Vec<String> {
    instructions().into_iter().filter(|(known, _)| known == name).map(|(_, words)| words).collect()
}

#[test]
fn the_container_is_defined_as_builders_and_linters_want_it() {
    let all = instructions();
    assert!(all.iter().all(|(name, _)| KNOWN.contains(&name.as_str())), "{all:?}");
    assert_eq!(all[0].0, "FROM");
    let (_, tag) = all[0].1.split_once(':').unwrap();
    assert_ne!(tag, "latest");
    for command in of("RUN") {
        let checked = Command::new("sh").args(["-n", "-c", &command]).stdin(Stdio::null()).status().unwrap();
        assert!(checked.success(), "{command}");
        assert!(!command.contains("sudo ") && !command.contains("curl "), "{command}");
        if command.contains("apt-get install") {
            assert!(command.contains("--no-install-recommends") && command.contains("--yes"), "{command}");
            assert!(
                command.contains("rm -rf /var/lib/apt/lists/*"),
                "the lists stay in the layer: {command}"
            );
        }
    }
    // What is copied is in the folder of the packages; the tarball's name is given when it is built.
    assert_eq!(of("COPY"), ["${TARBALL} SHA256SUMS install.sh /tmp/lanyard/"]);
    assert_eq!(of("ARG"), ["TARBALL"]);
    for words in ["ENTRYPOINT", "CMD", "VOLUME"].into_iter().flat_map(of) {
        assert!(serde_json::from_str::<Vec<String>>(&words).is_ok(), "{words} would be run by a shell");
    }
    let user: u32 = of("USER").pop().unwrap().parse().unwrap();
    assert!(user > 0, "the daemon does not run as root");
    let installed = of("RUN").concat();
    let starter: Vec<String> = serde_json::from_str(&of("ENTRYPOINT")[0]).unwrap();
    let program = Path::new(&starter[0]).file_name().unwrap().to_str().unwrap();
    assert!(installed.contains(&format!(" {program} ")), "{program} is not installed");
    let last = |name: &str| all.iter().rposition(|(known, _)| known == name).unwrap();
    assert!(last("USER") > last("RUN"), "what is run as the user cannot install anything");
}
