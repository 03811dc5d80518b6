//! Readers of tasks and plans do not use the owner's thread (FND-H2).

use axum::body::Body;
use axum::http::Request as HttpRequest;
use lanyard_core::paper::NewPlan;
use lanyard_core::task::NewTask;
use tower::ServiceExt;

use super::*;
use crate::families::{Adding, By};
use crate::server::Via;

/// Readers that ask at the same time.
const READERS: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fnd_h2_readers_are_answered_while_the_owner_is_held() {
    let room = Room::new();
    let by = By { actor: Actor::operator("local"), session: None };
    let plan = room.app.families.ask(move |owner| {
        let (id, _) = owner.plan_for(None)?;
        let new = NewPlan { title: "A plan".to_owned(), ..NewPlan::default() };
        let task = NewTask { title: "a task".to_owned(), ..NewTask::default() };
        owner.new_plan(id, new, "", Adding { tasks: vec![task], plan: None }, false, &by)
    });
    let plan = plan.await.unwrap();

    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let (began, has_begun) = tokio::sync::oneshot::channel();
    let families = room.app.families.clone();
    let owner = tokio::spawn(async move {
        let work = families.ask(move |_| {
            let _ = began.send(());
            // The owner's thread stands still until the readers have their answers.
            let _ = held.recv();
            Ok(())
        });
        work.await
    });
    has_begun.await.unwrap();

    let router = crate::api::router(&room.app);
    let paths = [
        "/tasks".to_owned(),
        format!("/plans/{plan}"),
        "/plans".to_owned(),
        "/workers".to_owned(),
        "/gates".to_owned(),
    ];
    let mut reads = Vec::new();
    for path in paths.iter().cycle().take(READERS) {
        let mut request = HttpRequest::get(format!("/api/v1{path}"))
            .header("authorization", "Bearer operator")
            .body(Body::empty())
            .unwrap();
        request.extensions_mut().insert(Via::Socket);
        reads.push(tokio::spawn(router.clone().oneshot(request)));
    }
    for read in reads {
        let answer = tokio::time::timeout(PATIENCE, read).await.expect("a reader waits for the owner");
        assert_eq!(answer.unwrap().unwrap().status(), 200);
    }
    assert!(!owner.is_finished(), "the owner is still held");
    let_go.send(()).unwrap();
    owner.await.unwrap().unwrap();
    room.close().await;
}

/// The other way round: readers that stand still keep nobody from writing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fnd_h2_the_owner_writes_while_readers_are_held() {
    let room = Room::new();
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let (families, store, held) = (room.app.families.clone(), room.app.store.clone(), held.clone());
        readers.push(tokio::task::spawn_blocking(move || {
            let reader = families.reader(&*store);
            let _ = held.lock().recv();
            reader.workers().unwrap().len()
        }));
    }
    let by = By { actor: Actor::operator("local"), session: None };
    let made = room.app.families.ask(move |owner| {
        let task = NewTask { title: "a task".to_owned(), ..NewTask::default() };
        owner.add(Adding { tasks: vec![task], plan: None }, &by)
    });
    let made = tokio::time::timeout(PATIENCE, made).await.expect("the owner waits for readers").unwrap();
    assert_eq!(made.len(), 1);
    drop(let_go);
    for reader in readers {
        reader.await.unwrap();
    }
    room.close().await;
}
