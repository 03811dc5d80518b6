//! The first page of the help, in chapters, and the overview that `lanyard` alone prints.

use std::fmt::Write;

use clap::{CommandFactory, Subcommand};

use crate::failure::Exit;

use super::{Advanced, Arrange, Cli, Daemon, Inside, Look, Steer, Work};

pub(super) const OVERVIEW: &str = "\
Lanyard keeps agent sessions alive, and lets you watch, steer and stop them from anywhere.

  lanyard run \"fix the login test\"           set an agent to work here, and watch it
  lanyard send ID \"and the other test\"       send it another message
  lanyard ls                                 see what is live
  lanyard open                               see and steer all of them in a browser
  lanyard show ID                            see one session
  lanyard log ID                             read what was said and done in it
  lanyard search \"login fails\"               find what was said and done in any of them
  lanyard guide ID \"use the staging key\"     steer a running agent
  lanyard approvals                          see what waits for approval; `lanyard answer` answers
  lanyard stop ID                            end it; again to insist
  lanyard resume ID                          bring its agent back
  lanyard plan import FILE --start           have many tasks done, each after what it needs
  lanyard flow run PLAN.md                   work through a plan's phases, with a review of each

The daemon starts by itself when it is needed: `lanyard status` shows it, `lanyard down` ends it.
`lanyard --help` lists all commands, `lanyard COMMAND --help` explains one with examples.
";

/// The whole command line, its commands listed in chapters.
pub(super) fn command() -> clap::Command {
    let chapters = [
        chapter::<Look>("Sessions"),
        chapter::<Steer>("Steering"),
        chapter::<Work>("Plans and tasks"),
        chapter::<Arrange>("Keeping order"),
        chapter::<Inside>("Agents' tools"),
        chapter::<Daemon>("The daemon"),
        chapter::<Advanced>("Advanced"),
    ];
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}\nGlobal options:\n{{options}}\n\n{}\n",
        chapters.join("\n"),
        Exit::help()
    );
    with_flowing_help(Cli::command().help_template(template))
}

/// The command with the text behind its options in paragraphs that wrap at the width of the terminal.
fn with_flowing_help(command: clap::Command) -> clap::Command {
    let text = command.get_after_help().map(ToString::to_string);
    let command = match text {
        Some(text) => command.after_help(flowing(&text)),
        None => command,
    };
    command.mut_subcommands(with_flowing_help)
}

/// A text with each paragraph in one line. Lines that are indented, and what stands behind a colon, keep their place.
fn flowing(text: &str) -> String {
    let mut flowing = String::new();
    let mut before = "";
    for line in text.lines() {
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        if is_prose(before) && is_prose(line) && !before.ends_with(':') {
            flowing.push(' ');
        } else if !flowing.is_empty() {
            flowing.push('\n');
        }
        flowing.push_str(line);
        before = line;
    }
    flowing
}

fn chapter<T: Subcommand>(title: &str) -> String {
    let group = T::augment_subcommands(clap::Command::new("group"));
    let mut text = format!("{title}:\n");
    for command in group.get_subcommands().filter(|command| !command.is_hide_set()) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<14}  {about}", command.get_name());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    /// FND-N16: text that was broken for one width is torn at every other.
    #[test]
    fn fnd_n16_help_wraps_at_the_width_of_the_terminal() {
        assert_eq!(
            flowing("One\ntwo.\n\nThree:\n  a\n  b\nFour:\nfive\nsix"),
            "One two.\n\nThree:\n  a\n  b\nFour:\nfive six"
        );
        let mut whole = command();
        whole.build();
        let mut all = vec![whole];
        while let Some(command) = all.pop() {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert_eq!(text, flowing(&text), "{}", command.get_name());
            let mut narrow = command.clone().term_width(60);
            for line in narrow.render_help().to_string().lines() {
                // Names of options and examples are not broken.
                if line.starts_with(' ') || line.starts_with("Usage: ") {
                    continue;
                }
                assert!(line.chars().count() <= 60, "{}: {line}", command.get_name());
            }
            all.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn every_command_says_what_it_does_and_shows_an_example() {
        for command in command().get_subcommands() {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} says nothing of itself");
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                command.is_hide_set() || examples.contains(&format!("lanyard {name}")),
                "{name} has no example"
            );
        }
    }
}
