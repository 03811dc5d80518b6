//! Backups, lost files, and the end of a damaged write-ahead log.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use lanyard_store::{
    AppendError, Backups, Journal, Loss, OpenError, Purges, SqliteJournal, StoreError, Upkeep,
};

use crate::kit::{Teller, open};
use crate::sqlite::crash_image;

fn told(path: &Path) -> (SqliteJournal, Teller) {
    let journal = open(path);
    let mut teller = Teller::default();
    for _ in 0..5 {
        let id = teller.plain();
        teller.say(id, "said");
        teller.append(&journal);
    }
    (journal, teller)
}

fn loss(journal: &SqliteJournal, teller: &mut Teller) -> Option<Loss> {
    let id = teller.ids[0];
    let before = teller.clone();
    teller.say(id, "one more");
    match journal.append(&teller.batch()) {
        Ok(()) => None,
        Err(AppendError::Unavailable(StoreError::Lost { loss, .. })) => {
            *teller = before;
            Some(loss)
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// FND-K10.
#[test]
fn fnd_k10_a_backup_is_whole_private_and_of_one_moment() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, mut teller) = told(&folder.path().join("journal.db"));
    let copy = folder.path().join("copy.db");
    let report = journal.back_up(&copy).unwrap();
    assert_eq!((report.sessions, report.damage, report.structure), (5, Vec::new(), Vec::new()));
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let then = teller.clone();
    let id = teller.ids[0];
    teller.say(id, "after the backup");
    teller.append(&journal);
    assert_eq!(SqliteJournal::verify(&copy).unwrap().sessions, 5);
    then.assert_kept(&open(&copy));
    teller.assert_kept(&journal);
    let again = journal.back_up(&copy).unwrap_err();
    assert!(matches!(again, StoreError::Io { .. }), "a file that exists is left alone: {again}");
}

/// FND-K10.
#[test]
fn fnd_k10_what_is_no_journal_is_not_verified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "a".repeat(5_000)).unwrap();
    assert!(matches!(SqliteJournal::verify(&path), Err(OpenError::Foreign { .. })));
    assert!(SqliteJournal::verify(&folder.path().join("none.db")).is_err());
}

/// FND-K10: nothing is acknowledged after the file was removed, and it goes on when the same file is put back.
#[test]
fn fnd_k10_a_removed_journal_acknowledges_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (journal, mut teller) = told(&path);
    let aside = folder.path().join("aside.db");
    std::fs::rename(&path, &aside).unwrap();
    assert!(journal.failure().unwrap().contains("journal_removed"), "noticed without a write");
    let id = teller.ids[0];
    let mut lost = teller.clone();
    lost.say(id, "lost");
    assert!(journal.append(&lost.batch()).is_err());
    assert!(journal.recover().is_err(), "there is nothing to recover from");
    // A copy of the last moment can still be had from the files that are open.
    let rescue = folder.path().join("rescue.db");
    assert_eq!(journal.back_up(&rescue).unwrap().sessions, 5);
    teller.assert_kept(&open(&rescue));
    std::fs::rename(&aside, &path).unwrap();
    journal.recover().unwrap();
    teller.say(id, "again");
    teller.append(&journal);
    teller.assert_kept(&journal);
}

/// FND-K10: the commit during which the file is lost is not acknowledged either.
#[test]
fn fnd_k10_a_lost_file_is_noticed_by_the_next_commit() {
    for (what, expected) in [("removed", Loss::Removed), ("replaced", Loss::Replaced), ("wal", Loss::Removed)]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let (journal, mut teller) = told(&path);
        assert_eq!(loss(&journal, &mut teller), None);
        match what {
            "removed" => std::fs::remove_file(&path).unwrap(),
            "replaced" => {
                let other = folder.path().join("other.db");
                std::fs::copy(&path, &other).unwrap();
                std::fs::rename(&other, &path).unwrap();
            }
            _ => std::fs::remove_file(folder.path().join("journal.db-wal")).unwrap(),
        }
        assert_eq!(loss(&journal, &mut teller), Some(expected), "{what}");
        assert!(journal.recover().is_err(), "{what}");
        assert_eq!(Loss::in_message(&journal.failure().unwrap()), Some(expected), "{what}");
    }
}

