//! A program on a terminal, on this terminal: its screen, a line below it, and the keys. Leaving only detaches.

mod keys;
mod pane;
mod tty;
mod typist;

use std::time::Duration;

use lanyard_api::types::TerminalFrame;
use lanyard_client::{Route, TerminalStep, TerminalStream};
use lanyard_core::session::{SessionView, WindowSize};
use lanyard_core::{ConnectionId, SessionId};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::fit;
use crate::tui::attach::Mode;
use keys::{HELP, PrefixKeys, Typed};
use pane::{Pane, StatusLine};
use tty::{RawTerminal, draw, local_size};
use typist::{ORDERS_MAX, Order, Typist, TypistNews};

/// Not drawn more often than this, however much is written.
const DRAW: Duration = Duration::from_millis(20);
/// How long the last words to the daemon may take.
const PARTING: Duration = Duration::from_secs(1);
/// Columns of the session's name in the line below.
const NAME_COLUMNS: usize = 32;

/// The size that a program has that is started on this terminal.
pub(crate) fn room_here() -> WindowSize {
    Pane::new(local_size()).room()
}

/// Why it was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Detached,
    Ended,
}

struct Console {
    pane: Pane,
    keys: PrefixKeys,
    orders: mpsc::Sender<Order>,
    mode: Mode,
    connection: Option<ConnectionId>,
    status: StatusLine,
    writes: bool,
    /// When to draw, once something has changed.
    due: Option<Instant>,
}

/// Shows the program until it ends or the user leaves.
pub(crate) async fn show(context: &Context, view: &SessionView, mode: Mode) -> Result<(), Failure> {
    let id = view.id;
    let name = view.aliases.first().cloned().unwrap_or_else(|| id.to_string());
    let mut stream = stream(context, id, mode)?;
    let (orders, ordered) = mpsc::channel(ORDERS_MAX);
    let (teller, mut news) = mpsc::channel(ORDERS_MAX);
    let typist = Typist::new(context.address()?, id, context.daemon_wait);
    let typist = tokio::spawn(typist.run(ordered, teller));
    context.out.note(&format!("{name}: {HELP}"));
    let mut terminal = RawTerminal::open()?;
    let status =
        StatusLine { session: fit(&name, NAME_COLUMNS), role: "…".to_owned(), hint: HELP.to_owned() };
    let mut console = Console {
        pane: Pane::new(local_size()),
        keys: PrefixKeys::default(),
        orders,
        mode,
        connection: None,
        status,
        writes: false,
        due: None,
    };
    let left = console.run(&mut terminal, &mut stream, &mut news).await;
    let _ = console.orders.send(Order::Release).await;
    drop(console);
    let _ = tokio::time::timeout(PARTING, typist).await;
    drop(terminal);
    match left? {
        Left::Detached => {
            context
                .out
                .note(&format!("detached; the program runs on: `lanyard attach {name}` shows it again"));
        }
        Left::Ended => {
            context.out.note(&format!("the program has ended: `lanyard log {name}` has its last screen"));
        }
    }
    Ok(())
}

fn stream(context: &Context, id: SessionId, mode: Mode) -> Result<TerminalStream, Failure> {
    let write = mode == Mode::Write;
    let route = move |connection: Option<&str>| {
        Route::to(&["sessions", &id.to_string(), "terminal", "attach"])
            .with("client", Some("cli"))
            .with("write", write.then_some("true"))
            .with("connection", connection)
    };
    let again = format!("lanyard attach {id}");
    Ok(TerminalStream::new(context.address()?, Some(context.daemon_wait), again, route))
}

