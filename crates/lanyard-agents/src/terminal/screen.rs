//! The screen of a program on a terminal, as it stands after a place in its output, and the newest of what made it so.
//! One runner writes it; any number of watchers read it, each at its own place. A watcher that falls behind, and one that
//! sees another size, gets the screen anew.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use lanyard_core::session::WindowSize;
use parking_lot::Mutex;
use tokio::sync::watch;
use vt100::{MouseProtocolMode, Parser, Screen};

use super::sieve::{Sieve, Sifted, TerminalQuery, knows};
use crate::runs::ScreenFile;

/// Output that is kept for watchers. One that is further behind gets the screen instead.
const RING_BYTES: usize = 256 * 1024;
/// Bytes a watcher gets at once.
const PIECE_BYTES_MAX: usize = 64 * 1024;
const BELL: u8 = 0x07;
/// Lines above the screen that are kept.
const SCROLLBACK_LINES: usize = 1_000;
/// Makes any terminal an empty one with nothing set: colours, regions, modes of keys, mouse and paste, the main screen.
const BLANK: &str = "\x1b[!p\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1005l\x1b[?9l\x1b[?1l\x1b>\x1b[?2004l\x1b[?7h\x1b[r\x1b[m\x1b(B\x1b[H\x1b[2J";

/// The screen of a run, shared by its runner and all who watch.
#[derive(Debug)]
pub struct TerminalScreen {
    state: Mutex<ScreenState>,
    /// Grows with each change; watchers wait for it.
    changes: watch::Sender<u64>,
}

struct ScreenState {
    parser: Parser,
    sieve: Sieve,
    /// How far in the program's output this is.
    at: u64,
    title: String,
    region: Option<Vec<u8>>,
    /// Bytes that came through, and where in all of them these begin.
    ring: VecDeque<u8>,
    ring_from: u64,
    /// Counts what cannot be followed by bytes: sizes, and screens that were given up.
    epoch: u64,
    /// The bell rang, or a notification was sent, since that was asked last.
    rang: bool,
    over: bool,
}

impl std::fmt::Debug for ScreenState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScreenState").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Where a watcher is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatcherPlace {
    epoch: u64,
    at: u64,
}

/// What a watcher is shown next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// The whole screen: makes any terminal of this size show it.
    Screen { size: WindowSize, bytes: Bytes },
    /// What follows.
    Bytes(Bytes),
}

/// The screen as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenText {
    pub size: WindowSize,
    pub title: String,
    /// The rows, without the space at their ends.
    pub text: String,
    /// Row and column of the cursor, from 0; none where it is hidden.
    pub cursor: Option<(u16, u16)>,
    /// The program draws on the whole screen.
    pub alternate: bool,
}

/// A question of the program, where in its output it stands, and the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnsweredQuery {
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

impl TerminalScreen {
    /// The screen that an earlier daemon kept, or an empty one.
    pub(crate) fn new(size: WindowSize, kept: Option<ScreenFile>) -> Self {
        let mut state = ScreenState {
            parser: parser(size),
            sieve: Sieve::default(),
            at: 0,
            title: String::new(),
            region: None,
            ring: VecDeque::new(),
            ring_from: 0,
            epoch: 0,
            rang: false,
            over: false,
        };
        if let Some(kept) = kept {
            state.parser = parser(kept.size);
            state.parse(kept.state.as_bytes());
            (state.at, state.title) = (kept.at, kept.title);
        }
        Self { state: Mutex::new(state), changes: watch::channel(0).0 }
    }

