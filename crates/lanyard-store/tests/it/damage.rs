//! Damaged files: what can be read is read, what cannot is reported, nothing is wrong in silence and nothing panics.

use std::path::Path;

use lanyard_core::journal::Row;
use lanyard_core::session::NewSession;
use lanyard_core::task::MailTo;
use lanyard_core::{Actor, Address, SessionId, TokenId};
use lanyard_store::{
    AppendError, Directory, Filter, Journal, KeptOutcome, MailFilter, SqliteJournal, StoredToken, TaskFilter,
    Tasks, Tokens, Upkeep,
};
use rusqlite::Connection;

use crate::conductor::{self, Conductor};
use crate::foreman::{Foreman, plain};
use crate::kit::{Teller, at, list_all, open, options, outcome};

const PAGE: usize = 4_096;

/// A journal with something of everything, closed, and what it must answer.
struct Original {
    teller: Teller,
    foreman: Foreman,
    conductor: Conductor,
    bytes: Vec<u8>,
    rows: Vec<Row>,
    outcomes: Vec<KeptOutcome>,
    tokens: Vec<StoredToken>,
}

fn original(folder: &Path) -> Original {
    let path = folder.join("original.db");
    let journal = open(&path);
    let mut teller = Teller::default();
    let mut rng = fastrand::Rng::with_seed(3);
    for count in 0..12 {
        let alias = format!("chat-{count}");
        let parent = teller.ids.first().copied().filter(|_| count % 3 == 2);
        let new = NewSession {
            title: Some(format!("Session {count}")),
            aliases: vec![alias],
            ..NewSession::default()
        };
        teller.new_child(&new, parent);
    }
    teller.append(&journal);
    for _ in 0..120 {
        for _ in 0..rng.usize(1..12) {
            let id = teller.ids[rng.usize(0..12)];
            match rng.usize(0..20) {
                0 if teller.sessions[&id].turn.is_none() => teller.start_turn(id),
                0 => teller.finish_turn(id),
                // Longer than a page.
                1 => teller.say(id, &"long ".repeat(rng.usize(1_000..3_000))),
                _ => teller.say(id, "a word or two"),
            }
        }
        teller.append(&journal);
    }
    let outcomes: Vec<KeptOutcome> = (0..20).map(|key| outcome(key, teller.ids[0], i64::from(key))).collect();
    journal.append(&lanyard_store::Batch { outcomes: outcomes.clone(), ..Default::default() }).unwrap();
    let (id, session) = (TokenId::from_u128(1), None);
    let token = StoredToken { id, hash: [7; 32], actor: Actor::operator("alex"), session, created_at: at(1) };
    journal.put_token(&token).unwrap();
    let rows = list_all(&journal, &Filter::default(), 100);
    let (foreman, conductor) = (some_work(&journal), some_flows(&journal));
    drop(journal);
    let (bytes, tokens) = (std::fs::read(&path).unwrap(), vec![token]);
    Original { teller, foreman, conductor, bytes, rows, outcomes, tokens }
}

fn some_work(journal: &SqliteJournal) -> Foreman {
    let mut foreman = Foreman::default();
    for count in 0..12 {
        let mut new = plain(&format!("task {count}"));
        new.aliases = vec![format!("T-{count}")];
        // Longer than a page, every now and then.
        new.spec.prompt = "work ".repeat(if count % 4 == 0 { 1_500 } else { 20 });
        let task = foreman.create(new);
        foreman.work_at(task, count);
        foreman.send(MailTo::Task(task), "look here");
        foreman.send(MailTo::Session(SessionId::from_u128(count % 3)), "and here");
        foreman.write(journal);
    }
    foreman
}

fn some_flows(journal: &SqliteJournal) -> Conductor {
    let mut conductor = Conductor::default();
    for count in 0..6 {
        let mut new = conductor::plain(&format!("/w/{count}.md"));
        new.phases[0].text = "flow ".repeat(if count % 3 == 0 { 1_500 } else { 20 });
        let flow = conductor.create(new);
        conductor.work_at(flow);
        conductor.write(journal);
    }
    conductor
}

/// How a damaged copy was taken.
#[derive(Debug, PartialEq, Eq, Clone, Copy, PartialOrd, Ord)]
enum Verdict {
    /// Every answer was as before.
    Unharmed,
    /// Something was reported where it was read, or by `check`.
    Reported,
    /// It was not opened.
    Refused,
}

