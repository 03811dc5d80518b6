//! The loose form: checklists, with what belongs to an item indented below it.

use super::line::{Blocks, boxed, bullet, dedent, heading, indent};
use super::read::{Found, Numbered, at, begin, fields, goal, prompt};
use super::{Fault, MarkdownError};
use crate::paper;

/// An item whose lines are still being gathered.
struct Item<'a> {
    found: Found,
    indent: usize,
    lines: Vec<Numbered<'a>>,
}

#[derive(Default)]
struct Gathered<'a> {
    items: Vec<Item<'a>>,
    /// The items around the current line, outermost first.
    open: Vec<usize>,
    goal: Vec<Numbered<'a>>,
    group: Option<String>,
    /// A heading came, and no item after it.
    fresh: bool,
    /// The item the last line of text went to.
    owner: Option<usize>,
}

pub(super) fn read(lines: &[Numbered<'_>]) -> Result<(Option<String>, Vec<Found>), MarkdownError> {
    let mut gathered = Gathered { fresh: true, ..Gathered::default() };
    let mut blocks = Blocks::default();
    for (number, line) in lines {
        let inside = blocks.open_since().is_some();
        blocks.takes(*number, line);
        if inside {
            // Whatever it looks like.
            gathered.give(*number, line);
        } else {
            gathered.take(*number, line)?;
        }
    }
    let goal = goal(&gathered.goal)?;
    let mut found = Vec::new();
    for mut item in gathered.items {
        let lines = flush_left(&item.lines);
        let rest = fields(&mut item.found, &lines)?;
        item.found.task.prompt = prompt(&item.found, rest)?;
        found.push(item.found);
    }
    Ok((goal, found))
}

/// The lines without their common indentation. Lines in a code block do not count.
fn flush_left<'a>(lines: &[Numbered<'a>]) -> Vec<Numbered<'a>> {
    let mut blocks = Blocks::default();
    let outside = lines.iter().filter(|(number, line)| {
        let inside = blocks.open_since().is_some();
        blocks.takes(*number, line);
        !inside && !line.trim().is_empty()
    });
    let columns = outside.map(|(_, line)| indent(line)).min().unwrap_or(0);
    lines.iter().map(|(number, line)| (*number, dedent(line, columns))).collect()
}

impl<'a> Gathered<'a> {
    fn take(&mut self, number: usize, line: &'a str) -> Result<(), MarkdownError> {
        if line.trim().is_empty() {
            // Between what belongs together, one is enough.
            if self.owner.is_some() || self.goal.last().is_none_or(|(_, line)| !line.trim().is_empty()) {
                self.give(number, line);
            }
            return Ok(());
        }
        if let Some(text) = (1..=6).find_map(|level| heading(line, level)) {
            paper::name("group", text).map_err(|refusal| at(number, refusal))?;
            self.group = Some(text.to_owned());
            self.open.clear();
            self.owner = None;
            self.fresh = true;
            return Ok(());
        }
        if let Some((done, text)) = bullet(line).and_then(boxed) {
            self.begin(indent(line), begin(number, done, text)?);
            return Ok(());
        }
        // Text goes to the innermost item it is indented below.
        let columns = indent(line);
        self.owner = self.open.iter().rev().find(|place| self.items[**place].indent < columns).copied();
        if self.owner.is_none() && !self.fresh {
            return Err(at(number, Fault::Stray));
        }
        self.give(number, line);
        Ok(())
    }

    fn begin(&mut self, indent: usize, mut found: Found) {
        let items = &self.items;
        self.open.retain(|place| items[*place].indent < indent);
        found.inside = self.open.last().copied();
        found.task.group.clone_from(&self.group);
        self.owner = Some(self.items.len());
        self.open.push(self.items.len());
        self.items.push(Item { found, indent, lines: Vec::new() });
        self.fresh = false;
    }

    fn give(&mut self, number: usize, line: &'a str) {
        match self.owner.and_then(|place| self.items.get_mut(place)) {
            Some(item) => item.lines.push((number, line)),
            None => self.goal.push((number, line)),
        }
    }
}
