//! Tasks and mail: written whole or not at all, found by every condition and name, read in order.

use lanyard_core::naming::IdPart;
use lanyard_core::session::InterruptCause;
use lanyard_core::task::{Mail, MailState, MailTo, Task, TaskCreated, TaskEvent, TaskState};
use lanyard_core::{MailId, PlanId, SessionId, TaskId, WorkerId};
use lanyard_store::{AppendError, FIND_MAX, MailFilter, RecordKind, TaskFilter, WorkBatch};

use crate::foreman::{Foreman, plain};
use crate::kit::{Store, WriteRecords, at, on_every_journal};

on_every_journal! {
    work_is_there_as_it_was_told
    nothing_is_known_of_what_was_never_written
    a_gap_or_a_repeat_in_a_log_writes_nothing
    a_row_is_there_with_its_events_and_as_of_the_last
    tasks_are_found_by_each_condition_and_by_all
    tasks_are_listed_in_pages
    a_tasks_log_is_read_in_pages
    tasks_are_found_by_exactly_their_names
    a_part_of_an_id_finds_the_tasks_that_begin_or_end_with_it
    a_name_may_stand_for_several_tasks
    keys_are_forgotten_some_time_after_the_end
    mail_is_read_by_box_and_place
    mail_is_found_by_what_became_of_it
    a_place_in_a_box_is_given_once
    mail_may_move_to_another_box
    rebuilding_changes_nothing
}

fn a_part_of_an_id_finds_the_tasks_that_begin_or_end_with_it(store: &dyn Store) {
    let mut foreman = Foreman::default();
    let ids: Vec<TaskId> = ["one", "two", "three"].map(|title| foreman.create(plain(title))).to_vec();
    foreman.write(store);
    let like = |text: &str, limit| {
        let found = store.records_like(RecordKind::Task, &IdPart::parse(text).unwrap(), limit).unwrap();
        found.into_iter().map(TaskId::from_u128).collect::<Vec<_>>()
    };
    let all: Vec<String> = ids.iter().map(ToString::to_string).collect();
    for text in &all {
        for part in [&text[5..30], &text[5..], &text[25..], &text[27..]] {
            let wanted = |id: &&TaskId| {
                let id = id.to_string();
                id[5..].starts_with(part) || id.ends_with(part)
            };
            let mut expected: Vec<TaskId> = ids.iter().filter(wanted).copied().collect();
            expected.sort_unstable_by(|one, other| other.cmp(one));
            assert_eq!(like(part, 10), expected, "{part}");
            assert_eq!(like(part, 1), expected[..1], "{part}");
        }
    }
    assert_eq!(like("7zzzz", 10), []);
    let mut newest = ids.clone();
    newest.sort_unstable_by(|one, other| other.cmp(one));
    let read = store.newest_tasks(&TaskFilter::default(), 2).unwrap();
    assert_eq!(read.iter().map(|task| task.id).collect::<Vec<_>>(), newest[..2]);
}

/// S4-B06: what was acknowledged can be read at once.
fn work_is_there_as_it_was_told(store: &dyn Store) {
    let mut foreman = Foreman::default();
    let one = foreman.create(plain("one"));
    let two = foreman.create(plain("two"));
    foreman.write(store);
    foreman.assert_kept(store);
    foreman.work_at(one, 1);
    foreman.send(MailTo::Task(two), "hello");
    foreman.work_at(two, 2);
    foreman.end(one, TaskState::Completed);
    foreman.write(store);
    foreman.assert_kept(store);
    store.write_work(&WorkBatch::default()).unwrap();
    foreman.assert_kept(store);
    assert_eq!(store.check().unwrap().damage, []);
}

fn nothing_is_known_of_what_was_never_written(store: &dyn Store) {
    let nobody = TaskId::from_u128(7);
    assert_eq!(store.task(nobody).unwrap(), None);
    assert_eq!(store.task_events(nobody, 0, 10).unwrap(), []);
    assert_eq!(store.tasks(&TaskFilter::default(), None, 10).unwrap(), []);
    assert_eq!(store.tasks_named("nobody").unwrap(), []);
    assert_eq!(store.mail(MailId::from_u128(7)).unwrap(), None);
    assert_eq!(store.mails(&MailFilter::default(), None, 10).unwrap(), []);
    assert_eq!(store.last_mail(MailTo::Task(nobody)).unwrap(), 0);
}

