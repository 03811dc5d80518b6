//! The common shape of the daemon's refusals: the API and the agents' tools answer each of them in the same way.

use lanyard_core::refusal::RefusalKind;

/// Something that was not done: a stable code, who has to change something, a sentence, an advice.
pub(crate) trait Refuses {
    fn code(&self) -> &'static str;
    fn kind(&self) -> RefusalKind;
    fn sentence(&self) -> String;
    fn advice(&self) -> String;
    /// The advice where the caller is an agent.
    fn tool_advice(&self) -> String;
}

/// Implements [`Refuses`] for a table of `refusals!`. The sentence is its `Display`, or what a function makes of it.
macro_rules! refuses {
    ($table:ty) => {
        $crate::refusal::refuses!($table, ToString::to_string);
    };
    ($table:ty, $sentence:expr) => {
        impl $crate::refusal::Refuses for $table {
            fn code(&self) -> &'static str {
                <$table>::code(self)
            }

            fn kind(&self) -> lanyard_core::refusal::RefusalKind {
                <$table>::kind(self)
            }

            fn sentence(&self) -> String {
                $sentence(self)
            }

            fn advice(&self) -> String {
                <$table>::advice(self)
            }

            fn tool_advice(&self) -> String {
                <$table>::tool_advice(self)
            }
        }
    };
}
pub(crate) use refuses;

/// A refusal with a code of its own that is in no table.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Stated {
    pub(crate) code: &'static str,
    pub(crate) kind: RefusalKind,
    pub(crate) what: String,
    pub(crate) advice: String,
}

impl Stated {
    pub(crate) const fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) const fn kind(&self) -> RefusalKind {
        self.kind
    }

    pub(crate) fn advice(&self) -> String {
        self.advice.clone()
    }

    pub(crate) fn tool_advice(&self) -> String {
        self.advice.clone()
    }
}
