//! Answering an approval in a dialogue: lines in, an answer out. The prompt of `lanyard answer`, the one in place of
//! `lanyard flow watch` and that of `lanyard top` are this. Knows no stream, no screen and no daemon.

use lanyard_api::types::{FlowAnswer, GateAnswer};
use lanyard_core::flow::gate::parse;
use lanyard_core::flow::{Choice, FlowGate, FlowGateKind};
use lanyard_core::session::Question;

use crate::render::text::{fit, one_line};

/// Columns of the typed line that a complaint repeats.
const ECHO_COLUMNS: usize = 40;

/// A flow's approval, and the part of its answer that was given so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dialogue {
    gate: FlowGate,
    /// Chosen; the words for the agent are asked for.
    chosen: Option<Choice>,
}

/// What follows from a line.
#[derive(Debug, Clone)]
pub(crate) enum Next {
    /// It was no answer: this is why, and the same is asked again.
    Again(String),
    /// Words for the agent are asked for; an empty line is none.
    Guidance,
    Answer(FlowAnswer),
}

impl Dialogue {
    pub(crate) fn new(gate: FlowGate) -> Self {
        Self { gate, chosen: None }
    }

    pub(crate) fn gate(&self) -> &FlowGate {
        &self.gate
    }

    /// What is asked now, on one line.
    pub(crate) fn prompt(&self) -> String {
        match self.chosen {
            None => {
                let letters: Vec<String> =
                    self.gate.offered().iter().map(|choice| choice.letter().to_string()).collect();
                format!("{} > ", letters.join("/"))
            }
            Some(_) => "message to the agent (Enter: none) > ".to_owned(),
        }
    }

    pub(crate) fn line(&mut self, line: &str) -> Next {
        if let Some(choice) = self.chosen.take() {
            return Next::Answer(answer(choice, Some(line)));
        }
        match read(&self.gate, line) {
            Err(why) => Next::Again(why),
            Ok((choice, None)) if choice.takes_guidance() => {
                self.chosen = Some(choice);
                Next::Guidance
            }
            Ok((choice, words)) => Next::Answer(answer(choice, words.as_deref())),
        }
    }

    /// The gate as it is now. What was chosen and is no longer offered is taken back; true when that happened.
    pub(crate) fn renew(&mut self, gate: FlowGate) -> bool {
        self.gate = gate;
        let gone = self.chosen.is_some_and(|choice| !self.gate.offers(choice));
        if gone {
            self.chosen = None;
        }
        gone
    }
}

fn answer(choice: Choice, words: Option<&str>) -> FlowAnswer {
    let guidance = words.map(str::trim).filter(|words| !words.is_empty()).map(str::to_owned);
    FlowAnswer { choice, guidance }
}

/// Reads an answer as it is typed: `c`, `continue-session`, `c: words`. What is not one, or is not offered, is told with
/// all that can be typed instead.
pub(crate) fn read(gate: &FlowGate, line: &str) -> Result<(Choice, Option<String>), String> {
    let typed = line.trim();
    let instead = instead(gate);
    if typed.is_empty() {
        return Err(format!("type {instead}"));
    }
    let word = typed.split_once(':').map_or(typed, |(word, _)| word);
    match parse(typed) {
        Some((choice, words)) if gate.offers(choice) => Ok((choice, words)),
        Some(_) => {
            let why = gate.not_offered.as_deref().map(|why| format!(": {}", one_line(why)));
            Err(format!("that is not offered{}; type {instead}", why.unwrap_or_default()))
        }
        None if parse(word).is_some() => Err(format!("`{}` takes no words; type {instead}", one_line(word))),
        None => {
            let echo = fit(&one_line(typed), ECHO_COLUMNS);
            Err(format!("`{echo}` is no answer; type {instead}"))
        }
    }
}

/// `c (continue-session), f (fix), o (override) or q (abort)`: what is offered, and nothing else.
fn instead(gate: &FlowGate) -> String {
    let offered = gate.offered();
    let named = offered.iter().map(|choice| format!("{} ({})", choice.letter(), word(*choice, gate.kind)));
    let mut named: Vec<String> = named.collect();
    match named.pop() {
        Some(last) if !named.is_empty() => format!("{} or {last}", named.join(", ")),
        only => only.unwrap_or_default(),
    }
}

/// The word one can type instead of the letter.
pub(crate) const fn word(choice: Choice, kind: FlowGateKind) -> &'static str {
    match (choice, kind) {
        (Choice::ContinueSession, _) => "continue-session",
        (Choice::Continue, _) => "fix",
        (Choice::Approve, FlowGateKind::Phase) => "approve",
        (Choice::Approve, FlowGateKind::Escalation | FlowGateKind::Review) => "override",
        (Choice::Abort, _) => "abort",
    }
}

