//! What an id stands for: the whole chain it is part of, drawn as a tree, with the one that was asked for marked.

use lanyard_api::types::{IdChain, IdKind, IdSession};
use lanyard_core::task::Mail;

use crate::render::mail::kind as mail_kind;
use crate::render::task::{source, state};
use crate::render::text::{fit, one_line, quoted, width};

/// Behind what was asked for.
const ASKED: &str = "  <- this one";

/// Draws the chain: plan, task, worker, session, run; then whom the task reports to.
pub(crate) fn chain(chain: &IdChain, max: Option<usize>) -> String {
    let mut text = format!("{}\n\n", heading(chain));
    let links = links(chain);
    if let Some(mail) = &chain.mail {
        let link = mail_link(mail);
        push(&mut text, &format!("{}{ASKED}", link.text), &link.id, max);
        text.push_str(if links.is_empty() { "" } else { "\nwritten by\n" });
    }
    let asked = asked(chain, &links);
    let mut depth = 0;
    for (at, link) in links.iter().enumerate() {
        // Two runs stand beside each other in their session.
        depth = if at > 0 && links[at - 1].kind == link.kind { depth } else { at };
        let branch = match (depth, links.get(at + 1).is_some_and(|next| next.kind == link.kind)) {
            (0, _) => String::new(),
            (depth, beside) => {
                format!("{}{}── ", "    ".repeat(depth - 1), if beside { "├" } else { "└" })
            }
        };
        let mark = if asked == Some(at) { ASKED } else { "" };
        push(&mut text, &format!("{branch}{}{mark}", link.text), &link.id, max);
    }
    text.push_str(&around(chain));
    text
}

/// Further tasks the name stands for, and whom the first reports to.
fn around(chain: &IdChain) -> String {
    let mut text = String::new();
    if !chain.more_tasks.is_empty() {
        text.push_str("\nalso\n");
        text.extend(chain.more_tasks.iter().map(|task| format!("  {task}\n")));
    }
    if chain.task.is_none() {
        return text;
    }
    text.push_str("\nreports to\n");
    if chain.reports_to.is_empty() {
        text.push_str("  no task or session; `lanyard task show` shows its state\n");
    }
    text.extend(
        chain
            .reports_to
            .iter()
            .enumerate()
            .map(|(at, to)| format!("  {}{}\n", "  ".repeat(at), one_line(to))),
    );
    text
}

/// One step of the chain.
struct Link {
    kind: IdKind,
    id: String,
    text: String,
}

fn link(kind: IdKind, id: &impl ToString, words: &str) -> Link {
    let id = id.to_string();
    let text = if words.is_empty() { id.clone() } else { format!("{id}  {words}") };
    Link { kind, id, text }
}

fn heading(chain: &IdChain) -> String {
    let what = match chain.kind {
        IdKind::Session => "a session",
        IdKind::Task => "a task",
        IdKind::Worker => "a worker: the stable executor of a task",
        IdKind::Run => "a run: one incarnation of an agent",
        IdKind::Plan => "a plan",
        IdKind::Mail => "a piece of mail",
        IdKind::Alias => "an alias, a foreign id",
    };
    format!("{} is {what}", one_line(&chain.id))
}

/// Which of the links was asked for: by its id, or what an alias or an address stands for.
fn asked(chain: &IdChain, links: &[Link]) -> Option<usize> {
    let kind = match chain.kind {
        IdKind::Alias if chain.task.is_some() => IdKind::Task,
        IdKind::Alias => IdKind::Session,
        kind @ (IdKind::Session
        | IdKind::Task
        | IdKind::Worker
        | IdKind::Run
        | IdKind::Plan
        | IdKind::Mail) => kind,
    };
    let by_id = links.iter().position(|link| link.id == chain.id);
    by_id.or_else(|| links.iter().position(|link| link.kind == kind))
}