fn assert_contradicts(store: &dyn Store, batch: &WorkBatch, kept: &Foreman, what: &str) {
    let refused = store.write_work(batch);
    assert!(matches!(refused, Err(AppendError::Contradiction(_))), "{what}: {refused:?}");
    kept.assert_kept(store);
}

fn a_gap_or_a_repeat_in_a_log_writes_nothing(store: &dyn Store) {
    let mut foreman = Foreman::default();
    let task = foreman.create(plain("one"));
    foreman.write(store);
    let kept = foreman.clone();
    // Each also has what could be written by itself.
    let other = foreman.create(plain("other"));
    foreman.send(MailTo::Task(other), "hello");
    foreman.deploy(task, 1, 2);
    foreman.push(task, TaskEvent::Started {});
    let good = foreman.batch();
    let mut gap = good.clone();
    gap.entries.retain(|entry| entry.task != task || entry.seq != 2);
    assert_contradicts(store, &gap, &kept, "a gap");
    let mut unborn = good.clone();
    unborn.entries.retain(|entry| entry.task != other);
    assert_contradicts(store, &unborn, &kept, "a row without events");
    let mut disorder = good.clone();
    disorder.entries.reverse();
    assert_contradicts(store, &disorder, &kept, "the wrong order");
    assert_eq!(store.task(other).unwrap(), None);
    assert_eq!(store.tasks_named(&WorkerId::from_u128(1).to_string()).unwrap(), []);
    store.write_work(&good).unwrap();
    foreman.assert_kept(store);
    assert_contradicts(store, &good, &foreman, "a repeat");
}

fn a_row_is_there_with_its_events_and_as_of_the_last(store: &dyn Store) {
    let mut foreman = Foreman::default();
    let task = foreman.create(plain("one"));
    foreman.write(store);
    let kept = foreman.clone();
    foreman.deploy(task, 1, 2);
    let good = foreman.batch();
    assert_contradicts(store, &WorkBatch { tasks: Vec::new(), ..good.clone() }, &kept, "no row");
    let early = vec![kept.tasks[&task].clone()];
    assert_contradicts(store, &WorkBatch { tasks: early, ..good.clone() }, &kept, "an earlier row");
    assert_contradicts(store, &WorkBatch { entries: Vec::new(), ..good.clone() }, &kept, "a later row");
    store.write_work(&good).unwrap();
    foreman.assert_kept(store);
}

/// Tasks that differ in everything a filter asks for.
fn variety(foreman: &mut Foreman) {
    let mut before = None;
    for number in 0..24_u128 {
        let mut new = plain(&format!("task {number}"));
        new.plan = (number % 2 == 0).then(|| PlanId::from_u128(number % 4));
        new.parent = before.filter(|_| number % 3 == 0);
        new.reports_to = match number % 3 {
            0 => None,
            1 => before.map(MailTo::Task),
            _ => Some(MailTo::Session(SessionId::from_u128(number % 2))),
        };
        new.workspace = (number % 5 != 0).then(|| format!("/w/{}", number % 2));
        let task = foreman.create(new);
        if number % 4 > 0 {
            foreman.deploy(task, number % 6, number % 7);
        }
        match number % 8 {
            1 => foreman.push(task, TaskEvent::Started {}),
            2 => foreman.end(task, TaskState::Completed),
            3 => foreman.end(task, TaskState::Failed),
            5 => foreman.push(task, TaskEvent::Paused { reason: None }),
            6 => foreman.push(task, TaskEvent::Interrupted { cause: InterruptCause::Crash, reason: None }),
            7 => foreman.end(task, TaskState::Cancelled),
            _ => {}
        }
        before = Some(task).filter(|_| number % 4 == 0).or(before);
    }
}