impl Console {
    async fn run(
        &mut self,
        terminal: &mut RawTerminal,
        stream: &mut TerminalStream,
        news: &mut mpsc::Receiver<TypistNews>,
    ) -> Result<Left, Failure> {
        let mut sizes = signal(SignalKind::window_change()).ok();
        let mut ends = [SignalKind::terminate(), SignalKind::hangup()].map(|kind| signal(kind).ok());
        let [terminate, hangup] = &mut ends;
        loop {
            let due = self.due;
            tokio::select! {
                typed = terminal.typed.recv() => match typed {
                    Some(bytes) => if self.typed(&bytes).await { return Ok(Left::Detached) },
                    // The terminal is gone: that is leaving.
                    None => return Ok(Left::Detached),
                },
                step = stream.next() => if let Some(left) = self.step(step?, stream).await {
                    return Ok(left);
                },
                Some(news) = news.recv() => self.told(news).await,
                () = received(&mut sizes) => {
                    self.pane.resized(local_size());
                    self.fill_window().await;
                    self.draw_soon();
                }
                () = received(terminate) => return Ok(Left::Detached),
                () = received(hangup) => return Ok(Left::Detached),
                () = at(due) => {
                    self.due = None;
                    let drawing = self.pane.draw(&self.status, self.writes);
                    draw(&drawing)?;
                }
            }
        }
    }

    /// True when the user leaves.
    async fn typed(&mut self, bytes: &[u8]) -> bool {
        for typed in self.keys.read(bytes, self.writes) {
            match typed {
                Typed::Detach => return true,
                Typed::Input(bytes) => self.order(Order::Input(bytes)).await,
                Typed::Take => self.claim(true).await,
                Typed::Redraw => {
                    self.pane.redraw();
                    self.draw_soon();
                }
            }
        }
        false
    }

    async fn step(&mut self, step: TerminalStep, stream: &mut TerminalStream) -> Option<Left> {
        match step {
            TerminalStep::Open => {}
            TerminalStep::Output(bytes) => self.pane.output(&bytes),
            TerminalStep::Lost(_) => self.role("the daemon does not answer; the program runs on"),
            TerminalStep::Text(text) => match serde_json::from_str(&text) {
                Ok(TerminalFrame::Connected(connected)) => {
                    stream.known_as(connected.connection.to_string());
                    // The lease outlives the daemon: no key is lost before it is confirmed.
                    self.writes &= self.connection == Some(connected.connection);
                    self.connection = Some(connected.connection);
                    self.role(if self.writes { "writing" } else { "watching" });
                    self.claim(false).await;
                }
                Ok(TerminalFrame::Screen { cols, rows }) => self.pane.begin(WindowSize { cols, rows }),
                Ok(TerminalFrame::Ended) => return Some(Left::Ended),
                // Heartbeats, and what a newer daemon says.
                Err(_) => return None,
            },
        }
        self.draw_soon();
        None
    }

    async fn told(&mut self, news: TypistNews) {
        match news {
            TypistNews::Writing => {
                self.writes = true;
                self.role("writing");
                self.fill_window().await;
            }
            TypistNews::Watching(why) => {
                self.writes = false;
                self.pane.redraw();
                self.role(&format!("watching ({why})"));
            }
            TypistNews::Refused(why) => self.role(&why),
        }
        self.draw_soon();
    }

    async fn claim(&mut self, take: bool) {
        if let (Some(connection), Mode::Write) = (self.connection, self.mode) {
            self.order(Order::Claim { connection, take }).await;
        }
    }

    /// The program has the size of the writer's terminal.
    async fn fill_window(&mut self) {
        if self.writes {
            self.order(Order::Size(self.pane.room())).await;
        }
    }

    async fn order(&self, order: Order) {
        // The typist lives as long as this does.
        let _ = self.orders.send(order).await;
    }

    fn role(&mut self, role: &str) {
        role.clone_into(&mut self.status.role);
    }

    fn draw_soon(&mut self) {
        self.due.get_or_insert_with(|| Instant::now() + DRAW);
    }
}

async fn received(signal: &mut Option<Signal>) {
    let came = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if came.is_none() {
        std::future::pending::<()>().await;
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
