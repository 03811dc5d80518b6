//! Accounts of an agent: sets of variables with which it is started, and the choice among them. Pure but for the reading
//! of the values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lanyard_core::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::{AgentSettings, DriverKind};

/// Bytes of a file with a secret.
const SECRET_BYTES_MAX: u64 = 64 * 1024;
/// Variables that say where an agent keeps its history. An account that sets one of them has a history of its own.
const HOMES: [&str; 10] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "OPENCODE_CONFIG_DIR",
    "OPENCODE_DATA_DIR",
    "USERPROFILE",
];

/// One of an agent's accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// The name in logs and listings.
    pub name: String,
    /// Variables with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables that get the value of a variable of the daemon.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env_from: BTreeMap<String, String>,
    /// Variables that get the content of a file, without white space around it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env_files: BTreeMap<String, PathBuf>,
}

/// What happens when an account's limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountPolicy {
    /// Wait for the reset of this account.
    #[default]
    This,
    /// Go on with the next account that can be used, where the conversation can move there.
    Next,
}

/// The account a run is to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountChoice {
    /// This one; nothing where the agent has no accounts.
    Use(Option<String>),
    /// Every account that may be used has reached its limit; the soonest resets then.
    Exhausted { account: Option<String>, resets_at: Timestamp },
}

/// Why an account's values cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    #[error("the account `{account}` takes {variable} from `{from}`, which the daemon does not have")]
    Unset { account: String, variable: String, from: String },
    #[error("the account `{account}` takes {variable} from {}, which cannot be read: {why}", path.display())]
    Unreadable { account: String, variable: String, path: PathBuf, why: String },
}

impl Account {
    /// The variables whose values are in files that can be read.
    pub fn files(&self) -> impl Iterator<Item = (String, String)> {
        self.env_files.iter().filter_map(|(name, path)| Some((name.clone(), secret(path).ok()?)))
    }

    fn variables(&self) -> impl Iterator<Item = &String> {
        self.env.keys().chain(self.env_from.keys()).chain(self.env_files.keys())
    }

    /// The variables with their values. None of them may reach a log or an argument.
    pub fn environment(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<BTreeMap<String, String>, AccountError> {
        let mut values = self.env.clone();
        for (name, from) in &self.env_from {
            let value = variable(from).ok_or_else(|| AccountError::Unset {
                account: self.name.clone(),
                variable: name.clone(),
                from: from.clone(),
            })?;
            values.insert(name.clone(), value);
        }
        for (name, path) in &self.env_files {
            let value = secret(path).map_err(|why| AccountError::Unreadable {
                account: self.name.clone(),
                variable: name.clone(),
                path: path.clone(),
                why,
            })?;
            values.insert(name.clone(), value);
        }
        Ok(values)
    }
}

fn secret(path: &std::path::Path) -> Result<String, String> {
    use std::io::Read as _;
    let mut text = String::new();
    if !path.is_file() {
        return Err("it is no file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let read =
        file.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if read as u64 > SECRET_BYTES_MAX {
        return Err(format!("it has more than {SECRET_BYTES_MAX} bytes"));
    }
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        value => Ok(value.to_owned()),
    }
}

impl AgentSettings {
    #[must_use]
    pub fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.name == name)
    }

    /// Whether a conversation can go on with another account: the agent keeps it on this machine, and both accounts find
    /// it in the same place.
    #[must_use]
    pub fn conversation_moves(&self, from: &Account, to: &Account) -> bool {
        let local = self.local_history.unwrap_or(match self.driver {
            DriverKind::Claude | DriverKind::Codex | DriverKind::Opencode => true,
            // Any program may be behind these.
            DriverKind::Acp | DriverKind::Command | DriverKind::Terminal => false,
        });
        let has_home = |account: &Account| account.variables().any(|name| HOMES.contains(&name.as_str()));
        local && !has_home(from) && !has_home(to)
    }

