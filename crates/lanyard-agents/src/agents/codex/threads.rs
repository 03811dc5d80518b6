//! What is known of each thread: the main conversation's and its subagents'.

use std::collections::BTreeMap;

use lanyard_core::TurnId;
use serde_json::Value;

/// Threads and items at work that are kept in mind; what a wild agent adds beyond is not followed.
const THREADS_MAX: usize = 1024;
const ITEMS_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Threads(BTreeMap<String, Thread>);

#[derive(Debug, Default)]
pub(super) struct Thread {
    /// It was told of as a subagent.
    pub(super) announced: bool,
    pub(super) turn: Option<TurnId>,
    /// The prompt, until it was taken.
    pub(super) prompt: Option<Value>,
    /// Codex's id of our turn, by the answer to the prompt.
    pub(super) expected: Option<String>,
    /// Codex's id of the turn that runs.
    pub(super) running: Option<String>,
    /// A turn to be interrupted as soon as its id is known.
    pub(super) cancel: Option<TurnId>,
    pub(super) items: BTreeMap<String, Item>,
    /// Input and output tokens of the whole thread, by its last word.
    pub(super) total: Option<(u64, u64)>,
    pub(super) context: Option<u64>,
    /// The context's size when its compaction began.
    pub(super) before: Option<u64>,
}

/// An item whose beginning was seen and whose end was not.
#[derive(Debug, Default)]
pub(super) struct Item {
    /// Parts of its text were passed on.
    pub(super) streamed: bool,
    /// The files it is about to change.
    pub(super) changes: Option<Value>,
    /// The prompt of a subagent it is about to start.
    pub(super) spawn: Option<String>,
}

/// A prompt that waits for the end of a compaction.
#[derive(Debug)]
pub(super) struct Unsent {
    pub(super) turn: TurnId,
    pub(super) thread: String,
    pub(super) input: Value,
    pub(super) key: String,
}

impl Threads {
    /// The thread of this name, new if need be; nothing when there are too many.
    pub(super) fn of(&mut self, name: &str) -> Option<&mut Thread> {
        if !self.0.contains_key(name) {
            if self.0.len() >= THREADS_MAX {
                return None;
            }
            self.0.insert(name.to_owned(), Thread::default());
        }
        self.0.get_mut(name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Thread> {
        self.0.get(name)
    }

    pub(super) fn with_turn(&self, turn: TurnId) -> Option<String> {
        self.0.iter().find(|(_, thread)| thread.turn == Some(turn)).map(|(name, _)| name.clone())
    }

    pub(super) fn cancelling(&self, turn: TurnId) -> Option<String> {
        self.0.iter().find(|(_, thread)| thread.cancel == Some(turn)).map(|(name, _)| name.clone())
    }

    /// The prompt of a subagent that is being started and has not shown itself.
    pub(super) fn spawning(&self) -> Option<(String, String)> {
        self.0.iter().find_map(|(name, thread)| {
            let prompt = thread.items.values().find_map(|item| item.spawn.clone())?;
            Some((name.clone(), prompt))
        })
    }
}

impl Thread {
    pub(super) fn begin(&mut self, turn: TurnId, input: &Value) {
        self.over();
        self.turn = Some(turn);
        self.prompt = Some(input.clone());
    }

    pub(super) fn over(&mut self) {
        self.turn = None;
        self.prompt = None;
        self.expected = None;
        self.running = None;
        self.cancel = None;
        self.items.clear();
    }

    pub(super) fn item(&mut self, id: &str, item: Item) {
        if self.items.len() < ITEMS_MAX {
            self.items.insert(id.to_owned(), item);
        }
    }

    /// The tokens used since the last word, given the thread's sums and those of the last call to the model. `None`
    /// when nothing changed. Codex repeats itself at a resume and before a compaction, so sums are compared.
    pub(super) fn used(&mut self, total: (u64, u64), last: (u64, u64), context: u64) -> Option<(u64, u64)> {
        let used = match self.total {
            Some(before) => (total.0.saturating_sub(before.0), total.1.saturating_sub(before.1)),
            None if self.running.is_some() => last,
            None => (0, 0),
        };
        self.total = Some(total);
        let news = used != (0, 0) || self.context != Some(context);
        self.context = Some(context);
        news.then_some(used)
    }
}
