//! What workers say of their tasks: progress, questions, an end. Each run has a number and a token of its own; what an
//! older one says is recognised and refused.

use lanyard_core::task::{
    Mail, MailFrom, MailKind, MailState, MailTo, Task, TaskCommand, TaskResult, WorkerKind,
};
use lanyard_core::{MailId, SessionId, TaskId};

use crate::families::owner::Owner;
use crate::families::post::Letter;
use crate::families::{By, FamilyError, find, refused, wrong};
use lanyard_engine::engine::AskError;

/// What a worker says.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    /// A word to whoever it works for.
    Word {
        kind: MailKind,
        text: String,
    },
    Completed {
        summary: String,
        evidence: Option<String>,
    },
    Failed {
        why: String,
    },
}

impl Owner {
    /// The task that is worked at in a session, for whoever works there.
    pub(crate) fn task_in(&mut self, session: SessionId) -> Result<TaskId, FamilyError> {
        if let Some(task) = self.sessions.get(&session) {
            return Ok(*task);
        }
        let names = self.tools.store.tasks_named(&session.to_string())?;
        match names.into_iter().max() {
            Some(task) => self.fenced(task, session),
            None => Err(refused(
                "no_task",
                format!("session {session} has no task"),
                "end it with memory_agent, action complete, or in a sentence at the end of your turn",
            )),
        }
    }

    /// A session the task went on without is told so.
    fn fenced(&mut self, id: TaskId, session: SessionId) -> Result<TaskId, FamilyError> {
        let task = self.task(id)?;
        if task.session == Some(session) {
            return Ok(id);
        }
        Err(refused(
            "stale_run",
            format!("task {id} went on in another run; yours is not its worker any more"),
            "stop working at it",
        ))
    }

    /// What the worker in this session says. A word asked for under the same key is the same word.
    pub(crate) fn report(
        &mut self,
        session: SessionId,
        said: Said,
        key: Option<MailId>,
        by: &By,
    ) -> Result<TaskId, FamilyError> {
        let id = self.task_in(session)?;
        match said {
            Said::Word { kind, text } => self.tell_parent(id, kind, &text, key)?,
            Said::Completed { summary, evidence } => {
                let result = TaskResult { summary, evidence, by_turn_end: false };
                self.order(id, &TaskCommand::Complete { result }, by)?;
            }
            Said::Failed { why } => self.order(id, &TaskCommand::Fail { reason: why }, by)?,
        }
        Ok(id)
    }

    /// The same for a program outside, which shows the token of its run.
    pub(crate) fn run_report(
        &mut self,
        session: SessionId,
        token: &str,
        said: Said,
        key: Option<MailId>,
        by: &By,
    ) -> Result<TaskId, FamilyError> {
        let id = self.task_in(session)?;
        let task = self.task(id)?.clone();
        let Some((of, run)) = self.tools.tokens.run_of(token) else { return Err(bad_token()) };
        if of != id {
            return Err(bad_token());
        }
        if run != task.run {
            return Err(refused(
                "stale_run",
                format!("task {id} is at run {}; this is run {run}", task.run),
                "stop working at it, or get a new token with `lanyard task token`",
            ));
        }
        self.report(session, said, key, by)
    }

    /// The number of its run and the token that proves it.
    pub(crate) fn run_token(&mut self, id: TaskId) -> Result<(Task, String), FamilyError> {
        let task = self.task(id)?.clone();
        if task.spec.kind != WorkerKind::External {
            let what = format!("Lanyard itself runs the worker of task {id}");
            return Err(refused(
                "task_not_external",
                what,
                "make it with `--kind external` to work at it yourself",
            ));
        }
        if task.session.is_none() || task.state.is_ended() {
            return Err(find::no_worker(&task));
        }
        let token = self.tools.tokens.of_run(id, task.run);
        Ok((task, token))
    }

