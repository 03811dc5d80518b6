//! Selecting tool calls in the transcript, and opening and closing what is behind them.

use super::Transcript;
use super::entry::TranscriptEntry;

/// Where the selection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    Older,
    Newer,
}

impl Transcript {
    /// Selects the next tool call that can be opened, the newest one first. Past the newest, nothing is selected.
    pub(crate) fn select(&mut self, step: Selection, height: usize) {
        let places: Vec<usize> = (0..self.entries.len()).filter(|&at| self.entries[at].can_open()).collect();
        let chosen = self.chosen_place().and_then(|at| places.iter().position(|&place| place == at));
        let next = match (step, chosen) {
            (Selection::Older, None) => places.len().checked_sub(1),
            (Selection::Older, Some(at)) => Some(at.saturating_sub(1)),
            (Selection::Newer, None) => None,
            (Selection::Newer, Some(at)) => Some(at + 1).filter(|&at| at < places.len()),
        };
        self.chosen = next.and_then(|at| Some(self.entries[places[at]].tool()?.id.clone()));
        self.show_chosen(height);
    }

    pub(crate) fn is_selecting(&self) -> bool {
        self.chosen_place().is_some()
    }

    pub(crate) fn deselect(&mut self) {
        self.chosen = None;
    }

    /// Opens or closes the selected call, else the newest one that can be opened. Says whether there is one.
    pub(crate) fn toggle(&mut self, height: usize) -> bool {
        let newest = || (0..self.entries.len()).rev().find(|&at| self.entries[at].can_open());
        let Some(at) = self.chosen_place().or_else(newest) else { return false };
        let layout = self.layout;
        let entry = &mut self.entries[at];
        entry.opened = Some(!entry.is_open(layout));
        entry.lay_out(layout);
        self.chosen = entry.tool().map(|tool| tool.id.clone());
        self.count();
        self.show_chosen(height);
        true
    }

    /// Opens all calls, or closes all when they are open. Says whether they are open now.
    pub(crate) fn toggle_all(&mut self, height: usize) -> bool {
        self.layout.all_open = !self.layout.all_open;
        let layout = self.layout;
        for entry in &mut self.entries {
            entry.opened = None;
            entry.lay_out(layout);
        }
        self.count();
        let most = self.total().saturating_sub(height);
        self.scroll.below = self.scroll.below.min(most);
        self.show_chosen(height);
        layout.all_open
    }

    fn chosen_place(&self) -> Option<usize> {
        let id = self.chosen.as_ref()?;
        self.entries.iter().rposition(|entry| is_call(entry, id))
    }

    pub(super) fn is_chosen(&self, entry: &TranscriptEntry) -> bool {
        self.chosen.as_ref().is_some_and(|id| is_call(entry, id))
    }

    /// Scrolls so that the selected call is in sight, its first row before all.
    fn show_chosen(&mut self, height: usize) {
        let Some(at) = self.chosen_place() else { return };
        let shown = self.total() - self.rows_after(0).min(self.total());
        let below = self.rows_after(at + 1) + shown;
        let rows = self.entries[at].rows.len();
        let (bottom, top) = (below, below + rows);
        if top > self.scroll.below + height || rows >= height {
            self.scroll.below = top.saturating_sub(height);
        } else if bottom < self.scroll.below {
            self.scroll.below = bottom;
        }
    }

    fn rows_after(&self, at: usize) -> usize {
        self.entries.iter().skip(at).map(|entry| entry.rows.len()).sum()
    }
}

fn is_call(entry: &TranscriptEntry, id: &str) -> bool {
    entry.tool().is_some_and(|tool| tool.id == id)
}