fn tasks_are_found_by_each_condition_and_by_all(store: &dyn Store) {
    let mut foreman = Foreman::default();
    variety(&mut foreman);
    foreman.write(store);
    let all: Vec<Task> = foreman.tasks.values().cloned().collect();
    let mut filters = vec![TaskFilter { ended: Some(true), ..TaskFilter::default() }];
    filters.push(TaskFilter { ended: Some(false), ..TaskFilter::default() });
    filters.extend(TaskState::ALL.map(|state| TaskFilter { state: Some(state), ..TaskFilter::default() }));
    for task in &all {
        let (plan, parent, reports_to) = (task.plan, task.parent, task.reports_to);
        let (worker, session, workspace) = (task.worker, task.session, task.workspace.clone());
        filters.push(TaskFilter { plan, ..TaskFilter::default() });
        filters.push(TaskFilter { parent, ..TaskFilter::default() });
        filters.push(TaskFilter { reports_to, ..TaskFilter::default() });
        filters.push(TaskFilter { worker, ..TaskFilter::default() });
        filters.push(TaskFilter { session, ..TaskFilter::default() });
        filters.push(TaskFilter { workspace: workspace.clone(), ..TaskFilter::default() });
        filters.push(TaskFilter { plan, ended: Some(false), ..TaskFilter::default() });
        let (state, ended) = (Some(task.state), Some(task.state.is_ended()));
        filters.push(TaskFilter { plan, parent, reports_to, worker, session, workspace, state, ended });
    }
    for filter in filters {
        let expected: Vec<&Task> = all.iter().filter(|task| meets(task, &filter)).collect();
        let found = store.tasks(&filter, None, 100).unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter:?}");
    }
    let stranger = TaskFilter { plan: Some(PlanId::from_u128(99)), ..TaskFilter::default() };
    assert_eq!(store.tasks(&stranger, None, 100).unwrap(), []);
}

/// Told once more, so that the store's own way of comparing is not compared with itself.
fn meets(task: &Task, filter: &TaskFilter) -> bool {
    let TaskFilter { plan, parent, reports_to, worker, session, workspace, state, ended } = filter;
    (plan.is_none() || *plan == task.plan)
        && (parent.is_none() || *parent == task.parent)
        && (reports_to.is_none() || *reports_to == task.reports_to)
        && (worker.is_none() || *worker == task.worker)
        && (session.is_none() || *session == task.session)
        && (workspace.is_none() || *workspace == task.workspace)
        && (state.is_none() || *state == Some(task.state))
        && (ended.is_none() || *ended == Some(task.state.is_ended()))
}

fn tasks_are_listed_in_pages(store: &dyn Store) {
    let mut foreman = Foreman::default();
    variety(&mut foreman);
    foreman.write(store);
    let open = TaskFilter { ended: Some(false), ..TaskFilter::default() };
    for filter in [TaskFilter::default(), open] {
        let whole = store.tasks(&filter, None, usize::MAX).unwrap();
        assert!(whole.len() > 10);
        for size in [1, 3, 10] {
            let mut read: Vec<Task> = Vec::new();
            loop {
                let page = store.tasks(&filter, read.last().map(|task| task.id), size).unwrap();
                let last = page.len() < size;
                read.extend(page);
                if last {
                    break;
                }
            }
            assert_eq!(read, whole);
        }
        assert_eq!(store.tasks(&filter, None, 0).unwrap(), []);
    }
}

fn a_tasks_log_is_read_in_pages(store: &dyn Store) {
    let mut foreman = Foreman::default();
    let (task, other) = (foreman.create(plain("one")), foreman.create(plain("two")));
    foreman.work_at(task, 1);
    foreman.work_at(other, 2);
    foreman.write(store);
    let log = &foreman.logs[&task];
    for after in 0..=log.len() {
        for limit in 0..=log.len() {
            let page = store.task_events(task, after as u64, limit).unwrap();
            assert_eq!(page, log[after..(after + limit).min(log.len())]);
        }
    }
}

/// S4-20: alias, worker, session and process lead to the task, those of earlier attempts too.
fn tasks_are_found_by_exactly_their_names(store: &dyn Store) {
    let mut foreman = Foreman::default();
    let mut new = plain("one");
    new.aliases = vec!["T-1".to_owned(), "a::b".to_owned()];
    let task = foreman.create(new);
    foreman.work_at(task, 1);
    foreman.end(task, TaskState::Failed);
    foreman.push(task, TaskEvent::Retried {});
    foreman.deploy(task, 1_001, 2_002);
    foreman.write(store);
    let names = foreman.names();
    // Two aliases, one worker, two sessions, two processes.
    assert_eq!(names.len(), 7);
    for name in names.keys() {
        assert_eq!(store.tasks_named(name).unwrap(), [task], "{name}");
    }
    for name in ["", "T-", "t-1", "T-1 ", "a", "b", "%", &task.to_string()] {
        assert_eq!(store.tasks_named(name).unwrap(), [], "{name}");
    }
}

