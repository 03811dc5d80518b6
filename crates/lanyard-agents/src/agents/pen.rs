//! From an agent's actions to signals in the log: text is joined, everything keeps its order, and each report says how
//! far into the agent's output it reaches.

use std::sync::Arc;

use lanyard_core::SessionId;
use lanyard_core::redact::Redactor;
use lanyard_core::session::{Role, Signal};

use crate::agents::driver::TextKind;

/// Text that is joined into one event; more becomes a further event.
pub(super) const TEXT_BYTES_MAX: usize = 16 * 1024;
/// Signals that may wait for the next report.
const PENDING_MAX: usize = 512;

/// Signals for one session, and where in the output the last of them came from.
#[derive(Debug, PartialEq)]
pub(super) struct Report {
    pub(super) session: SessionId,
    pub(super) to: u64,
    pub(super) signals: Vec<Signal>,
}

#[derive(Debug, Default)]
pub(super) struct Pen {
    reports: Vec<Report>,
    waiting: usize,
    text: Option<Text>,
    /// Something other than text waits.
    pressing: bool,
    /// Says where text may be cut: not in the middle of a secret.
    redactor: Option<Arc<Redactor>>,
}

#[derive(Debug)]
struct Text {
    session: SessionId,
    kind: TextKind,
    message: Option<String>,
    words: String,
    /// The places in the output it came from: where the words of each end, and the place.
    pieces: Vec<(usize, u64)>,
}

impl Text {
    fn push(&mut self, text: &str, to: u64) {
        self.words.push_str(text);
        let end = self.words.len();
        match self.pieces.last_mut() {
            Some(last) if last.1 == to => last.0 = end,
            _ => self.pieces.push((end, to)),
        }
    }

    fn to(&self) -> u64 {
        self.pieces.last().map_or(0, |(_, to)| *to)
    }
}

/// Text that is being joined.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfinished<'a> {
    pub(super) session: SessionId,
    pub(super) kind: TextKind,
    pub(super) text: &'a str,
    pub(super) message: Option<&'a str>,
}

impl Pen {
    pub(super) fn new(redactor: Option<Arc<Redactor>>) -> Self {
        Self { redactor, ..Self::default() }
    }

    /// Joins a piece of text to the one before it, where both are parts of one message.
    pub(super) fn text(
        &mut self,
        session: SessionId,
        kind: TextKind,
        message: Option<String>,
        text: &str,
        to: u64,
    ) {
        let joins = |pen: &Self| {
            pen.text
                .as_ref()
                .is_some_and(|held| held.session == session && held.kind == kind && held.message == message)
        };
        let full =
            |pen: &Self| pen.text.as_ref().is_some_and(|held| held.words.len() + text.len() > TEXT_BYTES_MAX);
        if joins(self) && full(self) {
            self.lift_safe(session, kind);
        }
        if !joins(self) || full(self) {
            self.lift();
        }
        let new = || Text { session, kind, message, words: String::new(), pieces: Vec::new() };
        self.text.get_or_insert_with(new).push(text, to);
    }

    pub(super) fn signal(&mut self, session: SessionId, signal: Signal, to: u64) {
        self.lift();
        self.pressing = true;
        self.push(session, signal, to);
    }

    /// Whether it is time to report without waiting for more.
    pub(super) fn is_pressing(&self) -> bool {
        self.pressing || self.is_full()
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting >= PENDING_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reports.is_empty() && self.text.is_none()
    }

