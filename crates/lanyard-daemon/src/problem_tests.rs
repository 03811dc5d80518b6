//! The page of refusals: every code with its status, its sentence and its advice. Clients branch on the codes, so a
//! changed line of the page is a change of the API.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use expect_test::expect_file;
use lanyard_core::budget::{BudgetLine, BudgetScope, Dollars};
use lanyard_core::flow::plan::PlanFault;
use lanyard_core::flow::{Choice, FlowRefusal, FlowState};
use lanyard_core::journal::Damage;
use lanyard_core::memory::{self, Rule};
use lanyard_core::notification::NotificationRefusal;
use lanyard_core::paper::{self, PlanStatus};
use lanyard_core::session::{Refusal, StateName, TurnStatus};
use lanyard_core::task::markdown::Fault;
use lanyard_core::task::{TaskRefusal, TaskState};
use lanyard_core::{
    AttachmentId, CommentId, ComparisonId, ConnectionId, FlowId, GateId, MemoryId, NoteId, NotificationId,
    SessionId, TaskId, Timestamp, TurnId,
};
use lanyard_git::worktree::WorktreeError;
use lanyard_store::{AttachmentError, CursorError, StoreError};

use super::*;
use crate::api::AttachmentRefusal;
use crate::api::BranchRefusal;
use crate::api::TerminalRefusal;
use crate::auth::Denied;
use crate::families::FamilyError;
use crate::flow::FlowError;
use crate::memory::MemoryError;
use crate::notifications::NotificationError;
use crate::storage::BackupError;
use crate::tool_refusal::Refused as ToolRefused;
use lanyard_engine::engine::AskError;
use lanyard_engine::presence::ConnectionTaken;

const HEAD: &str = "# Refusals

Every refusal is `application/problem+json` with a `code`, a sentence (`title`) and an advice. Programs branch on the code;
it does not change once it is published. The sentences below are examples: ids, names and numbers differ. The tools of
agents answer with the same codes; where their advice differs it stands in a line of its own. A request that is
malformed has further codes, each with its own advice.

The command line shows the code in brackets behind the sentence. Each code is an anchor of this page, such as
`refusals.md#turn_rejected_busy`.

A test of the daemon writes this page from the table of refusals: `UPDATE_EXPECT=1 cargo test -p lanyard-daemon refusals`.
";

struct Page(String);

impl Page {
    fn section(&mut self, title: &str) {
        write!(self.0, "\n## {title}\n\n| code | status | what happened | what to do |\n|---|---|---|---|\n")
            .unwrap();
    }

    fn row(&mut self, code: &str, status: u16, title: &str, advice: &str) {
        let cell = |text: &str| text.replace('|', "\\|");
        let anchor = format!("<a id=\"{code}\"></a>");
        // A page has an anchor once: before the first row of its code.
        let anchor = if self.0.contains(&anchor) { "" } else { &anchor };
        writeln!(self.0, "| {anchor}`{code}` | {status} | {} | {} |", cell(title), cell(advice)).unwrap();
    }

    fn problem(&mut self, problem: impl Into<Problem>) {
        let Problem { status, code, title, advice } = problem.into();
        self.row(code, status.as_u16(), &title, &advice);
    }

    /// A refusal that agents get too.
    fn both<E: Into<Problem> + Into<ToolRefused>>(&mut self, make: impl Fn() -> E) {
        let problem: Problem = make().into();
        let (code, what, advice) = Into::<ToolRefused>::into(make()).parts();
        let told = (problem.code, problem.title.clone(), problem.advice.clone());
        self.problem(problem);
        if told != (code, what.clone(), advice.clone()) {
            writeln!(self.0, "| `{code}` | to agents | {what} | {advice} |").unwrap();
        }
    }
}