fn mail_link(mail: &Mail) -> Link {
    let (kind, state, from) = (mail_kind(mail), mail.state.as_str(), one_line(&mail.from.name));
    link(IdKind::Mail, &mail.id, &format!("{kind}, {state}, from {from} to {}", mail.to))
}

fn links(chain: &IdChain) -> Vec<Link> {
    let mut links = Vec::new();
    if let Some(plan) = &chain.plan {
        links.push(link(IdKind::Plan, &plan.id, &format!("{}  {}", plan.status, quoted(&plan.title))));
    }
    if let Some(view) = &chain.task {
        let task = &view.task;
        let key = task.spec.key.as_deref().map(|key| format!("{}: ", one_line(key))).unwrap_or_default();
        let title = quoted(&format!("{key}{}", task.spec.title));
        links.push(link(IdKind::Task, &task.id, &format!("{}  {title}", state(task))));
    }
    if let Some(worker) = chain.worker {
        let kind = chain.task.as_ref().map(|view| view.task.spec.kind.as_str());
        let from = chain.task.as_ref().and_then(|view| view.task.worker_source).map(source);
        let words: Vec<&str> = kind.into_iter().chain(from).collect();
        links.push(link(IdKind::Worker, &worker, &words.join(", ")));
    }
    if let Some(session) = &chain.session {
        links.push(link(IdKind::Session, &session.id, &session_words(session)));
        links.extend(runs(chain, session));
    }
    links
}

fn session_words(session: &IdSession) -> String {
    let agent = session.agent.as_deref().map(|agent| format!(", {}", one_line(agent))).unwrap_or_default();
    let parent = session.parent.map(|parent| format!(", below {parent}")).unwrap_or_default();
    format!("{}{agent}{parent}", session.state)
}

/// The newest run of the session, and the one that was asked for when that is an older one.
fn runs(chain: &IdChain, session: &IdSession) -> Vec<Link> {
    let known = chain.task.iter().flat_map(|view| &view.task.runs);
    let number = |process: &str| {
        let run = known.clone().find(|run| run.run.is_some_and(|run| run.to_string() == process));
        run.map(|run| format!("run {}, ", run.number)).unwrap_or_default()
    };
    let mut links = Vec::new();
    let newest = session.process.map(|process| process.to_string());
    if chain.kind == IdKind::Run && newest.as_deref() != Some(chain.id.as_str()) {
        links.push(link(IdKind::Run, &one_line(&chain.id), &format!("{}an earlier one", number(&chain.id))));
    }
    if let Some(process) = newest {
        let life = if session.live { "live" } else { "ended" };
        links.push(link(IdKind::Run, &process, &format!("{}{life}", number(&process))));
    }
    links
}

