//! Flows made with the real core, batches of them, and what a store must then answer.

use std::collections::BTreeMap;

use lanyard_core::Record as _;
use lanyard_core::flow::{
    AuthorStatus, Choice, Conclusion, Flow, FlowCommand, FlowCreated, FlowEnvelope, FlowEvent, FlowKind,
    FlowRole, FlowSettings, FlowState, Fresh, Looked, Phase, PhaseState, Probe, Progress, Spent, conclude,
    decide,
};
use lanyard_core::{Actor, FlowId, GateId, SessionId, TurnId};
use lanyard_store::{FlowBatch, FlowFilter, StoreError};

use crate::kit::{Store, WriteRecords, at};

/// Makes flows as the daemon would, and remembers all of them.
#[derive(Clone)]
pub(crate) struct Conductor {
    now: i64,
    minted: u128,
    pub(crate) flows: BTreeMap<FlowId, Flow>,
    pub(crate) logs: BTreeMap<FlowId, Vec<FlowEnvelope>>,
    batch: FlowBatch,
}

impl Default for Conductor {
    fn default() -> Self {
        let (flows, logs) = (BTreeMap::new(), BTreeMap::new());
        Self { now: 1_794_729_600_000, minted: 0, flows, logs, batch: FlowBatch::default() }
    }
}

/// A flow of one phase.
pub(crate) fn plain(plan: &str) -> FlowCreated {
    let text = "Say hello.".to_owned();
    let phase = Phase { title: "Greet".to_owned(), text, state: PhaseState::Open, commit: None };
    FlowCreated {
        kind: FlowKind::Phases,
        title: "A plan".to_owned(),
        plan: plan.to_owned(),
        plan_hash: "0".to_owned(),
        workspace: "/w".to_owned(),
        settings: FlowSettings::default(),
        phases: vec![phase],
        request: None,
    }
}

impl Conductor {
    fn mint(&mut self) -> u128 {
        self.minted += 1;
        self.minted.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
    }

    fn fresh(&mut self) -> Fresh {
        self.now += 1;
        Fresh { now: at(self.now), gate: GateId::mint(at(self.now), self.mint()) }
    }

    pub(crate) fn create(&mut self, new: FlowCreated) -> FlowId {
        self.now += 1;
        let flow = FlowId::mint(at(self.now), self.mint());
        let event = FlowEvent::Created(Box::new(new));
        let envelope = FlowEnvelope { flow, seq: 1, at: at(self.now), actor: Actor::operator("alex"), event };
        self.flows.insert(flow, Flow::born(&envelope).unwrap());
        self.record(envelope);
        flow
    }

    pub(crate) fn push(&mut self, flow: FlowId, event: FlowEvent) {
        self.now += 1;
        let held = self.flows.get_mut(&flow).unwrap();
        let (seq, actor) = (held.seq + 1, Actor::operator("alex"));
        let envelope = FlowEnvelope { flow, seq, at: at(self.now), actor, event };
        held.apply(&envelope).unwrap();
        self.record(envelope);
    }

    fn record(&mut self, envelope: FlowEnvelope) {
        self.batch.flows.retain(|flow| flow.id != envelope.flow);
        self.batch.flows.push(self.flows[&envelope.flow].clone());
        self.logs.entry(envelope.flow).or_default().push(envelope.clone());
        self.batch.entries.push(envelope);
    }

    pub(crate) fn lease(&mut self, flow: FlowId) {
        let epoch = self.flows[&flow].lease.as_ref().map_or(1, |lease| lease.epoch + 1);
        self.push(flow, FlowEvent::Leased { holder: "daemon".to_owned(), epoch, from: None });
    }

    pub(crate) fn invoke(&mut self, flow: FlowId) {
        let (session, turn) = (SessionId::from_u128(self.mint()), TurnId::from_u128(self.mint()));
        let (step, role) = (self.flows[&flow].step + 1, FlowRole::Author);
        let (continues, fork_of, guidance) = (false, None, None);
        let before = lanyard_core::flow::Spent::default();
        self.push(
            flow,
            FlowEvent::Invoked { step, role, session, turn, continues, fork_of, guidance, before },
        );
    }

    /// The author needs a person, so a gate is opened.
    pub(crate) fn ask(&mut self, flow: FlowId) {
        self.invoke(flow);
        let reason = Some("Which greeting?".to_owned());
        let status = AuthorStatus { status: Progress::NeedsHuman, commit: None, reason, notes: None };
        let probe = Probe { exists: true, alive: true, loadable: true, idle: true, context_left: true };
        let (fresh, looked) = (self.fresh(), Looked { probe, tokens: 7, unheard: false });
        let spent = Spent { input_tokens: 5, output_tokens: 2, cost_micros: 0, ms: 9 };
        let events = conclude(&self.flows[&flow], Conclusion::Author(status), spent, looked, fresh);
        for event in events {
            self.push(flow, event);
        }
    }

    pub(crate) fn answer(&mut self, flow: FlowId, choice: Choice) {
        let gate = self.flows[&flow].gate.as_ref().unwrap().id;
        let command = FlowCommand::Answer { gate, choice, guidance: None, probe: None };
        let (fresh, by) = (self.fresh(), Actor::operator("kim"));
        let events = decide(&self.flows[&flow], &command, &by, fresh).unwrap();
        for event in events {
            self.push(flow, event);
        }
    }

    /// Something of everything that may happen to a flow, up to a gate that is answered.
    pub(crate) fn work_at(&mut self, flow: FlowId) {
        self.lease(flow);
        self.ask(flow);
        self.answer(flow, Choice::Continue);
        self.push(flow, FlowEvent::Hooked { to: 2, failed: Vec::new() });
    }

    pub(crate) fn end(&mut self, flow: FlowId) {
        let reason = Some("enough".to_owned());
        self.push(flow, FlowEvent::Ended { state: FlowState::Aborted, reason });
    }

    pub(crate) fn settle(&mut self, flow: FlowId) {
        self.push(flow, FlowEvent::Settled { captured: None, tree_removed: false, failed: None });
    }

    /// Everything that happened since the last batch.
    pub(crate) fn batch(&mut self) -> FlowBatch {
        std::mem::take(&mut self.batch)
    }

    pub(crate) fn write(&mut self, store: &dyn Store) {
        store.write_flows(&self.batch()).unwrap();
    }

    /// The store answers for every flow with exactly what was told.
    pub(crate) fn assert_kept(&self, store: &dyn Store) {
        for (id, log) in &self.logs {
            assert_eq!(store.flow(*id).unwrap().as_ref(), self.flows.get(id));
            assert_eq!(store.flow_events(*id, 0, usize::MAX).unwrap(), *log);
        }
        let all = store.flows(&FlowFilter::default(), None, usize::MAX).unwrap();
        assert!(all.iter().eq(self.flows.values().rev()), "{all:?}");
    }

    /// Whether each answer of a store is what was told, where it answers.
    pub(crate) fn compare(&self, store: &dyn Store) -> Vec<(String, Result<bool, StoreError>)> {
        let mut compared = Vec::new();
        for (id, log) in &self.logs {
            let held = &self.flows[id];
            compared.push((id.to_string(), store.flow(*id).map(|flow| flow.as_ref() == Some(held))));
            let read = store.flow_events(*id, 0, 100).map(|read| read == *log);
            compared.push((format!("the log of {id}"), read));
        }
        let open = FlowFilter { ended: Some(false), ..FlowFilter::default() };
        let listed = store.flows(&open, None, 100);
        compared
            .push(("the flows".to_owned(), listed.map(|flows| flows.iter().eq(self.flows.values().rev()))));
        compared
    }
}
