//! Lines in and out. Both sides are threads: a read that never returns must not keep the bridge from ending.

use std::io::{BufRead, Read, Write};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// The longest line taken; a prompt is far shorter.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Orders read ahead.
const ORDERS_MAX: usize = 64;
/// Lines waiting for the reader; when it is full the bridge waits, and then the server does.
const LINES_MAX: usize = 1_024;
/// How long the last lines may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Lines of stdin, until its end.
pub(super) fn input() -> mpsc::Receiver<Result<Value, String>> {
    let (sender, receiver) = mpsc::channel(ORDERS_MAX);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        while let Some(line) = next(&mut stdin) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn next(input: &mut impl BufRead) -> Option<Result<Value, String>> {
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        match read {
            Ok(0) | Err(_) => return None,
            Ok(_) if line.ends_with(b"\n") => {}
            // Either the end of the input, or a line without end: then its rest is no order either.
            Ok(_) => return Some(Err(format!("a line of {} bytes without an end", line.len()))),
        }
        if !line.trim_ascii().is_empty() {
            return Some(serde_json::from_slice(&line).map_err(|error| format!("no JSON: {error}")));
        }
    }
}

/// Where lines go.
#[derive(Debug)]
pub(super) struct Output {
    lines: mpsc::Sender<Value>,
    done: oneshot::Receiver<()>,
}

impl Output {
    pub(super) fn open() -> Self {
        let (lines, mut receiver) = mpsc::channel::<Value>(LINES_MAX);
        let (finish, done) = oneshot::channel();
        std::thread::spawn(move || {
            let mut stdout = std::io::stdout().lock();
            while let Some(line) = receiver.blocking_recv() {
                let mut bytes = line.to_string().into_bytes();
                bytes.push(b'\n');
                if stdout.write_all(&bytes).and_then(|()| stdout.flush()).is_err() {
                    break;
                }
            }
            // The loop may have gone already.
            let _ = finish.send(());
        });
        Self { lines, done }
    }

    /// Waits for room. False when nobody reads any more.
    pub(super) async fn say(&self, line: Value) -> bool {
        self.lines.send(line).await.is_ok()
    }

    /// The last line, and the end.
    pub(super) async fn close(self, last: Value) {
        let Self { lines, done } = self;
        let flush = async {
            let _ = lines.send(last).await;
            drop(lines);
            let _ = done.await;
        };
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, flush).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_read_one_by_one_and_nonsense_is_named() {
        let mut input: &[u8] = b"{\"id\":1}\n\n  \nnonsense\n{\"id\":2}\nhalf";
        assert_eq!(next(&mut input), Some(Ok(json!({"id": 1}))));
        assert!(next(&mut input).unwrap().unwrap_err().starts_with("no JSON"));
        assert_eq!(next(&mut input), Some(Ok(json!({"id": 2}))));
        assert_eq!(next(&mut input), Some(Err("a line of 4 bytes without an end".to_owned())));
        assert_eq!(next(&mut input), None);
    }
}