impl Original {
    /// Opens a damaged copy, asks it everything, and fails when anything is wrong in silence.
    fn judge(&self, path: &Path, what: &str) -> Verdict {
        let Ok(journal) = SqliteJournal::open(options(path)) else { return Verdict::Refused };
        let mut differs = Vec::new();
        let mut reported = false;
        for (id, log) in &self.teller.logs {
            match journal.events(*id, 0, usize::MAX) {
                Err(_) => reported = true,
                Ok(page) => {
                    for (event, seq) in page.events.iter().zip(1_u64..) {
                        assert_eq!(event.seq, seq, "{what}: {id} has a gap");
                        match &event.body {
                            Ok(body) => {
                                assert_eq!(Some(body), log.get(seq as usize - 1), "{what}: {id} event {seq}");
                            }
                            Err(damage) => {
                                assert_eq!((damage.session, damage.first_seq), (Some(*id), seq));
                                reported = true;
                            }
                        }
                    }
                    if page.events.len() != log.len() || page.head != log.len() as u64 {
                        differs.push(format!("{id} ends at {} not {}", page.head, log.len()));
                    }
                }
            }
            match journal.load(*id) {
                Err(_) => reported = true,
                Ok(None) => differs.push(format!("{id} is unknown")),
                Ok(Some(loaded)) if !loaded.damage.is_empty() => reported = true,
                Ok(Some(loaded)) if loaded.session != self.teller.sessions[id] => {
                    differs.push(format!("{id} loads otherwise"));
                }
                Ok(Some(loaded)) if loaded.lineage != self.teller.lineage(*id) => {
                    differs.push(format!("{id} has other parents"));
                }
                Ok(Some(_)) => {}
            }
        }
        self.judge_the_rest(&journal, &mut differs, &mut reported);
        self.judge_work(&journal, &mut differs, &mut reported);
        let checked = journal.check();
        let complains =
            checked.as_ref().map_or(true, |report| !report.structure.is_empty() || !report.damage.is_empty());
        assert!(differs.is_empty() || complains, "{what}: not reported: {differs:?}");
        // It may or may not be possible to go on writing; it must not be possible to make things worse.
        self.go_on(&journal, what);
        if reported || complains || !differs.is_empty() { Verdict::Reported } else { Verdict::Unharmed }
    }

    fn judge_the_rest(&self, journal: &SqliteJournal, differs: &mut Vec<String>, reported: &mut bool) {
        match journal.list(&Filter::default(), None, 100) {
            Err(_) => *reported = true,
            Ok(listing) if listing.rows != self.rows => differs.push("the listing differs".to_owned()),
            Ok(_) => {}
        }
        for kept in &self.outcomes {
            match journal.outcome(&kept.key) {
                Err(_) => *reported = true,
                Ok(found) if found.as_ref() != Some(kept) => differs.push("an outcome differs".to_owned()),
                Ok(_) => {}
            }
        }
        match journal.tokens() {
            Err(_) => *reported = true,
            Ok(tokens) if tokens != self.tokens => differs.push("a token differs".to_owned()),
            Ok(_) => {}
        }
        for (session, alias) in self.teller.ids.iter().zip((0..).map(|count| format!("chat-{count}"))) {
            match journal.find(&Address::of(alias.clone())) {
                Err(_) => *reported = true,
                Ok(found) if found.len() != 1 || found[0].session != *session => {
                    differs.push(format!("{alias} differs"));
                }
                Ok(_) => {}
            }
        }
    }

    fn judge_work(&self, journal: &SqliteJournal, differs: &mut Vec<String>, reported: &mut bool) {
        let mut compare = |what: String, same: Result<bool, lanyard_store::StoreError>| match same {
            Err(_) => *reported = true,
            Ok(false) => differs.push(format!("{what} differs")),
            Ok(true) => {}
        };
        for (id, log) in &self.foreman.logs {
            let held = &self.foreman.tasks[id];
            compare(id.to_string(), journal.task(*id).map(|task| task.as_ref() == Some(held)));
            compare(format!("the log of {id}"), journal.task_events(*id, 0, 100).map(|read| read == *log));
        }
        for (name, tasks) in self.foreman.names() {
            compare(name.clone(), journal.tasks_named(&name).map(|found| found == tasks));
        }
        for (id, mail) in &self.foreman.mail {
            compare(id.to_string(), journal.mail(*id).map(|found| found.as_ref() == Some(mail)));
        }
        let listed = journal.tasks(&TaskFilter { ended: Some(false), ..TaskFilter::default() }, None, 100);
        compare("the tasks".to_owned(), listed.map(|tasks| tasks.iter().eq(self.foreman.tasks.values())));
        let mails = journal.mails(&MailFilter { settled: Some(false), ..MailFilter::default() }, None, 100);
        compare("the mail".to_owned(), mails.map(|mails| mails.len() == self.foreman.mail.len()));
        for (what, same) in self.conductor.compare(journal) {
            compare(what, same);
        }
    }

