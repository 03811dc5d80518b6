//! Brings the model, mode and effort of a conversation to what is wanted, for agents that are asked for each by a request
//! of its own. One request is out at a time, and a prompt is held back until all of them are answered.

use lanyard_core::TurnId;
use lanyard_core::session::{AgentChoice, AgentOffer, ChoiceKind, Signal, bypasses_approvals};

use super::driver::{Action, Actions, Tuned, TurnEnd};

/// The beginning of the ids of such requests.
const SET: &str = "set:";
/// The code of a turn whose model, mode or effort the agent refused.
const REFUSED: &str = "choice_refused";

/// What is offered, wanted and in force.
#[derive(Debug)]
pub(super) struct Tuning {
    offer: AgentOffer,
    in_force: AgentChoice,
    wanted: AgentChoice,
    key: String,
    asked: Option<Asked>,
    /// What was asked for since the last wish. Asked once, an agent that agrees and does nothing is not asked again.
    tried: Vec<ChoiceKind>,
    held: Option<(TurnId, Action)>,
    /// Why what is wanted cannot be had. The prompt that comes next fails with it.
    failure: Option<String>,
    /// Times it left a mode without approvals again.
    returns: u32,
    /// The mode in force was chosen, not gone to by the agent.
    mode_is_ours: bool,
}

#[derive(Debug)]
struct Asked {
    id: String,
    kind: ChoiceKind,
    value: Option<String>,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TuningStep {
    /// An answer is out, or nothing is left to ask for.
    Rest,
    /// Ask for this; no value stands for the agent's own default.
    Ask { id: String, kind: ChoiceKind, value: Option<String> },
    /// The turn cannot run as it was asked for.
    Failed { turn: TurnId },
}

impl Tuning {
    pub(super) fn new(tuned: Tuned) -> Self {
        let Tuned { wanted, in_force, offer } = tuned;
        let (key, asked, tried, held, failure) = (String::new(), None, Vec::new(), None, None);
        let mode_is_ours = wanted.mode.is_some();
        Self { offer, in_force, wanted, key, asked, tried, held, failure, returns: 0, mode_is_ours }
    }

    pub(super) fn offer(&self) -> &AgentOffer {
        &self.offer
    }

    /// The agent said what it offers.
    pub(super) fn offers(&mut self, change: impl FnOnce(&mut AgentOffer), out: &mut Actions) {
        let before = self.offer.clone();
        change(&mut self.offer);
        self.offer = std::mem::take(&mut self.offer).bounded();
        if self.offer != before {
            let signal = Signal::Offered(Box::new(self.offer.clone()));
            out.push(Action::Saw { native: None, signal });
        }
    }

    /// The agent said what is in force.
    pub(super) fn is_in_force(&mut self, kind: ChoiceKind, value: Option<String>, out: &mut Actions) {
        if self.in_force.get(kind) != value.as_deref() {
            self.in_force.put(kind, value);
            let signal = Signal::InForce(self.in_force.clone());
            out.push(Action::Saw { native: None, signal });
        }
    }

    pub(super) fn wants(&mut self, key: &str, wanted: &AgentChoice) {
        key.clone_into(&mut self.key);
        self.wanted.clone_from(wanted);
        self.tried.clear();
        self.failure = None;
    }

    /// Holds a prompt back until everything is as wanted.
    pub(super) fn hold(&mut self, turn: TurnId, prompt: Action) {
        self.held = Some((turn, prompt));
    }

    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// The prompt of this turn is not to be sent any more; whether it had not been.
    pub(super) fn drop_held(&mut self, turn: TurnId) -> bool {
        self.held.take_if(|(held, _)| *held == turn).is_some()
    }

