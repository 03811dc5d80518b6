//! The contexts of the daemon's parts: each gets what it works with, and no part gets everything.

use parking_lot::Mutex;
use std::sync::Arc;

use lanyard_api::config::CallRecording;
use lanyard_git::snapshot::CheckpointStore;
use lanyard_store::{Attachments, Store};

use crate::auth::TokenBook;
use crate::families::Families;
use crate::memory::{Memory, MemoryContext};
use crate::notifications::NotificationHandle;
use crate::own_tools::{OwnTools, ToolContext};
use crate::storage::StorageContext;
use crate::trees::OwnTrees;
use lanyard_agents::agents::roster::Roster;
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::engine::Engine;
use lanyard_engine::hub::Hub;
use lanyard_gateway::intercept::Interceptor;
use lanyard_gateway::mcp::{Gateway, RelayContext};

/// What several contexts hold.
pub(crate) struct Common<'a> {
    engine: &'a Engine,
    store: &'a Arc<dyn Store>,
    hub: &'a Arc<Hub>,
    clock: &'a Arc<Clock>,
    config: &'a LiveConfig,
    agents: &'a Roster,
    tokens: &'a Arc<TokenBook>,
}

/// The contexts, for the parts that run beside the API and for its handlers.
pub(crate) struct Contexts {
    pub(crate) memories: Arc<MemoryContext>,
    pub(crate) mcp: Arc<RelayContext>,
    pub(crate) tools: Arc<ToolContext>,
    pub(crate) storage: Arc<StorageContext>,
}

impl<'a> Common<'a> {
    pub(crate) const fn new(
        engine: &'a Engine,
        store: &'a Arc<dyn Store>,
        hub: &'a Arc<Hub>,
        clock: &'a Arc<Clock>,
        config: &'a LiveConfig,
        agents: &'a Roster,
        tokens: &'a Arc<TokenBook>,
    ) -> Self {
        Self { engine, store, hub, clock, config, agents, tokens }
    }

    pub(crate) fn contexts(
        &self,
        memory: Memory,
        (gateway, record): (Gateway, CallRecording),
        families: &Families,
        kept: (&OwnTrees, &CheckpointStore, &Arc<Attachments>, &NotificationHandle),
    ) -> Contexts {
        let memories = self.memory(memory);
        let tools = self.tools(families, &memories);
        let mcp = self.relay(gateway, &tools, record);
        let storage = self.storage(&mcp.gateway, kept);
        Contexts { memories, mcp, tools, storage }
    }

    fn memory(&self, memory: Memory) -> Arc<MemoryContext> {
        Arc::new(MemoryContext {
            memory: Arc::new(memory),
            engine: self.engine.clone(),
            store: self.store.clone(),
            hub: self.hub.clone(),
            clock: self.clock.clone(),
        })
    }

    fn tools(&self, families: &Families, memories: &Arc<MemoryContext>) -> Arc<ToolContext> {
        Arc::new(ToolContext {
            engine: self.engine.clone(),
            families: families.clone(),
            agents: self.agents.clone(),
            rollbacks: Arc::new(Mutex::default()),
            store: self.store.clone(),
            memory: memories.memory.clone(),
            memories: memories.clone(),
            clock: self.clock.clone(),
            config: self.config.clone(),
            tokens: self.tokens.clone(),
        })
    }

    fn relay(&self, gateway: Gateway, tools: &Arc<ToolContext>, record: CallRecording) -> Arc<RelayContext> {
        let tokens = self.tokens.clone();
        let nonce_of = Arc::new(move |session| tokens.nonce(session));
        Arc::new(RelayContext {
            gateway: Arc::new(gateway),
            interceptor: Interceptor::new(self.engine.clone(), nonce_of, record),
            store: self.store.clone(),
            clock: self.clock.clone(),
            own: Arc::new(OwnTools(tools.clone())),
        })
    }

    fn storage(
        &self,
        gateway: &Arc<Gateway>,
        (trees, checkpoints, attachments, notifications): (
            &OwnTrees,
            &CheckpointStore,
            &Arc<Attachments>,
            &NotificationHandle,
        ),
    ) -> Arc<StorageContext> {
        Arc::new(StorageContext {
            engine: self.engine.clone(),
            store: self.store.clone(),
            hub: self.hub.clone(),
            clock: self.clock.clone(),
            config: self.config.clone(),
            agents: self.agents.clone(),
            trees: trees.clone(),
            checkpoints: checkpoints.clone(),
            attachments: attachments.clone(),
            gateway: gateway.clone(),
            notifications: notifications.clone(),
            tokens: self.tokens.clone(),
        })
    }
}
