//! A terminal: the two ends of a pty, and what is on the screen. Knows the few things the screens send: where the
//! cursor goes, what is printed, what is wiped.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{Daemon, PATIENCE, binary};

/// A program in a terminal of its own.
pub(super) struct Terminal {
    child: Child,
    /// Nothing once it was hung up.
    ours: Option<Ours>,
    screen: Arc<Mutex<Screen>>,
}

/// Our end of the pty.
struct Ours {
    keys: std::fs::File,
    over: Arc<AtomicBool>,
    reader: std::thread::JoinHandle<()>,
    /// Kept open, so that the screen can be read after the program ended.
    _other_end: std::fs::File,
}

impl Terminal {
    pub(super) fn lanyard(daemon: &Daemon, words: &[&str], columns: u16, rows: u16) -> Self {
        Self::with_env(daemon, words, &[], (columns, rows))
    }

    /// The same with further variables in the environment.
    pub(super) fn with_env(
        daemon: &Daemon,
        words: &[&str],
        env: &[(&str, &str)],
        (columns, rows): (u16, u16),
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave =
            std::fs::File::options().read(true).write(true).open(Path::new(name.to_str().unwrap())).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        // The terminal is the program's controlling one: Ctrl-C is a signal where the terminal is not raw.
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(binary())
            .args(words)
            .envs(env.iter().copied())
            .env("LANYARD_DATA_DIR", daemon.home())
            .env("LANYARD_CONFIG", daemon.config())
            .env("LANYARD_NO_START", "1")
            .env("TERM", "xterm-256color")
            .env("NO_COLOR", "1")
            .env_remove("LANYARD_FAILPOINT")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let keys = std::fs::File::from(master);
        let screen = Arc::new(Mutex::new(Screen::new(usize::from(columns), usize::from(rows))));
        let mut output = keys.try_clone().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let reader = std::thread::spawn({
            let (screen, over) = (screen.clone(), over.clone());
            move || {
                let mut bytes = [0; 4096];
                while !over.load(Ordering::Relaxed) {
                    let mut fds = [PollFd::new(&output, PollFlags::IN)];
                    let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
                    if rustix::event::poll(&mut fds, Some(&moment)) == Ok(0) {
                        continue;
                    }
                    let Ok(count) = output.read(&mut bytes) else { return };
                    screen.lock().unwrap().feed(&bytes[..count]);
                }
            }
        });
        Self { child, ours: Some(Ours { keys, over, reader, _other_end: slave }), screen }
    }

    /// The window is closed: the terminal is gone for the program.
    pub(super) fn hang_up(&mut self) {
        let Some(ours) = self.ours.take() else { return };
        ours.over.store(true, Ordering::Relaxed);
        ours.reader.join().unwrap();
    }

    pub(super) fn press(&mut self, keys: &str) {
        let ours = self.ours.as_mut().unwrap();
        ours.keys.write_all(keys.as_bytes()).unwrap();
        ours.keys.flush().unwrap();
    }

    pub(super) fn text(&self) -> String {
        self.screen.lock().unwrap().text()
    }

    /// Waits until the screen is as wanted.
    pub(super) fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        loop {
            let text = self.text();
            if wanted(&text) {
                return text;
            }
            assert!(since.elapsed() < PATIENCE, "no {what} on the screen:\n{text}");
            // sleep: between two looks at a screen.
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn until_shows(&self, words: &str) -> String {
        self.until(&format!("{words:?}"), |text| text.contains(words))
    }

    /// Waits for the program's end; its exit code.
    pub(super) fn ended(&mut self) -> Option<i32> {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(since.elapsed() < PATIENCE, "it does not end:\n{}", self.text());
            // sleep: between two looks at a process that ends.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGKILL, as when a terminal's window is torn down badly.
    pub(super) fn kill_9(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.kill_9();
        self.hang_up();
        if std::thread::panicking() {
            eprintln!("the screen was:\n{}", self.text());
        }
    }
}

/// What stands where.
struct Screen {
    cells: Vec<Vec<String>>,
    at: (usize, usize),
    /// Bytes of a sequence or a letter that is not whole yet.
    rest: Vec<u8>,
}

impl Screen {
    fn new(columns: usize, rows: usize) -> Self {
        Self { cells: vec![vec![" ".to_owned(); columns]; rows], at: (0, 0), rest: Vec::new() }
    }

    fn text(&self) -> String {
        let lines: Vec<String> = self.cells.iter().map(|row| row.concat().trim_end().to_owned()).collect();
        lines.join("\n")
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let mut at = 0;
        while at < rest.len() {
            match self.one(&rest[at..]) {
                Some(used) => at += used,
                None => break,
            }
        }
        self.rest = rest[at..].to_vec();
    }

    /// Takes one letter or sequence; nothing when it is not whole.
    fn one(&mut self, bytes: &[u8]) -> Option<usize> {
        match bytes[0] {
            0x1b => self.sequence(bytes),
            b'\r' => {
                self.at.0 = 0;
                Some(1)
            }
            b'\n' => {
                if self.at.1 + 1 == self.cells.len() {
                    let top = self.cells.remove(0);
                    self.cells.push(vec![" ".to_owned(); top.len()]);
                } else {
                    self.at.1 += 1;
                }
                Some(1)
            }
            0..0x20 => Some(1),
            first => {
                let length = match first {
                    0..0x80 => 1,
                    0xc0..0xe0 => 2,
                    0xe0..0xf0 => 3,
                    _ => 4,
                };
                let letter = std::str::from_utf8(bytes.get(..length)?).unwrap_or("?").to_owned();
                if let Some(cell) = self.cells.get_mut(self.at.1).and_then(|row| row.get_mut(self.at.0)) {
                    *cell = letter;
                }
                self.at.0 += 1;
                Some(length)
            }
        }
    }

    fn sequence(&mut self, bytes: &[u8]) -> Option<usize> {
        match bytes.get(1)? {
            b'[' => {}
            // A title, which ends with a bell.
            b']' => return bytes.iter().position(|&byte| byte == 7).map(|end| end + 1),
            _ => return Some(2),
        }
        let end = 2 + bytes[2..].iter().position(|byte| (0x40..0x7f).contains(byte))?;
        let words = String::from_utf8_lossy(&bytes[2..end]).into_owned();
        let number =
            |nth: usize| words.split(';').nth(nth).and_then(|word| word.parse::<usize>().ok()).unwrap_or(1);
        match bytes[end] {
            b'H' => self.at = (number(1).max(1) - 1, number(0).max(1) - 1),
            b'A' => self.at.1 = self.at.1.saturating_sub(number(0).max(1)),
            // From the cursor on.
            b'J' if matches!(words.as_str(), "" | "0") => {
                let (column, row) = self.at;
                for (nth, cells) in self.cells.iter_mut().enumerate().skip(row) {
                    let from = if nth == row { column.min(cells.len()) } else { 0 };
                    cells[from..].iter_mut().for_each(|cell| " ".clone_into(cell));
                }
            }
            b'J' => self.cells.iter_mut().flatten().for_each(|cell| " ".clone_into(cell)),
            b'K' => {
                let (from, row) = self.at;
                self.cells[row].iter_mut().skip(from).for_each(|cell| " ".clone_into(cell));
            }
            // Colours, modes, the cursor's looks.
            _ => {}
        }
        Some(end + 1)
    }
}