/// FND-K10.
#[test]
fn fnd_k10_a_file_that_was_cut_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (journal, _) = told(&path);
    assert_eq!(journal.failure(), None);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4_096).unwrap();
    assert!(journal.failure().unwrap().contains("journal_cut"));
}

/// FND-K10: Lanyard's own giving back of pages is no loss.
#[test]
fn fnd_k10_compacting_is_not_taken_for_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, mut teller) = told(&folder.path().join("journal.db"));
    let id = teller.ids[0];
    for _ in 0..200 {
        teller.say(id, &"much ".repeat(500));
    }
    teller.append(&journal);
    journal.compact().unwrap();
    assert_eq!(journal.failure(), None);
    teller.say(id, "and on");
    teller.append(&journal);
    assert_eq!(journal.failure(), None);
    teller.assert_kept(&journal);
}

/// The journal's files as a crash leaves them, and the write-ahead log's frames.
fn crashed(folder: &Path) -> (std::path::PathBuf, Vec<u8>) {
    let path = folder.join("journal.db");
    let (journal, mut teller) = told(&path);
    // One frame of room: what was told lies in the write-ahead log.
    journal.compact().unwrap();
    for _ in 0..4 {
        let id = teller.ids[0];
        teller.say(id, "in the write-ahead log");
        teller.append(&journal);
    }
    let image = folder.join("image");
    std::fs::create_dir(&image).unwrap();
    let copy = crash_image(&path, &image);
    let wal = std::fs::read(image.join("journal.db-wal")).unwrap();
    (copy, wal)
}

const FRAME: usize = 24 + 4_096;

fn notices(copy: &Path, wal: &[u8]) -> Vec<String> {
    std::fs::write(copy.parent().unwrap().join("journal.db-wal"), wal).unwrap();
    let _ = std::fs::remove_file(copy.parent().unwrap().join("journal.db-shm"));
    let main = std::fs::read(copy).unwrap();
    let notices = open(copy).notices();
    std::fs::write(copy, main).unwrap();
    notices
}

/// A flipped bit in the tail of the write-ahead log is told, and what a crash leaves is not.
#[test]
fn fnd_wal_tail_a_flipped_bit_is_told_where_it_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, wal) = crashed(folder.path());
    let frames = (wal.len() - 32) / FRAME;
    assert!(frames >= 4, "{frames} frames");
    assert_eq!(notices(&copy, &wal), Vec::<String>::new(), "as a crash leaves it");
    // A page of an earlier commit: whole commits follow it.
    for at in [32 + 30, 32 + FRAME + 100, 32 + 2 * FRAME - 1] {
        let mut bad = wal.clone();
        bad[at] ^= 0x10;
        let notices = notices(&copy, &bad);
        assert!(notices.len() == 1 && notices[0].contains("wal_tail_damaged"), "byte {at}: {notices:?}");
    }
    // The header: nothing of the log is read.
    let mut bad = wal.clone();
    bad[17] ^= 1;
    let told = notices(&copy, &bad);
    assert!(told.len() == 1 && told[0].contains("wal_header_damaged"), "{told:?}");
    // Cut in the last frame, as a crash in the middle of a write leaves it: nobody was told that it is kept.
    assert_eq!(notices(&copy, &wal[..wal.len() - 100]), Vec::<String>::new());
    // Damage is part of the report.
    let mut bad = wal;
    bad[32 + FRAME + 100] ^= 0x10;
    std::fs::write(copy.parent().unwrap().join("journal.db-wal"), bad).unwrap();
    let report = open(&copy).check().unwrap();
    assert!(report.structure.iter().any(|what| what.contains("wal_tail_damaged")), "{report:?}");
}