/// One line, cut to the terminal; ids stay whole.
fn push(text: &mut String, line: &str, id: &str, max: Option<usize>) {
    let whole = line.find(id).map_or(0, |at| width(&line[..at])) + width(id) + 1;
    text.push_str(&max.map_or_else(|| line.to_owned(), |max| fit(line, max.max(whole))));
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_api::types::IdPlan;
    use lanyard_core::paper::PlanStatus;
    use lanyard_core::session::StateName;
    use lanyard_core::task::{MailState, TaskRun, TaskState, WorkerSource};
    use lanyard_core::{RunId, TaskId};

    use super::*;
    use crate::render::mail::testing::mail;
    use crate::render::task::testing::{plan_id, session_id, task, then, worker_id};

    fn whole(id: &str, kind: IdKind) -> IdChain {
        let mut view = task(1, TaskState::Running, "fix the login test");
        view.task.worker_source = Some(WorkerSource::Reused);
        view.task.spec.key = Some("login".to_owned());
        let run = RunId::from_u128(8);
        view.task.runs = vec![TaskRun { number: 3, session: session_id(7), run: Some(run), at: then() }];
        IdChain {
            id: id.to_owned(),
            kind,
            plan: Some(IdPlan { id: plan_id(), title: "Release 1.0".to_owned(), status: PlanStatus::Active }),
            task: Some(view),
            more_tasks: Vec::new(),
            worker: Some(worker_id(5)),
            session: Some(IdSession {
                id: session_id(7),
                state: StateName::Executing,
                agent: Some("codex".to_owned()),
                parent: None,
                process: Some(run),
                live: true,
            }),
            reports_to: vec![TaskId::from_u128(2).to_string(), session_id(6).to_string()],
            mail: None,
        }
    }

    #[test]
    fn an_id_is_shown_in_its_whole_chain() {
        let asked = worker_id(5).to_string();
        expect![[r#"
            worker_00000000000000000000000005 is a worker: the stable executor of a task

            plan_00000000000000000000000009  active  "Release 1.0"
            └── task_00000000000000000000000001  [>] running  "login: fix the login test"
                └── worker_00000000000000000000000005  background, id reused  <- this one
                    └── sess_00000000000000000000000007  executing, codex
                        └── run_00000000000000000000000008  run 3, live

            reports to
              task_00000000000000000000000002
                sess_00000000000000000000000006
        "#]]
        .assert_eq(&chain(&whole(&asked, IdKind::Worker), None));
    }

    #[test]
    fn a_task_nobody_works_at_ends_its_chain() {
        let mut short = whole("chat-7", IdKind::Alias);
        short.plan = None;
        short.worker = None;
        short.session = None;
        short.reports_to.clear();
        short.more_tasks = vec![TaskId::from_u128(4)];
        expect![[r#"
            chat-7 is an alias, a foreign id

            task_00000000000000000000000001  [>] running  "login: fix the login test"  <- this one

            also
              task_00000000000000000000000004

            reports to
              no task or session; `lanyard task show` shows its state
        "#]]
        .assert_eq(&chain(&short, None));
    }

    #[test]
    fn a_plain_session_has_no_task_to_report() {
        let mut plain = whole("sess_00000000000000000000000007", IdKind::Session);
        plain.plan = None;
        plain.task = None;
        plain.worker = None;
        plain.reports_to.clear();
        expect![[r"
            sess_00000000000000000000000007 is a session

            sess_00000000000000000000000007  executing, codex  <- this one
            └── run_00000000000000000000000008  live
        "]]
        .assert_eq(&chain(&plain, None));
    }

    #[test]
    fn an_earlier_run_stands_beside_the_newest() {
        let old = RunId::from_u128(4);
        let mut late = whole(&old.to_string(), IdKind::Run);
        let run = TaskRun { number: 2, session: session_id(7), run: Some(old), at: then() };
        late.task.as_mut().unwrap().task.runs.insert(0, run);
        expect![[r#"
            run_00000000000000000000000004 is a run: one incarnation of an agent

            plan_00000000000000000000000009  active  "Release 1.0"
            └── task_00000000000000000000000001  [>] running  "login: fix the login test"
                └── worker_00000000000000000000000005  background, id reused
                    └── sess_00000000000000000000000007  executing, codex
                        ├── run_00000000000000000000000004  run 2, an earlier one  <- this one
                        └── run_00000000000000000000000008  run 3, live

            reports to
              task_00000000000000000000000002
                sess_00000000000000000000000006
        "#]]
        .assert_eq(&chain(&late, None));
    }

    #[test]
    fn mail_leads_to_the_task_that_wrote_it_and_ids_stay_whole_in_a_narrow_terminal() {
        let mut letter = whole("mail_00000000000000000000000001", IdKind::Mail);
        letter.mail = Some(mail(1, MailState::Pending));
        expect![[r"
            mail_00000000000000000000000001 is a piece of mail

            mail_00000000000000000000000001  ended:…

            written by
            plan_00000000000000000000000009  active…
            └── task_00000000000000000000000001  [>…
                └── worker_00000000000000000000000005…
                    └── sess_00000000000000000000000007…
                        └── run_00000000000000000000000008…

            reports to
              task_00000000000000000000000002
                sess_00000000000000000000000006
        "]]
        .assert_eq(&chain(&letter, Some(40)));
    }
}