    /// How far in the program's output it is.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.state.lock().at
    }

    /// What lies before this place of the output is not known.
    pub(crate) fn skip_to(&self, at: u64) {
        self.state.lock().at = at;
    }

    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Takes output in. Answers the questions in it.
    pub(crate) fn feed(&self, bytes: &[u8]) -> Vec<AnsweredQuery> {
        let answers = self.state.lock().feed(bytes);
        self.changed();
        answers
    }

    /// Whether the program rang or sent a notification since this was asked last.
    pub(crate) fn take_rang(&self) -> bool {
        std::mem::take(&mut self.state.lock().rang)
    }

    /// Whether the screen is shown somewhere.
    pub(crate) fn is_watched(&self) -> bool {
        self.changes.receiver_count() > 0
    }

    pub(crate) fn resize(&self, size: WindowSize) {
        let mut state = self.state.lock();
        let (rows, cols) = cells(size);
        state.parser.set_size(rows, cols);
        state.region = None;
        state.anew();
        drop(state);
        self.changed();
    }

    /// The program has ended: nothing more comes.
    pub(crate) fn end(&self) {
        self.state.lock().over = true;
        self.changed();
    }

    /// The screen for a daemon that comes after, and the place in the output after which it goes on.
    pub(crate) fn keep(&self) -> ScreenFile {
        let state = self.state.lock();
        let at = state.at.saturating_sub(state.sieve.pending() as u64);
        ScreenFile { at, size: state.size(), title: state.title.clone(), state: state.drawn() }
    }

    /// What a watcher at this place is shown next, and where it then is. None: nothing new. `Err` when it has seen the
    /// end.
    pub fn after(&self, place: Option<WatcherPlace>) -> Result<Option<(Shown, WatcherPlace)>, Ended> {
        let state = self.state.lock();
        let end = state.ring_from + state.ring.len() as u64;
        let here = WatcherPlace { epoch: state.epoch, at: end };
        let Some(place) = place.filter(|place| place.epoch == state.epoch && place.at >= state.ring_from)
        else {
            let bytes = Bytes::from(format!("{BLANK}{}", state.drawn()));
            let shown = Shown::Screen { size: state.size(), bytes };
            return Ok(Some((shown, here)));
        };
        if place.at < end {
            let skip = usize::try_from(place.at - state.ring_from).unwrap_or(usize::MAX);
            let piece: Vec<u8> = state.ring.range(skip..).take(PIECE_BYTES_MAX).copied().collect();
            let at = place.at + piece.len() as u64;
            return Ok(Some((Shown::Bytes(piece.into()), WatcherPlace { at, ..place })));
        }
        if state.over { Err(Ended) } else { Ok(None) }
    }

    #[must_use]
    pub fn title(&self) -> String {
        self.state.lock().title.clone()
    }

    #[must_use]
    pub fn text(&self) -> ScreenText {
        let state = self.state.lock();
        let screen = state.parser.screen();
        ScreenText {
            size: state.size(),
            title: state.title.clone(),
            text: screen.contents(),
            cursor: (!screen.hide_cursor()).then(|| screen.cursor_position()),
            alternate: screen.alternate_screen(),
        }
    }

    /// All that is left of what it wrote as text: the lines above the screen, and the screen.
    #[must_use]
    pub fn transcript(&self) -> String {
        let mut state = self.state.lock();
        let screen = state.parser.screen_mut();
        if screen.alternate_screen() {
            return screen.contents();
        }
        let (rows, _) = screen.size();
        let rows = usize::from(rows.get());
        let mut pages = Vec::new();
        let mut above = screen.scrollback_len();
        while above > 0 {
            screen.set_scrollback(above);
            let (_, cols) = screen.size();
            let lines: Vec<String> = screen.rows(0, cols.get()).take(above.min(rows)).collect();
            above -= lines.len().min(above);
            pages.extend(lines);
        }
        screen.set_scrollback(0);
        pages.push(screen.contents());
        pages.join("\n")
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

/// The program has ended, and the watcher has seen all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended;

impl ScreenState {
    fn size(&self) -> WindowSize {
        let (rows, cols) = self.parser.screen().size();
        WindowSize { cols: cols.get(), rows: rows.get() }
    }

    fn feed(&mut self, bytes: &[u8]) -> Vec<AnsweredQuery> {
        let mut sieve = std::mem::take(&mut self.sieve);
        let mut answers = Vec::new();
        let from = self.at;
        sieve.feed(bytes, &mut |passed, to| match passed {
            Sifted::Bytes(bytes) => {
                self.rang |= bytes == [BELL];
                self.show(bytes);
            }
            Sifted::Notice => self.rang = true,
            Sifted::Title(title) => {
                self.show(titled(&title).as_bytes());
                self.title = title;
            }
            // By its place it is the same question whenever the output is read.
            Sifted::Query(query) => {
                answers.push(AnsweredQuery { at: from + to as u64, bytes: self.answer(query) });
            }
        });
        self.sieve = sieve;
        self.at += bytes.len() as u64;
        answers
    }

    fn show(&mut self, bytes: &[u8]) {
        match bytes {
            [0x1b, b'[', params @ .., b'r'] => {
                self.region = Some(params.to_vec()).filter(|params| !params.is_empty());
            }
            [0x1b, b'c'] => self.region = None,
            _ => {}
        }
        self.parse(bytes);
        self.ring.extend(bytes);
        let over = self.ring.len().saturating_sub(RING_BYTES);
        self.ring.drain(..over);
        self.ring_from += over as u64;
    }

    /// A defect of the parser costs the screen and not the run.
    fn parse(&mut self, bytes: &[u8]) {
        let parser = &mut self.parser;
        if catch_unwind(AssertUnwindSafe(|| parser.process(bytes))).is_err() {
            tracing::error!("the screen of a terminal could not be kept; it begins anew");
            let size = self.size();
            self.parser = self::parser(size);
            self.anew();
        }
    }

    /// All who watch get the screen anew.
    fn anew(&mut self) {
        self.epoch += 1;
        self.ring_from += self.ring.len() as u64;
        self.ring.clear();
    }

    /// What makes an empty terminal show this screen, and go on from it.
    fn drawn(&self) -> String {
        let screen = self.parser.screen();
        let other = if screen.alternate_screen() { "\x1b[?1049h" } else { "" };
        // The region moves the cursor, which is put back.
        let region = self.region.as_ref().map(|params| {
            format!("\x1b[{}r{}", String::from_utf8_lossy(params), screen.cursor_state_formatted())
        });
        let (title, state) = (titled(&self.title), screen.state_formatted());
        format!("{other}{title}{state}{}", region.unwrap_or_default())
    }

    fn answer(&self, query: TerminalQuery) -> Vec<u8> {
        let screen = self.parser.screen();
        match query {
            // A VT220 with colours.
            TerminalQuery::Attributes => b"\x1b[?62;22c".to_vec(),
            TerminalQuery::SecondaryAttributes => b"\x1b[>1;10;0c".to_vec(),
            TerminalQuery::Status => b"\x1b[0n".to_vec(),
            TerminalQuery::Cursor => {
                let (row, col) = screen.cursor_position();
                format!("\x1b[{};{}R", row + 1, col + 1).into_bytes()
            }
            TerminalQuery::Mode(mode) => format!("\x1b[?{mode};{}$y", mode_of(screen, mode)).into_bytes(),
        }
    }
}

/// Sets the title. It is plain text.
fn titled(title: &str) -> String {
    format!("\x1b]2;{title}\x07")
}

/// 0: not known, 1: set, 2: not set.
fn mode_of(screen: &Screen, mode: u16) -> u8 {
    let set = match mode {
        1 => screen.application_cursor(),
        25 => !screen.hide_cursor(),
        1000 | 1002 | 1003 => screen.mouse_protocol_mode() != MouseProtocolMode::None,
        1049 => screen.alternate_screen(),
        2004 => screen.bracketed_paste(),
        mode if knows(mode) => false,
        _ => return 0,
    };
    if set { 1 } else { 2 }
}

fn cells(size: WindowSize) -> (NonZeroU16, NonZeroU16) {
    let cell = |count: u16, max: u16| NonZeroU16::new(count.min(max)).unwrap_or(NonZeroU16::MIN);
    (cell(size.rows, WindowSize::MAX.rows), cell(size.cols.max(2), WindowSize::MAX.cols))
}

fn parser(size: WindowSize) -> Parser {
    let (rows, cols) = cells(size);
    Parser::new(rows, cols, SCROLLBACK_LINES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: WindowSize = WindowSize { cols: 20, rows: 5 };

    /// A watcher that draws what it is shown.
    struct Watcher {
        place: Option<WatcherPlace>,
        parser: Parser,
        screens: usize,
    }

    impl Watcher {
        fn new() -> Self {
            Self { place: None, parser: parser(SIZE), screens: 0 }
        }

        fn look(&mut self, screen: &TerminalScreen) {
            while let Ok(Some((shown, place))) = screen.after(self.place) {
                self.place = Some(place);
                match shown {
                    Shown::Screen { size, bytes, .. } => {
                        self.screens += 1;
                        let (rows, cols) = cells(size);
                        self.parser.set_size(rows, cols);
                        self.parser.process(&bytes);
                    }
                    Shown::Bytes(bytes) => self.parser.process(&bytes),
                }
            }
        }

        fn sees(&self, screen: &TerminalScreen) {
            let state = screen.state.lock();
            let (mine, theirs) = (self.parser.screen(), state.parser.screen());
            assert_eq!(mine.state_formatted(), theirs.state_formatted());
            assert_eq!(mine.alternate_screen(), theirs.alternate_screen());
        }
    }

    #[test]
    fn one_that_comes_late_sees_what_one_sees_that_was_there_always() {
        let screen = TerminalScreen::new(SIZE, None);
        let mut early = Watcher::new();
        early.look(&screen);
        let steps = [
            "one\r\ntwo\r\n\x1b[1;32mthree",
            "\x1b[?1049h\x1b[2J\x1b[H\x1b[2;4rfull\r\nscreen\r\nx\r\ny\r\nz",
            "\x1b[4;1H\r\nscrolled\x1b[?25l\x1b[?2004h\x1b[?1h\x1b[?1002h\x1b[?1006h",
            "\x1b[r\x1b[5;3Hend\x1b[?1049l back",
        ];
        for step in steps {
            screen.feed(step.as_bytes());
            early.look(&screen);
            let mut late = Watcher::new();
            late.look(&screen);
            early.sees(&screen);
            late.sees(&screen);
            // And goes on from there.
            screen.feed(b"\r\nmore\x1b[2;2H!");
            early.look(&screen);
            late.look(&screen);
            early.sees(&screen);
            late.sees(&screen);
        }
        assert_eq!(early.screens, 1);
    }

    #[test]
    fn a_watcher_that_falls_behind_gets_the_screen_and_no_more_than_the_ring_is_kept() {
        let screen = TerminalScreen::new(SIZE, None);
        let mut slow = Watcher::new();
        slow.look(&screen);
        for number in 0..40_000 {
            screen.feed(format!("line {number}\r\n").as_bytes());
        }
        assert!(screen.state.lock().ring.len() <= RING_BYTES);
        slow.look(&screen);
        assert_eq!(slow.screens, 2);
        slow.sees(&screen);
    }

    #[test]
    fn a_new_size_is_a_new_screen_for_all() {
        let screen = TerminalScreen::new(SIZE, None);
        let mut watcher = Watcher::new();
        screen.feed(b"hello");
        watcher.look(&screen);
        screen.resize(WindowSize { cols: 40, rows: 10 });
        watcher.look(&screen);
        assert_eq!(watcher.screens, 2);
        watcher.sees(&screen);
        assert_eq!(screen.text().size, WindowSize { cols: 40, rows: 10 });
    }

    #[test]
    fn a_screen_that_was_kept_goes_on_in_mid_sequence() {
        let text =
            "\x1b[?1049h\x1b[2J\x1b[3;3H\x1b[31mred\x1b[0m ö\x1b]2;title\x07 and \x1b[4;1Hmore".as_bytes();
        for cut in 0..text.len() {
            let first = TerminalScreen::new(SIZE, None);
            first.feed(&text[..cut]);
            let kept = first.keep();
            let second = TerminalScreen::new(SIZE, Some(kept.clone()));
            second.feed(&text[usize::try_from(kept.at).unwrap()..]);
            first.feed(&text[cut..]);
            assert_eq!(second.text(), first.text(), "cut at {cut}");
        }
    }

    #[test]
    fn each_question_is_answered_once_and_under_the_same_name_each_time() {
        let screen = TerminalScreen::new(SIZE, None);
        screen.feed(b"ab\r\ncd");
        let answers = screen.feed(b"\x1b[6n\x1b[c\x1b[5n\x1b[?25$p\x1b[?9999$p\x1b[>c");
        let texts: Vec<String> =
            answers.iter().map(|one| String::from_utf8_lossy(&one.bytes).into_owned()).collect();
        assert_eq!(
            texts,
            ["\x1b[2;3R", "\x1b[?62;22c", "\x1b[0n", "\x1b[?25;1$y", "\x1b[?9999;0$y", "\x1b[>1;10;0c"]
        );
        let places: Vec<u64> = answers.iter().map(|one| one.at).collect();
        assert_eq!(places, [10, 13, 17, 24, 33, 37]);
    }

    #[test]
    fn noise_of_any_size_does_not_end_it() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..300 {
            let size = WindowSize { cols: random.u16(0..12), rows: random.u16(0..6) };
            let screen = TerminalScreen::new(size, None);
            for _ in 0..20 {
                let bytes: Vec<u8> = (0..random.usize(0..80))
                    .map(|_| {
                        if random.bool() {
                            random.u8(..)
                        } else {
                            b"\x1b[;0123456789HJKLMPXr@bd"[random.usize(0..24)]
                        }
                    })
                    .collect();
                screen.feed(&bytes);
                if random.u8(..) < 40 {
                    screen.resize(WindowSize { cols: random.u16(0..12), rows: random.u16(0..6) });
                }
                drop((screen.text(), screen.keep(), screen.transcript()));
            }
        }
    }

    #[test]
    fn the_lines_above_the_screen_are_in_the_transcript() {
        let screen = TerminalScreen::new(SIZE, None);
        for number in 0..23 {
            screen.feed(format!("line {number}\r\n").as_bytes());
        }
        let expected: Vec<String> = (0..23).map(|number| format!("line {number}\n")).collect();
        let expected = expected.concat();
        assert_eq!(screen.transcript().trim_end(), expected.trim_end());
    }
}
