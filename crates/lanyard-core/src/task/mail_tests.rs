//! Mail: whose words they are, what is kept of them, whose box it is.

#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes snapshots with them")]

use expect_test::expect;

use crate::id::{IdError, MailId, NoteId};
use crate::session::directive;
use crate::task::mail::{
    Mail, MailFrom, MailKind, MailState, MailTo, Sender, TEXT_CHARS_MAX, admit, waits_for_next_run,
};
use crate::task::record::TaskState;
use crate::task::testing::{at, session_id, short_ids, task_id, worker_id};

fn mail(kind: MailKind, ended: Option<TaskState>, from: MailFrom) -> Mail {
    Mail {
        id: MailId::from_u128(1),
        to: MailTo::Task(task_id(1)),
        seq: 1,
        from,
        kind,
        ended,
        text: "All tests pass.".to_owned(),
        at: at(0),
        state: MailState::Pending,
        times: 0,
        forwarded_from: None,
    }
}

fn child() -> MailFrom {
    MailFrom {
        task: Some(task_id(2)),
        worker: Some(worker_id(2)),
        session: Some(session_id(2)),
        run: Some(3),
        name: "tester".to_owned(),
        operator: false,
    }
}

/// S4-B03: whoever reads it can tell what it is and where it came from.
#[test]
fn words_say_whose_they_are() {
    let words = |mail: Mail| short_ids(&mail.words().replace(&mail.id.to_string(), "mail#1"));
    let ended = mail(MailKind::Ended, Some(TaskState::Failed), child());
    expect![[r#"
        mail#1 (ended: failed) from tester, task task#2, session session#2, run 3
        All tests pass."#]]
    .assert_eq(&words(ended));
    let question = mail(MailKind::Question, None, MailFrom { run: None, session: None, ..child() });
    expect![[r#"
        mail#1 (question) from tester, task task#2
        All tests pass."#]]
    .assert_eq(&words(question));
    let ann = MailFrom { name: "ann".to_owned(), operator: true, ..MailFrom::default() };
    expect![[r#"
        mail#1 (message) from ann
        All tests pass."#]]
    .assert_eq(&words(mail(MailKind::Message, None, ann)));
}

/// S4-B03: nothing an agent writes, its name included, can pass for Lanyard's words.
#[test]
fn no_mail_can_pass_for_lanyards_words() {
    for mark in directive::LOOKALIKES {
        let text = format!("before {mark} after {mark}");
        assert!(!admit(&text).contains(mark), "{mark}");
        let mut forged = mail(MailKind::Message, None, MailFrom { name: text.clone(), ..child() });
        forged.text = admit(&text);
        assert!(!forged.words().contains(mark), "{mark}");
    }
    assert_eq!(admit("plain words, ünïcode too"), "plain words, ünïcode too");
}

#[test]
fn a_long_text_is_cut_and_says_so() {
    let fits = "é".repeat(TEXT_CHARS_MAX);
    assert_eq!(admit(&fits), fits);
    let kept = admit(&format!("{fits}x"));
    assert_eq!(kept, format!("{fits}\n[cut here; the whole text is in the log of its session]"));
    // What is cut off cannot be put together again by what was made harmless.
    let mark = directive::LOOKALIKES[0];
    assert!(!admit(&mark.repeat(TEXT_CHARS_MAX)).contains(mark));
}

#[test]
fn a_box_is_a_tasks_or_a_sessions() {
    for to in [MailTo::Task(task_id(7)), MailTo::Session(session_id(7))] {
        assert_eq!(to.to_string().parse(), Ok(to));
        let json = serde_json::to_string(&to).unwrap();
        assert_eq!(serde_json::from_str::<MailTo>(&json).unwrap(), to);
        assert_eq!(to.bits(), 7);
    }
    let error = |text: &str| text.parse::<MailTo>().unwrap_err();
    assert_eq!(error("task_short"), IdError::Suffix);
    assert_eq!(error("sess_short"), IdError::Suffix);
    assert_eq!(error(&worker_id(1).to_string()), IdError::Prefix("sess"));
    assert_eq!(error(""), IdError::Prefix("sess"));
}

/// S4-B02: a message and its note have the same number, so that it is given once however often that is tried.
#[test]
fn what_is_settled_is_what_needs_nothing_more() {
    let (session, note) = (session_id(1), NoteId::from_u128(1));
    let table = [
        (MailState::Pending, false, false),
        (MailState::Given { session, note, given_at: at(1) }, false, false),
        (MailState::Shown { session, shown_at: at(1) }, false, false),
        (
            MailState::Acknowledged { session: None, acknowledged_at: at(1), how: "read".to_owned() },
            true,
            false,
        ),
        (MailState::Dead { why: "nobody is left".to_owned(), dead_at: at(1) }, true, true),
    ];
    for (state, settled, dead) in table {
        assert_eq!((state.is_settled(), state.is_dead()), (settled, dead), "{}", state.as_str());
        let mail = Mail { state, ..mail(MailKind::Message, None, child()) };
        let json = serde_json::to_string(&mail).unwrap();
        assert_eq!(serde_json::from_str::<Mail>(&json).unwrap(), mail);
        assert_eq!(mail.note(), note);
    }
}

/// FND-N7: what a task was told from above survives its cancel or failure; a report of its child does not wait for it.
#[test]
fn fnd_n7_words_from_above_wait_for_the_next_run() {
    let row = |state: TaskState| {
        let waits = |sender| if waits_for_next_run(state, sender) { "waits" } else { "moves on" };
        format!("{state}: above {}, below {}\n", waits(Sender::Above), waits(Sender::Below))
    };
    expect![[r#"
        pending: above waits, below waits
        deploying: above waits, below waits
        running: above waits, below waits
        paused: above waits, below waits
        interrupted: above waits, below waits
        completed: above moves on, below moves on
        failed: above waits, below moves on
        cancelled: above waits, below moves on
    "#]]
    .assert_eq(&TaskState::ALL.map(row).concat());
}

/// S4-15: a message follows its note, and is settled once.
#[test]
fn a_message_is_given_with_its_note_and_settled_with_it() {
    use crate::session::Settled;

    let (one, other) = (session_id(1), session_id(2));
    let pending = mail(MailKind::Ended, Some(TaskState::Completed), child());
    assert_eq!(Mail::of_note(pending.note()), pending.id);
    let given = pending.queued(one, at(1)).unwrap();
    assert_eq!(given.state, MailState::Given { session: one, note: given.note(), given_at: at(1) });
    assert_eq!((given.times, given.queued(other, at(2))), (1, None));
    let shown = Mail { state: MailState::Shown { session: one, shown_at: at(1) }, ..pending.clone() };
    for unsettled in [&pending, &given, &shown] {
        for how in [Settled::Acknowledged, Settled::Withdrawn] {
            let heard = unsettled.settled(one, how, at(3)).unwrap();
            assert!(heard.state.is_settled() && !heard.state.is_dead(), "{how:?}");
            for again in [Settled::Acknowledged, Settled::Withdrawn, Settled::Expired, Settled::Undelivered] {
                assert_eq!(heard.settled(one, again, at(4)), None);
            }
        }
    }
    for how in [Settled::Expired, Settled::Undelivered] {
        let back = given.settled(one, how, at(3)).unwrap();
        assert_eq!((back.state, back.times), (MailState::Pending, 1), "{how:?}");
        assert_eq!(given.settled(other, how, at(3)), None, "a session it was not given to");
        assert_eq!((pending.settled(one, how, at(3)), shown.settled(one, how, at(3))), (None, None));
    }
}
