//! Random edits, a snapshot, more random edits, a restore: all is as it was. A failure names its seed.

use super::*;

const SEEDS: u64 = 15;
const EDITS: usize = 14;
const NAMES: [&str; 12] = [
    "a",
    "b",
    "sub/c",
    "sub/d",
    "sub/deep/e",
    "sub",
    "new\nline",
    "-f",
    "\u{e4} \u{1f600}",
    "x.txt",
    "y.crlf",
    "z z",
];

#[test]
fn restore_undoes_any_edits() {
    for seed in 0..SEEDS {
        let outcome = std::panic::catch_unwind(|| round(seed));
        assert!(outcome.is_ok(), "failed with seed {seed}: call `round({seed})` to repeat it");
    }
}

fn round(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let lab = Lab::new();
    if seed.is_multiple_of(3) {
        lab.write(".gitattributes", "*.txt text=auto\n*.crlf text eol=crlf\n");
    }
    lab.write("second", "second\n");
    lab.write("keep.log", "ignored");
    lab.write("out/keep", "ignored");
    lab.commit("second");
    lab.write("a", "stashed\n");
    lab.git(&["stash", "push", "-q"]);
    edits(&lab, &mut rng);
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    edits(&lab, &mut rng);
    let middle = lab.state();
    let second = lab.take_unseen("t2");
    lab.restore_to(&snapshot, &state);
    lab.restore_to(&second, &middle);
    let restored = lab.restore_to(&snapshot, &state);
    assert!(restored.notes.is_empty(), "{restored:?}");
}

fn edits(lab: &Lab, rng: &mut fastrand::Rng) {
    for _ in 0..EDITS {
        edit(lab, rng);
    }
}

/// One edit. Those that make no sense at the moment, such as removing what is not there, do nothing.
fn edit(lab: &Lab, rng: &mut fastrand::Rng) {
    let name = NAMES[rng.usize(..NAMES.len())];
    let other = NAMES[rng.usize(..NAMES.len())];
    let path = lab.path(name);
    let quiet = |args: &[&str]| drop(git_in(&lab.top, args));
    match rng.u8(..12) {
        0..4 => put(lab, rng, name),
        4 => drop(fs::remove_file(&path)),
        5 => drop(fs::remove_dir_all(&path)),
        6 => drop(fs::rename(&path, lab.path(other))),
        7 => {
            if fs::symlink_metadata(&path).is_ok_and(|data| data.is_file()) {
                let mode = if rng.bool() { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        8 => quiet(&["add", "-A", "--", name]),
        9 => quiet(&["reset", "-q", "--", name]),
        10 => quiet(&["add", "-N", "--", name]),
        _ => {
            if fs::symlink_metadata(&path).is_err() {
                drop(symlink(other, &path));
            }
        }
    }
}

fn put(lab: &Lab, rng: &mut fastrand::Rng, name: &str) {
    let path = lab.path(name);
    let parent = path.parent().unwrap();
    if fs::create_dir_all(parent).is_err() || fs::symlink_metadata(&path).is_ok_and(|data| !data.is_file()) {
        return;
    }
    let line = |rng: &mut fastrand::Rng| format!("{}{}", rng.u8(..4), if rng.bool() { "\n" } else { "\r\n" });
    let mut text: String = (0..rng.usize(..4)).map(|_| line(rng)).collect();
    if name.contains('.') {
        // Where line ends are converted, an edit within a tick that git calls equal and that keeps the size is one
        // that nobody sees. Every such text is of another length.
        text.push_str(&"x".repeat(10 * lab.puts.fetch_add(1, Ordering::Relaxed)));
    }
    fs::write(path, text).unwrap();
}
