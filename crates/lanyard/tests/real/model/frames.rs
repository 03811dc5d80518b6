//! Server-sent events and single JSON documents, with the pauses and faults of a step in their places.

use bytes::Bytes;
use serde_json::Value;

use super::choose::{Call, Choice};
use super::pace::Piece;
use super::script::{Fault, Hang, Step, Usage};

/// What no JSON parser takes.
const GARBAGE: &str = "{\"broken\": [1,";

/// An answer to be written in one protocol.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    pub(super) seq: u64,
    /// The model's name as the request had it.
    pub(super) model: &'a str,
    pub(super) script: &'a str,
    pub(super) step: &'a Step,
    pub(super) calls: &'a [Call],
    pub(super) usage: Usage,
}

impl<'a> Reply<'a> {
    pub(super) fn new(seq: u64, model: &'a str, choice: &'a Choice, calls: &'a [Call], bytes: usize) -> Self {
        let step = &choice.step;
        // Four bytes to a token: near enough for what only has to look plausible.
        let guess = || Usage { input: 1 + bytes as u64 / 4, output: 10 + step.text.len() as u64 / 4 };
        let usage = step.usage.unwrap_or_else(guess);
        Reply { seq, model, script: &choice.script, step, calls, usage }
    }

    /// A JSON document, after every pause of the step.
    pub(super) fn document(&self, document: &Value) -> Vec<Piece> {
        let mut frames = Frames::new(self);
        frames.first_word();
        if !frames.cut {
            frames.raw(document.to_string());
        }
        frames.pieces
    }
}

/// A stream under construction.
#[derive(Debug)]
pub(super) struct Frames<'a> {
    reply: &'a Reply<'a>,
    pieces: Vec<Piece>,
    /// The script broke the stream: nothing may follow.
    cut: bool,
}

impl<'a> Frames<'a> {
    pub(super) fn new(reply: &'a Reply<'a>) -> Frames<'a> {
        Frames { reply, pieces: Vec::new(), cut: false }
    }

    fn raw(&mut self, text: String) {
        if !self.cut {
            self.pieces.push(Piece::Bytes(Bytes::from(text)));
        }
    }

    /// An event without a name.
    pub(super) fn data(&mut self, data: &Value) {
        self.raw(format!("data: {data}\n\n"));
    }

    /// An event named by the `type` of its data.
    pub(super) fn event(&mut self, data: &Value) {
        let name = data["type"].as_str().unwrap_or_default();
        self.raw(format!("event: {name}\ndata: {data}\n\n"));
    }

    /// The text, word by word, each written by `write`.
    pub(super) fn words(&mut self, mut write: impl FnMut(&mut Self, &str)) {
        let step = self.reply.step;
        for (index, word) in step.text.split_inclusive(' ').enumerate() {
            write(self, word);
            if index == 0 {
                self.first_word();
            }
            self.pause(step.chunk_delay);
        }
        if step.text.is_empty() {
            self.first_word();
        }
    }

    /// What happens after the first word.
    fn first_word(&mut self) {
        match &self.reply.step.hang {
            None => {}
            Some(Hang::For(pause)) => self.pause(*pause),
            Some(Hang::UntilReleased) => self.pieces.push(Piece::Hold(self.reply.script.to_owned())),
        }
        match self.reply.step.fault {
            // A silent answer never gets as far as a body.
            None | Some(Fault::Silent) => {}
            Some(Fault::Malformed) => {
                self.raw(format!("data: {GARBAGE}\n\n"));
                self.cut = true;
            }
            Some(Fault::Reset) => {
                self.pieces.push(Piece::Reset);
                self.cut = true;
            }
        }
    }

    fn pause(&mut self, pause: std::time::Duration) {
        if !pause.is_zero() && !self.cut {
            self.pieces.push(Piece::Pause(pause));
        }
    }

    /// The end of a chat stream.
    pub(super) fn done(mut self) -> Vec<Piece> {
        self.raw("data: [DONE]\n\n".to_owned());
        self.pieces
    }

    pub(super) fn end(self) -> Vec<Piece> {
        self.pieces
    }
}
