//! The agent's stdin: what waits to be written, and which keys were seen.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use crate::runs::wire::{Answer, INPUT_MAX};

/// A repeat comes soon after the first, so the newest of each kind are enough.
const KEYS_MAX: usize = 4_096;

#[derive(Debug)]
pub(super) struct Input {
    pipe: Option<File>,
    queue: VecDeque<Vec<u8>>,
    /// Bytes of the first in the queue that were written.
    written: usize,
    waiting: usize,
    /// To be closed when the queue is empty.
    closing: bool,
    keys: Keys,
    /// Keys with a colon: answers, of which one turn may need thousands. They must not push its prompt's key out.
    answers: Keys,
}

impl Input {
    pub(super) fn new(pipe: Option<File>) -> Self {
        let (keys, answers) = (Keys::default(), Keys::default());
        Self { pipe, queue: VecDeque::new(), written: 0, waiting: 0, closing: false, keys, answers }
    }

    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some() && !self.closing
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The pipe, while something waits to be written to it.
    pub(super) fn wants_to_write(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| !self.queue.is_empty()).map(AsFd::as_fd)
    }

    /// Whether something that is no input is asked for the first time under this key.
    pub(super) fn is_first(&mut self, key: &str) -> bool {
        let first = !self.answers.seen(key);
        if first {
            self.answers.remember(key);
        }
        first
    }

    /// Takes input once per key. A repeat is told so whatever became of the pipe.
    pub(super) fn send(&mut self, key: &str, bytes: Vec<u8>) -> Answer {
        let keys = if key.contains(':') { &mut self.answers } else { &mut self.keys };
        if keys.seen(key) {
            return Answer::Repeated;
        }
        if self.pipe.is_none() || self.closing {
            return Answer::InputClosed;
        }
        if self.waiting + bytes.len() > INPUT_MAX {
            return Answer::InputFull;
        }
        keys.remember(key);
        self.waiting += bytes.len();
        if !bytes.is_empty() {
            self.queue.push_back(bytes);
        }
        self.write();
        Answer::First
    }

    pub(super) fn close(&mut self) {
        self.closing = true;
        self.close_if_done();
    }

    /// The agent reads no more.
    pub(super) fn abandon(&mut self) {
        self.pipe = None;
        self.queue = VecDeque::new();
        self.written = 0;
        self.waiting = 0;
    }

    /// Writes as much as the pipe takes now.
    pub(super) fn write(&mut self) {
        while let (Some(pipe), Some(first)) = (&mut self.pipe, self.queue.front()) {
            match pipe.write(&first[self.written..]) {
                Ok(some) => {
                    self.written += some;
                    self.waiting -= some;
                    if self.written == first.len() {
                        self.queue.pop_front();
                        self.written = 0;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.abandon(),
            }
        }
        self.close_if_done();
    }

    fn close_if_done(&mut self) {
        if self.closing && self.queue.is_empty() {
            self.pipe = None;
        }
    }
}

/// The newest keys.
#[derive(Debug, Default)]
struct Keys {
    set: HashSet<Rc<str>>,
    order: VecDeque<Rc<str>>,
}

impl Keys {
    fn seen(&self, key: &str) -> bool {
        self.set.contains(key)
    }

    fn remember(&mut self, key: &str) {
        let key: Rc<str> = key.into();
        self.set.insert(Rc::clone(&key));
        self.order.push_back(key);
        if self.order.len() > KEYS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.set.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_do_not_push_a_prompt_out() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let pipe = child.stdin.take().map(|pipe| File::from(std::os::fd::OwnedFd::from(pipe)));
        let mut input = Input::new(pipe);
        assert!(matches!(input.send("turn_1", b"go\n".to_vec()), Answer::First));
        for number in 0..=KEYS_MAX {
            assert!(matches!(input.send(&format!("reply:{number}"), Vec::new()), Answer::First));
        }
        assert!(matches!(input.send("turn_1", b"go\n".to_vec()), Answer::Repeated));
        assert!(matches!(input.send("reply:0", Vec::new()), Answer::First));
        drop(input);
        child.wait().unwrap();
    }

    #[test]
    fn the_newest_keys_are_remembered_and_no_more() {
        let mut keys = Keys::default();
        for number in 0..=KEYS_MAX {
            keys.remember(&number.to_string());
        }
        assert!(!keys.seen("0"));
        assert!(keys.seen("1"));
        assert!(keys.seen(&KEYS_MAX.to_string()));
        assert_eq!((keys.set.len(), keys.order.len()), (KEYS_MAX, KEYS_MAX));
    }
}
