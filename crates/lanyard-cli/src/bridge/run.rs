//! The loop: orders, events and answers come in one at a time, and the ledger decides what is said.

use std::ffi::OsString;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use super::BridgeError;
use super::http::{LONG_TIMEOUT, OpenCodeHttp};
use super::ledger::{BridgeLedger, BridgeWish, Out, Source};
use super::offers::offers;
use super::ops::{BridgeOp, Job, Open, Order, compact, effort_refused, path};
use super::process::Server;
use super::refetch::{past, past_children, refetch};
use super::stdio::{Orders, Output};
use super::stream::{ServerFeed, follow};
use crate::failure::Failure;

/// How long the last words of aborted work may take; most often the server says that they are said.
const SETTLE: Duration = Duration::from_millis(500);
/// How long work on a prompt may take to begin, before the server is asked about it.
const BEGIN_WAIT: Duration = Duration::from_mins(1);
/// The same when there was an error or an abort: the first prompt in a folder takes seconds to begin.
const BEGIN_WAIT_SOON: Duration = Duration::from_secs(3);
/// Requests waiting for their turn.
const JOBS_MAX: usize = 64;
/// Answers and timers on their way back to the loop.
const DONE_MAX: usize = 64;

/// What comes back to the loop from its own tasks.
#[derive(Debug)]
enum BridgeDone {
    Job(Job, Result<Value, BridgeError>),
    Compacted(String, Result<Value, BridgeError>),
    /// A command's conversation and turn.
    Command(String, (String, String), Result<Value, BridgeError>),
    Settle(String),
    /// Time to look whether work on this turn of a conversation has begun.
    Check(String, String),
    Status(String, String, Result<Value, BridgeError>),
}

struct Bridge {
    output: Output,
    ledger: BridgeLedger,
    http: OpenCodeHttp,
    open: Open,
    /// What was found to be on offer.
    offers: Value,
    jobs: mpsc::Sender<Job>,
    done: mpsc::Sender<BridgeDone>,
    gaps: u64,
}

/// Runs until the server or the bridge is ended.
pub(crate) async fn run(command: Vec<OsString>) -> Result<(), Failure> {
    let (stopper, stop) = watch::channel(false);
    watch_signals(stopper)?;
    let output = Output::open();
    let mut orders = Orders::open();
    let opened = tokio::select! {
        opened = first_order(&mut orders, &output) => opened,
        () = stopped(stop.clone()) => Err(BridgeError::Ending("ended before it was opened")),
    };
    let (id, open) = match opened {
        Ok(opened) => opened,
        Err(error) => return finish(output, error).await,
    };
    let started = tokio::select! {
        server = Server::start(&command, &open.directory) => server,
        () = stopped(stop.clone()) => Err(BridgeError::Ending("ended while the server was starting")),
    };
    let mut server = match started {
        Ok(server) => server,
        Err(error) => {
            output.say(refused(&id, &error)).await;
            return finish(output, error).await;
        }
    };
    let (jobs, queue) = mpsc::channel(JOBS_MAX);
    let (done, results) = mpsc::channel(DONE_MAX);
    tokio::spawn(work(server.http.clone(), queue, done.clone()));
    let http = server.http.clone();
    let mut bridge = Bridge {
        output,
        ledger: BridgeLedger::default(),
        http,
        open,
        offers: Value::Null,
        jobs,
        done,
        gaps: 0,
    };
    let error = tokio::select! {
        error = bridge.serve(&id, server.version.clone(), orders, results) => error,
        error = server.died() => error,
        () = stopped(stop) => BridgeError::Ending("told to end"),
    };
    server.end().await;
    finish(bridge.output, error).await
}

async fn finish(output: Output, error: BridgeError) -> Result<(), Failure> {
    let what = error.to_string();
    output.close(json!({"down": {"what": what}})).await;
    match error {
        BridgeError::Ending(_) => Ok(()),
        BridgeError::Server(_) | BridgeError::Request(_) | BridgeError::Refused { .. } => {
            Err(Failure::local("opencode_down", what, ""))
        }
    }
}

