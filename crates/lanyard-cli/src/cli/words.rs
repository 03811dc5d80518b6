//! Words of the API as values on the command line, so that the help and the completions can list them.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use lanyard_core::paper::{PlanStatus, Priority};
use lanyard_core::task::{Isolation, ParentEnd, TaskState, WorkerKind};
use serde::de::DeserializeOwned;

pub(super) fn priority() -> impl TypedValueParser<Value = Priority> {
    one_of(["low", "normal", "high", "critical"])
}

pub(super) fn isolation() -> impl TypedValueParser<Value = Isolation> {
    one_of(["auto", "worktree", "shared"])
}

pub(super) fn when_parent_ends() -> impl TypedValueParser<Value = ParentEnd> {
    one_of(["wait", "adopt", "cancel"])
}

pub(super) fn kind() -> impl TypedValueParser<Value = WorkerKind> {
    one_of(WorkerKind::ALL.map(WorkerKind::as_str))
}

pub(super) fn task_state() -> impl TypedValueParser<Value = TaskState> {
    one_of(TaskState::ALL.map(TaskState::as_str))
}

pub(super) fn plan_status() -> impl TypedValueParser<Value = PlanStatus> {
    one_of(PlanStatus::ALL.map(PlanStatus::as_str))
}

fn one_of<T>(words: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| serde_json::from_value::<T>(word.into()))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    /// Every word that is offered is understood.
    fn check<T>(parser: &impl TypedValueParser<Value = T>) {
        let command = clap::Command::new("test");
        for word in parser.possible_values().unwrap() {
            let parsed = parser.parse_ref(&command, None, OsStr::new(word.get_name()));
            assert!(parsed.is_ok(), "{} is offered and not understood", word.get_name());
        }
    }

    #[test]
    fn every_word_that_is_offered_is_one_of_the_api() {
        check(&priority());
        check(&isolation());
        check(&when_parent_ends());
        check(&kind());
        check(&task_state());
        check(&plan_status());
    }
}