    fn go_on(&self, journal: &SqliteJournal, what: &str) {
        let mut teller = self.teller.clone();
        for id in self.teller.ids.clone() {
            teller.say(id, "after the damage");
        }
        let batch = teller.batch();
        match journal.append(&batch) {
            Err(AppendError::Unavailable(_) | AppendError::Contradiction(_)) => {}
            Ok(()) => {
                for id in &teller.ids {
                    let Ok(page) = journal.events(*id, self.teller.logs[id].len() as u64, 9) else {
                        continue;
                    };
                    let last = page.events.last().map(|event| event.body.clone().ok());
                    assert_eq!(
                        last.flatten().as_ref(),
                        teller.logs[id].last(),
                        "{what}: {id} lost what was appended"
                    );
                }
            }
        }
    }
}

/// S0-24, S4-B06: any single bit of the file, wherever it lies.
#[test]
fn a_flipped_bit_is_never_wrong_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let original = original(folder.path());
    // More of them, and others, for whoever has the time: LANYARD_FLIPS=5000 LANYARD_SEED=1.
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let mut rng = fastrand::Rng::with_seed(number("LANYARD_SEED").unwrap_or(24));
    let pages = original.bytes.len() / PAGE;
    let mut tally = std::collections::BTreeMap::new();
    // Every byte of the header, the beginning of every page where its structure is, and anywhere.
    let header = (0..100).map(|byte| (byte, rng.u8(0..8))).collect::<Vec<_>>();
    let starts = (0..pages).map(|page| (page * PAGE + rng.usize(0..24), rng.u8(0..8))).collect::<Vec<_>>();
    let anywhere = (0..number("LANYARD_FLIPS").unwrap_or(300))
        .map(|_| (rng.usize(0..original.bytes.len()), rng.u8(0..8)))
        .collect::<Vec<_>>();
    for (byte, bit) in header.into_iter().chain(starts).chain(anywhere) {
        let copy = folder.path().join("copy.db");
        let mut bytes = original.bytes.clone();
        bytes[byte] ^= 1 << bit;
        std::fs::write(&copy, &bytes).unwrap();
        let verdict = original.judge(&copy, &format!("byte {byte} bit {bit}"));
        *tally.entry(verdict).or_insert(0) += 1;
        clear(&copy);
    }
    println!("flipped bits of {pages} pages: {tally:?}");
    assert!(tally[&Verdict::Reported] > 50 && tally[&Verdict::Unharmed] > 50, "{tally:?}");
}

/// A file that was cut short is refused, or its loss reported.
#[test]
fn a_truncated_file_is_never_wrong_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let original = original(folder.path());
    let length = original.bytes.len();
    let mut rng = fastrand::Rng::with_seed(25);
    let edges = [0, 1, 15, 16, 99, 100, 511, 512, 4_095, 4_096, 4_097, 8_192, length - 4_096, length - 1];
    for cut in edges.into_iter().chain((0..60).map(|_| rng.usize(0..length))) {
        let copy = folder.path().join("copy.db");
        std::fs::write(&copy, &original.bytes[..cut]).unwrap();
        let verdict = original.judge(&copy, &format!("cut at {cut}"));
        assert!(verdict != Verdict::Unharmed, "cut at {cut} of {length}");
        clear(&copy);
    }
}

/// Whole pages of zeros or noise, as a failing disk leaves them.
#[test]
fn a_lost_page_is_never_wrong_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let original = original(folder.path());
    let mut rng = fastrand::Rng::with_seed(26);
    for page in 0..original.bytes.len() / PAGE {
        let copy = folder.path().join("copy.db");
        let mut bytes = original.bytes.clone();
        let noise = rng.bool();
        bytes[page * PAGE..(page + 1) * PAGE].fill_with(|| if noise { rng.u8(..) } else { 0 });
        std::fs::write(&copy, &bytes).unwrap();
        original.judge(&copy, &format!("page {page}, noise {noise}"));
        clear(&copy);
    }
}