fn watch_signals(stopper: watch::Sender<bool>) -> Result<(), Failure> {
    let listen = |kind| {
        signal(kind)
            .map_err(|error| Failure::local("no_signals", format!("cannot hear signals: {error}"), ""))
    };
    let (mut term, mut int) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        // The receiver is dropped when the bridge is ending already.
        let _ = stopper.send(true);
        // The sender must live: its end would look like an order to stop.
        std::future::pending::<()>().await;
    });
    Ok(())
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the sender is gone, which happens only at the very end.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// The order that opens the conversation. Without it there is nothing to start.
async fn first_order(orders: &mut Orders, output: &Output) -> Result<(String, Open), BridgeError> {
    while let Some(order) = orders.next().await {
        let order = order.and_then(|order| serde_json::from_value(order).map_err(|error| error.to_string()));
        match order {
            Ok(Order { id, op: BridgeOp::Open(open) }) => return Ok((id, *open)),
            Ok(Order { id, .. }) => {
                let error = BridgeError::Request("the first order must be to open".to_owned());
                output.say(refused(&id, &error)).await;
            }
            Err(error) => {
                output.say(json!({"odd": format!("not understood: {error}")})).await;
            }
        }
    }
    Err(BridgeError::Ending("nobody wants anything"))
}

/// Makes the requests of orders one after the other, so that an abort never overtakes its prompt.
async fn work(http: OpenCodeHttp, mut queue: mpsc::Receiver<Job>, done: mpsc::Sender<BridgeDone>) {
    while let Some(job) = queue.recv().await {
        let result = http.post(&job.path, &job.body).await;
        if done.send(BridgeDone::Job(job, result)).await.is_err() {
            return;
        }
    }
}

impl Bridge {
    /// Serves until something ends it.
    async fn serve(
        &mut self,
        id: &str,
        version: Option<String>,
        orders: Orders,
        results: mpsc::Receiver<BridgeDone>,
    ) -> BridgeError {
        match self.opened(id, version).await {
            Ok(feed) => match self.turn_round(orders, feed, results).await {
                Ok(never) => match never {},
                Err(error) => error,
            },
            Err(error) => {
                self.output.say(refused(id, &error)).await;
                error
            }
        }
    }

    async fn opened(
        &mut self,
        id: &str,
        version: Option<String>,
    ) -> Result<mpsc::Receiver<ServerFeed>, BridgeError> {
        let feed = follow(self.http.clone()).await?;
        for server in &self.open.mcp {
            let body = json!({"name": server.name, "config": server.config});
            let odd = match self.http.post("/mcp", &body).await {
                Ok(statuses) if statuses[&server.name]["status"] == "connected" => continue,
                Ok(statuses) => statuses[&server.name].to_string(),
                Err(error) => error.to_string(),
            };
            let odd = format!("the MCP server {} is not connected: {odd}", server.name);
            self.output.say(json!({"odd": odd})).await;
        }
        let (native, history) = self.conversation().await?;
        let mut ok = json!({"native": native, "version": version, "history": history});
        if let Some(offers) = offers(&self.http).await {
            self.offers = offers.clone();
            ok["offers"] = offers;
        }
        self.say(json!({"re": id, "ok": ok})).await?;
        Ok(feed)
    }

    /// Takes the conversation up again or begins one: its id, and how many messages it has.
    async fn conversation(&mut self) -> Result<(String, Option<u64>), BridgeError> {
        if let Some(native) = self.open.native.clone() {
            self.http.get(&path(&["session", &native])).await?;
            let past = past(&self.http, &native).await?;
            self.ledger.open(&native, past.last.as_deref());
            past_children(&self.http, &mut self.ledger, &native).await?;
            return Ok((native, Some(past.messages)));
        }
        let body = json!({"title": self.open.title.as_deref().unwrap_or("Lanyard")});
        let made = self.http.post("/session", &body).await?;
        let native = made["id"].as_str();
        let native =
            native.ok_or_else(|| BridgeError::Request("OpenCode's new session has no id".to_owned()))?;
        self.ledger.open(native, None);
        Ok((native.to_owned(), None))
    }

    async fn turn_round(
        &mut self,
        mut orders: Orders,
        mut feed: mpsc::Receiver<ServerFeed>,
        mut results: mpsc::Receiver<BridgeDone>,
    ) -> Result<std::convert::Infallible, BridgeError> {
        let mut listening = true;
        loop {
            let mut out = Out::default();
            tokio::select! {
                order = orders.next(), if listening => match order {
                    Some(order) => self.order(order, &mut out).await?,
                    // The daemon is away; the agent works on.
                    None => listening = false,
                },
                event = feed.recv() => match event {
                    Some(ServerFeed::Event(event)) => self.ledger.event(&event, Source::Stream, &mut out),
                    Some(ServerFeed::Back) => self.back(&mut out).await?,
                    Some(ServerFeed::Gone(why)) => return Err(BridgeError::Server(why)),
                    None => return Err(BridgeError::Server("the stream of events ended".to_owned())),
                },
                Some(done) = results.recv() => self.finished(done, &mut out).await?,
            }
            self.carry_out(out).await?;
        }
    }