    /// The account of the next run. `held` is the account of the conversation, if it has one already; `exhausted` tells
    /// until when an account cannot be used.
    #[must_use]
    pub fn choose_account(
        &self,
        held: Option<&str>,
        exhausted: impl Fn(Option<&str>) -> Option<Timestamp>,
    ) -> AccountChoice {
        let held = held.and_then(|name| self.account(name));
        let first = held.or(self.accounts.first());
        let may_use = |account: &&Account| match (self.account_policy, held) {
            (AccountPolicy::This, _) => false,
            (AccountPolicy::Next, Some(held)) => self.conversation_moves(held, account),
            (AccountPolicy::Next, None) => true,
        };
        let Some(first) = first else {
            return match exhausted(None) {
                Some(resets_at) => AccountChoice::Exhausted { account: None, resets_at },
                None => AccountChoice::Use(None),
            };
        };
        let others = self.accounts.iter().filter(|account| account.name != first.name).filter(may_use);
        let mut soonest: Option<(Timestamp, &Account)> = None;
        for account in std::iter::once(first).chain(others) {
            match exhausted(Some(&account.name)) {
                None => return AccountChoice::Use(Some(account.name.clone())),
                Some(at) if soonest.is_none_or(|(soon, _)| at < soon) => soonest = Some((at, account)),
                Some(_) => {}
            }
        }
        let (resets_at, account) = soonest.unwrap_or((Timestamp::from_millis(0), first));
        AccountChoice::Exhausted { account: Some(account.name.clone()), resets_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str, variable: &str) -> Account {
        let env = BTreeMap::from([(variable.to_owned(), format!("secret of {name}"))]);
        Account { name: name.to_owned(), env, env_from: BTreeMap::new(), env_files: BTreeMap::new() }
    }

    fn settings(driver: DriverKind, account_policy: AccountPolicy) -> AgentSettings {
        let accounts = vec![account("a", "KEY"), account("b", "KEY"), account("c", "CODEX_HOME")];
        AgentSettings { accounts, account_policy, ..AgentSettings::of(driver, vec!["x".to_owned()]) }
    }

    /// Driver, policy, the account that holds the conversation, those that are exhausted, and the choice.
    type ChoiceRow<'a> = (DriverKind, AccountPolicy, Option<&'a str>, &'a [(&'a str, i64)], AccountChoice);

    #[test]
    fn an_account_is_chosen_by_the_policy_and_by_where_the_conversation_can_go() {
        use AccountPolicy::{Next, This};
        let at = Timestamp::from_millis;
        let uses = |name: &str| AccountChoice::Use(Some(name.to_owned()));
        let waits =
            |name: &str, ms| AccountChoice::Exhausted { account: Some(name.to_owned()), resets_at: at(ms) };
        let table: [ChoiceRow<'_>; 10] = [
            (DriverKind::Codex, This, None, &[], uses("a")),
            (DriverKind::Codex, This, None, &[("a", 9)], waits("a", 9)),
            (DriverKind::Codex, Next, None, &[("a", 9)], uses("b")),
            (DriverKind::Codex, Next, None, &[("a", 9), ("b", 5)], uses("c")),
            (DriverKind::Codex, Next, Some("a"), &[("a", 9)], uses("b")),
            (DriverKind::Codex, Next, Some("a"), &[("a", 9), ("b", 5)], waits("b", 5)),
            (DriverKind::Codex, Next, Some("c"), &[("c", 9)], waits("c", 9)),
            (DriverKind::Acp, Next, Some("a"), &[("a", 9)], waits("a", 9)),
            (DriverKind::Acp, Next, Some("b"), &[], uses("b")),
            (DriverKind::Acp, Next, Some("gone"), &[], uses("a")),
        ];
        for (driver, policy, held, exhausted, expected) in table {
            let until = |name: Option<&str>| {
                exhausted.iter().find(|(held, _)| Some(*held) == name).map(|(_, ms)| at(*ms))
            };
            let choice = settings(driver, policy).choose_account(held, until);
            assert_eq!(choice, expected, "{driver:?} {policy:?} {held:?} {exhausted:?}");
        }
        let none = AgentSettings::of(DriverKind::Acp, Vec::new());
        assert_eq!(none.choose_account(None, |_| None), AccountChoice::Use(None));
        let waits = AccountChoice::Exhausted { account: None, resets_at: at(3) };
        assert_eq!(none.choose_account(None, |_| Some(at(3))), waits);
        let local = AgentSettings { local_history: Some(true), ..settings(DriverKind::Acp, Next) };
        assert_eq!(local.choose_account(Some("a"), |name| (name == Some("a")).then(|| at(1))), uses("b"));
    }

    #[test]
    fn values_come_from_variables_and_files_and_what_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let files = BTreeMap::from([("FILE_KEY".to_owned(), path.clone())]);
        let from = BTreeMap::from([("KEY".to_owned(), "OTHER".to_owned())]);
        let account = Account { env_from: from, env_files: files, ..account("a", "PLAIN") };
        let variable = |name: &str| (name == "OTHER").then(|| "v".to_owned());
        let why = account.environment(variable).unwrap_err().to_string();
        assert!(why.contains("takes FILE_KEY from") && why.contains("cannot be read"), "{why}");
        std::fs::write(&path, " s3cret\n").unwrap();
        let values = account.environment(variable).unwrap();
        assert_eq!((values["KEY"].as_str(), values["FILE_KEY"].as_str()), ("v", "s3cret"));
        let why = account.environment(|_| None).unwrap_err().to_string();
        assert_eq!(why, "the account `a` takes KEY from `OTHER`, which the daemon does not have");
        std::fs::write(&path, " \n").unwrap();
        assert!(account.environment(variable).unwrap_err().to_string().contains("it is empty"));
    }
}
