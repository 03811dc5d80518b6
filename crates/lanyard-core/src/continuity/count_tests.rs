//! What counts, told by events of whole lives.

use crate::continuity::{Counter, Tally, counted};
use crate::session::{
    AgentInfo, Capabilities, Continuity, Envelope, Event, NewSession, Receipt, RunEnd, RunEvent, RunReady,
    Session, create,
};
use crate::{Actor, Limits, RunId, SessionId, Timestamp};

/// A session and what its log adds up to.
struct Life {
    session: Session,
    tally: Tally,
}

impl Life {
    fn begin() -> Self {
        let born = create(&NewSession::default(), "alex", None, &Limits::default()).unwrap();
        let envelope = envelope(1, born.into());
        let tally = counted(None, &envelope.event);
        Self { session: Session::born(&envelope).unwrap(), tally }
    }

    fn then(mut self, event: impl Into<Event>) -> Self {
        let envelope = envelope(self.session.seq + 1, event.into());
        self.tally.add_all(&counted(Some(&self.session), &envelope.event));
        self.session.apply(&envelope).unwrap();
        self
    }

    fn told(&self) -> String {
        let counts: Vec<String> =
            self.tally.entries().map(|(counter, times)| format!("{} {times}", counter.as_str())).collect();
        counts.join(", ")
    }
}

fn envelope(seq: u64, event: Event) -> Envelope {
    let at = Timestamp::from_millis(1_794_729_600_000);
    Envelope { seq, session: SessionId::from_u128(1), at, actor: Actor::operator("alex"), cause: None, event }
}

fn run(number: u64) -> RunId {
    RunId::from_u128(number.into())
}

fn starts(number: u64) -> RunEvent {
    let (agent, driver) = ("a".to_owned(), "acp".to_owned());
    RunEvent::Started {
        run: run(number),
        number,
        agent,
        driver,
        mirrored: false,
        steers: false,
        sandbox: None,
        account: None,
    }
}

fn ready(number: u64, continuity: Option<Continuity>) -> RunEvent {
    let (native, info, capabilities) = ("n".to_owned(), AgentInfo::default(), Capabilities::default());
    RunEvent::Ready(Box::new(RunReady {
        run: run(number),
        native,
        info,
        capabilities,
        continuity,
        history: None,
    }))
}

fn ends(number: u64, how: RunEnd) -> RunEvent {
    RunEvent::Ended { run: run(number), how, reason: None, receipt: Receipt::default() }
}

fn not_started(code: &str) -> RunEnd {
    RunEnd::NotStarted { code: code.to_owned() }
}

/// S3-34.
#[test]
fn the_first_run_of_a_session_is_no_resume() {
    let life = Life::begin().then(starts(1)).then(ready(1, None)).then(ends(1, RunEnd::Exited { code: 0 }));
    assert_eq!(life.told(), "sessions_created 1");
    let failed = Life::begin().then(starts(1)).then(ends(1, not_started("agent_missing")));
    assert_eq!(failed.told(), "sessions_created 1", "there was nothing to go on with");
}

/// S3-34, S3-35.
#[test]
fn each_way_to_go_on_is_a_resume_with_its_label() {
    let life = Life::begin()
        .then(starts(1))
        .then(ready(1, None))
        .then(RunEvent::Adopted { run: run(1) })
        .then(RunEvent::Wanted { ways: Vec::new() })
        .then(ends(1, RunEnd::Lost))
        .then(starts(2))
        .then(ready(2, Some(Continuity::Native)))
        .then(ends(2, RunEnd::Signalled { signal: 9 }))
        .then(starts(3))
        .then(ready(3, Some(Continuity::Replayed)))
        .then(ends(3, RunEnd::HostLost))
        .then(starts(4))
        .then(ready(4, Some(Continuity::Preamble)));
    assert_eq!(
        life.told(),
        "sessions_created 1, resume_succeeded 5, resumed_exact 2, resumed_native 1, resumed_replayed 1, \
         resumed_preamble 1"
    );
}

/// S3-34: an agent that cannot take its conversation up again has failed, as has one that does not start any more.
#[test]
fn what_does_not_go_on_is_a_failure() {
    let before = || Life::begin().then(starts(1)).then(ready(1, None)).then(ends(1, RunEnd::Lost));
    let lost = before().then(starts(2)).then(ends(2, not_started("resume_lost")));
    assert_eq!(lost.told(), "sessions_created 1, resume_failed 1, resumed_lost 1");
    let missing = before().then(starts(2)).then(ends(2, not_started("agent_missing")));
    assert_eq!(missing.told(), "sessions_created 1, resume_failed 1");
    let died = before().then(starts(2)).then(ends(2, RunEnd::Exited { code: 1 }));
    assert_eq!(died.told(), "sessions_created 1, resume_failed 1");
    let power_cut = before().then(starts(2)).then(ends(2, RunEnd::HostLost));
    assert_eq!(power_cut.told(), "sessions_created 1");
}

#[test]
fn every_counter_has_a_name_of_its_own_and_is_found_by_it() {
    for (place, counter) in Counter::ALL.into_iter().enumerate() {
        assert_eq!((counter as usize, Counter::named(counter.as_str())), (place, Some(counter)));
    }
    assert_eq!(Counter::named("of_tomorrow"), None);
}