    /// A word from one session's agent to a task below it or the one above it; from a person to any.
    pub(crate) fn message(
        &mut self,
        to: &str,
        text: &str,
        key: Option<MailId>,
        by: &By,
    ) -> Result<Mail, FamilyError> {
        // Asked for under the same key, it is the same message; another one needs another key.
        if let Some(mail) = self.asked_before(key)? {
            let to = find::box_named(&*self.tools.store, to)?;
            let same =
                mail.forwarded_from.unwrap_or(mail.to) == to && mail.text == self.mail_text(&mail.from, text);
            return if same { Ok(mail) } else { Err(AskError::KeyConflict.into()) };
        }
        if text.trim().is_empty() {
            return Err(wrong("field_empty", "the message is empty", "write something"));
        }
        let to = match by.session {
            Some(session) => self.reachable(session, to)?,
            None => find::box_named(&*self.tools.store, to)?,
        };
        if let MailTo::Task(id) = to {
            let task = self.task(id)?;
            if task.state.is_ended() {
                return Err(find::no_worker(task));
            }
        }
        self.check_box(to)?;
        let letter = if let Some(session) = by.session {
            self.letter_of(session, to, text)?
        } else {
            let from = MailFrom { name: by.actor.name.clone(), operator: true, ..MailFrom::default() };
            Letter { id: None, to, from, kind: MailKind::Message, ended: None, text: text.to_owned() }
        };
        let id = self.post(Letter { id: key, ..letter });
        self.mail_held(to, id)
    }

    fn letter_of(&mut self, session: SessionId, to: MailTo, text: &str) -> Result<Letter, FamilyError> {
        if let MailTo::Task(id) = find::box_of(&*self.tools.store, session)? {
            let task = self.task(id)?.clone();
            return Ok(self.name_in(Letter::from_task(&task, to, MailKind::Message, text)));
        }
        let agent = self.tools.store.load(session)?.and_then(|loaded| loaded.session.hands.agent);
        let name = agent.unwrap_or_else(|| "agent".to_owned());
        let from = MailFrom { session: Some(session), name, ..MailFrom::default() };
        Ok(Letter { id: None, to, from, kind: MailKind::Message, ended: None, text: text.to_owned() })
    }

    /// An agent writes to its parent and to those below it, and to nobody else.
    fn reachable(&mut self, session: SessionId, to: &str) -> Result<MailTo, FamilyError> {
        let mine = find::box_of(&*self.tools.store, session)?;
        let foreign = || {
            refused(
                "not_your_task",
                format!("`{to}` is neither above nor below you"),
                "write to `parent`, or to a task of action list",
            )
        };
        if to == "parent" {
            let above = match mine {
                MailTo::Task(id) => self.task(id)?.reports_to,
                MailTo::Session(id) => {
                    match self.tools.store.load(id)?.and_then(|loaded| loaded.session.parent) {
                        Some(parent) => Some(find::box_of(&*self.tools.store, parent)?),
                        None => None,
                    }
                }
            };
            let nobody = || {
                refused("no_parent", "your task reports to no other", "tell the user at the end of your turn")
            };
            return above.ok_or_else(nobody);
        }
        let wanted = MailTo::Task(self.named(to)?);
        if self.is_below(wanted, mine)? { Ok(wanted) } else { Err(foreign()) }
    }

    /// Whether whoever has `mine` as a box is above.
    pub(crate) fn is_below(&mut self, wanted: MailTo, mine: MailTo) -> Result<bool, FamilyError> {
        let MailTo::Task(id) = wanted else { return Ok(false) };
        let task = self.task(id)?.clone();
        Ok(find::above(&*self.tools.store, &task)?.contains(&mine))
    }

    /// A task below this session, by name.
    pub(crate) fn child(&mut self, session: SessionId, name: &str) -> Result<TaskId, FamilyError> {
        let mine = find::box_of(&*self.tools.store, session)?;
        let id = self.named(name)?;
        if self.is_below(MailTo::Task(id), mine)? {
            return Ok(id);
        }
        let what = format!("task {id} is not below you");
        Err(refused("not_your_task", what, "name one of action list"))
    }

    /// What is in a box and not settled.
    pub(crate) fn unsettled(&self, to: MailTo) -> Vec<Mail> {
        self.mail.get(&to).cloned().unwrap_or_default()
    }

    fn mail_held(&self, to: MailTo, id: MailId) -> Result<Mail, FamilyError> {
        let held = self.mail.get(&to).and_then(|held| held.iter().find(|mail| mail.id == id));
        held.cloned().ok_or_else(|| FamilyError::Unavailable("the message is gone".to_owned()))
    }

