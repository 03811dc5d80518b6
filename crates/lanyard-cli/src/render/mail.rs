//! Mail: a row of a box, and one letter with what became of it. What agents wrote is labelled as theirs.

use lanyard_core::Timestamp;
use lanyard_core::task::{Mail, MailFrom, MailState};

use crate::render::card::Card;
use crate::render::table::{Column, table};
use crate::render::text::{count, harmless, one_line};
use crate::render::time::{ago, stamp};

const COLUMNS: [Column; 7] = [
    Column::whole("MAIL"),
    Column::whole("STATE"),
    Column::whole("SENT"),
    Column::whole("KIND"),
    Column::elastic("FROM", 6),
    Column::whole("TO"),
    Column::elastic("TEXT", 16),
];

/// Mail as a table, in the order it came. `now` is the daemon's clock.
pub(crate) fn mails(mails: &[Mail], now: Timestamp, max: Option<usize>) -> String {
    let cells: Vec<Vec<String>> = mails
        .iter()
        .map(|mail| {
            vec![
                mail.id.to_string(),
                state(mail),
                ago(now, mail.at),
                kind(mail),
                one_line(&mail.from.name),
                mail.to.to_string(),
                one_line(&mail.text),
            ]
        })
        .collect();
    table(&COLUMNS, &cells, max)
}

/// `[!] dead`: with a mark, so that dead letters stand out without colour.
fn state(mail: &Mail) -> String {
    let mark = match &mail.state {
        MailState::Pending => "[ ]",
        MailState::Given { .. } | MailState::Shown { .. } => "[>]",
        MailState::Acknowledged { .. } => "[x]",
        MailState::Dead { .. } => "[!]",
    };
    format!("{mark} {}", mail.state.as_str())
}

/// `ended: completed`, or the kind alone.
pub(super) fn kind(mail: &Mail) -> String {
    mail.ended
        .map_or_else(|| mail.kind.as_str().to_owned(), |ended| format!("{}: {ended}", mail.kind.as_str()))
}

/// One letter. `now` is the daemon's clock.
pub(crate) fn mail_card(mail: &Mail, now: Timestamp) -> String {
    let mut card = Card::default();
    card.line("id", mail.id.to_string());
    card.line("kind", kind(mail));
    card.line("state", format!("{}{}", state(mail), since(&mail.state, now)));
    card.line("went out", if mail.times == 0 { String::new() } else { count(mail.times, "time") });
    card.gap();
    card.line("from", from(&mail.from));
    card.line("", mail.from.task.map(|task| task.to_string()).unwrap_or_default());
    card.line("", mail.from.worker.map(|worker| worker.to_string()).unwrap_or_default());
    if let Some(session) = mail.from.session {
        let run = mail.from.run.map(|run| format!(", run {run}")).unwrap_or_default();
        card.line("", format!("{session}{run}"));
    }
    card.line("to", mail.to.to_string());
    card.line("before", mail.forwarded_from.map(|to| format!("in the box of {to}")).unwrap_or_default());
    card.line("sent", format!("{} ({})", stamp(mail.at), ago(now, mail.at)));
    format!("{}\n{}\n", card.done(), harmless(mail.text.trim_end()))
}

fn from(from: &MailFrom) -> String {
    let who = if from.operator { "a person" } else { "an agent" };
    format!("{}, {who}", one_line(&from.name))
}

