//! Attachments beside the journal: once, bounded, marked, purged with the last mark, and in copies.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use lanyard_core::journal::Report;
use lanyard_core::{AttachmentId, SessionId, Timestamp};
use lanyard_store::{AttachmentError, Attachments, Backups, CollectedAttachments, UploadBounds, take_copied};

use crate::kit::open;

const BOUNDS: UploadBounds = UploadBounds { one_max: 100, all_max: 250 };
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\0\0\0;";

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn session(number: u128) -> SessionId {
    SessionId::from_u128(number)
}

fn opened(folder: &Path) -> Attachments {
    Attachments::open(folder.join("attachments")).unwrap()
}

#[test]
fn the_same_content_is_kept_once_and_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let attachments = opened(folder.path());
    let kept = attachments.put(GIF, BOUNDS, at(5)).unwrap();
    assert_eq!((kept.id, kept.bytes, kept.content.media_type), (AttachmentId::of(GIF), 14, "image/gif"));
    assert_eq!(attachments.put(GIF, BOUNDS, at(6)).unwrap(), kept);
    assert_eq!((attachments.total(), attachments.describe(kept.id).unwrap()), (14, kept));
    let id = kept.id.to_string();
    let place = folder.path().join("attachments/content").join(&id[..2]).join(&id);
    assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(attachments.read(kept.id).unwrap(), GIF);
    std::fs::write(&place, b"other").unwrap();
    assert!(matches!(attachments.read(kept.id), Err(AttachmentError::Damaged)));
    assert_eq!(attachments.put(GIF, BOUNDS, at(7)).unwrap(), kept, "the content again mends it");
    assert_eq!((attachments.read(kept.id).unwrap(), attachments.total()), (GIF.to_vec(), 14 + 14 - 5));
}

#[test]
fn uploads_are_bounded_and_leave_nothing_when_they_fail() {
    let folder = tempfile::tempdir().unwrap();
    let attachments = opened(folder.path());
    assert!(matches!(attachments.put(b"", BOUNDS, at(0)), Err(AttachmentError::Empty)));
    assert!(matches!(
        attachments.put(&[b'x'; 101], BOUNDS, at(0)),
        Err(AttachmentError::TooLarge { max: 100 })
    ));
    for content in [b'a', b'b'] {
        attachments.put(&[content; 100], BOUNDS, at(0)).unwrap();
    }
    assert!(matches!(attachments.put(&[b'c'; 51], BOUNDS, at(0)), Err(AttachmentError::Full { max: 250 })));
    let mut dropped = attachments.begin(BOUNDS).unwrap();
    dropped.write(b"half").unwrap();
    drop(dropped);
    let partial = folder.path().join("attachments/partial");
    assert_eq!(std::fs::read_dir(&partial).unwrap().count(), 0);
    // What a killed process left goes with the next start, and the sum is read again.
    std::fs::write(partial.join("left"), b"half").unwrap();
    let attachments = opened(folder.path());
    assert!(!partial.exists() && attachments.total() == 200);
}

#[test]
fn content_goes_with_the_last_mark() {
    let folder = tempfile::tempdir().unwrap();
    let attachments = opened(folder.path());
    let id = attachments.put(GIF, BOUNDS, at(10)).unwrap().id;
    let unknown = AttachmentId::of(b"nothing");
    assert!(matches!(attachments.mark(session(1), &[id, unknown], at(0)), Err(AttachmentError::Unknown)));
    assert!(!attachments.is_marked(session(1), id), "all or none");
    attachments.mark(session(1), &[id], at(10)).unwrap();
    attachments.mark(session(2), &[id], at(10)).unwrap();
    let copy = attachments.show(session(1), id, Some("../../a b.gif"), GIF).unwrap();
    assert!(
        copy.starts_with(folder.path().join("attachments/shown"))
            && copy.ends_with(format!("{}-_.._a_b.gif", &id.to_string()[..8])),
        "{copy:?}"
    );
    assert_eq!(attachments.release(session(1)).unwrap(), CollectedAttachments::default());
    assert!(!copy.exists() && attachments.describe(id).is_ok());
    assert_eq!(attachments.collect(at(100), false).unwrap(), CollectedAttachments::default());
    assert_eq!(attachments.release(session(2)).unwrap(), CollectedAttachments { count: 1, bytes: 14 });
    assert!(matches!(attachments.describe(id), Err(AttachmentError::Unknown)));
    assert_eq!((attachments.total(), attachments.marks().unwrap().len()), (0, 0));
}

#[test]
fn an_upload_waits_for_its_message_and_is_collected_after_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let attachments = opened(folder.path());
    let id = attachments.put(GIF, BOUNDS, at(10)).unwrap().id;
    attachments.mark(session(1), &[id], at(10)).unwrap();
    // Uploaded again for another message, it survives the purge of the first session.
    attachments.put(GIF, BOUNDS, at(50)).unwrap();
    assert_eq!(attachments.release(session(1)).unwrap(), CollectedAttachments::default());
    let found = CollectedAttachments { count: 1, bytes: 14 };
    assert_eq!(attachments.collect(at(50), false).unwrap(), CollectedAttachments::default());
    assert_eq!(attachments.collect(at(51), true).unwrap(), found);
    assert_eq!(attachments.collect(at(51), false).unwrap(), found);
    assert!(matches!(attachments.describe(id), Err(AttachmentError::Unknown)));
}

#[test]
fn a_copy_of_the_journal_takes_attachments_along() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, attachments) = (open(&folder.path().join("journal.db")), opened(folder.path()));
    let id = attachments.put(GIF, BOUNDS, at(10)).unwrap().id;
    attachments.mark(session(1), &[id], at(10)).unwrap();
    let copy = folder.path().join("copy.db");
    journal.back_up(&copy).unwrap();
    assert_eq!(attachments.add_to_copy(&copy).unwrap(), (1, Vec::new()));
    let elsewhere = folder.path().join("elsewhere");
    assert_eq!(take_copied(&copy, &elsewhere).unwrap(), 1);
    assert_eq!(take_copied(&copy, &elsewhere).unwrap(), 0, "the copy is a journal alone by now");
    assert_eq!(lanyard_store::SqliteJournal::verify(&copy).unwrap().structure, Vec::<String>::new());
    let restored = Attachments::open(elsewhere).unwrap();
    assert!(restored.is_marked(session(1), id));
    assert_eq!(restored.read(id).unwrap(), GIF);

    let mut report = Report::default();
    report.attached.insert((session(1), id), 2);
    report.attached.insert((session(2), id), 3);
    report.attached.insert((session(1), AttachmentId::of(b"gone")), 4);
    restored.verify(&mut report);
    let mut damage: Vec<_> =
        report.damage.iter().map(|damage| (damage.first_seq, damage.what.clone())).collect();
    damage.sort();
    let gone = AttachmentId::of(b"gone");
    assert_eq!(
        damage,
        [
            (3, format!("attachment {id} is not counted as the session's")),
            (4, format!("attachment {gone} is missing")),
        ]
    );
}