    async fn back(&mut self, out: &mut Out) -> Result<(), BridgeError> {
        self.gaps += 1;
        self.ledger.lost();
        self.say(json!({"gap": {"number": self.gaps}})).await?;
        if let Err(error) = refetch(&self.http, &mut self.ledger, out).await {
            // The stream will break again if the server is in trouble; what was learned so far is said.
            out.lines.push(json!({"odd": format!("cannot see all that was missed: {error}")}));
        }
        Ok(())
    }

    async fn order(&mut self, order: Result<Value, String>, out: &mut Out) -> Result<(), BridgeError> {
        let order = order.and_then(|order| serde_json::from_value(order).map_err(|error| error.to_string()));
        let Order { id, op } = match order {
            Ok(order) => order,
            Err(error) => {
                out.lines.push(json!({"odd": format!("not understood: {error}")}));
                return Ok(());
            }
        };
        let Some(main) = self.ledger.main().map(str::to_owned) else { return Ok(()) };
        let (path, body) = match op {
            BridgeOp::Open(_) => return self.refuse(&id, "it is open already").await,
            BridgeOp::Prompt { turn, session, text, files, command, model, agent, effort } => {
                // Words for the running turn, and compactions, have what its prompt had.
                self.open.model = model.or(self.open.model.take());
                self.open.agent = agent.or(self.open.agent.take());
                if session.is_none() {
                    self.open.effort = effort;
                }
                let session = session.unwrap_or(main);
                return self.prompt(id, (turn, session), (command, &text, files), out).await;
            }
            BridgeOp::Steer { session, .. }
                if !self.ledger.takes_words(session.as_ref().unwrap_or(&main)) =>
            {
                return self.refuse(&id, "nothing runs that could be steered").await;
            }
            // Model, agent and role are the main conversation's; a subagent has its own.
            BridgeOp::Steer { session: Some(session), text, files } if session != main => {
                (path(&["session", &session, "prompt_async"]), Open::default().words(&text, files))
            }
            BridgeOp::Steer { text, files, .. } => {
                (path(&["session", &main, "prompt_async"]), self.open.words(&text, files))
            }
            BridgeOp::Abort { session } => {
                let session = session.unwrap_or(main);
                self.ledger.aborting(&session, out);
                (path(&["session", &session, "abort"]), json!({}))
            }
            BridgeOp::Reply { request, reply, message } => {
                self.ledger.answering(&request);
                let body = match message {
                    Some(message) => json!({"reply": reply, "message": message}),
                    None => json!({"reply": reply}),
                };
                (path(&["permission", &request, "reply"]), body)
            }
            BridgeOp::Answer { request, answers } => {
                self.ledger.answering(&request);
                match answers {
                    Some(answers) => (path(&["question", &request, "reply"]), json!({"answers": answers})),
                    None => (path(&["question", &request, "reject"]), json!({})),
                }
            }
            BridgeOp::Compact {} => {
                let (done, work) =
                    (self.done.clone(), compact(self.http.clone(), main, self.open.model.clone()));
                tokio::spawn(async move { done.send(BridgeDone::Compacted(id, work.await)).await });
                return Ok(());
            }
            BridgeOp::End {} => return Err(BridgeError::Ending("told to end")),
        };
        self.enqueue(Job { id: Some(id), path, body, prompt: None })
    }

    async fn prompt(
        &mut self,
        id: String,
        (turn, session): (String, String),
        (command, text, files): (Option<String>, &str, Vec<Value>),
        out: &mut Out,
    ) -> Result<(), BridgeError> {
        // Model, agent and role are the main conversation's; a child has its own.
        let is_main = self.ledger.main() == Some(session.as_str());
        let known = self.ledger.family().contains(&session);
        let effort = self.open.effort.as_deref().filter(|_| is_main);
        let why = match effort {
            _ if !known => Some("there is no such conversation here".to_owned()),
            Some(effort) => effort_refused(&self.offers, self.open.model.as_deref(), effort),
            None => None,
        };
        if let Some(why) = why {
            self.ledger.refused(&session, &turn, &why, out);
            return self.refuse(&id, &why).await;
        }
        if let Some(name) = command {
            let body = self.open.command(&name, text, &files);
            self.ledger.prompting(&session, &turn, out);
            self.command(id, (session, turn), body);
            return Ok(());
        }
        let body = if is_main { self.open.words(text, files) } else { Open::default().words(text, files) };
        self.ledger.prompting(&session, &turn, out);
        let path = path(&["session", &session, "prompt_async"]);
        self.enqueue(Job { id: Some(id), path, body, prompt: Some((session, turn)) })
    }

