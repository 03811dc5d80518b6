//! What each step does, the ones that work with tools and the ones that misbehave apart.

use std::path::PathBuf;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Cost, MessageId, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    SessionNotification, SessionUpdate, Usage, UsageUpdate,
};
use serde_json::json;

use super::script::Step;
use super::turn::{Halt, Turn};

/// Between two looks at a file that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How many words of an earlier prompt are told.
const RECALL_WORDS: usize = 8;
/// Chatter is written in pieces of about this size.
const PIECE: usize = 64 << 10;
/// The digits that number a chunk of chatter.
const DIGITS: usize = 8;

impl Turn {
    pub(super) fn step(&mut self, step: &Step) -> Result<(), Halt> {
        match step {
            Step::Say { text, whole: true } => self.say_chunk(text),
            Step::Say { text, whole: false } => self.say(text)?,
            Step::Think(text) => self.think(text)?,
            Step::Chatter { count, bytes } => self.chatter(*count, *bytes)?,
            Step::Plan(entries) => self.make_plan(entries),
            Step::PlanDone(entry) => self.plan_done(*entry),
            Step::Tool { name, input } => self.report_tool(name, input.clone()),
            Step::ToolFail { name, text } => self.report_failed_tool(name, text),
            Step::ToolOpen(name) => drop(self.open_tool(name, json!({}))),
            Step::Run(command) => self.run(command)?,
            Step::Edit { path, text } => self.edit(path, text),
            Step::Look(path) => self.look(path),
            Step::Read(path) => self.read(path)?,
            Step::Write { path, text } => self.write(path, text)?,
            Step::Terminal(command) => self.terminal(command)?,
            Step::Ask(title) => self.ask_permission(title)?,
            Step::AskTool { name, title } => self.ask_for_tool(name, title)?,
            Step::Mcp { server, tool, input } => self.call_mcp(server, tool, input)?,
            Step::Spawn { name, prompt, steps } => self.spawn(name, prompt, steps)?,
            Step::Join => self.join()?,
            Step::Parts => {
                let told = self.session.memory.lock().parts.clone();
                self.say_chunk(&told);
            }
            Step::Image(path) => self.show_image(path),
            Step::ToolImage(path) => self.return_image(path),
            Step::Compact { before, after } => self.compact(*before, *after),
            Step::Usage { input, output, context } => self.count(*input, *output, *context),
            Step::Cost(cents) => self.cost(*cents),
            Step::CostIs(amount) => self.cost_is(amount),
            Step::Pace(ms) => self.pace = Duration::from_millis(*ms),
            Step::Wait(ms) => self.inbox.pause(Duration::from_millis(*ms))?,
            Step::WaitFile(path) => self.wait_file(path)?,
            Step::Touch(path) => self.touch(path),
            Step::Repeat(count, step) => self.repeat(*count, step)?,
            Step::Stop(reason) => return Err(Halt::Stop(*reason)),
            Step::Recall => self.recall(),
            Step::Choices => {
                let choices = self.session.choices(&self.agent.options.offers);
                self.say(&choices)?;
            }
            Step::GoToMode(mode) => {
                let update = self.session.go_to_mode(mode);
                let note = json!({ "sessionId": self.session.id, "update": update });
                self.agent.wire.notify("session/update", &note);
            }
            Step::Wrong(misdeed) => self.misbehave(misdeed)?,
        }
        Ok(())
    }

    fn say(&mut self, text: &str) -> Result<(), Halt> {
        let id = self.message_id();
        self.note_words(text);
        self.word_by_word(text, &id, SessionUpdate::AgentMessageChunk)
    }

    fn think(&mut self, text: &str) -> Result<(), Halt> {
        let id = self.message_id();
        self.word_by_word(text, &id, SessionUpdate::AgentThoughtChunk)
    }

    fn word_by_word(
        &self,
        text: &str,
        id: &MessageId,
        kind: fn(ContentChunk) -> SessionUpdate,
    ) -> Result<(), Halt> {
        for word in text.split_inclusive(' ') {
            self.inbox.pause(self.pace)?;
            let block = ContentBlock::from(word);
            self.update(kind(ContentChunk::new(block).message_id(id.clone())));
        }
        Ok(())
    }

