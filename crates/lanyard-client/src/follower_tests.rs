//! Following a server that breaks off, and one that is not there.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::error::ClientError;
use crate::follower::{DaemonStream, FollowStep, StreamCursor, StreamFollower, Transport};
use crate::route::Route;
use crate::{DaemonAddress, RecordWatch, WatchSettings, Woken};

/// Answers each connection with one piece of a stream and breaks it off. Gives the paths that were asked for.
async fn serve(listener: TcpListener, pieces: Vec<&'static str>) -> Vec<String> {
    let mut paths = Vec::new();
    for piece in pieces {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let request = String::from_utf8(request).unwrap();
        assert!(request.contains("authorization: Bearer secret"), "{request}");
        paths.push(request.split(' ').nth(1).unwrap().to_owned());
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(piece.as_bytes()).await.unwrap();
    }
    paths
}

async fn listening() -> (TcpListener, DaemonAddress) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, DaemonAddress::at(&url, "secret").unwrap())
}

fn events(address: DaemonAddress, wait: Duration) -> StreamFollower<DaemonStream> {
    let source = DaemonStream::new(address, Transport::ServerSentEvents, |cursor| {
        Route::to(&["sessions", "s", "events"]).with("after", cursor.seq)
    });
    StreamFollower::new(source, StreamCursor::after(1), Some(wait), "lanyard logs -f s".to_owned())
}

#[tokio::test]
async fn a_stream_that_breaks_is_resumed_after_the_last_event() {
    let wait = Duration::from_mins(1);
    let (listener, address) = listening().await;
    let pieces = vec!["data: {\"seq\":2}\n\n", "data: {\"seq\":3}\n\n"];
    let server = tokio::spawn(serve(listener, pieces));
    let mut follower = events(address, wait);
    let mut steps = Vec::new();
    for _ in 0..5 {
        steps.push(follower.next().await.unwrap());
    }
    let frame = |text: &str| FollowStep::Frame(text.to_owned());
    assert_eq!(
        steps,
        [
            FollowStep::Open { back: false },
            frame("{\"seq\":2}"),
            FollowStep::Lost(Some(wait)),
            FollowStep::Open { back: true },
            frame("{\"seq\":3}"),
        ]
    );
    let path = |after: u64| format!("/api/v1/sessions/s/events?after={after}");
    assert_eq!(server.await.unwrap(), [path(1), path(2)]);
}

#[tokio::test]
async fn a_daemon_that_stays_away_ends_the_wait_at_its_bound() {
    let (listener, address) = listening().await;
    drop(listener);
    let wait = Duration::from_millis(150);
    let mut follower = events(address, wait);
    assert_eq!(follower.next().await.unwrap(), FollowStep::Lost(Some(wait)));
    let error = follower.next().await.unwrap_err();
    assert!(
        matches!(&error, ClientError::StayedAway { bound, again } if *bound == wait && again == "lanyard logs -f s"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_watch_looks_once_for_all_that_arrived_and_again_after_a_goodbye() {
    let (listener, address) = listening().await;
    let pieces = vec![
        "data: {\"type\":\"ready\"}\n\ndata: {\"type\":\"a\"}\n\ndata: {\"type\":\"b\"}\n\n",
        "data: {\"type\":\"goodbye\"}\n\n",
        "data: {\"type\":\"c\"}\n\n",
    ];
    let server = tokio::spawn(serve(listener, pieces));
    let settings = WatchSettings { address, wait: None, again: String::new() };
    let mut watch = RecordWatch::of(settings, "task_1,task_2");
    let mut woken = Vec::new();
    for _ in 0..6 {
        woken.push(watch.next().await.unwrap());
    }
    assert_eq!(woken[..3], [Woken::Look, Woken::Lost(None), Woken::Back]);
    assert_eq!(woken[3..], [Woken::Lost(None), Woken::Back, Woken::Look]);
    assert_eq!(server.await.unwrap()[0], "/api/v1/records/stream?record=task_1%2Ctask_2");
}
