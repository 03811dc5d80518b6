//! Scripts that wait in a folder, each for one prompt that brings no steps of its own. Whoever sends the prompts need know
//! nothing of scripts.

use std::io::{Error, ErrorKind};
use std::path::Path;

/// Where a script goes that was taken.
const DONE: &str = "done";

/// The first script by name, if there is one. It is moved before it is run: two prompts never get the same, and one that
/// was run is not run again, whatever becomes of the process.
pub(super) fn take(folder: &Path) -> Result<Option<String>, Error> {
    std::fs::create_dir_all(folder.join(DONE))?;
    loop {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name());
            }
        }
        let Some(first) = names.into_iter().min() else { return Ok(None) };
        let taken = folder.join(DONE).join(&first);
        match std::fs::rename(folder.join(&first), &taken) {
            Ok(()) => return std::fs::read_to_string(&taken).map(Some),
            // Another one was faster.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::take;

    #[test]
    fn each_script_is_taken_once_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let scripts = folder.path().join("scripts");
        assert_eq!(take(&scripts).unwrap(), None);
        for name in ["2", "1", "10"] {
            std::fs::write(scripts.join(name), name).unwrap();
        }
        let taken: Vec<String> = (0..3).filter_map(|_| take(&scripts).unwrap()).collect();
        assert_eq!(taken, ["1", "10", "2"]);
        assert_eq!(take(&scripts).unwrap(), None);
        assert!(scripts.join("done/10").exists());
    }

    #[test]
    fn two_who_take_never_get_the_same() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..40 {
            std::fs::write(folder.path().join(number.to_string()), number.to_string()).unwrap();
        }
        let all = || std::iter::from_fn(|| take(folder.path()).unwrap()).collect::<Vec<_>>();
        let mut taken: Vec<String> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4).map(|_| scope.spawn(all)).collect();
            takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
        });
        taken.sort();
        taken.dedup();
        assert_eq!(taken.len(), 40);
    }
}