    /// Numbered chunks as fast as they can be written. The history keeps one line about them, not them.
    fn chatter(&mut self, count: u64, bytes: usize) -> Result<(), Halt> {
        let id = self.message_id();
        let zeros = "0".repeat(DIGITS.min(bytes));
        let text = format!("{zeros}{}", "x".repeat(bytes - zeros.len()));
        let chunk = ContentChunk::new(text.as_str().into()).message_id(id.clone());
        let told = SessionNotification::new(self.session.id.clone(), SessionUpdate::AgentMessageChunk(chunk));
        let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": told}).to_string();
        let Some(place) = line.find(&text) else { return Ok(()) };
        let (before, after) = (&line[..place], &line[place + zeros.len()..]);
        let mut piece = Vec::with_capacity(PIECE + line.len());
        for number in 1..=count {
            let number = format!("{number:0DIGITS$}");
            piece.extend_from_slice(before.as_bytes());
            piece.extend_from_slice(&number.as_bytes()[number.len() - zeros.len()..]);
            piece.extend_from_slice(after.as_bytes());
            piece.push(b'\n');
            if piece.len() >= PIECE {
                self.agent.wire.raw(&piece);
                piece.clear();
                self.inbox.check()?;
            }
        }
        self.agent.wire.raw(&piece);
        let kept = format!("({count} chunks of {bytes} bytes)");
        let kept = SessionUpdate::AgentMessageChunk(ContentChunk::new(kept.into()).message_id(id));
        self.session.memory.lock().history.update(&kept);
        Ok(())
    }

    fn make_plan(&mut self, entries: &[String]) {
        let entry = |(at, text): (usize, &String)| {
            let status = if at == 0 { PlanEntryStatus::InProgress } else { PlanEntryStatus::Pending };
            PlanEntry::new(text.as_str(), PlanEntryPriority::Medium, status)
        };
        self.plan = entries.iter().enumerate().map(entry).collect();
        self.update(SessionUpdate::Plan(Plan::new(self.plan.clone())));
    }

    /// An entry that is not there changes nothing; the plan is told all the same.
    fn plan_done(&mut self, entry: usize) {
        if let Some(done) = entry.checked_sub(1).and_then(|at| self.plan.get_mut(at)) {
            done.status = PlanEntryStatus::Completed;
            if let Some(next) = self.plan.iter_mut().find(|entry| entry.status == PlanEntryStatus::Pending) {
                next.status = PlanEntryStatus::InProgress;
            }
        }
        self.update(SessionUpdate::Plan(Plan::new(self.plan.clone())));
    }

    fn compact(&self, before: u64, after: u64) {
        let sizes = json!({"sessionId": self.session.id, "sizeBefore": before, "sizeAfter": after});
        self.agent.wire.notify("_lanyard/compacted", &sizes);
    }

    fn count(&mut self, input: u64, output: u64, context: Option<u64>) {
        let total = input.saturating_add(output);
        self.usage = Some(Usage::new(total, input, output));
        if let Some(context) = context {
            self.tell(SessionUpdate::UsageUpdate(UsageUpdate::new(total, context)));
        }
    }

    /// The protocol tells a conversation's whole cost each time.
    fn cost(&mut self, cents: u32) {
        let mut memory = self.session.memory.lock();
        memory.cents = memory.cents.saturating_add(cents);
        let amount = f64::from(memory.cents) / 100.0;
        drop(memory);
        self.tell_cost(amount);
    }

    /// Agents make mistakes in what they report: negative amounts, huge ones, and no numbers at all.
    fn cost_is(&mut self, amount: &str) {
        self.tell_cost(amount.parse().unwrap_or(f64::NAN));
    }

    fn tell_cost(&mut self, amount: f64) {
        let total = self.usage.as_ref().map_or(0, |usage| usage.total_tokens);
        self.tell(SessionUpdate::UsageUpdate(UsageUpdate::new(total, 0).cost(Cost::new(amount, "USD"))));
    }

    fn wait_file(&self, path: &str) -> Result<(), Halt> {
        let path = self.path(path);
        self.flush();
        while !path.exists() {
            self.inbox.pause(LOOK_EVERY)?;
        }
        Ok(())
    }

    fn touch(&mut self, path: &str) {
        let path = self.path(path);
        if let Err(error) = std::fs::File::options().create(true).append(true).open(&path) {
            self.say_chunk(&format!("cannot touch {}: {error}", path.display()));
        }
    }

    fn repeat(&mut self, count: u64, step: &Step) -> Result<(), Halt> {
        for _ in 0..count {
            self.inbox.check()?;
            self.step(step)?;
        }
        Ok(())
    }

    /// What this conversation knows: proof that it is the one it claims to be.
    fn recall(&mut self) {
        let earlier = {
            let memory = self.session.memory.lock();
            let earlier = &memory.prompts[..memory.prompts.len().saturating_sub(1)];
            let first_words =
                |text: &String| text.split_whitespace().take(RECALL_WORDS).collect::<Vec<_>>().join(" ");
            (earlier.len(), earlier.last().map(first_words))
        };
        let text = match earlier {
            (_, None) => "I know no earlier prompt.".to_owned(),
            (1, Some(last)) => format!("I know 1 earlier prompt: {last}"),
            (count, Some(last)) => format!("I know {count} earlier prompts, the last: {last}"),
        };
        self.say_chunk(&text);
    }

    /// A path of the script: as it is, or below the folder of the session.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.session.place.cwd.join(path)
    }
}
