//! Sessions created by accident: a client failed to return to an old session and got a new one.

use std::collections::BTreeMap;

use crate::actor::Actor;
use crate::time::Timestamp;

/// People and programs whose failures are remembered. Beyond that the oldest is forgotten.
const REMEMBERED_MAX: usize = 1_024;
/// Failures of one that are remembered.
const FAILURES_MAX: usize = 64;

/// Clients that recently failed to attach or to resume.
#[derive(Debug, Default)]
pub struct Accidents {
    failures: BTreeMap<(String, String), Vec<Timestamp>>,
}

impl Accidents {
    pub fn failed(&mut self, who: &Actor, at: Timestamp) {
        if self.failures.len() >= REMEMBERED_MAX
            && let Some(oldest) = self.failures.iter().min_by_key(|(_, times)| times.last().copied())
        {
            let oldest = oldest.0.clone();
            self.failures.remove(&oldest);
        }
        let times = self.failures.entry(key(who)).or_default();
        times.push(at);
        if times.len() > FAILURES_MAX {
            times.remove(0);
        }
    }

    /// Whether a session they make now comes from a failure. Each failure accounts for one session.
    pub fn made(&mut self, who: &Actor, now: Timestamp, within_ms: u64) -> bool {
        let key = key(who);
        let Some(times) = self.failures.get_mut(&key) else { return false };
        times.retain(|at| now.millis_since(*at) <= within_ms);
        let accident = times.pop().is_some();
        if times.is_empty() {
            self.failures.remove(&key);
        }
        accident
    }
}

fn key(who: &Actor) -> (String, String) {
    (who.kind.as_str().to_owned(), who.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3-36.
    #[test]
    fn a_failure_accounts_for_one_new_session_of_the_same_maker_soon_after() {
        let at = Timestamp::from_millis;
        let (alex, kim) = (Actor::operator("alex"), Actor::operator("kim"));
        let mut accidents = Accidents::default();
        assert!(!accidents.made(&alex, at(0), 1_000));
        accidents.failed(&alex, at(100));
        assert!(!accidents.made(&kim, at(200), 1_000), "somebody else's");
        assert!(accidents.made(&alex, at(300), 1_000));
        assert!(!accidents.made(&alex, at(300), 1_000), "accounted for");
        accidents.failed(&alex, at(400));
        assert!(!accidents.made(&alex, at(1_401), 1_000), "too late");
        for failure in 0..5_000 {
            accidents.failed(&Actor::operator(&format!("u{failure}")), at(failure));
        }
        assert!(accidents.failures.len() <= REMEMBERED_MAX);
    }
}
