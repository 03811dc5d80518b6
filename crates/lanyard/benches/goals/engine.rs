//! The engine in this process, with a real journal and no HTTP around it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lanyard_api::config::Config;
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use lanyard_core::continuity::ContinuityRules;
use lanyard_core::session::{Command, NewSession, Role, Signal};
use lanyard_core::{Actor, Cause, SessionId, TurnId};
use lanyard_engine::continuity::ContinuityCounter;
use lanyard_engine::engine::{Ask, Engine, Key, Parts, Request, start};
use lanyard_engine::hub::Hub;
use tokio::runtime::Runtime;

use crate::fixture;

pub(crate) struct Rig {
    runtime: Runtime,
    engine: Engine,
    clock: Arc<Clock>,
    sessions: Arc<Vec<SessionId>>,
    /// Sessions whose first turn has been started.
    used: AtomicUsize,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.runtime.block_on(self.engine.stop());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Rig {
    /// An engine that has just made so many sessions, so that it holds them in memory.
    pub(crate) fn start(home: &Path, sessions: usize) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let clock = Arc::new(Clock::from_env()?);
        let settings = LiveConfig::new(Config::default(), "lanyard".into());
        let store = Arc::new(fixture::open(home)?);
        let parts = Parts {
            seen: Arc::new(|_, _| None),
            parent_notice: Box::new(|_, _| {}),
            agents: Box::new(|_, _| true),
            continuity: ContinuityCounter::open(ContinuityRules::default(), &*store)?,
            turn_ended: None,
            store,
            hub: Arc::new(Hub::default()),
            clock: clock.clone(),
            settings,
            memory: lanyard_core::memory::MemoryPolicy::default(),
            runtime: runtime.handle().clone(),
        };
        let (engine, thread) = start(parts)?;
        let ids: Vec<SessionId> =
            (0..sessions).map(|_| SessionId::mint(clock.now(), clock.random())).collect();
        let creating = ids.iter().map(|&id| {
            let engine = engine.clone();
            let new = NewSession { title: Some("bench".to_owned()), ..NewSession::default() };
            let ask = Ask::Create { id, new: Box::new(new), parent: None };
            runtime.spawn(async move { engine.ask(request(ask)).await })
        });
        let creating: Vec<_> = creating.collect();
        runtime.block_on(async {
            for created in creating {
                created.await?.context("cannot create a session")?;
            }
            anyhow::Ok(())
        })?;
        Ok(Self {
            runtime,
            engine,
            clock,
            sessions: Arc::new(ids),
            used: AtomicUsize::new(0),
            thread: Some(thread),
        })
    }

    /// Events per second when so many callers report what an agent said, each in sessions of its own in turn.
    pub(crate) fn said(&self, callers: usize, span: Duration) -> Result<f64> {
        let began = Instant::now();
        let until = began + span;
        let calling = (0..callers).map(|caller| {
            let (engine, sessions) = (self.engine.clone(), self.sessions.clone());
            self.runtime.spawn(async move {
                let mut events = 0_u32;
                for session in sessions.iter().skip(caller).step_by(callers).cycle() {
                    if Instant::now() >= until {
                        break;
                    }
                    let signal = Signal::Said {
                        role: Role::Agent,
                        text: "x".repeat(200),
                        message_id: None,
                        parts: Vec::new(),
                    };
                    engine.ask(request(Ask::Tell { session: *session, signals: vec![signal] })).await?;
                    events += 1;
                }
                anyhow::Ok(events)
            })
        });
        let calling: Vec<_> = calling.collect();
        let events = self.runtime.block_on(async {
            let mut events = 0;
            for caller in calling {
                events += caller.await??;
            }
            anyhow::Ok(events)
        })?;
        Ok(f64::from(events) / began.elapsed().as_secs_f64())
    }

    /// Starts the first turn of so many sessions, one after the other, each under a key; microseconds of each.
    pub(crate) fn turns(&self, count: usize) -> Result<Vec<f64>> {
        let first = self.used.fetch_add(count, Ordering::Relaxed);
        let sessions = self.sessions.get(first..first + count).context("there are no more fresh sessions")?;
        self.runtime.block_on(async {
            let mut micros = Vec::with_capacity(count);
            for &session in sessions {
                let turn = TurnId::mint(self.clock.now(), self.clock.random());
                let command = Command::StartTurn { turn, client_turn_id: None, prompt: "x".repeat(200) };
                let key =
                    Key { key: self.clock.random().to_be_bytes(), request: turn.as_u128().to_be_bytes() };
                let request = Request { keys: vec![key], ..request(Ask::Do { session, command }) };
                let asked = Instant::now();
                self.engine.ask(request).await?;
                micros.push(asked.elapsed().as_secs_f64() * 1e6);
            }
            Ok(micros)
        })
    }
}

fn request(ask: Ask) -> Request {
    let cause = Some(Cause::Request("req_00000000000000000000000000000000".to_owned()));
    Request { ask, actor: Actor::operator("bench"), cause, keys: Vec::new() }
}
