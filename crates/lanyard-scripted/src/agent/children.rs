//! Subagents: sessions of their own that run beside their parent. The protocol has no word for them yet, so they are
//! announced with notifications of Lanyard's own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_client_protocol_schema::v1::{SessionId, StopReason};
use serde_json::json;

use super::inbox::Inbox;
use super::script::Step;
use super::turn::{Ending, Halt, Turn};

/// Children of one turn.
const CHILDREN_MAX: usize = 16;
/// How long a cancelled parent waits for its children to end.
const CHILDREN_GRACE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Child {
    name: String,
    /// Its last words come to the parent's inbox under this number.
    number: i64,
}

impl Turn {
    pub(super) fn spawn(&mut self, name: &str, prompt: &str, steps: &[Step]) -> Result<(), Halt> {
        if self.children.len() >= CHILDREN_MAX {
            self.say_chunk(&format!("child {name}: not started, there are {CHILDREN_MAX} already"));
            return Ok(());
        }
        let parent = self.session.id.clone();
        let place = self.session.place.clone();
        let session =
            self.agent.make(place, Some(parent.clone()), Some(name.to_owned()), &[]).map_err(Halt::Error)?;
        let Some(inbox) = session.begin() else { return Ok(()) };
        let told = json!({
            "sessionId": session.id, "parentSessionId": parent, "title": name, "agent": name, "prompt": prompt,
        });
        self.agent.wire.notify("_lanyard/child", &told);
        let number = self.agent.wire.number();
        self.children.push(Child { name: name.to_owned(), number });
        let mut turn = Turn::new(Arc::clone(&self.agent), session, inbox);
        turn.pace = self.pace;
        let (prompt, steps, parent) = (prompt.to_owned(), steps.to_vec(), Arc::clone(&self.inbox));
        self.agent.busy.fetch_add(1, Ordering::Relaxed);
        std::thread::spawn(move || turn.live(&prompt, &steps, &parent, number));
        Ok(())
    }

    /// A child's whole life.
    fn live(mut self, prompt: &str, steps: &[Step], parent: &Inbox, number: i64) {
        let words = [Step::Say { text: format!("done: {prompt}"), whole: false }];
        let ending = self.perform(prompt, if steps.is_empty() { &words } else { steps });
        self.session.end();
        if !matches!(ending, Err(Halt::Silent)) {
            tell_end(&self, &self.session.id, &ending);
        }
        parent.deliver(number, Ok(self.last_words.clone().into()));
        self.agent.busy.fetch_sub(1, Ordering::Relaxed);
    }

    /// Waits for all children and repeats their last words.
    pub(super) fn join(&mut self) -> Result<(), Halt> {
        self.flush();
        for child in std::mem::take(&mut self.children) {
            let answer = match self.inbox.answer(child.number) {
                Ok(answer) => answer.unwrap_or_default(),
                Err(cancelled) => {
                    self.children.push(child);
                    return Err(cancelled.into());
                }
            };
            self.say_chunk(&format!("child {}: {}", child.name, answer.as_str().unwrap_or_default()));
        }
        Ok(())
    }

    /// After a cancel: what they still report comes before the parent's answer.
    pub(super) fn await_children(&mut self) {
        for child in std::mem::take(&mut self.children) {
            self.inbox.answer_despite_cancel(child.number, CHILDREN_GRACE);
        }
    }
}

fn tell_end(turn: &Turn, id: &SessionId, ending: &Ending) {
    let reason = match ending {
        Ok(reason) | Err(Halt::Stop(reason)) => json!(reason),
        Err(Halt::Cancelled) => json!(StopReason::Cancelled),
        Err(Halt::Error(_) | Halt::Silent) => json!("error"),
    };
    turn.agent.wire.notify("_lanyard/child_ended", &json!({"sessionId": id, "stopReason": reason}));
}