    /// The next request, or the prompt once nothing is left to ask for.
    pub(super) fn step(&mut self, out: &mut Actions) -> TuningStep {
        if self.asked.is_some() {
            return TuningStep::Rest;
        }
        if let Some(why) = self.failure.take() {
            return self.fail(why, out);
        }
        for kind in ChoiceKind::ALL {
            let menu = self.offer.menu(kind);
            let chosen = self.wanted.get(kind);
            let value = chosen.or(menu.default.as_deref());
            let held = self.in_force.get(kind);
            if value == held || (value.is_none() && !menu.is_offered()) {
                continue;
            }
            let unguarded = kind == ChoiceKind::Mode && held.is_some_and(bypasses_approvals);
            // Nobody chose anything: an agent that does not go back to its default may stay where it is, and one that went
            // to another mode by itself, as a person allowed it, is left there. A mode without approvals is left in any case.
            let optional = chosen.is_none() && !unguarded;
            let by_itself = held.is_none() || (kind == ChoiceKind::Mode && !self.mode_is_ours);
            if optional && (by_itself || self.tried.contains(&kind)) {
                continue;
            }
            let (value, what) = (value.map(str::to_owned), kind.as_str());
            if !menu.is_offered() {
                let why = format!("the agent offers no choice of {what}");
                return self.fail(why, out);
            }
            if self.tried.contains(&kind) {
                let held = held.unwrap_or("its own choice");
                let value = value.as_deref().unwrap_or("its default");
                let why = format!("the agent did not take the {what} `{value}`; `{held}` is in force");
                return self.fail(why, out);
            }
            let id = format!("{SET}{}:{what}", self.key);
            self.mode_is_ours = if kind == ChoiceKind::Mode { chosen.is_some() } else { self.mode_is_ours };
            self.tried.push(kind);
            self.asked = Some(Asked { id: id.clone(), kind, value: value.clone() });
            return TuningStep::Ask { id, kind, value };
        }
        out.extend(self.held.take().map(|(_, prompt)| prompt));
        TuningStep::Rest
    }

    /// What an answer was about; nothing where it is not one to a request that is out. The value is in force then, unless
    /// the agent says otherwise.
    pub(super) fn agreed(&mut self, id: &str) -> Option<(ChoiceKind, Option<String>)> {
        let Asked { kind, value, .. } = self.asked.take_if(|asked| asked.id == id)?;
        Some((kind, value))
    }

    /// The agent refused a request; nothing where it is not one that is out.
    pub(super) fn refused(&mut self, id: &str, why: &str, out: &mut Actions) -> Option<TuningStep> {
        let Asked { kind, value, .. } = self.asked.take_if(|asked| asked.id == id)?;
        let wanted = self.wanted.get(kind);
        let unguarded = self.in_force.mode.as_deref().is_some_and(bypasses_approvals);
        let optional = wanted.is_none() && !(kind == ChoiceKind::Mode && unguarded);
        if optional || wanted.is_some_and(|wanted| Some(wanted) != value.as_deref()) {
            // Another one is wanted by now, or nobody chose it.
            return Some(self.step(out));
        }
        let value = value.as_deref().unwrap_or("default");
        Some(self.fail(format!("the agent refused the {} `{value}`: {why}", kind.as_str()), out))
    }

    /// Whether the agent went to a mode without approvals that nobody chose. It is asked to leave it then.
    pub(super) fn left_guard(&mut self) -> bool {
        let (held, menu) = (self.in_force.mode.clone(), &self.offer.modes);
        let wanted = self.wanted.mode.as_deref().or(menu.default.as_deref());
        let left = self.asked.is_none()
            && held.as_deref().is_some_and(bypasses_approvals)
            && wanted.is_some_and(|wanted| Some(wanted) != held.as_deref());
        if left {
            self.failure = None;
            self.returns += 1;
            self.key = format!("{}:back{}", self.key, self.returns);
            self.tried.clear();
        }
        left
    }

    /// Whether the id is one of a request of this kind.
    pub(super) fn is_id(id: &str) -> bool {
        id.starts_with(SET)
    }

    fn fail(&mut self, why: String, out: &mut Actions) -> TuningStep {
        let Some((turn, _)) = self.held.take() else {
            self.failure = Some(why);
            return TuningStep::Rest;
        };
        // What is in force stays: the next wish asks again.
        self.wanted.clone_from(&self.in_force);
        let end = TurnEnd::Failed(format!("{REFUSED}: {why}"));
        out.push(Action::Finished { native: None, turn: Some(turn), end });
        TuningStep::Failed { turn }
    }
}