fn clear(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-lock"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let _ = std::fs::remove_file(name);
    }
}

/// One long session among others, closed, and then changed behind the journal's back.
fn tampered(sql: &str) -> (Teller, SessionId, SqliteJournal, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = Teller::default();
    {
        let journal = open(&path);
        teller.plain();
        teller.plain();
        for count in 0..300 {
            let (other, id) = (teller.ids[0], teller.ids[1]);
            teller.say(other, &format!("{count}"));
            teller.say(id, &format!("{count}"));
            teller.append(&journal);
        }
    }
    let behind = Connection::open(&path).unwrap();
    assert!(behind.execute(sql, []).unwrap() > 0);
    drop(behind);
    let id = teller.ids[1];
    (teller, id, open(&path), folder)
}

const NONE: [u64; 0] = [];

/// The numbers of the events that are reported damaged; the others must be as they were.
fn damaged(teller: &Teller, id: SessionId, journal: &SqliteJournal, after: u64, limit: usize) -> Vec<u64> {
    let page = journal.events(id, after, limit).unwrap();
    assert!(page.events.iter().map(|event| event.seq).eq(after + 1..=page.head.min(after + limit as u64)));
    let check = |event: &&lanyard_store::StoredEvent| match &event.body {
        Ok(body) => {
            assert_eq!(body, &teller.logs[&id][event.seq as usize - 1]);
            false
        }
        Err(_) => true,
    };
    page.events.iter().filter(check).map(|event| event.seq).collect()
}

#[test]
fn a_damaged_record_is_made_again_from_the_log() {
    let (teller, id, journal, _folder) = tampered("UPDATE records SET body = x'7b7d' WHERE sid = 2");
    let loaded = journal.load(id).unwrap().unwrap();
    assert_eq!(loaded.session, teller.sessions[&id]);
    assert_eq!(loaded.damage.len(), 1);
    assert_eq!(journal.check().unwrap().damage.len(), 1);
    assert_eq!(journal.rebuild().unwrap(), 2);
    assert_eq!(journal.check().unwrap().damage, []);
    teller.assert_kept(&journal);
}

#[test]
fn a_damaged_event_is_reported_in_its_place() {
    let (teller, id, journal, _folder) =
        tampered("UPDATE events SET body = x'00' WHERE sid = 2 AND seq = 100");
    assert_eq!(damaged(&teller, id, &journal, 0, 1_000), [100]);
    assert_eq!(damaged(&teller, id, &journal, 99, 1), [100]);
    assert_eq!(damaged(&teller, id, &journal, 98, 10), [100]);
    assert_eq!(damaged(&teller, id, &journal, 100, 10), NONE);
    let loaded = journal.load(id).unwrap().unwrap();
    // The record is as of the first event; the fold goes on behind what is lost.
    assert_eq!(loaded.session.seq, 301);
    assert_eq!(loaded.damage[0].first_seq, 100);
    let report = journal.check().unwrap();
    assert_eq!(report.damage.len(), 1);
    assert_eq!((report.damage[0].session, report.damage[0].first_seq), (Some(id), 100));
    assert_eq!(damaged(&teller, teller.ids[0], &journal, 0, 1_000), NONE);
}

#[test]
fn a_broken_chain_is_read_around() {
    for sql in [
        "UPDATE events SET prev = 5 WHERE sid = 2 AND seq = 100",
        "UPDATE events SET prev = 0, body = x'00' WHERE sid = 2 AND seq = 100",
        "UPDATE events SET prev = pos WHERE sid = 2 AND seq = 100",
        "DELETE FROM events WHERE sid = 2 AND seq = 100",
        "UPDATE events SET sid = 1 WHERE sid = 2 AND seq = 100",
        "UPDATE events SET seq = 101 WHERE sid = 2 AND seq = 100",
    ] {
        let (teller, id, journal, _folder) = tampered(sql);
        assert_eq!(damaged(&teller, id, &journal, 0, 1_000), [100], "{sql}");
        assert_eq!(damaged(&teller, id, &journal, 0, 100), [100], "{sql}");
        assert_eq!(damaged(&teller, id, &journal, 0, 99), NONE, "{sql}");
        assert_eq!(damaged(&teller, id, &journal, 99, 64), [100], "{sql}");
        assert!(!journal.load(id).unwrap().unwrap().damage.is_empty(), "{sql}");
        assert!(!journal.check().unwrap().damage.is_empty(), "{sql}");
        assert_eq!(damaged(&teller, teller.ids[0], &journal, 0, 1_000), NONE, "{sql}");
        // Rebuilding keeps what can be read and still says what cannot.
        journal.rebuild().unwrap();
        assert_eq!(damaged(&teller, id, &journal, 0, 1_000), [100], "{sql}");
        assert_eq!(journal.load(id).unwrap().unwrap().session.seq, 301, "{sql}");
        assert!(!journal.check().unwrap().damage.is_empty(), "{sql}");
    }
}