/// The prompt for an agent's approval, on one line.
pub(crate) fn approval_prompt(question: &Question) -> String {
    let options: Vec<String> = (1..)
        .zip(&question.options)
        .map(|(number, option)| format!("{number} {}", one_line(&option.name)))
        .collect();
    let letters = match (question.choose("allow"), question.choose("deny")) {
        (Some(_), Some(_)) => "; a = allow, d = deny",
        _ => "",
    };
    format!("{}{letters} > ", options.join(", "))
}

/// Reads an answer to an agent's approval as it is typed: the number, id or name of an option, `a` or `d`, each also
/// with words for the agent behind a colon. What is no answer is told with all that can be typed instead.
pub(crate) fn read_approval(question: &Question, line: &str) -> Result<GateAnswer, String> {
    let typed = line.trim();
    let (word, words) = match typed.split_once(':') {
        Some((word, words)) => (word.trim(), Some(words.trim()).filter(|words| !words.is_empty())),
        None => (typed, None),
    };
    let named = |word: &str| question.options.iter().find(|option| option.name.eq_ignore_ascii_case(word));
    let nth = |word: &str| question.options.get(word.parse::<usize>().ok()?.checked_sub(1)?);
    let known = |word: &str| question.choose(word).or_else(|| named(word)).or_else(|| nth(word));
    let option = match word {
        "a" | "y" => known(word).or_else(|| question.choose("allow")),
        "d" | "n" => known(word).or_else(|| question.choose("deny")),
        word => known(word),
    };
    // The name of an option may have a colon in it.
    let (option, words) = match option {
        Some(option) => (Some(option), words),
        None => (known(typed), None),
    };
    option
        .map(|option| GateAnswer { option: option.id.clone(), message: words.map(str::to_owned) })
        .ok_or_else(|| {
            let options: Vec<String> = (1..)
                .zip(&question.options)
                .map(|(number, option)| format!("{number} ({})", one_line(&option.name)))
                .collect();
            let options = options.join(", ");
            if typed.is_empty() {
                return format!("type {options}");
            }
            format!("`{}` is no answer; type {options}", fit(&one_line(typed), ECHO_COLUMNS))
        })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::render::flow_fixture::{escalation, phase_gate};

    /// A whole dialogue as text: what is asked, what is typed, what comes of it.
    fn talk(gate: FlowGate, lines: &[&str]) -> String {
        let mut dialogue = Dialogue::new(gate);
        let mut text = String::new();
        for line in lines {
            text.push_str(format!("{}{line}", dialogue.prompt()).trim_end());
            text.push('\n');
            match dialogue.line(line) {
                Next::Again(why) => text = text + &why + "\n",
                Next::Guidance => {}
                Next::Answer(answer) => {
                    let words = answer.guidance.map(|words| format!(" {words:?}")).unwrap_or_default();
                    return text + &format!("= {}{words}\n", answer.choice.as_str());
                }
            }
        }
        text + "= still open\n"
    }

    fn check(gate: FlowGate, lines: &[&str], expected: &Expect) {
        expected.assert_eq(&talk(gate, lines));
    }

    /// S2-T1, S2-T2: the letter and the name, and nothing said to the agent (S2-07).
    #[test]
    fn c_goes_on_with_the_session() {
        check(
            escalation(true),
            &["c", ""],
            &expect![[r"
                c/f/o/q > c
                message to the agent (Enter: none) >
                = continue_session
            "]],
        );
        for typed in ["continue-session", "continue_session", " C ", "Continue-Session"] {
            assert!(talk(escalation(true), &[typed, ""]).ends_with("= continue_session\n"), "{typed}");
        }
    }

    /// S2-T3, S2-07, S2-08: words after a colon, or when asked for them.
    #[test]
    fn words_for_the_agent_come_after_a_colon_or_when_asked_for() {
        check(
            escalation(true),
            &["c: fix the import"],
            &expect![[r#"
                c/f/o/q > c: fix the import
                = continue_session "fix the import"
            "#]],
        );
        check(
            escalation(true),
            &["f", "  use the staging key: it is in vault  "],
            &expect![[r#"
                c/f/o/q > f
                message to the agent (Enter: none) >   use the staging key: it is in vault
                = continue "use the staging key: it is in vault"
            "#]],
        );
        // Asked for words, a letter is a word.
        assert!(talk(escalation(true), &["c", "q"]).ends_with("= continue_session \"q\"\n"));
    }

    /// S2-T4, S2-06: what is not offered is invalid, is not answered, and is asked again without naming it.
    #[test]
    fn c_is_invalid_when_it_is_not_offered() {
        check(
            escalation(false),
            &["c", "continue-session", "c: fix the import", "f: from scratch"],
            &expect![[r#"
                f/o/q > c
                that is not offered: its session is gone; type f (fix), o (override) or q (abort)
                f/o/q > continue-session
                that is not offered: its session is gone; type f (fix), o (override) or q (abort)
                f/o/q > c: fix the import
                that is not offered: its session is gone; type f (fix), o (override) or q (abort)
                f/o/q > f: from scratch
                = continue "from scratch"
            "#]],
        );
    }

    #[test]
    fn what_is_no_answer_is_told_and_asked_again() {
        check(
            escalation(true),
            &[
                "",
                "yes",
                "x: words",
                "o: but mend it later",
                "maybe \u{1b}[31m with a very long explanation of why",
                "o",
            ],
            &expect![[r"
                c/f/o/q >
                type c (continue-session), f (fix), o (override) or q (abort)
                c/f/o/q > yes
                `yes` is no answer; type c (continue-session), f (fix), o (override) or q (abort)
                c/f/o/q > x: words
                `x: words` is no answer; type c (continue-session), f (fix), o (override) or q (abort)
                c/f/o/q > o: but mend it later
                `o` takes no words; type c (continue-session), f (fix), o (override) or q (abort)
                c/f/o/q > maybe [31m with a very long explanation of why
                `maybe �[31m with a very long explanatio…` is no answer; type c (continue-session), f (fix), o (override) or q (abort)
                c/f/o/q > o
                = approve
            "]],
        );
        assert!(talk(escalation(true), &["nothing", "more"]).ends_with("= still open\n"));
    }

    #[test]
    fn a_phase_that_is_ready_is_approved() {
        check(
            phase_gate(),
            &["x", "approve"],
            &expect![[r"
                f/o/q > x
                `x` is no answer; type f (fix), o (approve) or q (abort)
                f/o/q > approve
                = approve
            "]],
        );
        assert!(talk(phase_gate(), &["q"]).ends_with("= abort\n"));
    }

    /// S2-B03: withdrawn while somebody types.
    #[test]
    fn what_was_chosen_and_is_withdrawn_is_chosen_again() {
        let mut dialogue = Dialogue::new(escalation(true));
        assert!(matches!(dialogue.line("c"), Next::Guidance));
        assert!(!dialogue.renew(escalation(true)));
        assert!(dialogue.renew(escalation(false)));
        assert_eq!(dialogue.prompt(), "f/o/q > ");
        assert!(matches!(dialogue.line("c"), Next::Again(_)));
    }

    fn question(options: &[(&str, &str, &str)]) -> Question {
        let options: Vec<serde_json::Value> = options
            .iter()
            .map(|(id, name, kind)| serde_json::json!({"id": id, "name": name, "kind": kind}))
            .collect();
        serde_json::from_value(serde_json::json!({
            "kind": "permission", "title": "Which?", "request": "1", "options": options,
        }))
        .unwrap()
    }

    #[test]
    fn an_agents_question_is_answered_by_number_letter_id_or_name() {
        let permission = question(&[
            ("yes", "Allow once", "allow_once"),
            ("always", "Always allow", "allow_always"),
            ("no", "Reject", "reject_once"),
        ]);
        assert_eq!(
            approval_prompt(&permission),
            "1 Allow once, 2 Always allow, 3 Reject; a = allow, d = deny > "
        );
        for (line, option, words) in [
            ("1", "yes", None),
            ("a", "yes", None),
            (" d ", "no", None),
            ("allow", "yes", None),
            ("always allow", "always", None),
            ("no: use staging", "no", Some("use staging")),
            ("3:", "no", None),
        ] {
            let answer = read_approval(&permission, line).unwrap();
            assert_eq!((answer.option.as_str(), answer.message.as_deref()), (option, words), "{line}");
        }
        for (line, why) in [
            ("", "type 1 (Allow once), 2 (Always allow), 3 (Reject)"),
            ("4", "`4` is no answer; type 1 (Allow once), 2 (Always allow), 3 (Reject)"),
            ("maybe", "`maybe` is no answer; type 1 (Allow once), 2 (Always allow), 3 (Reject)"),
        ] {
            assert_eq!(read_approval(&permission, line).unwrap_err(), why);
        }
    }

    #[test]
    fn a_question_with_options_of_its_own_has_no_allow() {
        let own = question(&[("choice1", "Left: the old way", "other"), ("choice2", "Right", "other")]);
        assert_eq!(approval_prompt(&own), "1 Left: the old way, 2 Right > ");
        assert_eq!(read_approval(&own, "left: the old way").unwrap().option, "choice1");
        assert_eq!(read_approval(&own, "2").unwrap().option, "choice2");
        assert!(read_approval(&own, "a").is_err());
    }
}