fn a_name_may_stand_for_several_tasks(store: &dyn Store) {
    let mut foreman = Foreman::default();
    let count = FIND_MAX + 3;
    for number in 0..count {
        let task = foreman.create(plain("one of many"));
        foreman.deploy(task, number as u128, 5);
    }
    foreman.write(store);
    let newest: Vec<TaskId> = foreman.tasks.keys().rev().copied().take(FIND_MAX).collect();
    assert_eq!(store.tasks_named(&SessionId::from_u128(5).to_string()).unwrap(), newest);
}

/// Boxes of tasks and of sessions, with the same bits in their ids.
fn boxes() -> [MailTo; 4] {
    let task = |bits| MailTo::Task(TaskId::from_u128(bits));
    let session = |bits| MailTo::Session(SessionId::from_u128(bits));
    [task(1), task(2), session(1), session(2)]
}

/// S4-B02: in order per box.
fn mail_is_read_by_box_and_place(store: &dyn Store) {
    let mut foreman = Foreman::default();
    for round in 0..5 {
        for to in boxes().into_iter().rev() {
            foreman.send(to, &format!("{round}"));
        }
        foreman.write(store);
    }
    foreman.assert_kept(store);
    for to in boxes() {
        let filter = MailFilter { to: Some(to), ..MailFilter::default() };
        let texts: Vec<String> =
            store.mails(&filter, None, 10).unwrap().into_iter().map(|mail| mail.text).collect();
        assert_eq!(texts, ["0", "1", "2", "3", "4"]);
        let rest = store.mails(&filter, Some((to, 3)), 10).unwrap();
        assert!(rest.iter().map(|mail| mail.seq).eq([4, 5]));
        assert_eq!(store.last_mail(to).unwrap(), 5);
    }
    let whole = store.mails(&MailFilter::default(), None, usize::MAX).unwrap();
    for size in [1, 3, 7] {
        let mut read: Vec<Mail> = Vec::new();
        loop {
            let after = read.last().map(|mail| (mail.to, mail.seq));
            let page = store.mails(&MailFilter::default(), after, size).unwrap();
            let last = page.len() < size;
            read.extend(page);
            if last {
                break;
            }
        }
        assert_eq!(read, whole);
    }
}

/// S4-B02: acknowledged after handling; dead letters visible.
fn mail_is_found_by_what_became_of_it(store: &dyn Store) {
    let mut foreman = Foreman::default();
    let mut ids = Vec::new();
    for to in boxes() {
        ids.extend((0..4).map(|count| foreman.send(to, &format!("{count}"))));
    }
    foreman.write(store);
    for (count, id) in ids.into_iter().enumerate() {
        let session = SessionId::from_u128(9);
        match count % 4 {
            0 => {}
            1 => foreman.settle(id, MailState::Shown { session, shown_at: at(5) }),
            2 => foreman.settle(
                id,
                MailState::Acknowledged {
                    session: Some(session),
                    acknowledged_at: at(6),
                    how: "read".to_owned(),
                },
            ),
            _ => foreman.settle(id, MailState::Dead { why: "nobody is left".to_owned(), dead_at: at(7) }),
        }
    }
    foreman.write(store);
    foreman.assert_kept(store);
    let texts = |to, settled, dead| -> Vec<String> {
        let found = store.mails(&MailFilter { to, settled, dead }, None, 100).unwrap();
        found.into_iter().map(|mail| mail.text).collect()
    };
    let one = Some(boxes()[2]);
    assert_eq!(texts(one, None, None), ["0", "1", "2", "3"]);
    assert_eq!(texts(one, Some(false), None), ["0", "1"]);
    assert_eq!(texts(one, Some(true), None), ["2", "3"]);
    assert_eq!(texts(one, None, Some(true)), ["3"]);
    assert_eq!(texts(one, Some(true), Some(false)), ["2"]);
    assert_eq!(texts(None, Some(false), None), ["0", "1"].repeat(4));
    assert_eq!(texts(None, None, Some(true)), ["3"; 4]);
    assert_eq!(texts(None, Some(false), Some(true)), [""; 0]);
}

