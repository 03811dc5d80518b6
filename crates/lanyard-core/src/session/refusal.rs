//! Why a command was refused: a stable code, one sentence of what happened, one of what to do.

use crate::budget::{BudgetLine, BudgetScope};
use crate::id::{CommentId, ConnectionId, GateId, NoteId, SessionId, TurnId};
use crate::memory;
use crate::refusals;
use crate::session::event::{ControlEvent, Event};
use crate::session::record::{REFUSED_IN_ROW_MAX, Session};
use crate::session::state::StateName;
use crate::session::terminal_program::WindowSize;
use crate::session::turns::TurnStatus;

refusals! {
    /// A refusal changes nothing but, where it concerns the session's state, is recorded in its log.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum Refusal {
        Busy { turn: TurnId } => "turn_rejected_busy", Conflict
            ("turn {turn} is running")
            ("wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`");
        Ended { session: SessionId, state: StateName } => "session_ended", Conflict
            ("the session {}", ended_as(*state)) ("{}", ended_advice(*session, *state));
        Deleted => "session_deleted", Conflict ("the session was deleted") ("create a new session");
        Stopping => "session_stopping", Conflict
            ("a stop is pending") ("withdraw the stop with `lanyard unstop`, or wait until it is confirmed");
        HostRun {
            /// The agent's own id of the conversation is known.
            native: bool,
        } => "session_host_run", Conflict
            ("the session's agent runs under its own host; Lanyard runs none of its turns")
            ("{}", host_run_advice(*native));
        Archived => "session_archived", Conflict
            ("the session is archived") ("bring it back with `lanyard archive --undo`");
        NotArchived => "session_not_archived", Conflict
            ("the session is not archived") ("there is nothing to undo");
        NoTurn => "no_active_turn", Conflict ("no turn is running") ("look at its state with `lanyard show`");
        NoStop => "no_stop_pending", Conflict ("no stop is pending") ("look at its state with `lanyard show`");
        StopFinal => "stop_final", Conflict
            ("the stop has reached level 3")
            ("level 3 cannot be withdrawn; once stopped, `lanyard resume` brings it back");
        NoSuchGuidance { note: NoteId } => "guidance_not_pending", Conflict
            ("guidance {note} is not pending") ("list what is pending with `lanyard show`");
        GuidanceFull { max: usize } => "guidance_full", Conflict
            ("{max} pieces of guidance are already pending")
            ("withdraw some, or wait until the agent has seen them");
        Empty { field: &'static str } => "field_empty", Invalid
            ("{field} is empty") ("give at least one visible character");
        TooLong { field: &'static str, max: usize, unit: &'static str } => "field_too_long", Invalid
            ("{field} is longer than {max} {unit}")
            ("shorten it; put long content into a file the agent can read");
        TooMany { field: &'static str, max: usize } => "field_too_many", Invalid
            ("{field} has more than {max} entries") ("send fewer");
        BadText { field: &'static str } => "field_bad_text", Invalid
            ("{field} holds a control character")
            ("remove control characters such as NUL, escape or line breaks");
        ChoiceNotOffered { what: &'static str } => "choice_unavailable", Invalid
            ("the agent offers no choice of {what}")
            ("leave it out; `lanyard agents show NAME` lists what an agent offers");
        ChoiceUnknown { what: &'static str, wanted: String, nearest: Vec<String> } => "choice_not_known", Invalid
            ("the agent offers no {what} `{wanted}`; it offers {}", nearest.join(", "))
            ("choose one that `lanyard agents show NAME` lists; `lanyard agents check NAME` asks the agent again");
        ModeNeedsOperator { mode: String } => "mode_needs_operator", Forbidden
            ("an agent cannot choose the mode `{mode}`, in which no approvals are asked for")
            ("an operator can choose it with `lanyard model SESSION --mode MODE`");
        NothingToMigrate => "nothing_to_migrate", Invalid
            ("nothing was named to hand over to") ("name an agent, a worker or an owner");
        ParentEnded { parent: SessionId } => "parent_ended", Conflict
            ("parent {parent} has ended") ("choose a parent that is still alive");
        LeafCannotDelegate { parent: SessionId } => "leaf_cannot_delegate", Conflict
            ("parent {parent} is a leaf and cannot delegate")
            ("create the session under the leaf's parent instead");
        DepthExceeded { depth: u32, limit: u32 } => "depth_exceeded", Conflict
            ("the family would be {depth} deep and the limit is {limit}")
            ("delegate from a session higher up, or raise `limits.depth`");
        PolicyWider { parent: SessionId } => "policy_wider", Conflict
            ("the session's policy is wider than that of parent {parent}")
            ("policy is fixed at birth; create a new session under that parent");
        SandboxHost { host: String } => "sandbox_host_invalid", Invalid
            ("`{host}` is no host for the network of a sandbox")
            ("name a host as `host`, `host:port` or `*.domain`, or use `all` or `gateway`");
        BoundTooSmall { setting: &'static str, min: u32 } => "bound_too_small", Invalid
            ("`{setting}` is too small for an agent to work with")
            ("set it to {min} or more, or leave it out");
        Cycle { parent: SessionId } => "link_cycle", Conflict
            ("{parent} is the session itself or one of its descendants")
            ("choose a parent outside the session's own family below it");
        AlreadyLinked { parent: SessionId } => "already_linked", Conflict
            ("the session is already a child of {parent}") ("there is nothing to change");
        HasChildren { children: u64 } => "has_children", Conflict
            ("{children} live sessions are its children")
            ("link the children to another parent, or end or delete them first");
        ForkAhead { head: u64 } => "fork_ahead_of_log", Conflict
            ("the log ends at {head}") ("fork at a position that exists, or leave the position out");
        NoSuchGate { gate: GateId } => "gate_not_found", Conflict
            ("the session has no approval {gate}") ("list open approvals with `lanyard approvals`");
        NoSuchOption { option: String, known: Vec<String> } => "gate_option_unknown", Invalid
            ("the approval has no option `{option}`; it has {}", known.join(", "))
            ("choose one of those, or say `allow` or `deny`");
        GateAnswered { gate: GateId, option: String } => "gate_already_answered", Conflict
            ("approval {gate} was answered with `{option}`") ("the first answer stands; nothing was changed");
        GateVoid { gate: GateId, why: String } => "gate_void", Conflict
            ("approval {gate} is void: {why}") ("the agent no longer waits for it; look at `lanyard show`");
        WriterHeld { by: String, client: Option<String>, connection: ConnectionId } => "writer_held", Conflict
            ("{by} writes in this session, from connection {connection}{}", from(client.as_deref()))
            ("free it with `lanyard writer ID --free`, take over in `lanyard attach`, or guide it instead");
        WriterSuperseded { epoch: u64 } => "writer_superseded", Conflict
            ("the writer has changed; the epoch is {epoch}")
            ("look who writes with `lanyard writer`, and claim it again");
        TakeoverPending { by: ConnectionId } => "takeover_pending", Conflict
            ("connection {by} has already asked to take over") ("wait until that is decided, then ask again");
        TakeoverDenied { by: ConnectionId } => "takeover_denied", Conflict
            ("connection {by} has just denied to hand over") ("talk to them, or ask again a little later");
        NobodyAsked => "takeover_not_asked", Conflict
            ("no client asked to take over") ("there is nothing to decide");
        InboxFull { max: usize, unit: &'static str } => "inbox_full", Conflict
            ("the inbox holds at most {max} {unit}") ("withdraw some with `lanyard inbox`, or wait");
        LogFull { max: u64, unit: &'static str } => "log_full", Conflict
            ("the session's log has reached its limit of {max} {unit}")
            ("go on with `lanyard fork`, or raise limits.log_{unit}");
        InboxTurnUnknown { turn: TurnId } => "inbox_turn_unknown", Conflict
            ("no message {turn} waits in the inbox")
            ("it may have started or been withdrawn; look at `lanyard inbox` and `lanyard turns`");
        InboxOrderWrong { waiting: usize } => "inbox_order_wrong", Conflict
            ("the order does not name each of the {waiting} messages that wait once")
            ("read the inbox again, and name all of it");
        DeliveryWaits => "delivery_waits", Invalid
            ("a message that waits cannot have the delivery `reject`")
            ("use `queue`, `steer` or `interrupt`, or withdraw the message");
        ClientTurnConflict { turn: TurnId } => "client_turn_conflict", Conflict
            ("client_turn_id stands for turn {turn}, which had other content")
            ("use a new client_turn_id for a new message");
        TurnUncertain { turn: TurnId } => "turn_uncertain", Conflict
            ("turn {turn} was handed to the agent and lost: it may have been carried out, or part of it")
            ("read the log; to run it once more, send the same with `\"again\": true` (`lanyard send --again`)");
        TurnNotRepeatable { turn: TurnId, status: TurnStatus } => "turn_not_repeatable", Conflict
            ("turn {turn} is {}, and is not run again", status.as_str())
            ("what failed, was cancelled or lost can be run again; for anything else use a new client_turn_id");
        CommentUnknown { comment: CommentId } => "comment_not_found", NotFound
            ("the session has no comment {comment}") ("list its comments with `lanyard review`");
        CommentSent { comment: CommentId, turn: TurnId } => "comment_already_sent", Conflict
            ("comment {comment} was sent with turn {turn}")
            ("add another comment; a message that still waits can be withdrawn with `lanyard inbox`");
        ReviewEmpty => "review_empty", Conflict
            ("the session has no draft comments") ("add one with `lanyard review add`");
        ReviewFull { max: usize, unit: &'static str } => "review_full", Conflict
            ("the drafts of a review hold at most {max} {unit}") ("send them, or remove some");
        LineRange { max: u32 } => "line_range_invalid", Invalid
            ("the lines are no range of 1 to {max} lines") ("count lines from 1, the first one before the last one");
        QuoteDiffers { lines: u32 } => "quote_differs", Invalid
            ("the quoted text does not have {lines} lines") ("quote each of the lines, or leave the quote out");
        ReviewForbidden => "review_forbidden", Forbidden
            ("only an operator reviews a session's changes") ("tell your operator what you found");
        SignalForbidden { signal: &'static str } => "signal_forbidden", Forbidden
            ("an agent cannot report `{signal}` about its own session") ("report only what you did yourself");
        CallsOpen => "calls_open", Conflict
            ("tool calls of the session are under way, so its turn has not ended")
            ("report the end of the turn when all of its calls have returned");
        SeenAhead { seq: u64, head: u64 } => "position_ahead_of_log", Invalid
            ("position {seq} is past the end of the log, which is {head}") ("send a position that was shown");
        WindowSize { cols: u16, rows: u16 } => "window_size_bad", Invalid
            ("a window of {cols} columns and {rows} rows cannot be used")
            ("use 2 to {} columns and 1 to {} rows", WindowSize::MAX.cols, WindowSize::MAX.rows);
        TerminalCommand => "terminal_command_bad", Invalid
            ("the command of the terminal run names no program, or is too long")
            ("name a program and up to 255 arguments, 64 KiB together, without NUL characters");
        TerminalTurns => "terminal_takes_no_turns", Conflict
            ("the session is a program on a terminal, which takes keys and no messages")
            ("type into it with `lanyard attach`; start the program again with `lanyard resume`");
        Halted => "halted", Conflict ("an operator halted all work")
            ("see why with `lanyard halt --status`; an operator lifts the halt with `lanyard halt --lift`");
        BudgetSpent(line: BudgetLine) => "budget_spent", Conflict
            ("{0}")
            ("{}", raise_advice(line.scope));
        ForceForbidden => "force_forbidden", Forbidden
            ("only an operator may begin a turn although a budget is spent")
            ("leave `forced` out, and tell your operator what is left to do");
        RootOnly { level: u32, root: SessionId } => "intervention_root_only", Conflict
            ("turns of people go to sessions of level 1, and this one is of level {level}")
            ("send it to {root}, or guide this session with `lanyard guide`");
    }
    via { Memory(#[from] memory::MemoryRefusal) }
}

impl Refusal {
    /// The event that records the refusal of `command`, where it is one the log should tell of.
    #[must_use]
    pub fn record(&self, session: &Session, command: &str) -> Option<Event> {
        if !self.is_recorded() || session.refused_in_row >= REFUSED_IN_ROW_MAX {
            return None;
        }
        let (command, code) = (command.to_owned(), self.code().to_owned());
        Some(ControlEvent::CommandRefused { command, code, state: session.state.name() }.into())
    }

    /// Whether the refusal is about the session's state and so belongs in its log; faults in the request itself do not.
    const fn is_recorded(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::Ended { .. }
                | Self::Deleted
                | Self::Stopping
                | Self::HostRun { .. }
                | Self::Archived
                | Self::NotArchived
                | Self::NoTurn
                | Self::NoStop
                | Self::StopFinal
                | Self::LeafCannotDelegate { .. }
                | Self::DepthExceeded { .. }
                | Self::PolicyWider { .. }
                | Self::Cycle { .. }
                | Self::HasChildren { .. }
                | Self::SignalForbidden { .. }
                | Self::CallsOpen
                | Self::RootOnly { .. }
                | Self::ParentEnded { .. }
        )
    }
}

fn ended_advice(session: SessionId, state: StateName) -> String {
    if state == StateName::Stopped {
        return format!("resume it with `lanyard resume {session}`, or fork it with `lanyard fork`");
    }
    "fork it with `lanyard fork` to go on from its log".into()
}

fn ended_as(state: StateName) -> String {
    if state == StateName::Stopped { "was stopped".to_owned() } else { format!("has ended as {state}") }
}

/// The ways to go on with a spent budget.
fn raise_advice(scope: BudgetScope) -> String {
    let setting = scope.setting();
    let by_itself = if scope == BudgetScope::Day { "wait for the next day, " } else { "" };
    format!("{by_itself}raise `{setting}` and run `lanyard reload`, or send this one turn with `--force`")
}

const fn host_run_advice(native: bool) -> &'static str {
    if native {
        "send words to the running agent with `lanyard guide`; to have Lanyard resume the conversation in a run of its own, use `lanyard send --resume`"
    } else {
        "send words to the running agent with `lanyard guide`; the agent's own id of the conversation is not known, so Lanyard cannot resume it"
    }
}

fn from(client: Option<&str>) -> String {
    client.map_or_else(String::new, |client| format!(" ({client})"))
}
