//! What counts, told by events of whole lives.

use expect_test::expect;

use crate::actor::{Actor, Cause};
use crate::insight::{InsightCounts, QUARTER_MS, quarter_of, step};
use crate::session::{
    AgentChoice, Delivery, Envelope, Event, InterruptCause, NewSession, Opening, RunEvent, Session,
    TranscriptEvent, TurnEvent, TurnOutcome, create,
};
use crate::{Limits, RunId, SessionId, Timestamp, TurnId};

fn born() -> Session {
    let created = create(&NewSession::default(), "alex", None, &Limits::default()).unwrap();
    let at = Timestamp::from_millis(1_794_729_600_000);
    let (session, actor) = (SessionId::from_u128(1), Actor::operator("ann"));
    Session::born(&Envelope { seq: 1, session, at, actor, cause: None, event: created.into() }).unwrap()
}

/// A session in its first turn, after a run of its own or of its parent's began.
fn working(mirrored: bool) -> Session {
    let run = RunEvent::Started {
        run: RunId::from_u128(1),
        number: 1,
        agent: "claude".to_owned(),
        driver: "claude".to_owned(),
        mirrored,
        steers: false,
        sandbox: None,
        account: None,
    };
    let turn = TurnEvent::Started {
        turn: TurnId::from_u128(1),
        client_turn_id: None,
        prompt: "go".to_owned(),
        parts: Vec::new(),
        prompt_hash: String::new(),
        opening: Opening::New,
        anchors: Vec::new(),
        governance: false,
        delivery: Delivery::Reject,
        queued: false,
        by: None,
        memory: None,
        choice: AgentChoice::default(),
        forced: false,
    };
    let mut session = born();
    for event in [Event::from(run), turn.into()] {
        let envelope = after(&session, event, None);
        session.apply(&envelope).unwrap();
    }
    session
}

/// Plays events after each other, a second apart, and sums up what they count for.
fn counted(begun: &Session, events: impl IntoIterator<Item = Event>) -> InsightCounts {
    let mut session = begun.clone();
    let mut sum = InsightCounts::default();
    for event in events {
        let envelope = after(&session, event, None);
        if let Some(step) = step(Some(&session), &envelope) {
            assert_eq!(step.session, session.id);
            sum.add(&step.counts);
        }
        session.apply(&envelope).unwrap();
    }
    sum
}

fn after(session: &Session, event: Event, cause: Option<Cause>) -> Envelope {
    let at = session.last_activity_at.plus_millis(1_000);
    Envelope { seq: session.seq + 1, session: session.id, at, actor: Actor::operator("ann"), cause, event }
}

fn used(cost_micros: u64) -> Event {
    TranscriptEvent::UsageReported { input_tokens: 10, output_tokens: 2, context_tokens: None, cost_micros }
        .into()
}

fn called(call: &str) -> Event {
    TranscriptEvent::ToolCalled { call: call.into(), tool: "read".into(), arguments: serde_json::Value::Null }
        .into()
}

fn returned(call: &str, is_error: bool) -> Event {
    TranscriptEvent::ToolReturned { call: call.into(), is_error, content: serde_json::Value::Null }.into()
}

fn ended(session: &Session, outcome: TurnOutcome) -> Event {
    let turn = session.turn.as_ref().unwrap().id;
    TurnEvent::Finished { turn, outcome, reason: None, review: false }.into()
}

fn cut(session: &Session, cause: InterruptCause) -> Event {
    let (turn, reason, uncertain) = (session.turn.as_ref().unwrap().id, None, false);
    let receipt = crate::session::Receipt::default();
    TurnEvent::Interrupted { turn, cause, reason, uncertain, receipt, review: false }.into()
}

#[test]
fn a_turn_counts_its_calls_and_its_time_when_it_ends() {
    let session = working(false);
    let open = [called("1"), returned("1", false), called("2"), returned("2", true), used(7)];
    assert_eq!(counted(&session, open.clone()).calls, 0, "not before its end");
    let end = ended(&session, TurnOutcome::Completed);
    let sum = counted(&session, open.into_iter().chain([end]));
    expect![[r#"{"cost_micros":7,"input_tokens":10,"output_tokens":2,"turns":1,"turns_failed":0,"turn_ms":6000,"calls":2,"calls_failed":1,"approvals":0,"approval_wait_ms":0}"#]]
        .assert_eq(&serde_json::to_string(&sum).unwrap());
}

#[test]
fn turns_that_end_badly_are_failed_ones_and_a_cancelled_one_is_not() {
    let session = working(false);
    let failed = |event: Event| {
        let sum = counted(&session, [event]);
        (sum.turns, sum.turns_failed)
    };
    assert_eq!(failed(ended(&session, TurnOutcome::Completed)), (1, 0));
    assert_eq!(failed(ended(&session, TurnOutcome::Failed)), (1, 1));
    assert_eq!(failed(ended(&session, TurnOutcome::Refused)), (1, 1));
    assert_eq!(failed(cut(&session, InterruptCause::User)), (1, 0));
    for cause in
        [InterruptCause::Crash, InterruptCause::Limit, InterruptCause::Timeout, InterruptCause::HostLost]
    {
        assert_eq!(failed(cut(&session, cause)), (1, 1), "{cause:?}");
    }
}

#[test]
fn a_subagent_counts_what_it_used_and_no_turn_of_its_own() {
    let session = working(true);
    let end = ended(&session, TurnOutcome::Completed);
    let sum = counted(&session, [used(7), called("1"), end]);
    assert_eq!((sum.cost_micros, sum.input_tokens, sum.calls), (7, 10, 1));
    assert_eq!((sum.turns, sum.turn_ms), (0, 0));
}

#[test]
fn what_was_imported_was_not_spent_here() {
    let session = working(false);
    let cause = Some(Cause::Imported { at: None });
    let envelope = after(&session, used(7), cause);
    assert_eq!(step(Some(&session), &envelope), None);
    assert_eq!(step(None, &after(&session, used(7), None)), None, "nor before the session is there");
}

#[test]
fn quarters_begin_with_the_hour_of_every_time_zone() {
    let at = |millis: u64| Timestamp::from_millis(i64::try_from(millis).unwrap());
    assert_eq!(quarter_of(at(4 * QUARTER_MS)), 4);
    assert_eq!(quarter_of(at(4 * QUARTER_MS - 1)), 3);
    assert_eq!(quarter_of(Timestamp::from_millis(-5)), 0);
}