fn a_place_in_a_box_is_given_once(store: &dyn Store) {
    let [to, other, ..] = boxes();
    let mut foreman = Foreman::default();
    let first = foreman.send(to, "first");
    foreman.write(store);
    let kept = foreman.clone();
    let mut repeat = kept.clone();
    let task = repeat.create(plain("not written either"));
    repeat.send(other, "nor this");
    repeat.send_as(to, 1, "second in the first place");
    assert_contradicts(store, &repeat.batch(), &kept, "a place that is taken");
    assert_eq!(store.task(task).unwrap(), None);
    let mut twice = kept.clone();
    twice.send_as(to, 2, "one");
    twice.send_as(to, 2, "another");
    assert_contradicts(store, &twice.batch(), &kept, "a place taken twice in one batch");
    // The same message may be written as often as it changes.
    foreman.settle(first, MailState::Shown { session: SessionId::from_u128(1), shown_at: at(1) });
    foreman.settle(first, MailState::Pending);
    foreman.send(to, "second");
    foreman.write(store);
    foreman.assert_kept(store);
}

/// S4-B09: what was for somebody who has ended goes to whoever is next.
fn mail_may_move_to_another_box(store: &dyn Store) {
    let [from, to, ..] = boxes();
    let mut foreman = Foreman::default();
    let id = foreman.send(from, "moves");
    foreman.send(to, "was there");
    foreman.write(store);
    let moved = Mail { to, seq: 2, forwarded_from: Some(from), ..foreman.mail[&id].clone() };
    foreman.put(moved);
    foreman.write(store);
    foreman.assert_kept(store);
    assert_eq!((store.last_mail(from).unwrap(), store.last_mail(to).unwrap()), (0, 2));
}

fn rebuilding_changes_nothing(store: &dyn Store) {
    let mut foreman = Foreman::default();
    variety(&mut foreman);
    let mut new = plain("with names");
    new.aliases = vec!["T-9".to_owned()];
    let task = foreman.create(new);
    foreman.work_at(task, 3);
    foreman.send(MailTo::Task(task), "hello");
    foreman.write(store);
    store.rebuild().unwrap();
    foreman.assert_kept(store);
    assert_eq!(store.check().unwrap().damage, []);
    foreman.end(task, TaskState::Completed);
    foreman.write(store);
    foreman.assert_kept(store);
}

/// Keys of requests are kept while their task is open and for a while after; names are kept for ever.
fn keys_are_forgotten_some_time_after_the_end(store: &dyn Store) {
    let mut foreman = Foreman::default();
    let mut keyed = |name: &str, ends: bool| {
        let aliases = vec![format!("request:{name}"), format!("spawn:x:{name}"), name.to_owned()];
        let task = foreman.create(TaskCreated { aliases, ..plain(name) });
        if ends {
            foreman.end(task, TaskState::Completed);
        }
        foreman.write(store);
        (task, foreman.tasks[&task].since)
    };
    let (open, _) = keyed("open", false);
    let (old, ended_at) = keyed("old", true);
    let (young, _) = keyed("young", true);
    let before = ended_at.plus_millis(1);
    assert_eq!(store.forget_keys(ended_at, 10).unwrap(), 0, "not as long ago");
    assert_eq!(store.forget_keys(before, 1).unwrap(), 1);
    assert_eq!(store.forget_keys(before, 10).unwrap(), 1);
    assert_eq!(store.forget_keys(before, 10).unwrap(), 0);
    for key in ["request:old", "spawn:x:old"] {
        assert_eq!(store.tasks_named(key).unwrap(), [], "{key}");
    }
    assert_eq!(store.tasks_named("old").unwrap(), [old]);
    for (name, task) in [("open", open), ("young", young)] {
        for key in [format!("request:{name}"), format!("spawn:x:{name}"), name.to_owned()] {
            assert_eq!(store.tasks_named(&key).unwrap(), [task], "{key}");
        }
    }
    // Nothing is missing, also when it is worked at again.
    assert_eq!(store.check().unwrap().damage, []);
    foreman.push(old, TaskEvent::Retried {});
    foreman.write(store);
    assert_eq!(store.check().unwrap().damage, []);
    store.rebuild().unwrap();
    assert_eq!(store.tasks_named("request:old").unwrap(), [old], "its log has it");
    assert_eq!(store.forget_keys(before, 10).unwrap(), 0, "it is open");
    assert_eq!(store.check().unwrap().damage, []);
}