    /// The text that is being joined, unless something that came before it is still to be reported: who is shown the
    /// text would see it ahead of that.
    pub(super) fn unfinished(&self) -> Option<Unfinished<'_>> {
        let text = self.text.as_ref().filter(|_| self.reports.is_empty())?;
        let message = text.message.as_deref();
        Some(Unfinished { session: text.session, kind: text.kind, text: &text.words, message })
    }

    /// Everything so far, in order, but for an end of the text that may be the beginning of a secret: its rest may
    /// follow, and a part of it is not recognised.
    pub(super) fn take_safe(&mut self) -> Vec<Report> {
        if let Some(Text { session, kind, .. }) = self.text {
            self.lift_safe(session, kind);
        }
        self.take_lifted()
    }

    /// Everything so far, in order.
    pub(super) fn take(&mut self) -> Vec<Report> {
        self.lift();
        self.take_lifted()
    }

    fn take_lifted(&mut self) -> Vec<Report> {
        self.pressing = false;
        self.waiting = 0;
        std::mem::take(&mut self.reports)
    }

    /// Ends the text of this session and kind where it can be cut; the pieces behind that stay. A piece stays whole,
    /// since a report reaches to a place in the output.
    fn lift_safe(&mut self, session: SessionId, kind: TextKind) {
        let Some(held) = self.text.as_mut().filter(|held| held.session == session && held.kind == kind)
        else {
            return;
        };
        let safe = self.redactor.as_ref().map_or(held.words.len(), |redactor| redactor.shown(&held.words));
        let whole = held.pieces.iter().filter(|(end, _)| *end <= safe).count();
        let Some((cut, _)) = whole.checked_sub(1).and_then(|last| held.pieces.get(last)).copied() else {
            return;
        };
        let (words, message) = (held.words.split_off(cut), held.message.clone());
        let later =
            held.pieces.split_off(whole).into_iter().map(|(end, to)| (end - cut, to)).collect::<Vec<_>>();
        self.lift();
        if !later.is_empty() {
            self.text = Some(Text { session, kind, message, words, pieces: later });
        }
    }

    /// Ends the text that is being joined.
    fn lift(&mut self) {
        let Some(held) = self.text.take() else { return };
        let to = held.to();
        let Text { session, kind, message, words: text, .. } = held;
        let signal = match kind {
            TextKind::Message => {
                Signal::Said { role: Role::Agent, text, message_id: message, parts: Vec::new() }
            }
            TextKind::User => Signal::Said { role: Role::User, text, message_id: message, parts: Vec::new() },
            TextKind::Thought => Signal::Thought { text },
        };
        self.push(session, signal, to);
    }

    fn push(&mut self, session: SessionId, signal: Signal, to: u64) {
        self.waiting += 1;
        match self.reports.last_mut() {
            Some(report) if report.session == session => {
                report.to = to;
                report.signals.push(signal);
            }
            _ => self.reports.push(Report { session, to, signals: vec![signal] }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(n: u128) -> SessionId {
        SessionId::from_u128(n)
    }

    fn said(text: &str) -> Signal {
        Signal::Said { role: Role::Agent, text: text.to_owned(), message_id: None, parts: Vec::new() }
    }

    fn unfinished(text: &str) -> Unfinished<'_> {
        Unfinished { session: session(1), kind: TextKind::Message, text, message: None }
    }

    /// FND-N8.
    #[test]
    fn fnd_n8_pieces_of_two_messages_are_not_joined() {
        let mut pen = Pen::default();
        for (at, (id, text)) in (1..).zip([("m1", "one"), ("m1", " two"), ("m2", "three")]) {
            pen.text(session(1), TextKind::Message, Some(id.to_owned()), text, at);
        }
        assert_eq!(pen.unfinished(), None, "what came before it is not in the log yet");
        let said = |text: &str, id: &str| Signal::Said {
            role: Role::Agent,
            text: text.to_owned(),
            message_id: Some(id.to_owned()),
            parts: Vec::new(),
        };
        let signals = vec![said("one two", "m1"), said("three", "m2")];
        assert_eq!(pen.take(), [Report { session: session(1), to: 3, signals }]);
    }

    #[test]
    fn text_is_joined_until_something_else_comes() {
        let mut pen = Pen::default();
        pen.text(session(1), TextKind::Message, None, "a", 10);
        pen.text(session(1), TextKind::Message, None, "b", 20);
        assert!(!pen.is_pressing());
        pen.text(session(1), TextKind::Thought, None, "c", 30);
        pen.signal(session(1), Signal::Planned { entries: vec![] }, 40);
        pen.text(session(2), TextKind::Message, None, "d", 50);
        assert!(pen.is_pressing());
        let thought = Signal::Thought { text: "c".to_owned() };
        let first = Report {
            session: session(1),
            to: 40,
            signals: vec![said("ab"), thought, Signal::Planned { entries: vec![] }],
        };
        let second = Report { session: session(2), to: 50, signals: vec![said("d")] };
        assert_eq!(pen.take(), [first, second]);
        assert!(pen.is_empty());
    }

    #[test]
    fn text_is_shown_only_when_nothing_before_it_waits() {
        let mut pen = Pen::default();
        pen.text(session(1), TextKind::Message, None, "a", 10);
        assert_eq!(pen.unfinished(), Some(unfinished("a")));
        pen.signal(session(1), Signal::Planned { entries: vec![] }, 20);
        pen.text(session(1), TextKind::Message, None, "b", 30);
        assert_eq!(pen.unfinished(), None, "the plan is not in the log yet");
        pen.take();
        pen.text(session(1), TextKind::Message, None, "c", 40);
        assert_eq!(pen.unfinished(), Some(unfinished("c")));
    }

    /// FND-K8: a secret that comes in pieces becomes part of one event, and no report reaches beyond what it holds.
    #[test]
    fn fnd_k8_text_is_not_cut_in_the_middle_of_a_secret() {
        let redactor = Redactor::new(&lanyard_core::redact::Wanted::default()).unwrap();
        let mut pen = Pen::new(Some(Arc::new(redactor)));
        let token = format!("lys_{}", "Ab1_-cD2".repeat(8));
        let (first, second) = token.split_at(20);
        pen.text(session(1), TextKind::Message, None, "It is ", 10);
        pen.text(session(1), TextKind::Message, None, first, 20);
        let report = Report { session: session(1), to: 10, signals: vec![said("It is ")] };
        assert_eq!(pen.take_safe(), [report]);
        assert_eq!(pen.take_safe(), [], "the beginning of a token waits for its rest");
        assert!(!pen.is_empty());
        pen.text(session(1), TextKind::Message, None, &format!("{second}, no more."), 30);
        let report =
            Report { session: session(1), to: 30, signals: vec![said(&format!("{token}, no more."))] };
        assert_eq!(pen.take_safe(), [report]);
        // What is full is cut before it, too.
        pen.text(session(1), TextKind::Message, None, &"word ".repeat(TEXT_BYTES_MAX / 5 - 5), 40);
        pen.text(session(1), TextKind::Message, None, first, 50);
        pen.text(session(1), TextKind::Message, None, second, 60);
        pen.signal(session(1), Signal::Planned { entries: vec![] }, 70);
        let signals = pen.take().remove(0).signals;
        assert_eq!(signals[1..], [said(&token), Signal::Planned { entries: vec![] }]);
        // The end of the message is the end of waiting.
        pen.text(session(1), TextKind::Message, None, first, 80);
        assert_eq!(pen.take_safe(), []);
        assert_eq!(pen.take().len(), 1);
    }

    #[test]
    fn long_text_becomes_several_events_and_loses_nothing() {
        let mut pen = Pen::default();
        let part = "é".repeat(1_000);
        for at in 0..40 {
            pen.text(session(1), TextKind::Message, None, &part, at);
        }
        let reports = pen.take();
        let texts: Vec<String> = reports
            .into_iter()
            .flat_map(|report| report.signals)
            .map(|signal| if let Signal::Said { text, .. } = signal { text } else { panic!("{signal:?}") })
            .collect();
        assert!(texts.iter().all(|text| text.len() <= TEXT_BYTES_MAX));
        assert_eq!(texts.concat(), part.repeat(40));
    }
}
