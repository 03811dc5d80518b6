//! Approvals of the agents behind a flow or a task, while a command watches: each is printed once, when it opens, and
//! answered in place on a terminal.

use std::collections::BTreeSet;

use lanyard_api::types::GateEntry;
use lanyard_client::Route;
use lanyard_core::{GateId, Outcome};

use crate::context::Context;
use crate::dialogue::{approval_prompt, read_approval};
use crate::failure::Failure;
use crate::render::approval::approval;
use crate::render::text::one_line;

#[derive(Debug, Default)]
pub(super) struct Approvals {
    told: BTreeSet<GateId>,
    /// Answered from here: a view that was on its way still has them.
    answered: BTreeSet<GateId>,
    open: Vec<GateEntry>,
    posts: u32,
}

impl Approvals {
    /// What is open now. Answers what was not told before.
    pub(super) fn update(&mut self, open: &[GateEntry]) -> Vec<String> {
        self.open = open.iter().filter(|entry| !self.answered.contains(&entry.gate.id)).cloned().collect();
        let fresh: Vec<&GateEntry> =
            self.open.iter().filter(|entry| !self.told.contains(&entry.gate.id)).collect();
        let lines = fresh.iter().map(|entry| approval(entry)).collect();
        self.told = self.told.iter().copied().chain(fresh.iter().map(|entry| entry.gate.id)).collect();
        lines
    }

    /// The first open approval, and its prompt.
    pub(super) fn prompt(&self) -> Option<(GateId, String)> {
        let entry = self.open.first()?;
        Some((entry.gate.id, approval_prompt(&entry.gate.question)))
    }

    /// Answers the first open approval with a typed line. A refused answer is reported, and the prompt returns.
    pub(super) async fn line(&mut self, context: &Context, line: &str) -> Option<String> {
        let entry = self.open.first()?.clone();
        let body = match read_approval(&entry.gate.question, line) {
            Ok(answer) => answer,
            Err(why) => return Some(why),
        };
        self.posts += 1;
        let (session, gate) = (entry.session.to_string(), entry.gate.id);
        let route = Route::to(&["sessions", &session, "gates", &gate.to_string()]);
        let part = format!("approve.{gate}.{}", self.posts);
        let sent = async {
            let mut client = context.client().await?;
            client.post_part::<Outcome>(&part, &route, &body).await
        };
        match sent.await {
            Ok(_) => {
                self.answered.insert(gate);
                self.open.remove(0);
                Some(format!("answered: {}", one_line(&body.option)))
            }
            Err(Failure::Told { problem, .. }) => {
                Some(format!("not taken: {} [{}]", one_line(&problem.title), problem.code))
            }
            Err(Failure::Shown | Failure::Ended(_) | Failure::ClosedPipe) => None,
        }
    }
}