    /// Somebody has handled it.
    pub(crate) fn acknowledge(
        &mut self,
        id: MailId,
        session: Option<SessionId>,
        how: &str,
    ) -> Result<Mail, FamilyError> {
        let mail = self.letter(id)?;
        if let Some(session) = session
            && mail.to != find::box_of(&*self.tools.store, session)?
        {
            let what = format!("message {id} is not in your box");
            return Err(refused("not_your_mail", what, "name one of action mailbox"));
        }
        if matches!(mail.state, MailState::Acknowledged { .. }) {
            return Ok(mail);
        }
        let state = MailState::Acknowledged { session, acknowledged_at: self.now(), how: how.to_owned() };
        let mail = Mail { state, ..mail };
        self.write_mail(mail.clone());
        Ok(mail)
    }

    /// A message goes out again, to the same box or to another.
    pub(crate) fn send_again(&mut self, id: MailId, to: Option<&str>) -> Result<Mail, FamilyError> {
        let mail = self.letter(id)?;
        if !mail.state.is_settled() {
            return Err(refused("mail_on_its_way", format!("message {id} is on its way"), "wait for it"));
        }
        let to = match to {
            Some(to) => find::box_named(&*self.tools.store, to)?,
            None => mail.to,
        };
        self.check_box(to)?;
        // A new message: what was said of the old one stays said.
        let letter = Letter {
            id: None,
            to,
            from: mail.from.clone(),
            kind: mail.kind,
            ended: mail.ended,
            text: mail.text.clone(),
        };
        let new = self.post(letter);
        if matches!(mail.state, MailState::Dead { .. }) {
            let how = format!("sent again as {new}");
            let state = MailState::Acknowledged { session: None, acknowledged_at: self.now(), how };
            self.write_mail(Mail { state, ..mail });
        }
        self.mail_held(to, new)
    }

    fn letter(&self, id: MailId) -> Result<Mail, FamilyError> {
        self.asked_before(Some(id))?.ok_or_else(|| FamilyError::NoMail(id.to_string()))
    }

    /// The message there is already under the id of a key.
    pub(super) fn asked_before(&self, key: Option<MailId>) -> Result<Option<Mail>, FamilyError> {
        let Some(id) = key else { return Ok(None) };
        match self.mail.values().flatten().find(|mail| mail.id == id) {
            Some(mail) => Ok(Some(mail.clone())),
            None => Ok(self.tools.store.mail(id)?),
        }
    }

    /// The ends an await answers with: they go out in that answer, not beside it as well.
    pub(crate) fn show(&mut self, session: SessionId, tasks: &[TaskId]) -> Result<Vec<Mail>, FamilyError> {
        let to = find::box_of(&*self.tools.store, session)?;
        let now = self.now();
        let held = self.mail.get(&to).cloned().unwrap_or_default();
        let mut shown = Vec::new();
        for mail in held {
            let mine =
                mail.kind == MailKind::Ended && mail.from.task.is_some_and(|task| tasks.contains(&task));
            if mine && mail.state == MailState::Pending && !self.has_moved_on(&mail)? {
                let state = MailState::Shown { session, shown_at: now };
                let mail = Mail { state, times: mail.times + 1, ..mail };
                self.write_mail(mail.clone());
                shown.push(mail);
            }
        }
        Ok(shown)
    }

    /// While whoever works in this session waits for these, their ends are not given to it in another way. Others who hear
    /// of them are not kept waiting. Answers the box that waits.
    pub(crate) fn await_begins(
        &mut self,
        session: SessionId,
        tasks: &[TaskId],
    ) -> Result<MailTo, FamilyError> {
        let to = find::box_of(&*self.tools.store, session)?;
        for task in tasks {
            *self.awaited.entry((to, *task)).or_default() += 1;
        }
        Ok(to)
    }

    pub(crate) fn await_ends(&mut self, to: MailTo, tasks: &[TaskId]) {
        for task in tasks {
            if let Some(count) = self.awaited.get_mut(&(to, *task)) {
                *count -= 1;
            }
        }
        self.awaited.retain(|_, count| *count > 0);
        self.boxes.extend(self.mail.keys().copied());
    }
}

fn bad_token() -> FamilyError {
    FamilyError::Forged
}
