//! The terminal of a run: its output becomes a screen, in the order and for the sizes it was written in; its questions
//! are answered once; and what a later daemon needs to go on is kept beside the output that is given up.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use lanyard_api::agents::settings::DriverKind;
use lanyard_core::Session;
use lanyard_core::session::{Signal, TerminalActivity, WindowSize};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};

use super::Runner;
use crate::runs::{LinkError, ScreenFile};
use crate::terminal::{AnsweredQuery, KeptRun, ResizeOrder, TerminalScreen};

/// Output after the kept screen that is kept too. A screen that is made again from it is what it was, also where a
/// program set what no screen shows.
const REPLAY_BYTES: u64 = 1 << 20;
/// A program that has written nothing for so long is at rest: longer than a pause between two steps of most programs.
const QUIET_AFTER: Duration = Duration::from_secs(10);
/// The same for one that rang: it says itself that it waits.
const RANG_AFTER: Duration = Duration::from_secs(2);

pub(super) struct RunConsole {
    screen: Arc<TerminalScreen>,
    /// None until the screen is up with what an earlier daemon showed.
    resizes: Option<mpsc::Receiver<ResizeOrder>>,
    /// The place in the output at which it is.
    shown_at: u64,
    /// Sizes, and the places in the output from which on they hold.
    sizes: VecDeque<(u64, WindowSize)>,
    /// The place of the screen on disk, and the one that takes its place.
    kept: u64,
    next: Option<ScreenFile>,
    /// What the log has of the program's activity.
    told: Option<TerminalActivity>,
    /// When it wrote last, and whether it rang since it began to write.
    wrote_at: Instant,
    rang: bool,
}

