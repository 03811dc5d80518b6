//! What an ACP agent shows of a change to a file, in bounds: the lines that differ and a few around them.

use agent_client_protocol_schema::v1::Diff;
use serde_json::{Value, json};

/// Lines that are kept before and after those that differ.
const AROUND: usize = 3;
/// Bytes kept of all changes of one call; what is over is left out and said so.
pub(super) const CHANGE_BYTES_MAX: usize = 64 * 1024;

/// The lines that differ between two texts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// Lines before the first and after the last that differs.
    before: usize,
    after: usize,
}

impl<'a> Change<'a> {
    pub(super) fn of(diff: &'a Diff) -> Self {
        let old: Vec<&str> = diff.old_text.as_deref().unwrap_or_default().lines().collect();
        let new: Vec<&str> = diff.new_text.lines().collect();
        let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let rest = old[before..].iter().rev().zip(new[before..].iter().rev());
        let after = rest.take_while(|(old, new)| old == new).count();
        Self { old, new, before, after }
    }

    pub(super) fn added(&self) -> u64 {
        (self.new.len() - self.before - self.after) as u64
    }

    pub(super) fn removed(&self) -> u64 {
        (self.old.len() - self.before - self.after) as u64
    }

    /// As a block of the call's answer, in the protocol's own words and with the number of its first line. What does
    /// not fit into `room` is left out.
    pub(super) fn block(&self, path: &str, room: &mut usize) -> Value {
        let from = self.before.saturating_sub(AROUND);
        let after = self.after.saturating_sub(AROUND);
        let (old, old_cut) = fit(&self.old[from..self.old.len() - after], room);
        let (new, new_cut) = fit(&self.new[from..self.new.len() - after], room);
        let mut block =
            json!({ "type": "diff", "path": path, "line": from + 1, "oldText": old, "newText": new });
        if old_cut + new_cut > 0 {
            block["left_out"] = json!(old_cut + new_cut);
        }
        block
    }
}

/// As many lines as there is room for, and how many were left out.
fn fit(lines: &[&str], room: &mut usize) -> (String, usize) {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        if line.len() + 1 > *room {
            return (text, lines.len() - at);
        }
        *room -= line.len() + 1;
        text.push_str(line);
        text.push('\n');
    }
    (text, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(numbers: std::ops::Range<u32>) -> String {
        numbers.fold(String::new(), |text, number| text + &number.to_string() + "\n")
    }

    #[test]
    fn the_lines_that_differ_are_kept_with_three_around_them() {
        let diff = Diff::new("/w/a", lines(0..10) + "new\n" + &lines(11..20)).old_text(lines(0..20));
        let change = Change::of(&diff);
        assert_eq!((change.added(), change.removed()), (1, 1));
        let block = change.block("/w/a", &mut CHANGE_BYTES_MAX.clone());
        let wanted = json!({
            "type": "diff", "path": "/w/a", "line": 8,
            "oldText": lines(7..14), "newText": lines(7..10) + "new\n" + &lines(11..14),
        });
        assert_eq!(block, wanted);
    }

    #[test]
    fn a_new_file_has_nothing_before() {
        let diff = Diff::new("/w/a", "one\ntwo");
        let change = Change::of(&diff);
        assert_eq!((change.added(), change.removed()), (2, 0));
        let block = change.block("/w/a", &mut CHANGE_BYTES_MAX.clone());
        let wanted =
            json!({ "type": "diff", "path": "/w/a", "line": 1, "oldText": "", "newText": "one\ntwo\n" });
        assert_eq!(block, wanted);
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said_so() {
        let diff = Diff::new("/w/a", "a".repeat(10) + "\n" + &"b".repeat(10));
        let mut room = 15;
        let block = Change::of(&diff).block("/w/a", &mut room);
        assert_eq!((block["newText"].as_str(), &block["left_out"]), (Some("aaaaaaaaaa\n"), &json!(1)));
        assert_eq!(room, 4);
    }

    #[test]
    fn equal_texts_change_nothing() {
        let diff = Diff::new("/w/a", "x\ny").old_text("x\ny".to_owned());
        assert_eq!((Change::of(&diff).added(), Change::of(&diff).removed()), (0, 0));
    }
}
