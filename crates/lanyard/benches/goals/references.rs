//! What Lanyard is compared with, each in a process of its own: this program started with `--role`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use anyhow::{Context, Result, bail};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_core::Stream;

use crate::machine::rss_kib;
use crate::process::end_with_parent;

/// Bytes the floor passes on at a time.
const FLOOR_BYTES: usize = 256 * 1024;

pub(crate) fn play(role: &str, args: &[String]) -> Result<()> {
    if role.starts_with("mcp-") {
        return crate::gateway::play(role, args);
    }
    end_with_parent();
    let number = args.first().and_then(|arg| arg.parse().ok());
    match (role, number) {
        ("floor", Some(observers)) => floor(observers),
        ("sse", None) => sse(),
        ("lean", Some(sessions)) => lean(sessions),
        _ => bail!("there is no role `{role}` with {args:?}"),
    }
}

/// The least a server can do: what comes in on one connection goes out on all others, one send each.
fn floor(observers: u32) -> Result<()> {
    let publishers = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{} {}", publishers.local_addr()?.port(), listener.local_addr()?.port());
    let (mut publisher, _) = publishers.accept()?;
    let mut everyone = Vec::new();
    for _ in 0..observers {
        let (mut observer, _) = listener.accept()?;
        observer.set_nodelay(true)?;
        observer.write_all(b"+")?;
        everyone.push(observer);
    }
    let mut buffer = vec![0; FLOOR_BYTES];
    loop {
        let count = publisher.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        for observer in &mut everyone {
            observer.write_all(&buffer[..count])?;
        }
    }
}

/// axum's own server-sent events, with nothing around them.
fn sse() -> Result<()> {
    let app = axum::Router::new().route(
        "/",
        axum::routing::get(|| async { Sse::new(Quiet::default()).keep_alive(KeepAlive::default()) }),
    );
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("{}", listener.local_addr()?.port());
        axum::serve(listener, app).await?;
        Ok(())
    })
}

/// One event, and then nothing more.
#[derive(Debug, Default)]
struct Quiet {
    greeted: bool,
}

impl Stream for Quiet {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::replace(&mut self.greeted, true) {
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Event::default().data("hello"))))
    }
}

/// As little as a session can be: ids as integers, its few words in one text.
#[derive(Debug)]
struct Lean {
    _last_seq: u64,
    _last_pos: i64,
    _parent: u128,
    _created_at: i64,
    _since: i64,
    _last_activity_at: i64,
    _state: u8,
    _words: Box<str>,
}

/// Says how many bytes one of so many lean sessions takes.
fn lean(sessions: u32) -> Result<()> {
    let before = rss_kib(std::process::id())?;
    let mut all = HashMap::new();
    for number in 0..sessions {
        let at = i64::from(number);
        let session = Lean {
            _last_seq: 10,
            _last_pos: at * 10,
            _parent: 0,
            _created_at: at,
            _since: at,
            _last_activity_at: at,
            _state: 0,
            _words: format!(
                "owner-{:02} claude api workspace-{:03} refactor the parser {number:06}",
                number % 20,
                number % 50
            )
            .into(),
        };
        all.insert(u128::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835), session);
    }
    let grown = (rss_kib(std::process::id())? - before) * 1024.0;
    println!("{:.0}", grown / f64::from(sessions));
    // Kept until it has been measured.
    all.get(&0).map(drop).context("the first session is missing")
}
