//! Permission to hold a conversation with a session below the root of its family. Operators may stop, guide and answer
//! gates at every level.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::family::Lineage;
use crate::session::refusal::Refusal;

/// The sessions that take turns from a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Intervention {
    /// Every session.
    #[default]
    Any,
    /// Sessions of level 1 only. Those below take their work from the session above them.
    RootOnly,
}

/// Whether a person's turn is admitted to a session in this place of its family.
pub fn may_converse(lineage: &Lineage, allowed: Intervention) -> Result<(), Refusal> {
    match (allowed, lineage.root()) {
        (Intervention::RootOnly, Some(root)) => Err(Refusal::RootOnly { level: lineage.level(), root }),
        (Intervention::RootOnly, None) | (Intervention::Any, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::testing::session_id;

    /// FND-M8, X-01, S1-29: by level and by what is allowed.
    #[test]
    fn fnd_m8_turns_of_people_reach_the_root_or_any_session() {
        let at = |level: u128| Lineage { ancestors: (1..level).map(session_id).collect() };
        let refused = |level, allowed| may_converse(&at(level), allowed).err().map(|refusal| refusal.code());
        let code = Some("intervention_root_only");
        let table = [1, 2, 3]
            .map(|level| (level, refused(level, Intervention::Any), refused(level, Intervention::RootOnly)));
        assert_eq!(table, [(1, None, None), (2, None, code), (3, None, code)]);
    }

    #[test]
    fn fnd_m8_the_refusal_names_the_root() {
        let lineage = Lineage { ancestors: vec![session_id(2), session_id(1)] };
        let refusal = may_converse(&lineage, Intervention::RootOnly).unwrap_err();
        assert!(refusal.advice().contains(&session_id(1).to_string()), "{}", refusal.advice());
    }
}