fn since(state: &MailState, now: Timestamp) -> String {
    match state {
        MailState::Pending => ": it waits for a recipient".to_owned(),
        MailState::Given { session, given_at, .. } => {
            format!(": among the words for {session} since {}", stamp(*given_at))
        }
        MailState::Shown { session, shown_at } => format!(": shown to {session} {}", ago(now, *shown_at)),
        MailState::Acknowledged { session, acknowledged_at, how } => {
            let by = session.map(|session| format!(" by {session}")).unwrap_or_default();
            format!("{by} {}: {}", ago(now, *acknowledged_at), one_line(how))
        }
        MailState::Dead { why, dead_at } => format!(" {}: {}", ago(now, *dead_at), one_line(why)),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use lanyard_core::task::{MailKind, MailTo, TaskState};
    use lanyard_core::{MailId, TaskId};

    use super::*;
    use crate::render::task::testing::{session_id, then, worker_id};

    pub(crate) fn mail(id: u128, state: MailState) -> Mail {
        Mail {
            id: MailId::from_u128(id),
            to: MailTo::Task(TaskId::from_u128(2)),
            seq: 1,
            from: MailFrom {
                task: Some(TaskId::from_u128(1)),
                worker: Some(worker_id(5)),
                session: Some(session_id(7)),
                run: Some(3),
                name: "codex".to_owned(),
                operator: false,
            },
            kind: MailKind::Ended,
            ended: Some(TaskState::Completed),
            text: "The login test is green.\nNothing else was touched.\u{1b}[2J".to_owned(),
            at: then(),
            state,
            times: 1,
            forwarded_from: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_core::task::{MailKind, MailTo};

    use super::testing::mail;
    use super::*;
    use crate::render::task::testing::{now, session_id, then};

    #[test]
    fn a_box_shows_what_waits_and_what_nobody_can_take() {
        let mut word = mail(1, MailState::Pending);
        word.kind = MailKind::Question;
        word.ended = None;
        word.text = "which branch?".to_owned();
        let shown = mail(2, MailState::Shown { session: session_id(7), shown_at: then() });
        let dead = mail(3, MailState::Dead { why: "nobody is left".to_owned(), dead_at: then() });
        expect![[r"
            MAIL    STATE        SENT    KIND              FROM   TO      TEXT
            000001  [ ] pending  3m ago  question          codex  000002  which branch?
            000002  [>] shown    3m ago  ended: completed  codex  000002  The login test is green. Nothing else was touched.�[2J
            000003  [!] dead     3m ago  ended: completed  codex  000002  The login test is green. Nothing else was touched.�[2J
        "]].assert_eq(&mails(&[word, shown, dead], now(), None));
    }

    #[test]
    fn a_letter_says_whose_words_it_holds_and_what_became_of_it() {
        let how = "its agent went on from there".to_owned();
        let mut letter =
            mail(1, MailState::Acknowledged { session: Some(session_id(8)), acknowledged_at: then(), how });
        letter.forwarded_from = Some(MailTo::Session(session_id(6)));
        expect![[r"
            id           mail_00000000000000000000000001
            kind         ended: completed
            state        [x] acknowledged by sess_00000000000000000000000008 3m ago: its agent went on from there
            went out     1 time

            from         codex, an agent
                         task_00000000000000000000000001
                         worker_00000000000000000000000005
                         sess_00000000000000000000000007, run 3
            to           task_00000000000000000000000002
            before       in the box of sess_00000000000000000000000006
            sent         2026-11-15T08:00:00Z (3m ago)

            The login test is green.
            Nothing else was touched.�[2J
        "]].assert_eq(&mail_card(&letter, now()));
    }

    #[test]
    fn a_dead_letter_says_why() {
        let mut letter = mail(1, MailState::Dead { why: "nobody is left".to_owned(), dead_at: then() });
        letter.from = MailFrom { name: "operator".to_owned(), operator: true, ..MailFrom::default() };
        letter.kind = MailKind::Message;
        letter.ended = None;
        letter.times = 0;
        expect![[r"
            id           mail_00000000000000000000000001
            kind         message
            state        [!] dead 3m ago: nobody is left

            from         operator, a person
            to           task_00000000000000000000000002
            sent         2026-11-15T08:00:00Z (3m ago)

            The login test is green.
            Nothing else was touched.�[2J
        "]]
        .assert_eq(&mail_card(&letter, now()));
    }
}
