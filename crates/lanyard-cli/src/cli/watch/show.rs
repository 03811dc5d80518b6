//! Putting a turn on the two streams so that they read well on one terminal: a line about what happens begins on a
//! fresh line, and the agent's words are never broken but there.

use std::collections::HashMap;
use std::io::IsTerminal;

use lanyard_core::SessionId;
use lanyard_core::session::Envelope;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{harmless, one_line};
use crate::render::transcript::{CallPairs, Transcriber, TranscriptItem};

/// Line ends between two messages: the first one's own, and an empty line.
const PARAGRAPH_NEWLINES: usize = 2;

pub(super) struct Show<'a> {
    context: &'a Context,
    told: ToldItems,
    children: HashMap<SessionId, (String, ToldItems)>,
    tail: Tail,
    /// The question that waits for an answer.
    question: Option<String>,
    /// Line ends at the end of the agent's words so far; nothing before the first of them.
    newlines: Option<usize>,
    on_terminal: bool,
    dims: bool,
}

/// Events of one session as items, a call and its result being one.
#[derive(Default)]
struct ToldItems {
    transcriber: Transcriber,
    pairs: CallPairs,
}

impl ToldItems {
    fn items(&mut self, envelope: &Envelope) -> Vec<TranscriptItem> {
        let items = self.transcriber.tell(envelope);
        items.into_iter().filter_map(|item| self.pairs.join(item)).collect()
    }
}

/// What the last line on the terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    Done,
    /// Words of the agent that may go on.
    Words,
    /// What the agent thinks, which may go on.
    Thought,
    /// A prompt; the answer is typed behind it.
    Question,
}

impl<'a> Show<'a> {
    pub(super) fn new(context: &'a Context) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            context,
            told: ToldItems::default(),
            children: HashMap::new(),
            tail: Tail::Done,
            question: None,
            newlines: None,
            on_terminal: std::io::stdout().is_terminal(),
            dims: std::io::stderr().is_terminal() && !plain,
        }
    }

    /// What a subagent's lines begin with.
    pub(super) fn name(&mut self, child: SessionId, agent: Option<&str>) {
        let name = agent.map_or_else(|| child.to_string(), one_line);
        self.children.insert(child, (name, ToldItems::default()));
    }

    /// Shows an event of the session, or of one of its subagents.
    pub(super) fn tell(&mut self, child: Option<SessionId>, envelope: &Envelope) -> Result<(), Failure> {
        if self.context.out.is_json() {
            return Ok(());
        }
        let Some(child) = child else {
            let items = self.told.items(envelope);
            return self.items(items);
        };
        let Some((name, told)) = self.children.get_mut(&child) else { return Ok(()) };
        let (name, items) = (name.clone(), told.items(envelope));
        // Its words are for the agent that sent it; `lanyard log` shows them.
        for line in items.iter().flat_map(lines) {
            self.line(&format!("{name}: {line}"));
        }
        Ok(())
    }

    fn items(&mut self, items: Vec<TranscriptItem>) -> Result<(), Failure> {
        for item in items {
            match &item {
                TranscriptItem::Words { text, begins, .. } => self.words(text, *begins)?,
                TranscriptItem::Thought(text) => self.thought(text),
                TranscriptItem::Prompt { .. }
                | TranscriptItem::Tool(_)
                | TranscriptItem::Returned(_)
                | TranscriptItem::Note(_)
                | TranscriptItem::Loud(_)
                | TranscriptItem::Asks { .. }
                | TranscriptItem::End { .. } => lines(&item).iter().for_each(|line| self.line(line)),
            }
        }
        Ok(())
    }

    fn words(&mut self, text: &str, begins: bool) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        if begins || self.tail != Tail::Words {
            self.fresh();
        }
        if begins && let Some(newlines) = self.newlines {
            let missing = PARAGRAPH_NEWLINES.saturating_sub(newlines);
            self.context.out.words(&"\n".repeat(missing))?;
        }
        let newlines = text.len() - text.trim_end_matches('\n').len();
        let before = if newlines == text.len() { self.newlines.unwrap_or(0) } else { 0 };
        self.newlines = Some(before + newlines);
        self.tail = if newlines > 0 { Tail::Done } else { Tail::Words };
        if self.on_terminal { self.context.out.words(&harmless(text)) } else { self.context.out.words(text) }
    }

    /// Goes on in the line the last thought began.
    fn thought(&mut self, text: &str) {
        if text.trim().is_empty() || self.context.out.quiet {
            return;
        }
        let mut shown = harmless(text);
        if self.tail != Tail::Thought {
            self.fresh();
            shown = format!("~ {}", shown.trim_start());
        }
        self.tail = Tail::Thought;
        shown = shown.replace('\n', "\n~ ");
        self.context.out.question(&if self.dims { format!("\u{1b}[2m{shown}\u{1b}[0m") } else { shown });
    }

    /// The typed answer has ended the line.
    pub(super) fn typed(&mut self) {
        self.question = None;
        if self.tail == Tail::Question {
            self.tail = Tail::Done;
        }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.fresh();
        self.context.out.note(line);
    }

    pub(super) fn ask(&mut self, question: &str) {
        self.fresh();
        self.context.out.question(question);
        self.tail = Tail::Question;
        self.question = Some(question.to_owned());
    }

    /// The question needs no answer any more.
    pub(super) fn unask(&mut self) {
        self.question = None;
    }

    /// Whether output came after the question that waits for an answer.
    pub(super) fn is_overwritten(&self) -> bool {
        self.question.is_some() && self.tail != Tail::Question
    }

    /// Shows that question again, below what came since.
    pub(super) fn ask_again(&mut self) {
        if let Some(question) = self.question.clone().filter(|_| self.is_overwritten()) {
            self.ask(&question);
        }
    }

    /// Ends the line that is open on either stream.
    fn fresh(&mut self) {
        match std::mem::replace(&mut self.tail, Tail::Done) {
            Tail::Done => {}
            // Who reads the words and is gone is noticed with the next of them.
            Tail::Words => {
                self.newlines = Some(1);
                drop(self.context.out.words("\n"));
            }
            Tail::Thought | Tail::Question => self.context.out.question("\n"),
        }
    }

    /// The last line. What a turn that was completed left open was not needed.
    pub(super) fn finish(&mut self, sentence: &str, completed: bool) -> Result<(), Failure> {
        if self.context.out.is_json() {
            return Ok(());
        }
        let open = self.told.pairs.unfinished();
        if !completed {
            self.items(open)?;
        }
        self.line(sentence);
        Ok(())
    }
}

/// An item in lines. A prompt was typed here, and the end of a turn is told when the command ends.
fn lines(item: &TranscriptItem) -> Vec<String> {
    match item {
        TranscriptItem::Tool(tool) => vec![format!("tool {}", tool.line())],
        TranscriptItem::Note(text) | TranscriptItem::Loud(text) => vec![text.clone()],
        TranscriptItem::Asks { gate, title } => {
            let how = gate.map(|gate| format!("answer with `lanyard answer {gate} allow` or `… deny`"));
            [format!("asks for approval: {title}")].into_iter().chain(how).collect()
        }
        TranscriptItem::Prompt { .. }
        | TranscriptItem::Words { .. }
        | TranscriptItem::Thought(_)
        | TranscriptItem::Returned(_)
        | TranscriptItem::End { .. } => Vec::new(),
    }
}
