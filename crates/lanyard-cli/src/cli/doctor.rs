//! `lanyard doctor`: look at everything that can be wrong, and say how to mend it.

mod agents;
mod folder;
mod journal;
mod mend;
mod service;

use lanyard_api::config::Config;
use lanyard_core::session::{BoundsMode, SandboxRule};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::host::DaemonHost;
use crate::render::text::{one_line, pad};

const EXAMPLES: &str = "\
Looks at the data folder, the config, the daemon, the agents' programs and the journal. Works with and
without a running daemon, and does not start one. Ends with 1 if something fails; a warning is no failure.
--fix mends what is safe, each named before it is done: modes of the data folder and the token, missing
folders, a socket without a listener, temporary files. It deletes no data.
--rebuild makes the listings, aliases and indexes again from the log; the log itself is not touched.

Examples:
  lanyard doctor
  lanyard doctor --fix
  lanyard doctor --rebuild
  lanyard doctor --json | jq '.items[] | select(.level != \"ok\")'";

/// Check the installation and the journal
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Doctor {
    /// Mend what is safe to mend, and look again
    #[arg(long)]
    fix: bool,
    /// Make everything that is derived from the log again
    #[arg(long)]
    rebuild: bool,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    level: FindingLevel,
    check: &'static str,
    what: String,
    /// How to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum FindingLevel {
    Ok,
    Warn,
    Fail,
}

impl Finding {
    fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Self { level: FindingLevel::Ok, check, what: what.into(), fix: None }
    }

    fn warn(check: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { level: FindingLevel::Warn, check, what: what.into(), fix: Some(fix.into()) }
    }

    fn fail(check: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { level: FindingLevel::Fail, check, what: what.into(), fix: Some(fix.into()) }
    }

    fn line(&self) -> String {
        let level = match self.level {
            FindingLevel::Ok => "ok",
            FindingLevel::Warn => "warn",
            FindingLevel::Fail => "FAIL",
        };
        let line = format!("{}{}{}\n", pad(level, 6), pad(self.check, 13), one_line(&self.what));
        match &self.fix {
            Some(fix) => format!("{line}{}fix: {}\n", " ".repeat(19), one_line(fix)),
            None => line,
        }
    }
}

/// Without a sandbox nothing is wrong, unless an agent of the config asks for one.
fn sandbox(host: &DaemonHost, config: Option<&Config>) -> Finding {
    const NAME: &str = "sandbox";
    let asked =
        config.is_some_and(|config| config.agents.values().any(|agent| agent.sandbox_rule().encloses()));
    match (host.sandbox)() {
        Ok(how) => Finding::ok(NAME, how),
        Err(why) if asked => Finding::fail(
            NAME,
            format!("agents that ask for a sandbox are not started: {why}"),
            "install it, or see docs/sandbox.md",
        ),
        Err(why) => {
            Finding::ok(NAME, format!("not needed by the config; agents cannot be run in one here: {why}"))
        }
    }
}

/// Without a cgroup nothing is wrong, unless an agent of the config requires a bound that needs one.
fn bounds(host: &DaemonHost, config: Option<&Config>, running: &service::Running) -> Finding {
    const NAME: &str = "bounds";
    let daemon = match running {
        service::Running::Answers(_, pid) => Some(*pid),
        service::Running::Mute | service::Running::Nobody { .. } => None,
    };
    let agents = config.into_iter().flat_map(|config| &config.agents);
    let refused = agents.filter(|(_, settings)| settings.bounds.mode == BoundsMode::Required);
    let refused: Vec<String> = refused
        .filter_map(|(name, settings)| {
            let missing = (host.bounds)(daemon, &settings.sandbox_rule()).1;
            Some(format!("agent {name}: {}", missing.join("; "))).filter(|_| !missing.is_empty())
        })
        .collect();
    match refused.first() {
        Some(first) => Finding::fail(
            NAME,
            format!("runs are refused: {first}"),
            "run the daemon with `lanyard service install`, or set `mode = \"best_effort\"` in its `bounds`",
        ),
        None => Finding::ok(NAME, (host.bounds)(daemon, &SandboxRule::default()).0),
    }
}

impl Doctor {
    pub(super) async fn run(self, context: &Context, host: &DaemonHost) -> Result<(), Failure> {
        if self.fix {
            mend::mend(context)?;
        }
        let mut findings = folder::check(&context.home);
        findings.extend(mend::findings(context));
        let (config, found) = service::config(context);
        findings.push(found);
        let (running, found) = service::daemon(context).await;
        findings.extend(found);
        findings.extend(service::edited(context, &running));
        findings.extend(service::port(config.as_ref(), &running));
        findings.push(sandbox(host, config.as_ref()));
        findings.push(bounds(host, config.as_ref(), &running));
        findings.extend(agents::check(context, config.as_ref(), &running).await);
        findings.extend(journal::check(context, host, &running, self.rebuild).await);
        if context.out.is_json() {
            context.out.list(&findings, None)?;
        } else {
            context.out.data(&findings.iter().map(Finding::line).collect::<String>())?;
        }
        if findings.iter().any(|finding| finding.level == FindingLevel::Fail) {
            return Err(Failure::Shown);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_finding_says_what_is_wrong_and_how_to_mend_it() {
        let findings = [
            Finding::ok("data folder", "/srv/data is private"),
            Finding::warn("disk", "12 MB are free", "make room"),
            Finding::fail("token", "others can read it (mode 0644)", "chmod 600 /srv/data/token"),
        ];
        expect![[r"
            ok    data folder  /srv/data is private
            warn  disk         12 MB are free
                               fix: make room
            FAIL  token        others can read it (mode 0644)
                               fix: chmod 600 /srv/data/token
        "]]
        .assert_eq(&findings.iter().map(Finding::line).collect::<String>());
    }
}