#[test]
fn lost_projections_are_made_again_when_the_journal_opens() {
    for sql in [
        "DELETE FROM heads WHERE sid = 2",
        "DELETE FROM heads",
        "UPDATE heads SET seq = seq - 7 WHERE sid = 2",
        "UPDATE heads SET pos = 3 WHERE sid = 2",
        "DELETE FROM sessions WHERE sid = 2",
        "DELETE FROM sessions",
        "UPDATE sessions SET card = (SELECT card FROM sessions WHERE sid = 1) WHERE sid = 2",
        "UPDATE sessions SET card = CAST(replace(card, 'alex', 'mall') AS BLOB) WHERE sid = 2",
        "UPDATE meta SET value = 1000000 WHERE key = 'heads_settled'",
        "DELETE FROM meta",
    ] {
        let (mut teller, id, journal, _folder) = tampered(sql);
        teller.assert_kept(&journal);
        assert_eq!(list_all(&journal, &Filter::default(), 10).len(), 2, "{sql}");
        assert!(
            list_all(&journal, &Filter { owner: Some("mall".to_owned()), ..Filter::default() }, 10)
                .is_empty()
        );
        teller.say(id, "and on");
        teller.append(&journal);
        teller.assert_kept(&journal);
    }
}

#[test]
fn wrong_marks_only_cost_time() {
    for sql in [
        "DELETE FROM marks",
        "UPDATE marks SET pos = 2",
        "UPDATE marks SET pos = 1000000",
        "UPDATE marks SET seq = seq + 1000",
    ] {
        let (teller, id, journal, _folder) = tampered(sql);
        teller.assert_kept(&journal);
        for after in [0, 1, 60, 64, 65, 128, 200, 299, 300] {
            assert_eq!(damaged(&teller, id, &journal, after, 10), NONE, "{sql}");
        }
        assert!(!journal.check().unwrap().damage.is_empty(), "{sql}");
        journal.rebuild().unwrap();
        assert_eq!(journal.check().unwrap().damage, [], "{sql}");
        teller.assert_kept(&journal);
    }
}

/// A session of which nothing but some events is left says so; it is neither unknown nor blank.
#[test]
fn a_session_that_cannot_be_made_is_an_error_not_a_blank() {
    let (teller, id, journal, folder) = tampered("UPDATE records SET crc = 0 WHERE sid = 2");
    drop(journal);
    let path = folder.path().join("journal.db");
    let behind = Connection::open(&path).unwrap();
    behind
        .execute_batch("UPDATE events SET body = x'00' WHERE sid = 2 AND seq = 1; DELETE FROM sessions")
        .unwrap();
    drop(behind);
    let journal = open(&path);
    assert!(journal.load(id).is_err());
    assert_eq!(damaged(&teller, id, &journal, 0, 1_000), [1]);
    assert_eq!(list_all(&journal, &Filter::default(), 10).len(), 1);
    assert!(!journal.check().unwrap().damage.is_empty());
}

/// A damaged outcome or token is an error or not accepted, never another one.
#[test]
fn damaged_outcomes_and_tokens_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = Teller::default();
    let id = teller.plain();
    {
        let journal = open(&path);
        let mut batch = teller.batch();
        batch.outcomes.push(outcome(1, id, 5));
        journal.append(&batch).unwrap();
        let (token, actor) = (TokenId::from_u128(1), Actor::operator("alex"));
        let token = StoredToken { id: token, hash: [7; 32], actor, session: None, created_at: at(1) };
        journal.put_token(&token).unwrap();
    }
    let behind = Connection::open(&path).unwrap();
    behind.execute_batch("UPDATE outcomes SET at = 6; UPDATE tokens SET hash = zeroblob(32)").unwrap();
    drop(behind);
    let journal = open(&path);
    assert!(journal.outcome(&[1; 16]).is_err());
    assert_eq!(journal.tokens().unwrap(), []);
    assert_eq!(journal.check().unwrap().damage.len(), 2);
}