/// The next order to change the window's size; none comes where there is no terminal.
pub(super) async fn next_resize(console: &mut Option<RunConsole>) -> ResizeOrder {
    let resizes = console.as_mut().and_then(|console| console.resizes.as_mut());
    match resizes {
        Some(resizes) => match resizes.recv().await {
            Some(order) => order,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

impl Runner {
    /// Makes the screen as it was when it was kept last. What was written since is read again.
    pub(super) fn open_console(&mut self, session: &Session) {
        let Some(program) =
            session.terminal.as_ref().filter(|_| self.settings.driver == DriverKind::Terminal)
        else {
            return;
        };
        let consumed = self.link.consumed_to();
        let kept = self.link.screen().filter(|kept| kept.at >= consumed);
        let at = kept.as_ref().map_or(consumed, |kept| kept.at);
        let mut sizes: VecDeque<_> = self.link.sizes().into();
        let mut size = kept.as_ref().map_or(program.size, |kept| kept.size);
        while let Some((_, passed)) = sizes.pop_front_if(|(from, _)| *from <= at) {
            size = passed;
        }
        let screen = TerminalScreen::new(size, kept);
        if at > screen.at() {
            screen.skip_to(at);
        }
        screen.resize(size);
        self.output = self.link.output(at);
        (self.position, self.here, self.reported) = (at, at, at);
        let shown_at = self.link.spooled();
        let told = session.live_run().and_then(|run| run.activity).map(|mark| mark.activity);
        self.console = Some(RunConsole {
            screen: Arc::new(screen),
            resizes: None,
            shown_at,
            sizes,
            kept: at,
            next: None,
            told,
            wrote_at: Instant::now(),
            rang: false,
        });
        self.show_console();
    }

    /// People see the screen once it is as far as the output is.
    fn show_console(&mut self) {
        let Some(console) = &mut self.console else { return };
        if console.resizes.is_none() && self.position >= console.shown_at {
            let screen = console.screen.clone();
            console.resizes = Some(self.shared.terminals.begin(self.session, screen, self.link.clone()));
        }
    }

    /// Draws a piece of the output.
    pub(super) async fn draw(&mut self, piece: &Bytes) {
        let Some(console) = &mut self.console else { return };
        let mut answers: Vec<AnsweredQuery> = Vec::new();
        let mut rest = piece.clone();
        while !rest.is_empty() {
            while let Some((_, size)) = console.sizes.pop_front_if(|(from, _)| *from <= self.position) {
                console.screen.resize(size);
            }
            let until = console.sizes.front().map_or(u64::MAX, |(from, _)| from - self.position);
            let len = usize::try_from(until).unwrap_or(usize::MAX).min(rest.len());
            let part = rest.split_to(len);
            answers.extend(console.screen.feed(&part));
            self.position += part.len() as u64;
        }
        self.here = self.position;
        for AnsweredQuery { at, bytes } in answers {
            // By its place in the output an answer has one name: it is typed once, whichever daemon reads the question.
            if let Err(error) = self.link.send(&format!("query:{at}"), &bytes).await {
                tracing::debug!(run = %self.run, %error, "a program's question to its terminal was not answered");
            }
        }
        self.keep_console();
        self.show_console();
        self.console_wrote().await;
    }

    /// The program works. What an earlier daemon has read already tells nothing new.
    async fn console_wrote(&mut self) {
        let Some(console) = &mut self.console else { return };
        let rang = console.screen.take_rang();
        if self.position <= console.shown_at {
            return;
        }
        console.wrote_at = Instant::now();
        let works = console.told == Some(TerminalActivity::Working);
        console.rang = rang || (works && console.rang);
        if !works {
            self.tell_activity(TerminalActivity::Working).await;
        }
    }

    /// When the program counts as at rest, unless it writes before.
    pub(super) fn console_rests_at(&self) -> Option<Instant> {
        let console =
            self.console.as_ref().filter(|console| console.told == Some(TerminalActivity::Working))?;
        Some(console.wrote_at + if console.rang { RANG_AFTER } else { QUIET_AFTER })
    }

    pub(super) async fn look_at_console(&mut self, now: Instant) {
        if self.console_rests_at().is_none_or(|at| at > now) {
            return;
        }
        let rang = self.console.as_ref().is_some_and(|console| console.rang);
        self.tell_activity(if rang { TerminalActivity::Rang } else { TerminalActivity::Quiet }).await;
    }

    async fn tell_activity(&mut self, activity: TerminalActivity) {
        let Some(console) = &mut self.console else { return };
        console.told = Some(activity);
        let watched = console.screen.is_watched();
        let signal = Signal::TerminalActivity { run: self.run, activity, watched };
        self.shared.note(self.session, signal).await;
    }

    /// Gives up output that no later daemon needs to make the screen again.
    fn keep_console(&mut self) {
        let Some(console) = &mut self.console else { return };
        let begin = console.next.as_ref().map_or(console.kept, |next| next.at);
        if self.position < begin + REPLAY_BYTES {
            return;
        }
        if let Some(next) = console.next.take() {
            if let Err(error) = self.link.keep_screen(&next) {
                tracing::warn!(run = %self.run, %error, "the screen of a terminal could not be kept");
                console.next = Some(next);
                return;
            }
            console.kept = next.at;
            self.link.consumed(next.at);
        }
        console.next = Some(console.screen.keep());
    }

    /// Gives the window another size. What was written before is drawn for the old one.
    pub(super) async fn resize_console(&mut self, order: ResizeOrder) {
        let resized = self.link.resize(&format!("resize:{}", order.key), order.size).await;
        let answer = match resized {
            Ok(Some(at)) => {
                if let Some(console) = &mut self.console {
                    if at <= self.position {
                        console.screen.resize(order.size);
                    } else {
                        console.sizes.push_back((at, order.size));
                    }
                }
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let _ = order.done.send(answer);
    }

    /// Keeps the last screen and the recording. Called before the log learns of the end.
    pub(super) async fn keep_terminal(&mut self) {
        let Some(console) = &self.console else { return };
        let text = console.screen.text();
        let kept = KeptRun {
            run: self.run,
            size: text.size,
            title: text.title,
            screen: text.text,
            transcript: console.screen.transcript(),
        };
        let (archive, session, recording) =
            (self.shared.terminals.archive().clone(), self.session, self.link.recording());
        let kept = tokio::task::spawn_blocking(move || archive.keep(session, &kept, &recording)).await;
        if let Err(error) = kept.map_err(std::io::Error::other).and_then(|kept| kept) {
            tracing::warn!(run = %self.run, %error, "the recording of a terminal could not be kept");
        }
    }

    /// Tells all who watch that it is over. Called after the log learned of it.
    pub(super) fn close_console(&mut self) {
        let Some(mut console) = self.console.take() else { return };
        console.screen.end();
        self.shared.terminals.end(self.session);
        if let Some(resizes) = &mut console.resizes {
            resizes.close();
            while let Ok(order) = resizes.try_recv() {
                let _ = order.done.send(Err(LinkError::Ended));
            }
        }
    }
}
