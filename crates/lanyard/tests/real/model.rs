//! A scripted model on loopback: what real agents talk to instead of a provider.
//!
//! It speaks `OpenAI` chat completions and Responses, Anthropic Messages and Gemini, and keeps no
//! conversation: the user's text carries `@@NAME@@`, and the answer is step *i* of script NAME, where
//! *i* is the number of assistant turns after that marker. So a retry, a restart, a resumed session and
//! any number of concurrent ones get the answer that fits the history they send, which is also the
//! proof of what they kept. Any path prefix is accepted, so that one model can tell agents apart.

mod anthropic;
mod chat;
mod choose;
mod conversation;
mod frames;
mod gemini;
mod log;
mod pace;
mod responses;
mod script;
mod server;

mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

pub(crate) use self::conversation::{Conversation, Role};
pub(crate) use self::log::{Exchange, Outcome};
pub(crate) use self::script::Step;

use self::server::Shared;

/// The marker of a script, as it stands in a prompt.
pub(crate) fn marker(script: &str) -> String {
    format!("@@{script}@@")
}

/// A running model. Dropping it closes its port and every connection to it.
#[derive(Debug)]
pub(crate) struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

impl Model {
    pub(crate) fn start() -> Model {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("scripted-model")
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind(("127.0.0.1", 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        runtime.spawn(server::serve(listener, shared.clone()));
        Model { address, shared, runtime: Some(runtime) }
    }

    /// The address with a prefix of the caller's choice, without a slash at the end.
    pub(crate) fn url(&self, prefix: &str) -> String {
        format!("http://{}/{prefix}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Defines or replaces a script.
    pub(crate) fn script(&self, name: &str, steps: impl Into<Vec<Step>>) {
        self.shared.scripts.lock().unwrap().insert(name.to_owned(), steps.into());
    }

    /// Lets every answer of this script go on that is held, now or later.
    pub(crate) fn release(&self, script: &str) {
        self.shared.released.send_modify(|names| {
            names.insert(script.to_owned());
        });
    }

    /// Everything that was asked so far, in order.
    pub(crate) fn log(&self) -> Vec<Exchange> {
        self.shared.log.all()
    }

    /// What was asked of one script, in order.
    pub(crate) fn asked(&self, script: &str) -> Vec<Exchange> {
        self.log().into_iter().filter(|exchange| exchange.script == script).collect()
    }

    /// The first exchange that fits, as soon as there is one. Panics with the log when none comes.
    pub(crate) fn wait(&self, what: &str, patience: Duration, fits: impl Fn(&Exchange) -> bool) -> Exchange {
        self.shared.log.wait(what, patience, fits)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