    /// A command is answered when its work is done, so it is not asked for in the queue: an abort must not wait for it.
    fn command(&self, id: String, (session, turn): (String, String), body: Value) {
        let (done, http) = (self.done.clone(), self.http.clone());
        tokio::spawn(async move {
            let path = path(&["session", &session, "command"]);
            let result = http.ask(Method::POST, &path, Some(&body), LONG_TIMEOUT).await;
            done.send(BridgeDone::Command(id, (session, turn), result)).await
        });
    }

    async fn refuse(&self, id: &str, why: &str) -> Result<(), BridgeError> {
        self.say(refused(id, &BridgeError::Request(why.to_owned()))).await
    }

    fn enqueue(&self, job: Job) -> Result<(), BridgeError> {
        let full = |_| BridgeError::Server("OpenCode is far behind with its answers".to_owned());
        self.jobs.try_send(job).map_err(full)
    }

    async fn finished(&mut self, done: BridgeDone, out: &mut Out) -> Result<(), BridgeError> {
        match done {
            BridgeDone::Job(Job { id, prompt, .. }, result) => {
                if let (Some((session, turn)), Err(error)) = (prompt, &result) {
                    self.ledger.refused(&session, &turn, &error.to_string(), out);
                }
                if let Some(id) = id {
                    self.answer(&id, result).await?;
                }
            }
            BridgeDone::Compacted(id, result) => self.answer(&id, result).await?,
            BridgeDone::Command(id, (session, turn), result) => {
                // Work that has begun ends by its events, whatever becomes of this request.
                if let (Err(error), true) = (&result, self.ledger.is_awaiting(&session, &turn)) {
                    self.ledger.refused(&session, &turn, &error.to_string(), out);
                }
                self.answer(&id, result).await?;
            }
            BridgeDone::Settle(session) => self.ledger.settled(&session, out),
            BridgeDone::Check(session, turn) if self.ledger.is_awaiting(&session, &turn) => {
                let (done, http) = (self.done.clone(), self.http.clone());
                tokio::spawn(async move {
                    let status = http.get("/session/status").await;
                    done.send(BridgeDone::Status(session, turn, status)).await
                });
            }
            BridgeDone::Check(..) => {}
            BridgeDone::Status(session, turn, Ok(statuses)) if self.ledger.is_awaiting(&session, &turn) => {
                if statuses[&session].is_null() {
                    self.ledger.unbegun(&session, out);
                } else {
                    let properties = json!({"sessionID": session, "status": statuses[&session]});
                    let event = json!({"type": "session.status", "properties": properties});
                    self.ledger.event(&event, Source::Refetch, out);
                }
            }
            BridgeDone::Status(..) => {}
        }
        Ok(())
    }

    async fn answer(&self, id: &str, result: Result<Value, BridgeError>) -> Result<(), BridgeError> {
        let line = match result {
            Ok(_) => json!({"re": id, "ok": {}}),
            Err(error) => refused(id, &error),
        };
        self.say(line).await
    }

    async fn carry_out(&mut self, out: Out) -> Result<(), BridgeError> {
        for line in out.lines {
            self.say(line).await?;
        }
        for wish in out.wishes {
            let plain = |path: String, body: Value| Job { id: None, path, body, prompt: None };
            match wish {
                BridgeWish::Abort { session } => {
                    self.enqueue(plain(path(&["session", &session, "abort"]), json!({})))?;
                }
                BridgeWish::Void { request, question: true } => {
                    self.enqueue(plain(path(&["question", &request, "reject"]), json!({})))?;
                }
                BridgeWish::Void { request, question: false } => {
                    let body = json!({"reply": "reject"});
                    self.enqueue(plain(path(&["permission", &request, "reply"]), body))?;
                }
                BridgeWish::Settle { session } => self.later(SETTLE, BridgeDone::Settle(session)),
                BridgeWish::Check { session, turn, soon } => {
                    let wait = if soon { BEGIN_WAIT_SOON } else { BEGIN_WAIT };
                    self.later(wait, BridgeDone::Check(session, turn));
                }
            }
        }
        Ok(())
    }

    fn later(&self, wait: Duration, done: BridgeDone) {
        let sender = self.done.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            sender.send(done).await
        });
    }

    async fn say(&self, line: Value) -> Result<(), BridgeError> {
        if self.output.say(line).await {
            Ok(())
        } else {
            Err(BridgeError::Ending("nobody reads what it says"))
        }
    }
}

fn refused(id: &str, error: &BridgeError) -> Value {
    let code = match error {
        BridgeError::Refused { status: 404, .. } => "unknown",
        BridgeError::Refused { .. } => "refused",
        BridgeError::Server(_) => "server",
        BridgeError::Request(_) => "request",
        BridgeError::Ending(_) => "ending",
    };
    json!({"re": id, "error": {"code": code, "message": error.to_string()}})
}