fn session(n: u128) -> SessionId {
    SessionId::from_u128(n)
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn broken() -> StoreError {
    StoreError::Damaged("the page is torn".to_owned())
}

fn full() -> io::Error {
    io::Error::from(io::ErrorKind::StorageFull)
}

#[test]
fn the_page_of_refusals() {
    let mut page = Page(HEAD.to_owned());
    sessions(&mut page);
    tasks(&mut page);
    worktrees(&mut page);
    flows(&mut page);
    plans(&mut page);
    memories(&mut page);
    notifications(&mut page);
    checkpoints(&mut page);
    reviews(&mut page);
    branches(&mut page);
    histories(&mut page);
    searches(&mut page);
    attachments(&mut page);
    terminals(&mut page);
    requests(&mut page);
    expect_file!["../../../docs/refusals.md"].assert_eq(&page.0);
}

fn histories(page: &mut Page) {
    page.section("Conversations of agents");
    let (title, native) = ("Claude Code", "1b2c3d4e".to_owned());
    page.problem(HistoryError::Unknown { name: "emacs".to_owned() });
    page.problem(HistoryError::NotFound { title, kind: "claude", native: native.clone() });
    let candidates = "1b2c3d4e-01, 1b2c3d4e-02".to_owned();
    page.problem(HistoryError::Ambiguous { title, native: native.clone(), candidates });
    let what = "it holds no message".to_owned();
    page.problem(HistoryError::Unreadable { title, native, what });
}

fn searches(page: &mut Page) {
    page.section("Search");
    page.problem(SearchRefusal::Empty);
    page.problem(SearchRefusal::TooLong);
    page.problem(SearchRefusal::TooManyWords);
    page.problem(SearchRefusal::OnlyExcluded);
    page.problem(SearchRefusal::PrefixShort { word: "a".to_owned() });
    page.problem(SearchRefusal::BadFilter { key: "kind", value: "thought".to_owned() });
    page.problem(SearchRefusal::FilterTwice { key: "agent" });
}

fn terminals(page: &mut Page) {
    page.section("Programs on terminals");
    for refusal in [
        TerminalRefusal::NotTerminal,
        TerminalRefusal::NotRunning,
        TerminalRefusal::NoRecording,
        TerminalRefusal::NotSocket,
        TerminalRefusal::InputBad,
        TerminalRefusal::InputFull,
        TerminalRefusal::Unreachable,
    ] {
        page.problem(refusal);
    }
}

fn sessions(page: &mut Page) {
    page.section("Sessions and turns");
    for refusal in session_refusals().into_iter().chain(turn_refusals()) {
        page.both(|| AskError::Refused(refusal.clone()));
    }
    let damage =
        || Damage { session: None, first_seq: 3, last_seq: 4, what: "the checksum differs".to_owned() };
    let (id, removed) =
        (session(1), "/data/lanyard.db was removed while the journal was open (journal_removed)");
    for error in [
        AskError::Unknown(id),
        AskError::Deleted(id),
        AskError::Damaged { session: id, damage: damage() },
        AskError::AliasTaken("x".to_owned()),
        AskError::AliasReserved("sess_x".to_owned()),
        AskError::KeyConflict,
        AskError::Unavailable("the disk is full".to_owned()),
        AskError::Unavailable(removed.to_owned()),
        AskError::Overloaded,
        AskError::Closing,
        AskError::Defect("the batch does not follow the journal".to_owned()),
    ] {
        page.both(|| error.clone());
    }
}

fn session_refusals() -> Vec<Refusal> {
    let parent = session(2);
    let turn = TurnId::from_u128(1);
    vec![
        Refusal::Busy { turn },
        Refusal::Ended { session: session(9), state: StateName::Failed },
        Refusal::Ended { session: session(9), state: StateName::Stopped },
        Refusal::Deleted,
        Refusal::Stopping,
        Refusal::HostRun { native: true },
        Refusal::HostRun { native: false },
        Refusal::Archived,
        Refusal::NotArchived,
        Refusal::NoTurn,
        Refusal::NoStop,
        Refusal::StopFinal,
        Refusal::NoSuchGuidance { note: NoteId::from_u128(1) },
        Refusal::GuidanceFull { max: 64 },
        Refusal::Empty { field: "title" },
        Refusal::TooLong { field: "title", max: 1_000, unit: "characters" },
        Refusal::TooMany { field: "aliases", max: 16 },
        Refusal::BadText { field: "title" },
        Refusal::ChoiceNotOffered { what: "effort" },
        Refusal::ChoiceUnknown {
            what: "model",
            wanted: "opsu".to_owned(),
            nearest: texts(&["opus", "haiku"]),
        },
        Refusal::ModeNeedsOperator { mode: "bypassPermissions".to_owned() },
        Refusal::NothingToMigrate,
        Refusal::ParentEnded { parent },
        Refusal::LeafCannotDelegate { parent },
        Refusal::DepthExceeded { depth: 4, limit: 3 },
        Refusal::PolicyWider { parent },
        Refusal::SandboxHost { host: "a b".into() },
        Refusal::BoundTooSmall { setting: "memory_mib", min: 16 },
        Refusal::WindowSize { cols: 0, rows: 24 },
        Refusal::TerminalCommand,
        Refusal::TerminalTurns,
        Refusal::Cycle { parent },
        Refusal::AlreadyLinked { parent },
        Refusal::HasChildren { children: 2 },
        Refusal::ForkAhead { head: 7 },
        Refusal::SeenAhead { seq: 8, head: 7 },
        Refusal::SignalForbidden { signal: "turn_finished" },
        Refusal::CallsOpen,
        Refusal::Halted,
        Refusal::BudgetSpent(BudgetLine {
            scope: BudgetScope::Day,
            limit: Dollars::from_micros(5_000_000),
            spent: Dollars::from_micros(5_120_000),
        }),
        Refusal::ForceForbidden,
        Refusal::RootOnly { level: 2, root: session(1) },
    ]
}

fn turn_refusals() -> Vec<Refusal> {
    let turn = TurnId::from_u128(1);
    let gate = GateId::from_u128(1);
    let connection = ConnectionId::from_u128(1);
    vec![
        Refusal::NoSuchGate { gate },
        Refusal::NoSuchOption { option: "maybe".into(), known: texts(&["yes", "no"]) },
        Refusal::GateAnswered { gate, option: "no".into() },
        Refusal::GateVoid { gate, why: "the turn ended".into() },
        Refusal::WriterHeld { by: "ann".into(), client: Some("cli".into()), connection },
        Refusal::WriterHeld { by: "ann".into(), client: None, connection },
        Refusal::WriterSuperseded { epoch: 3 },
        Refusal::TakeoverPending { by: connection },
        Refusal::TakeoverDenied { by: connection },
        Refusal::NobodyAsked,
        Refusal::InboxFull { max: 32, unit: "messages" },
        Refusal::LogFull { max: 1_000_000, unit: "events" },
        Refusal::InboxTurnUnknown { turn },
        Refusal::InboxOrderWrong { waiting: 2 },
        Refusal::DeliveryWaits,
        Refusal::ClientTurnConflict { turn },
        Refusal::TurnUncertain { turn },
        Refusal::TurnNotRepeatable { turn, status: TurnStatus::Completed },
        Refusal::Memory(memory::MemoryRefusal::Wider { of: "the session's" }),
    ]
}

fn tasks(page: &mut Page) {
    page.section("Tasks and mail");
    let (task, on) = (TaskId::from_u128(1), TaskId::from_u128(2));
    for refusal in [
        TaskRefusal::Ended { task, state: TaskState::Failed },
        TaskRefusal::NotNow { task, state: TaskState::Failed },
        TaskRefusal::AtWork { task, state: TaskState::Running },
        TaskRefusal::Blocked { task, on, state: TaskState::Running },
        TaskRefusal::Cycle { tasks: vec![task, on] },
        TaskRefusal::ChatNeedsSession,
        TaskRefusal::Paper(paper::PaperRefusal::Empty { field: "title" }),
    ] {
        page.both(|| FamilyError::Task(refusal.clone()));
    }
    for error in [
        FamilyError::NoTask("x".to_owned()),
        FamilyError::NoPlan("x".to_owned()),
        FamilyError::NoMail("x".to_owned()),
        FamilyError::Forged,
        FamilyError::Unavailable("the disk is full".to_owned()),
        FamilyError::Closing,
    ] {
        page.both(|| error.clone());
    }
}

fn worktrees(page: &mut Page) {
    page.section("Worktrees of tasks and flows");
    let folder = || PathBuf::from("/src/shop");
    let files = || texts(&["a.rs", "b.rs"]);
    let (branch, what, stderr) =
        (|| "lanyard/x".to_owned(), || "git status".to_owned(), || "fatal: no".to_owned());
    for error in [
        WorktreeError::NotARepository { folder: folder() },
        WorktreeError::NoCommit { folder: folder() },
        WorktreeError::UnknownBase { base: "v9".to_owned() },
        WorktreeError::BadName { name: "a b".to_owned() },
        WorktreeError::BranchExists { branch: branch() },
        WorktreeError::BranchInUse { branch: branch() },
        WorktreeError::BranchGone { branch: branch() },
        WorktreeError::FolderInUse { folder: folder() },
        WorktreeError::Broken { folder: folder() },
        WorktreeError::DirtyWorktree { folder: folder(), files: files() },
        WorktreeError::DirtyWorkspace { folder: folder(), files: files() },
        WorktreeError::Nested { folder: folder(), files: files() },
        WorktreeError::InProgress { folder: folder(), what: "rebase" },
        WorktreeError::DetachedHead { folder: folder() },
        WorktreeError::OtherRepository { folder: folder() },
        WorktreeError::MergeConflict { branch: branch(), into: "main".to_owned(), files: files() },
        WorktreeError::BaseConflict { branch: branch(), with: texts(&["lanyard/y"]), files: files() },
        WorktreeError::Moved { folder: folder() },
        WorktreeError::GitMissing,
        WorktreeError::Gone { folder: folder() },
        WorktreeError::NotOwner { stderr: stderr() },
        WorktreeError::TooLong { what: what(), seconds: 60 },
        WorktreeError::TooLarge { what: what() },
        WorktreeError::Locked { stderr: stderr() },
        WorktreeError::Special { path: "/src/shop/pipe".into() },
        WorktreeError::Interrupted,
        WorktreeError::SetupBad {
            file: "/src/shop/.lanyard/worktree.toml".into(),
            why: "`a` is not ignored by git".to_owned(),
        },
        WorktreeError::SetupUntrusted { repository: folder(), asks: "run `npm ci`; copy `.env`".to_owned() },
        WorktreeError::SetupFailed {
            command: "npm ci".to_owned(),
            how: "ended with code 1".to_owned(),
            output: String::new(),
        },
        WorktreeError::Git { what: what(), stderr: stderr() },
        WorktreeError::Io { what: "make the folder".to_owned(), source: full() },
    ] {
        page.problem(FamilyError::from(error));
    }
}

fn flows(page: &mut Page) {
    page.section("Flows");
    for refusal in [
        FlowRefusal::Ended { state: FlowState::Aborted },
        FlowRefusal::Ended { state: FlowState::Completed },
        FlowRefusal::NotAborted { state: FlowState::Completed },
        FlowRefusal::NoGate { gate: GateId::from_u128(1) },
        FlowRefusal::Answered { given: "approve" },
        FlowRefusal::NotOffered {
            choice: Choice::ContinueSession,
            offered: vec![Choice::Continue, Choice::Abort],
            why: Some("the session has ended".to_owned()),
        },
        FlowRefusal::NotOffered { choice: Choice::Approve, offered: vec![Choice::Abort], why: None },
        FlowRefusal::ContinuationGone { why: "it was deleted".to_owned() },
        FlowRefusal::NoGuidance { choice: Choice::Abort },
        FlowRefusal::GuidanceTooLong { max: 10_000 },
        FlowRefusal::PlanTaken { flow: FlowId::from_u128(1) },
        FlowRefusal::NoPhases,
        FlowRefusal::NothingToDo,
        FlowRefusal::AtWork { flow: FlowId::from_u128(1), state: FlowState::Review },
        FlowRefusal::NoBranch { folder: "/src/shop".to_owned() },
    ] {
        page.problem(FlowError::Refused(refusal));
    }
    page.problem(FlowError::Unknown("x".to_owned()));
    page.problem(FlowError::Unavailable("the disk is full".to_owned()));
    page.problem(FlowError::Defect("the log does not fold".to_owned()));
    page.problem(FlowError::Closing);
}

fn plans(page: &mut Page) {
    page.section("Plans and their text");
    for refusal in [
        paper::PaperRefusal::Missing { field: "title" },
        paper::PaperRefusal::Empty { field: "title" },
        paper::PaperRefusal::TooLong { field: "title", max: 200 },
        paper::PaperRefusal::TooMany { field: "steps", max: 100 },
        paper::PaperRefusal::BadText { field: "title" },
        paper::PaperRefusal::Transition { from: PlanStatus::Draft, to: PlanStatus::Paused },
        paper::PaperRefusal::StepsOpen { open: 2 },
        paper::PaperRefusal::NoSuchPhase { phase: "c".to_owned(), phases: texts(&["a", "b"]) },
        paper::PaperRefusal::NoSuchPhase { phase: "c".to_owned(), phases: Vec::new() },
        paper::PaperRefusal::Archived,
        paper::PaperRefusal::NoSuchStep { step: 3 },
        paper::PaperRefusal::StepTaken { step: 3, by: session(2) },
        paper::PaperRefusal::StepDone { step: 3 },
    ] {
        page.both(|| FamilyError::Task(refusal.clone().into()));
    }
    for fault in [
        PlanFault::TooLarge,
        PlanFault::Empty,
        PlanFault::TooManyPhases,
        PlanFault::TitleTooLong,
        PlanFault::NoTitle,
        PlanFault::PhaseTooLong,
        PlanFault::OpenBlock,
        PlanFault::OpenComment,
    ] {
        page.row(fault.code(), 422, &fault.to_string(), &fault.advice());
    }
    for fault in [
        Fault::TooLarge,
        Fault::NoTitle,
        Fault::NoTasks,
        Fault::TooManyTasks,
        Fault::OpenFence,
        Fault::AfterFence { name: "prompt" },
        Fault::NoBox,
        Fault::Stray,
        Fault::UnknownField { name: "colour".to_owned() },
        Fault::FieldTwice { name: "agent" },
        Fault::BadValue { name: "priority", value: "soon".to_owned(), known: "low, normal or high" },
        Fault::KeyTwice { key: "a".to_owned() },
        Fault::UnknownKey { key: "a".to_owned() },
        Fault::Cycle { keys: texts(&["a", "b"]) },
        Fault::Paper(paper::PaperRefusal::Empty { field: "title" }),
    ] {
        page.row(fault.code(), 422, &fault.to_string(), &fault.advice());
    }
}

fn memories(page: &mut Page) {
    page.section("Memory");
    let core = [
        memory::MemoryRefusal::BadTag { tag: "a,b".to_owned() },
        memory::MemoryRefusal::Empty { field: "text" },
        memory::MemoryRefusal::TooLong { field: "text", max: 10_000 },
        memory::MemoryRefusal::TooMany { field: "tags", max: 16 },
        memory::MemoryRefusal::BadText { field: "name" },
        memory::MemoryRefusal::Wider { of: "the session's" },
    ];
    let rules = Rule::ALL.into_iter().map(memory::MemoryRefusal::Forbidden);
    for refusal in core.into_iter().chain(rules) {
        page.both(|| MemoryError::Refused(refusal.clone()));
    }
    page.both(|| MemoryError::SwitchedOff);
    page.both(|| MemoryError::Full { what: "a session", max: 1_000 });
    page.both(|| MemoryError::NoEntry(MemoryId::from_u128(1)));
    page.both(|| MemoryError::Moved { held: 3, asked: 2 });
    page.both(|| MemoryError::Busy);
    page.both(|| MemoryError::NoSession(session(1)));
    page.both(|| MemoryError::Deleted(session(1)));
    page.both(|| MemoryError::Ask(AskError::Overloaded));
    page.both(|| MemoryError::Store(broken()));
}

fn notifications(page: &mut Page) {
    page.section("Notifications");
    let until = Timestamp::from_millis(1_800_000_000_000);
    for refusal in [
        NotificationRefusal::NotificationDismissed,
        NotificationRefusal::SnoozeInPast { until },
        NotificationRefusal::SnoozeTooLong { until },
        NotificationRefusal::NoteTooLong { chars: 501 },
    ] {
        page.problem(NotificationError::Refused(refusal));
    }
    page.problem(NotificationError::Unknown(NotificationId::from_u128(1)));
    page.problem(NotificationError::Lasts);
    page.problem(NotificationError::Store("the disk is full".to_owned()));
}

fn attachments(page: &mut Page) {
    page.section("Attachments");
    let id = AttachmentId::from_bytes([7; 32]);
    for refusal in [
        AttachmentRefusal::Empty,
        AttachmentRefusal::TooLarge { max: 16 << 20 },
        AttachmentRefusal::Full { max: 4 << 30 },
        AttachmentRefusal::NotAnImage { found: "text/plain" },
        AttachmentRefusal::Incomplete,
        AttachmentRefusal::NoId { text: "shot.png".to_owned() },
        AttachmentRefusal::Unknown { id },
        AttachmentRefusal::Missing { id },
        AttachmentRefusal::Damaged { id },
        AttachmentRefusal::Unusable(AttachmentError::Io { path: "/data/attachments".into(), source: full() }),
    ] {
        page.problem(refusal);
    }
}

fn checkpoints(page: &mut Page) {
    page.section("Checkpoints");
    let folder = || PathBuf::from("/src/shop");
    let (what, stderr) = (|| "git status".to_owned(), || "fatal: no".to_owned());
    for error in [
        SnapshotError::NotGit { folder: folder() },
        SnapshotError::NoGit,
        SnapshotError::Gone { folder: folder() },
        SnapshotError::NotOwner { stderr: stderr() },
        SnapshotError::TooLong { what: what(), seconds: 60 },
        SnapshotError::TooLarge { what: what() },
        SnapshotError::Locked { lock: "/src/shop/.git/index.lock".into() },
        SnapshotError::StoreBusy { store: "/data/checkpoints".into() },
        SnapshotError::Special { path: "/src/shop/pipe".into() },
        SnapshotError::BadName { name: "a b".to_owned() },
        SnapshotError::Exists { reference: "refs/lanyard/s/t".to_owned() },
        SnapshotError::NoCommit { commit: "abc".to_owned() },
        SnapshotError::NoBaseBranch { folder: folder() },
        SnapshotError::NotSnapshot { commit: "abc".to_owned() },
        SnapshotError::Git { what: what(), stderr: stderr() },
        SnapshotError::Io { what: "make the folder".to_owned(), source: full() },
    ] {
        page.problem(error);
    }
}

fn reviews(page: &mut Page) {
    page.section("Reviews and pull requests");
    let comment = CommentId::from_u128(1);
    for refusal in [
        Refusal::CommentUnknown { comment },
        Refusal::CommentSent { comment, turn: TurnId::from_u128(1) },
        Refusal::ReviewEmpty,
        Refusal::ReviewFull { max: 100, unit: "comments" },
        Refusal::LineRange { max: 200 },
        Refusal::QuoteDiffers { lines: 2 },
        Refusal::ReviewForbidden,
    ] {
        page.problem(AskError::Refused(refusal));
    }
    let (folder, stderr) = (|| PathBuf::from("/src/shop"), || "fatal: no".to_owned());
    let address = || "https://forge.test/shop.git".to_owned();
    for error in [
        PublishError::NoProgram,
        PublishError::NoBranch { folder: folder() },
        PublishError::NoRemote { folder: folder() },
        PublishError::BadRemote { address: "ext::sh".to_owned() },
        PublishError::Changed { address: address() },
        PublishError::PushFailed { branch: "topic".to_owned(), stderr: stderr() },
        PublishError::RequestFailed { program: "gh", stderr: stderr() },
        PublishError::CallTooLong { what: "gh".to_owned() },
        PublishError::NoAddress { program: "gh" },
    ] {
        page.problem(error);
    }
}

fn branches(page: &mut Page) {
    page.section("Branches of sessions and comparisons");
    let (session, comparison) = (SessionId::from_u128(1), ComparisonId::from_u128(1));
    for refusal in [
        BranchRefusal::NoWorktree { session },
        BranchRefusal::Discarded { session, branch: "lanyard/fix".to_owned() },
        BranchRefusal::Uncommitted { session, files: vec!["src/login.rs".to_owned()] },
        BranchRefusal::Running { session },
        BranchRefusal::ComparisonUnknown { comparison: comparison.to_string() },
        BranchRefusal::ComparedCount { count: 1 },
        BranchRefusal::NotCompared { session, comparison },
        BranchRefusal::KeptOther { kept: session },
    ] {
        page.problem(refusal);
    }
}

fn requests(page: &mut Page) {
    page.section("Tokens, paths, cursors and the journal");
    for denied in [
        Denied::NoToken,
        Denied::BadToken,
        Denied::RunEnded,
        Denied::LinkEnded,
        Denied::Role,
        Denied::NotShared,
        Denied::OtherSession,
    ] {
        page.problem(denied);
    }
    page.problem(CursorError::Unreadable);
    page.problem(CursorError::OtherFilter);
    page.problem(PathRefusal::Relative { path: "src".to_owned() });
    page.problem(PathRefusal::Missing { path: "/gone".to_owned() });
    page.problem(ConnectionTaken(ConnectionId::from_u128(1)));
    let path = || PathBuf::from("/backup/a");
    page.problem(BackupError::Relative("a".into()));
    page.problem(BackupError::Exists(path()));
    page.problem(BackupError::Write { path: path(), source: full() });
    page.problem(BackupError::Copy(broken()));
    page.both(broken);
}
