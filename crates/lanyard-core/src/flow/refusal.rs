//! Reasons for which a flow refuses a command.

use crate::flow::gate::Choice;
use crate::flow::record::FlowState;
use crate::id::{FlowId, GateId};
use crate::refusals;

refusals! {
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum FlowRefusal {
        Ended { state: FlowState } => "flow_ended", Conflict
            ("the flow has ended: it is {state}")
            ("{}", ended_advice(*state));
        NotAborted { state: FlowState } => "flow_not_aborted", Conflict
            ("the flow is {state} and not aborted") ("see how it stands with `lanyard flow show`");
        NoGate { gate: GateId } => "gate_not_open", Conflict
            ("{gate} is not an open approval of this flow") ("list open approvals with `lanyard approvals`");
        Answered { given: &'static str } => "gate_answered", Conflict
            ("the approval was answered with {given} before") ("show the outcome with `lanyard flow show`");
        NotOffered { choice: Choice, offered: Vec<Choice>, why: Option<String> } => "choice_not_offered", Conflict
            ("`{}` is not offered{}", .choice.as_str(), .why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())
            ("choose one of {}", offered.iter().map(|choice| choice.as_str()).collect::<Vec<_>>().join(", "));
        ContinuationGone { why: String } => "continuation_gone", Conflict
            ("the session can no longer be continued: {why}") ("choose `continue` to fix it in a new session");
        NoGuidance { choice: Choice } => "guidance_not_taken", Conflict
            ("`{}` takes no words", .choice.as_str()) ("leave the words away, or choose `continue`");
        GuidanceTooLong { max: usize } => "guidance_too_long", Conflict
            ("the words are longer than {max} characters") ("say it shorter, or put it into the plan");
        PlanTaken { flow: FlowId } => "plan_taken", Conflict
            ("{flow} is running this plan")
            ("watch it with `lanyard flow watch {flow}`, or end it with `lanyard flow cancel {flow}`");
        NoPhases => "plan_without_phases", Conflict
            ("the plan has no phases")
            ("write a heading `## Phase 1: Title` with a checklist below it for each phase");
        NothingToDo => "plan_is_done", Conflict
            ("all phases of the plan are done already")
            ("remove the mark of a phase to run it again, or name it with `--from`");
        AtWork { flow: FlowId, state: FlowState } => "flow_at_work", Conflict
            ("the flow has not ended: it is {state}")
            ("wait for its end with `lanyard flow watch {flow}`, or end it with `lanyard flow cancel {flow}`");
        NoBranch { folder: String } => "flow_without_branch", Conflict
            ("the flow has no branch: it works in the folder {folder} itself")
            ("nothing is to be merged; look at its changes with `git -C {folder} status` and `git log`");
    }
}

const fn ended_advice(state: FlowState) -> &'static str {
    if matches!(state, FlowState::Aborted) {
        "take it up again with `lanyard flow resume`"
    } else {
        "begin another with `lanyard flow run`"
    }
}
