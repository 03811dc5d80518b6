//! Lanyard as an agent of an editor: the Agent Client Protocol on stdin and stdout, and behind it the sessions of the
//! daemon. A thin translator: it keeps nothing, and closing the editor only detaches.

mod content;
mod follow;
mod host;
mod methods;
mod offers;
mod prompt;
mod seat;
mod tell;
mod wire;
mod words;

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use self::host::Host;
use self::methods::Desk;
use self::wire::{Input, Wire};
use crate::context::Context;
use crate::failure::Failure;

/// What an editor's settings say.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The agent of new sessions; the daemon's default when left out.
    pub(crate) agent: Option<String>,
    pub(crate) delivery: PromptDelivery,
}

/// What becomes of a prompt while another turn runs: it is refused, or it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PromptDelivery {
    #[value(hide = true)]
    Reject,
    #[value(name = "next", alias = "queue")]
    Queue,
}

impl PromptDelivery {
    /// In the API's terms.
    fn wish(self) -> lanyard_core::session::Delivery {
        match self {
            Self::Reject => lanyard_core::session::Delivery::Reject,
            Self::Queue => lanyard_core::session::Delivery::Queue,
        }
    }
}

/// Serves one editor until it leaves.
pub(crate) async fn run(context: &Context, options: Options) -> Result<(), Failure> {
    let unheard = |error| Failure::local("signals", format!("cannot listen for signals: {error}"), "");
    let mut terminated = signal(SignalKind::terminate()).map_err(unheard)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(unheard)?;
    // One key cannot stand for all that an editor will ask.
    let context = Context { key: None, ..context.clone() };
    let (wire, mut written) = Wire::open();
    let mut input = Input::open();
    let (host, idle) = Host::new(&context, wire.clone(), options)?;
    let mut desk = Desk::new(Arc::clone(&host));
    let mut read = true;
    loop {
        tokio::select! {
            incoming = input.next() => match incoming {
                Some(incoming) => desk.hear(incoming).await,
                None => break,
            },
            _ = &mut written => {
                read = false;
                break;
            }
            _ = terminated.recv() => break,
            _ = interrupted.recv() => break,
        }
    }
    host.leave(idle).await;
    drop((desk, host));
    if read {
        wire.close(written).await;
    }
    Ok(())
}
