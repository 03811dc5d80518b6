//! A conversation with one agent as a durable log: commands, signals, the events they produce and the effects of those.

mod apply;
mod apply_control;
mod apply_inbox;
mod apply_run;
mod attention;
mod bounds;
mod calls;
mod carrier;
mod choice;
mod command;
mod decide;
mod decide_inbox;
pub mod directive;
mod driven;
mod effect;
mod event;
mod family;
mod gate;
mod governance;
mod guidance;
mod halt;
mod inbox;
mod intercept;
mod intervention;
mod lack;
mod limit;
mod message;
mod observe;
mod observe_run;
mod operator;
mod origin;
#[cfg(test)]
mod origin_tests;
mod part;
mod record;
mod references;
mod refusal;
mod review;
mod run;
mod sandbox;
mod sayable;
mod signal;
mod stall;
mod state;
mod stop;
mod terminal_program;
mod turns;
mod view;
mod weight;
mod writer;

#[cfg(test)]
mod apply_tests;
#[cfg(test)]
mod decide_tests;
#[cfg(test)]
mod directive_tests;
#[cfg(test)]
mod inbox_tests;
#[cfg(test)]
mod ladder_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod operator_tests;
#[cfg(test)]
mod properties_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod testing;

pub use apply::{ApplyError, replay};
pub use attention::{Attention, Pending};
pub use bounds::{BoundHolder, BoundedResource, BoundsMode, HeldBound, ResourceBounds, bound_met_in_words};
pub use calls::{
    Call, CallerProof, Channel, Compliance, Directive, IN_FLIGHT_AFTER_MS, Lead, Passage, Returned, Told,
    spawns_subagents,
};
pub use carrier::{Carrier, PlannedDelivery, SeenCalls, plan_delivery};
pub use choice::{
    AgentChoice, AgentOffer, ChoiceKind, OfferItem, OfferMark, OfferMenu, OfferedCommand, bypasses_approvals,
};
pub use command::Command;
pub use decide::decide;
pub use driven::DrivenBy;
pub use effect::{Effect, react};
pub use event::{
    ChangeEvent, CheckpointReason, ContextEvent, ControlEvent, Created, Ending, Envelope, Event, Fork, Hands,
    Import, InboxEvent, Opening, PastEvent, PlanEntry, PlanEntryState, Role, Settled, SnapshotReason,
    TranscriptEvent, TurnEvent, TurnOutcome,
};
pub use family::{Lineage, LinkEvents, NewSession, NewWorktree, create, fork, inherited, link};
pub use gate::{Gate, GateEvent, GateKind, GateOption, GateStatus, OptionKind, Question};
pub use governance::{FirstTool, Governance, GovernanceView, Language};
pub use guidance::{Checked, Note, NoteDelivery, NoteKind, NoteStatus, check};
pub use halt::{held, queues_turn, starts_run, starts_turn, starts_work};
pub use inbox::{Delivery, InboxChange, InboxCommand, Message, PauseReason, Promotion, QueuedTurn};
pub use intercept::{DEADLINE_PASSED, call_begins, call_ends, call_passed, next_due};
pub use intervention::{Intervention, may_converse};
pub use lack::{
    AgentAbility, AgentLack, AgentTraits, SubagentTraits, lack_of, lacks, lacks_of_agent,
    lacks_of_capabilities, unstoppable,
};
pub use limit::{
    AskReason, Limit, LimitHold, LimitKind, LimitRules, LimitSeen, LimitWait, TurnLeg, Waited, hold,
};
pub use message::MessageBreaks;
pub use observe::observe;
pub use operator::{EndedTurn, OperatorState, SeenMark, TurnEnd};
pub use origin::{Origin, check_origin};
pub use part::{
    ATTACHMENT_BLOCK, AttachedContent, PARTS_BYTES_MAX, PARTS_MAX, PromptPart, attached_blocks, block_part,
    identity, message_hash, part_block, with_labels,
};
pub(crate) use record::is_default;
pub use record::{
    ActiveTurn, Checkpoint, Compaction, EXTERNAL, Handoff, IMPORTED, LastToolCall, Policy, Session,
    StateChange, Usage,
};
pub use refusal::Refusal;
pub use review::{
    BaseKind, COMMENT_BYTES_MAX, CommentState, DRAFTS_MAX, DiffSide, DraftComment, LineAnchor, LineSpan,
    PlacedComment, QUOTE_BYTES_MAX, REVIEW_BYTES_MAX, ReviewBase, ReviewBook, ReviewCommand, ReviewComment,
    ReviewEvent, SENT_MAX, SPAN_LINES_MAX, VIEWED_MAX, ViewedFile, locate,
};
pub use run::{
    ActivityMark, AgentInfo, Attempt, Capabilities, Continuity, EndedProcess, Receipt, ResumeWay, Run,
    RunEnd, RunEvent, RunPhase, RunReady, TerminalActivity,
};
pub use sandbox::{AllowedHost, Containment, NetworkReach, SandboxLevel, SandboxMechanism, SandboxRule};
pub use signal::Signal;
pub use stall::{Stall, StallKind};
pub use state::{InterruptCause, Lifecycle, State, StateName, Status};
pub use stop::{Stop, StopLevel, StopScope, StoppedRun};
pub use terminal_program::{TerminalProgram, WindowSize};
pub use turns::{TurnResult, TurnRow, TurnStatus, TurnStep};
pub use view::{SessionView, view};
pub use writer::{Pen, ReleaseReason, Takeover, Writer, WriterCommand, WriterEvent, may_write};
